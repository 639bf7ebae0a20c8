package page

import (
	"context"

	"github.com/chromedp/cdproto/input"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// A person at the live view has hands of their own: what they do is passed on
// as it is, one event after the other, and nothing waits for the page. Whether
// something may be done is for whoever calls to know.

// Pointer is what one finger or the mouse does.
type Pointer struct {
	Kind   string  // down, move, up, cancel; of the mouse also tap: all of a click at a place
	X, Y   float64 // in CSS pixels of the page's window
	Finger int     // which finger, from 0; the mouse has -1
	Button string  // of the mouse: left, right, middle; empty while none is held
	Clicks int     // of the mouse: 2 is a double click
	Held   int64   // modifier keys: 1 Alt, 2 Control, 4 Meta, 8 Shift
}

// Wheel scrolls at a point, by CSS pixels.
type Wheel struct {
	X, Y, DX, DY float64
	Held         int64
}

// Stroke is one key of a keyboard going down or up.
type Stroke struct {
	Kind     string // down, up
	Key      string // what it means: "a", "Enter"
	Code     string // which it is: "KeyA"
	Held     int64
	Repeated bool
}

// farthest is beyond any window; points past it are a mistake or an attack.
const farthest = 1 << 15

func onPage(values ...float64) bool {
	for _, v := range values {
		if !(v > -farthest && v < farthest) { // also refuses what is no number
			return false
		}
	}
	return true
}

// Point passes on what a finger or the mouse does. fingers are all that touch
// the page then, as the browser wants to know them each time.
func (t *Tab) Point(ctx context.Context, p Pointer, fingers []Pointer) error {
	const op = "point"
	if !onPage(p.X, p.Y) || len(fingers) > 10 {
		return fault.New(fault.InvalidRequest, op, "that is no point of a page")
	}
	if p.Finger < 0 {
		return t.mouse(ctx, op, p)
	}
	kind, ok := map[string]input.DispatchTouchEventType{
		"down": input.DispatchTouchEventTypeTouchStart, "move": input.DispatchTouchEventTypeTouchMove,
		"up": input.DispatchTouchEventTypeTouchEnd, "cancel": input.DispatchTouchEventTypeTouchCancel,
	}[p.Kind]
	if !ok {
		return fault.New(fault.InvalidRequest, op, "a finger does not %q", short(p.Kind))
	}
	params := input.DispatchTouchEventParams{Type: kind, Modifiers: p.Held, TouchPoints: []*input.TouchPoint{}}
	for _, f := range fingers {
		if !onPage(f.X, f.Y) {
			return fault.New(fault.InvalidRequest, op, "that is no point of a page")
		}
		id := float64(f.Finger)
		params.TouchPoints = append(params.TouchPoints, &input.TouchPoint{X: f.X, Y: f.Y, ID: &id})
	}
	return t.session.Send(ctx, input.DispatchTouchEvent.Method, params)
}

// mouseDoes are the events of what a mouse does. Those of a tap come in one go: a
// page that is drawn between them shows what it made of the tap one picture later.
var mouseDoes = map[string][]input.DispatchMouseEventType{
	"down": {input.DispatchMouseEventTypeMousePressed}, "move": {input.DispatchMouseEventTypeMouseMoved},
	"up": {input.DispatchMouseEventTypeMouseReleased}, "cancel": {input.DispatchMouseEventTypeMouseReleased},
	"tap": {input.DispatchMouseEventTypeMouseMoved, input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased},
}

func (t *Tab) mouse(ctx context.Context, op string, p Pointer) error {
	kinds := mouseDoes[p.Kind]
	held, known := map[string]int64{"": 0, "left": 1, "right": 2, "middle": 4}[p.Button]
	if kinds == nil || !known || p.Clicks < 0 || p.Clicks > 3 {
		return fault.New(fault.InvalidRequest, op, "a mouse does not do that")
	}
	at := Point{X: p.X, Y: p.Y}
	if was := t.hovers.Swap(nil); p.Kind == "tap" && was != nil && *was == at {
		kinds = kinds[1:] // it has come already, with the finger that rested there
	}
	events := make([]any, len(kinds))
	for i, kind := range kinds {
		e := input.DispatchMouseEventParams{Type: kind, X: p.X, Y: p.Y, Modifiers: p.Held, Button: input.MouseButtonNone}
		if p.Button != "" && !(p.Kind == "tap" && kind == input.DispatchMouseEventTypeMouseMoved) {
			e.Button, e.ClickCount = input.MouseButton(p.Button), int64(p.Clicks)
			if kind != input.DispatchMouseEventTypeMouseReleased {
				e.Buttons = held
			}
		}
		events[i] = e
	}
	if p.Kind == "move" && p.Button == "" {
		t.hovers.Store(&at)
	}
	return t.session.Send(ctx, input.DispatchMouseEvent.Method, events...)
}

// Wheel scrolls whatever is at a point.
func (t *Tab) Wheel(ctx context.Context, w Wheel) error {
	if !onPage(w.X, w.Y, w.DX, w.DY) {
		return fault.New(fault.InvalidRequest, "scroll", "that is no point of a page")
	}
	t.hovers.Store(nil)
	// Spelt out, because the generated type leaves out a zero, and the browser
	// wants both ways told.
	return t.session.Send(ctx, input.DispatchMouseEvent.Method, map[string]any{
		"type": input.DispatchMouseEventTypeMouseWheel, "x": w.X, "y": w.Y, "deltaX": w.DX, "deltaY": w.DY, "modifiers": w.Held,
	})
}

// Strike passes on a key.
func (t *Tab) Strike(ctx context.Context, s Stroke) error {
	k, known := findKey(s.Key)
	if !known {
		// A key of another layout: what it types is its text.
		if len([]rune(s.Key)) != 1 {
			return fault.New(fault.InvalidRequest, "press a key", "%q is no key", short(s.Key))
		}
		k = key{key: s.Key, code: s.Code, text: s.Key}
	}
	c := chord{key: k, bits: s.Held}
	e, _ := k.down(c.bits, c.commands()).(input.DispatchKeyEventParams)
	if s.Kind == "up" {
		e, _ = k.up(c.bits).(input.DispatchKeyEventParams)
	}
	if s.Repeated {
		e.AutoRepeat = &s.Repeated
	}
	return t.session.Send(ctx, input.DispatchKeyEvent.Method, e)
}

// Insert puts in a text as an input method does: autocorrect, dictation, emoji,
// a pasted word.
func (t *Tab) Insert(ctx context.Context, text secret.Text) error {
	t.composing.Store(false)
	return t.session.Send(ctx, input.InsertText.Method, input.InsertTextParams{Text: text.Reveal()})
}

// Compose shows a text that an input method has not finished yet; an empty one
// takes it back.
func (t *Tab) Compose(ctx context.Context, text secret.Text, from, to int64) error {
	t.composing.Store(!text.IsEmpty())
	return t.session.Send(ctx, input.ImeSetComposition.Method, input.ImeSetCompositionParams{
		Text: text.Reveal(), SelectionStart: from, SelectionEnd: to,
	})
}
