package sidecar

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"tapin/internal/console"
	"tapin/internal/fault"
	"tapin/internal/oneshot"
)

// lookups show the last one-shots to the console.
type lookups struct{ room *oneshot.Room }

var _ console.Lookups = lookups{}

func (l lookups) Recent(context.Context) []console.Lookup {
	var out []console.Lookup
	for _, c := range l.room.Cards() {
		one := console.Lookup{ID: c.ID, Kind: c.Kind, At: c.At, URL: c.URL}
		var seen oneshot.Seen
		switch {
		case c.Err != nil:
			f := fault.Of(c.Err)
			one.Error = &console.LookupError{Code: string(f.Code), Message: f.Code.Sentence()}
			one.Retries, _ = f.Data["retries"].(int)
		case c.Shot != nil:
			seen, one.Truncated, one.Photo = c.Shot.Seen, c.Shot.Truncated, true
		case c.Extract != nil:
			seen, one.Truncated, one.Content = c.Extract.Seen, c.Extract.Truncated, words(c.Extract.Content)
		}
		if c.Err == nil {
			one.Title, one.FinalURL, one.StatusCode, one.Retries = seen.Title, seen.FinalURL, seen.StatusCode, seen.Retries
		}
		out = append(out, one)
	}
	return out
}

// words are content as a person reads it.
func words(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case json.RawMessage:
		return string(c)
	}
	return ""
}

func (l lookups) Photo(_ context.Context, id string) ([]byte, string, error) {
	all := l.room.Cards()
	i := slices.IndexFunc(all, func(c oneshot.Card) bool { return c.ID == id })
	if i < 0 || all[i].Shot == nil || all[i].Err != nil {
		return nil, "", fault.New(fault.NotFound, "", "that picture is not kept any more")
	}
	raw, err := base64.StdEncoding.DecodeString(all[i].Shot.Base64)
	if err != nil {
		return nil, "", fault.New(fault.ProviderError, "", "the browser sent something that is no picture")
	}
	return raw, all[i].Shot.MIME, nil
}

func (l lookups) Again(ctx context.Context, id string) error {
	_, err := l.room.Again(ctx, id)
	return err
}
