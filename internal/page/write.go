package page

import (
	"context"
	"strings"
	"unicode"

	"tapin/internal/secret"
)

// putting is how the engine is asked to give a field its text.
type putting struct {
	Locator *Locator  `json:"locator,omitempty"`
	ID      int       `json:"id,omitzero"`
	Gate    *payRules `json:"gate,omitempty"` // to be closed for it
	Open    bool      `json:"open"`           // and opened again, or one that was closed before
	Value   string    `json:"value"`
}

// wholly reports whether a text can be put in as a whole. Line breaks mean
// something else in each kind of field.
func wholly(text secret.Text) bool {
	return text.Reveal() != "" && !strings.ContainsFunc(text.Reveal(), unicode.IsControl)
}

// putAtOnce fills a field in a single question, where the page is one document
// and nobody has to wait for anything. done is false where nothing was done.
func (t *Tab) putAtOnce(ctx context.Context, f field, want Field) (done bool, err error) {
	l := want.Locator
	main, ok := t.frames.get(t.frames.main)
	if !ok || !t.frames.alone(main) || want.Only != "" || l.X != nil || l.Ref != "" || !wholly(want.Value) ||
		l.check("fill") != nil || t.tabs.hidden().allow("fill", l) != nil {
		return false, nil
	}
	f.frame = main
	err = t.aside(ctx, "fill", []frame{main}, func(gate *passage) error {
		f.gate = gate
		args := putting{Locator: &l, Open: gate != nil, Value: want.Value.Reveal()}
		if gate != nil {
			args.Gate = &gate.rules
		}
		done, err = t.put(ctx, f, args)
		if !done && err == nil {
			gate.neverClosed()
		}
		return err
	})
	return done, err
}

// write gives a field its text: as a whole where that comes to stand there, and
// else key by key, as pages with a mask for what is typed want it.
func (t *Tab) write(ctx context.Context, f field, text secret.Text) error {
	if wholly(text) {
		if done, err := t.put(ctx, f, putting{ID: f.ID, Open: f.gate.opens(f.frame), Value: text.Reveal()}); done || err != nil {
			return err
		}
	}
	_, err := t.typeInto(ctx, f, text, true)
	return err
}

// put has the document give a field its text. done is false where it did not, or
// where something else came to stand there.
func (t *Tab) put(ctx context.Context, f field, args putting) (done bool, err error) {
	err = f.deed.do(func() error {
		var told *released
		err := t.tabs.refreshBeside(ctx, func() error { return t.call(ctx, f.frame, "put", args, &told) })
		if told == nil && err == nil || told != nil && told.Other {
			return nil
		}
		done = true
		if told == nil {
			told = &released{}
		}
		f.gate.opened(told.Gate)
		return told.judge(err, nil)
	})
	t.letLoose(f.frame, err)
	return done, err
}
