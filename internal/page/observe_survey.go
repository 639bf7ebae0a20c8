package page

import (
	"context"
	"errors"
	"strings"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"

	"tapin/internal/guard"
	"tapin/internal/secret"
)

// survey is what the documents of a tab told, before anything of it is kept.
type survey struct {
	glimpse
	lines   []string
	values  []secret.Text
	partial bool
}

// glimpse is one document's answer.
type glimpse struct {
	URL     string         `json:"url"`
	Title   string         `json:"title"`
	Origin  string         `json:"origin"`
	Local   []string       `json:"local"`
	Session []string       `json:"session"`
	Lines   []jsonv2.Value `json:"lines"` // texts, and the numbers of frames among them
	Values  []string       `json:"values"`
	Opaque  bool           `json:"opaque"`
}

// survey asks every document at once, and again where closed shadow roots may
// hide something.
func (t *Tab) survey(ctx context.Context) (survey, error) {
	for again := false; ; {
		all := t.seatFrames(ctx)
		seen := make(map[proto.FrameID]glimpse, len(all))
		err := t.glimpses(ctx, all, seen)
		switch {
		case errors.Is(err, errWorldGone) && ctx.Err() == nil:
			continue // there is another document
		case err != nil:
			return survey{}, err
		}
		opaque := false
		for _, g := range seen {
			opaque = opaque || g.Opaque
		}
		if opaque && !again {
			again = true
			if err := t.adoptClosed(ctx); err != nil {
				return survey{}, err
			}
			continue
		}
		return t.compose(all, seen), nil
	}
}

// glimpses has every document look at itself. A frame that does not answer has
// nothing; without the page itself there is nothing at all.
func (t *Tab) glimpses(ctx context.Context, all []frame, into map[proto.FrameID]glimpse) error {
	var mu sync.Mutex
	var busy guard.Group
	failed := errWorldGone // until the main document has answered
	for _, f := range all {
		busy.Run(func() {
			main := f.id == t.frames.main
			limited, cancel := t.patient(ctx, f)
			defer cancel()
			var g glimpse
			err := t.call(limited, f, "observe", map[string]bool{"main": main}, &g)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				into[f.id] = g
			}
			if main {
				failed = err
			}
		})
	}
	busy.Wait()
	return failed
}

// asksSecret begins the line of a field for a password or a code.
const asksSecret = "secret"

// compose puts the documents together as they are drawn: a frame counts where
// its page shows it. Of a frame of another origin only counts whether it asks
// for a secret: the rest is mostly advertising, and turns by itself.
func (t *Tab) compose(all []frame, seen map[proto.FrameID]glimpse) survey {
	whole := survey{glimpse: seen[t.frames.main]}
	var walk func(proto.FrameID)
	walk = func(id proto.FrameID) {
		g := seen[id]
		foreign := g.Origin != whole.Origin
		for _, raw := range g.Lines {
			var line any
			if jsonv2.Unmarshal(raw, &line, jsonv2.AllowInvalidUTF8(true)) != nil {
				continue
			}
			switch line := line.(type) {
			case string:
				if !foreign || strings.HasPrefix(line, asksSecret) {
					whole.lines = append(whole.lines, line)
				}
			case float64:
				for _, f := range all {
					if f.order == int(line) && f.parent == id {
						walk(f.id)
					}
				}
			}
		}
	}
	walk(t.frames.main)
	for _, f := range all {
		for _, v := range seen[f.id].Values {
			whole.values = append(whole.values, secret.New(v))
		}
	}
	return whole
}
