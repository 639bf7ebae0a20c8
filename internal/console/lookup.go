package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"tapin/internal/fault"
)

// Lookups are pages that were opened for one call each: a picture, or what was
// read. They live in memory and are few.
type Lookups interface {
	// Recent are the last of them, the newest first.
	Recent(ctx context.Context) []Lookup
	// Photo is the picture of one, as it was answered.
	Photo(ctx context.Context, id string) (picture []byte, mime string, err error)
	// Again makes the same call once more; what comes of it is another one.
	Again(ctx context.Context, id string) error
}

// Lookup is one such call and what came of it.
type Lookup struct {
	ID         string       `json:"id"`
	Kind       string       `json:"kind"` // screenshot or extract
	At         time.Time    `json:"at"`
	URL        string       `json:"url"` // as it was asked for
	Title      string       `json:"title,omitempty"`
	FinalURL   string       `json:"final_url,omitempty"`
	StatusCode int          `json:"status_code,omitempty"`
	Content    string       `json:"content,omitempty"`
	Photo      bool         `json:"photo,omitempty"` // there is one to be fetched
	Truncated  bool         `json:"truncated,omitempty"`
	Retries    int          `json:"retries,omitempty"`
	Error      *LookupError `json:"error,omitempty"`
}

// LookupError is why there is nothing to show, in a calm sentence.
type LookupError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// lookups are the last calls, cut to what is read on a phone.
func (d *Door) lookups(ctx context.Context) []Lookup {
	if d.deps.Lookups == nil {
		return []Lookup{}
	}
	all := upTo(d.deps.Lookups.Recent(ctx), maxShown)
	for i := range all {
		l := &all[i]
		l.URL, l.FinalURL, l.Title, l.Content = cut(l.URL), cut(l.FinalURL), cut(l.Title), cut(l.Content)
	}
	return all
}

// lookAgain makes a call once more. That it failed again is on its card.
func (d *Door) lookAgain(ctx context.Context, id string) (string, error) {
	if d.deps.Lookups == nil {
		return "", fault.New(fault.Disabled, "", "the browser tools are switched off")
	}
	return "Tried again.", d.deps.Lookups.Again(ctx, id)
}

// photo answers with the picture of a lookup.
func (d *Door) photo(w http.ResponseWriter, r *http.Request) {
	if _, _, _, err := d.enter(r); err != nil {
		refuse(w, err)
		return
	}
	if d.deps.Lookups == nil {
		refuse(w, fault.New(fault.NotFound, "", "there is no such picture"))
		return
	}
	picture, mime, err := d.deps.Lookups.Photo(r.Context(), r.PathValue("lookup"))
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", mime)
	w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
	_, _ = w.Write(picture) //nolint:gosec // a picture of our own making, under its own type
}
