package page

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp/jsonv2"

	"tapin/internal/fault"
)

// Text is what there is to read on the page, frames included, without what is
// hidden and without what stands in fields; max 0 means 20,000 characters.
func (t *Tab) Text(ctx context.Context, limit int) (text string, truncated bool, err error) {
	if limit == 0 {
		limit = defaultMaxChars
	}
	if limit < 0 {
		return "", false, fault.New(fault.InvalidRequest, "read the text", "%d is no number of characters", limit)
	}
	err = t.reading(ctx, "read the text", func(ctx context.Context) error {
		r := &reader{tab: t, limit: limit, frames: t.seatFrames(ctx)}
		main, ok := t.frames.get(t.frames.main)
		if !ok {
			return errWorldGone
		}
		text, truncated, err = r.read(ctx, main)
		if err == nil && r.opaque {
			if err = t.adoptClosed(ctx); err == nil {
				text, truncated, err = r.read(ctx, main)
			}
		}
		return err
	})
	if err != nil {
		return "", false, err
	}
	text, cut := clip(t.tabs.hidden().conceal(text), limit)
	return text, truncated || cut, nil
}

// clip cuts a text after so many characters.
func clip(text string, limit int) (string, bool) {
	if utf8.RuneCountInString(text) <= limit {
		return text, false
	}
	return strings.TrimRight(string([]rune(text)[:limit]), " \n\t"), true
}

// reader puts the texts of a tab's frames together.
type reader struct {
	tab    *Tab
	limit  int
	frames []frame
	markup bool // as HTML, instead of text
	opaque bool // there may be more in it than the engine can see
	hangs  bool // a frame did not answer
}

func (r *reader) read(ctx context.Context, f frame) (string, bool, error) {
	var got struct {
		Parts  []jsonv2.Value `json:"parts"` // texts, and the numbers of frames between them
		Over   bool           `json:"over"`
		Opaque bool           `json:"opaque"`
	}
	fn, args := "text", map[string]any{"max": r.limit}
	if r.markup {
		fn, args["all"], args["steps"] = "markup", []int{}, []int{}
	}
	if err := r.tab.call(ctx, f, fn, args, &got); err != nil {
		return "", false, err
	}
	r.opaque = r.opaque || got.Opaque
	text, over, err := r.join(ctx, f, got.Parts)
	return text, over || got.Over, err
}

// join is what the engine said of a document, with its frames filled in.
func (r *reader) join(ctx context.Context, f frame, parts []jsonv2.Value) (text string, over bool, err error) {
	var blocks []string
	for _, raw := range parts {
		var part any
		if jsonv2.Unmarshal(raw, &part, jsonv2.AllowInvalidUTF8(true)) != nil {
			return "", false, errors.New("the page's engine answered in an unexpected shape")
		}
		switch part := part.(type) {
		case string:
			blocks = append(blocks, part)
		case float64:
			inner, more := r.inside(ctx, f, int(part))
			blocks = append(blocks, inner)
			over = over || more
		}
	}
	filled := blocks[:0]
	for _, b := range blocks {
		if b = strings.TrimSpace(b); b != "" {
			filled = append(filled, b)
		}
	}
	return strings.Join(filled, "\n"), over, nil
}

// inside is the text of a frame; one that does not answer has none.
func (r *reader) inside(ctx context.Context, parent frame, number int) (string, bool) {
	for _, f := range r.frames {
		if f.order == number && f.parent == parent.id {
			ctx, cancel := context.WithTimeout(ctx, frameWithin)
			defer cancel()
			text, over, err := r.read(ctx, f)
			r.hangs = r.hangs || errors.Is(err, context.DeadlineExceeded)
			return text, over || err != nil
		}
	}
	return "", false
}
