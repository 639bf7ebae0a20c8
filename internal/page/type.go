package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// TypeOptions say where a text is typed and what goes before and after it. Without
// a Locator it is the field that has the focus, wherever it is.
type TypeOptions struct {
	Locator *Locator
	Clear   bool // empty the field first
	Submit  bool // press Enter afterwards
	Timeout time.Duration
}

// Typed says what was done, and nothing of what was typed.
type Typed struct {
	Characters int    `json:"characters"`
	Field      string `json:"field"` // its kind: password, text, one-time-code, …
	Origin     string `json:"origin"`
}

// The kinds of fields that can hold more than one line.
const (
	kindTextarea = "textarea"
	kindEditable = "contenteditable"
)

// typingWithin is what a text may take beside the wait for its field.
const typingWithin = 30 * time.Second

// field is what the engine tells of one.
type field struct {
	Gone     bool   `json:"gone"` // it was there, and is no more
	ID       int    `json:"id"`
	Kind     string `json:"kind"`
	Way      string `json:"way"` // how it gets a value: type, pick, tick, choose, file, none
	Origin   string `json:"origin"`
	Focused  bool   `json:"focused"`
	Empty    bool   `json:"empty"`
	Locked   string `json:"locked"` // disabled or read-only
	Boxes    bool   `json:"boxes"`  // it may hand the focus on after each character
	Multiple bool   `json:"multiple"`
	Folder   bool   `json:"folder"`
	Accept   string `json:"accept"`

	frame frame
	point *Point   // where to click it; nil when it has the focus
	deed  *deed    // told when the field is given its value; nil tells nobody
	gate  *passage // the closed gate behind which that happens; nil without a guard
}

// Type types a text the way a person does.
func (t *Tab) Type(ctx context.Context, text secret.Text, o TypeOptions) (Typed, error) {
	const op = "type"
	if err := readable(text); err != nil {
		return Typed{}, fieldFault(op, err)
	}
	ctx, cancel := fieldTime(ctx, o.Timeout)
	defer cancel()
	var done Typed
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		return t.aside(ctx, op, nil, func(gate *passage) error {
			f, err := t.typingField(ctx, o)
			if err != nil {
				return err
			}
			f.gate = gate
			done = Typed{Field: f.Kind, Origin: f.Origin}
			if f.Locked != "" {
				return locked(f)
			}
			done.Characters, err = t.typeInto(ctx, f, text, o.Clear)
			return err
		})
	})
	if err == nil && o.Submit {
		err = t.strikeGuarded(ctx, chord{key: named["enter"]})
	}
	return done, fieldFault(op, err)
}

// typingField is the field meant, or else the one with the focus.
func (t *Tab) typingField(ctx context.Context, o TypeOptions) (field, error) {
	if o.Locator == nil {
		return t.focusedField(ctx)
	}
	if o.Locator.X != nil {
		return t.fieldUnder(ctx, *o.Locator, o.Timeout)
	}
	f, err := t.fieldAt(ctx, *o.Locator, o.Timeout)
	if err == nil && f.Way != "type" {
		err = fault.New(fault.ElementNotActionable, "", "nobody types into a field of kind %s", f.Kind).WithHint("Use fill, or select for lists.")
	}
	return f, err
}

// fieldUnder clicks a point and types into what has the focus then: what is
// there may be the inside of a frame.
func (t *Tab) fieldUnder(ctx context.Context, l Locator, within time.Duration) (field, error) {
	at, err := t.locate(ctx, l, toAct, within)
	if err != nil {
		return field{}, err
	}
	press := t.arriving(at, func(ctx context.Context) error { return t.touch(ctx, at.point) })
	if err := press(ctx); err != nil {
		return field{}, err
	}
	return t.focusedField(ctx)
}

// fieldAt finds a field and waits until it can be used in the way of its kind,
// which the engine knows: one question, one answer.
func (t *Tab) fieldAt(ctx context.Context, l Locator, within time.Duration) (field, error) {
	at, err := t.search(ctx, hunt{op: "find the element", locator: l, within: within, field: true})
	switch {
	case err != nil:
		return field{}, err
	case l.X != nil: // at a point nobody was asked
		var f field
		if f, err = t.field(ctx, at); err != nil {
			return field{}, err
		}
		at.field = &f
	case at.field == nil:
		return field{}, noField()
	}
	f := *at.field
	f.frame, f.point = at.frame, &at.point
	if f.Locked != "" {
		err = locked(f)
	}
	return f, err
}

func noField() error {
	return fault.New(fault.ElementNotActionable, "", "that is no field, and none belongs to it")
}

// readable refuses what no keyboard could mean.
func readable(text secret.Text) error {
	if utf8.ValidString(text.Reveal()) {
		return nil
	}
	return fault.New(fault.InvalidRequest, "", "the text is not valid UTF-8")
}

func locked(f field) error {
	return fault.New(fault.ElementNotActionable, "", "the field is %s", f.Locked)
}

// field is the one that the element found stands for.
func (t *Tab) field(ctx context.Context, at found) (field, error) {
	var f *field
	if err := t.call(ctx, at.frame, "field", map[string]int{"id": at.id}, &f); err != nil {
		return field{}, err
	}
	if f == nil {
		return field{}, noField()
	}
	f.frame, f.point = at.frame, &at.point
	return *f, nil
}

// focusedField is the field with the focus, also inside of a closed shadow root.
func (t *Tab) focusedField(ctx context.Context) (field, error) {
	f, err := t.askFocus(ctx)
	if !errors.Is(err, fault.NoFocusedField) {
		return f, err
	}
	if err := t.adoptClosed(ctx); err != nil {
		return field{}, err
	}
	return t.askFocus(ctx)
}

// askFocus asks every document at once: a page and a frame of another site in
// it do not know of each other where exactly the focus is.
func (t *Tab) askFocus(ctx context.Context) (field, error) {
	type told struct {
		Here  bool   `json:"here"`
		Field *field `json:"field"`
	}
	all := t.frames.list()
	answers := make([]told, len(all))
	var hangs atomic.Bool
	var wg guard.Group
	for i, f := range all {
		wg.Run(func() {
			limited, cancel := t.patient(ctx, f)
			defer cancel()
			if err := t.call(limited, f, "focusedField", nil, &answers[i]); err != nil {
				answers[i] = told{} // a frame that goes away meanwhile has no focus either
				if errors.Is(err, context.DeadlineExceeded) {
					hangs.Store(true)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return field{}, err
	}
	// The innermost one: frames are listed with their parents first.
	for i, a := range slices.Backward(answers) {
		if a.Here && a.Field != nil {
			a.Field.frame = all[i]
			return *a.Field, nil
		}
	}
	if hangs.Load() {
		return field{}, fault.New(fault.WaitTimeout, "", "no document that answers has a field with the focus, and one does not answer").WithHint("Nothing was typed. Try again in a moment, or say which field is meant.")
	}
	return field{}, fault.New(fault.NoFocusedField, "", "no editable field has the focus")
}

// typeInto gives the field the focus, empties it if wanted, types, and makes
// sure that the field took it. It returns how many characters were typed.
func (t *Tab) typeInto(ctx context.Context, f field, text secret.Text, clearFirst bool) (int, error) {
	// A click into text would put the caret wherever it lands.
	if !f.Focused && f.point != nil && (f.Empty || clearFirst) {
		if err := t.touch(ctx, *f.point); err != nil {
			return 0, err
		}
	}
	var held field
	if err := t.call(ctx, f.frame, "hold", map[string]any{"id": f.ID, "clear": clearFirst}, &held); err != nil {
		return 0, err
	}
	switch {
	case held.Gone:
		return 0, fault.New(fault.ElementNotActionable, "", "the field went away when it was to get the focus")
	case !held.Focused:
		return 0, fault.New(fault.ElementNotActionable, "", "the field does not take the focus")
	}
	held.frame, held.gate = f.frame, f.gate
	var typed int
	err := f.deed.do(func() (err error) {
		typed, err = t.typeHeld(ctx, held, text, clearFirst)
		return err
	})
	t.letLoose(f.frame, err)
	return typed, err
}

// letLoose ends the watch over a field when typing failed. The page may be busy
// or stopped by a dialog; when it goes on, the next to type may be a person, and
// anywhere else.
func (t *Tab) letLoose(in frame, err error) {
	if err != nil {
		t.tell(in, "release", releasing{})
	}
}

func (t *Tab) typeHeld(ctx context.Context, held field, text secret.Text, clearFirst bool) (int, error) {
	var events []any
	if clearFirst && !held.Empty {
		events = erase(held.Kind)
	}
	strokes := keystrokes(text.Reveal(), held.Kind)
	if held.Boxes {
		return t.typeBoxes(ctx, held, events, strokes)
	}
	for _, s := range strokes {
		events = append(events, s...)
	}
	if err := t.strike(ctx, events); err != nil {
		return 0, err
	}
	err := t.release(ctx, held, len(strokes) > 0, events)
	return utf8.RuneCountInString(text.Reveal()), err
}

// typeBoxes types a code: one character, and then a look at where the page
// wants the next one.
func (t *Tab) typeBoxes(ctx context.Context, held field, first []any, strokes [][]any) (int, error) {
	if err := t.strike(ctx, first); err != nil {
		return 0, err
	}
	for i, s := range strokes {
		if err := t.strike(ctx, s); err != nil {
			return i, err
		}
		if i == len(strokes)-1 {
			break
		}
		err := t.call(ctx, held.frame, "onward", nil, nil)
		if errors.Is(err, errWorldGone) {
			return i + 1, fault.New(fault.ElementNotActionable, "", "the page went on after %d of the characters", i+1)
		}
		if err != nil {
			return i + 1, err
		}
	}
	err := t.release(ctx, held, len(strokes) > 0, nil)
	return len(strokes), err
}

// releasing is how a field is let go of.
type releasing struct {
	Expect bool `json:"expect"`         // it should have changed
	Open   bool `json:"open,omitempty"` // the gate is opened as well
}

// release ends the watch over the field and judges what came of it.
func (t *Tab) release(ctx context.Context, held field, expect bool, events []any) error {
	var told released
	err := t.call(ctx, held.frame, "release", releasing{expect, held.gate.opens(held.frame)}, &told)
	held.gate.opened(told.Gate)
	return told.judge(err, events)
}

// released is what the engine says of a field that it has let go of.
type released struct {
	Gone    bool        `json:"gone"` // another document, or too long ago
	Changed bool        `json:"changed"`
	Keys    int         `json:"keys"`
	Inserts int         `json:"inserts"`
	Other   bool        `json:"other"` // something else stands there than was to; the gate is still closed
	Gate    *gateReport `json:"gate"`
}

// judge says what is wrong when not everything has arrived. Where the page went
// on by itself, as after the last digit of a code, it took the text.
func (told released) judge(err error, events []any) error {
	if errors.Is(err, errWorldGone) || err == nil && told.Gone {
		return nil
	}
	if err != nil {
		return err
	}
	keys, inserts := arrivals(events)
	switch {
	case told.Keys < keys || told.Inserts < inserts:
		return fault.New(fault.ElementNotActionable, "", "the page took the focus away while typing, so not all of the text is in the field").
			WithHint("Wait until the page has settled, then type again with clear.")
	case !told.Changed:
		return fault.New(fault.ElementNotActionable, "", "the field did not take the text: nothing in it changed").
			WithHint("It may be read-only, full, or accept other characters only.")
	}
	return nil
}

// arrivals counts what the field must have heard of: keys going down, and texts
// that come without one.
func arrivals(events []any) (keys, inserts int) {
	for _, e := range events {
		switch e := e.(type) {
		case input.DispatchKeyEventParams:
			if e.Type != input.DispatchKeyEventTypeKeyUp {
				keys++
			}
		case input.InsertTextParams:
			if strings.ContainsFunc(e.Text, func(r rune) bool { return r > '~' }) {
				inserts++
			}
		}
	}
	return keys, inserts
}

// erase are the keys that delete what is selected. In a rich editor selecting is
// the keyboard's work too, so that the editor knows of it.
func erase(kind string) []any {
	var events []any
	if kind == kindEditable {
		all := chord{held: []key{named["control"]}, bits: ctrlBit, key: characters['a']}
		events = all.events()
	}
	gone := chord{key: named["backspace"]}
	return append(events, gone.events()...)
}

// touch clicks a point, to give what is there the focus.
func (t *Tab) touch(ctx context.Context, at Point) error {
	return worldError(t.play(ctx, ClickOptions{Button: "left", Count: 1}.mouse(at)))
}

// fieldTime bounds what is done with a field: the wait for it and the work itself.
func fieldTime(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	if within <= 0 {
		within = actWithin
	}
	return context.WithTimeout(ctx, within+typingWithin)
}

// fieldFault gives what went wrong with a field its code. It never holds a
// value: none of the causes does.
func fieldFault(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errWorldGone):
		return fault.New(fault.ElementNotActionable, op, "%w", errWorldGone).WithHint("Look at the page again, then decide.")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.WaitTimeout, op, "the page did not answer in time")
	}
	return fmt.Errorf("%s: %w", op, err)
}
