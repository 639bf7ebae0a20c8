package page

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"

	"tapin/internal/secret"
)

// then is what can be done with the field as soon as it is found.
func (f Field) then(ctx context.Context) then {
	var do then
	if f.Only != "" {
		return do // the document is looked at first
	}
	if g := guardOf(ctx); g != nil {
		do.Gate = &payRules{Patterns: g.Patterns}
	}
	if text := f.Value.Reveal(); wholly(text) {
		do.Hold = &holding{Clear: true, Value: text}
	}
	return do
}

// closed are the documents whose gate was closed when the field was found.
func (f field) closed() []frame {
	if f.armed {
		return []frame{f.frame}
	}
	return nil
}

// wholly reports whether a text can be put in as a whole. Line breaks mean
// something else in each kind of field.
func wholly(text string) bool {
	return text != "" && !strings.ContainsFunc(text, unicode.IsControl)
}

// write gives a field its text: as a whole where that comes to stand there, and
// else key by key, as pages with a mask for what is typed want it.
func (t *Tab) write(ctx context.Context, f field, text secret.Text) error {
	if held := f.held; held != nil && held.Focused && !held.Boxes {
		held.frame, held.gate = f.frame, f.gate
		other := false
		err := f.deed.do(func() (err error) {
			events := inOneGo(text.Reveal())
			if err = t.strike(ctx, events); err == nil {
				other, err = t.release(ctx, *held, true, events)
			}
			return err
		})
		t.letLoose(f.frame, err)
		if err != nil || !other {
			return err
		}
	}
	_, err := t.typeInto(ctx, f, text, true)
	return err
}

// inOneGo are the events that put a text in. The last character comes by its
// key: many pages look at a field when a key goes up, and find all of it then.
func inOneGo(text string) []any {
	last, size := utf8.DecodeLastRuneInString(text)
	k, typed := characters[last]
	if !typed {
		return []any{input.InsertTextParams{Text: text}}
	}
	var events []any
	if first := text[:len(text)-size]; first != "" {
		events = append(events, input.InsertTextParams{Text: first})
	}
	var bits int64
	if unshifted(k) != k {
		bits = shiftBit
	}
	return append(events, k.down(bits, nil), k.up(bits))
}
