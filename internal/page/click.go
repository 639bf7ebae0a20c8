package page

import (
	"context"
	"errors"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"tapin/internal/cdp"
	"tapin/internal/fault"
)

// The effects that an action can have had. Only where it provably had none may
// it be tried again.
const (
	Confirmed = "confirmed" // the target received it, or the page answered it: a dialog, a popup, another page
	None      = "none"      // nothing received it
	Unknown   = "unknown"   // it may have worked
)

// ClickOptions say how to click; the zero value is one click with the left button.
type ClickOptions struct {
	Button  string // left, right or middle
	Count   int    // 2 is a double click
	Timeout time.Duration
}

// Clicked is what became of it.
type Clicked struct {
	Strategy string   // the rung of the ladder that did it
	Effect   string   // confirmed, none or unknown
	Tried    []string // all rungs, in order
}

// settleWithin is what a page gets to take a click in: its own code runs
// meanwhile, and may be slow.
const settleWithin = 10 * time.Second

// heard is who received an action.
type heard struct {
	Heard  map[string]int `json:"heard"`  // events that reached the target, by type
	Other  string         `json:"other"`  // who else received one
	Any    bool           `json:"any"`    // something arrived at all
	Lost   bool           `json:"lost"`   // the element is gone from the document
	Gone   bool           `json:"gone"`   // this is another document, which knows nothing of it
	Leaves bool           `json:"leaves"` // the document is on its way elsewhere
	Gate   *gateReport    `json:"gate"`   // what it says when it was opened as well
	Title  string         `json:"title"`  // of the document, by now

	from proto.FrameID // the document that says so
	deaf bool          // somebody else did not say whether he heard it
}

// patience is for how long those are waited for who are asked after that.
func (h heard) patience() time.Duration {
	if h.Any {
		return -time.Millisecond
	}
	return 0
}

func (h heard) has(types ...string) bool {
	for _, name := range types {
		if h.Heard[name] > 0 {
			return true
		}
	}
	return false
}

// ears asks one document who heard it, and ends its listening.
func (t *Tab) ears(ctx context.Context, got found, gate *passage, patience time.Duration) (heard, error) {
	args := struct {
		Watch    int   `json:"watch"`
		Patience int64 `json:"patience"`
		Open     bool  `json:"open"`
	}{got.watch, patience.Milliseconds(), gate.opens(got.frame)}
	var h heard
	err := t.call(ctx, got.frame, "received", args, &h)
	h.from = got.frame.id
	gate.opened(h.Gate)
	if err == nil && h.Gone {
		err = errWorldGone
	}
	return h, err
}

// means are how something is done to an element, and the events that tell of
// its success.
type means struct {
	act  func(context.Context) error
	done []string
}

// outcome is what became of an action.
type outcome struct {
	effect string
	heard  heard
}

// do carries an action out and says who received it.
func (t *Tab) do(ctx context.Context, got found, gate *passage, by means) (h heard, err error) {
	told, deaf := t.echoes.await(got)
	defer deaf()
	if err := by.act(ctx); err != nil {
		return h, err
	}
	if got.tells {
		select {
		case h = <-told:
			gate.opened(h.Gate)
			t.tabs.refreshedBy(t, h.Title)
			return h, nil
		case <-time.After(echoWithin):
		}
	}
	err = t.tabs.refreshBeside(ctx, func() (err error) {
		h, err = t.received(ctx, got, gate, 300*time.Millisecond)
		if err == nil && h.Leaves {
			// It was asked before the browser had heard that it leaves. Whoever asks now
			// is answered when it has left, or stays after all.
			err = t.call(ctx, got.frame, "here", nil, nil)
		}
		return err
	})
	if err == nil && h.from == t.frames.main && !h.Leaves {
		t.tabs.entitle(t, h.Title) // what the browser was asked beside may be of before
	}
	if errors.Is(err, errWorldGone) && got.tells {
		select {
		case h = <-told: // while it was being asked
			gate.opened(h.Gate)
			return h, nil
		default:
		}
	}
	return h, err
}

// observe carries an action out and finds out what became of it. The page may
// answer in ways that end every conversation with it: those are successes.
func (t *Tab) observe(ctx context.Context, got found, gate *passage, by means) (outcome, error) {
	before, tabs := t.life.now(), len(t.tabs.List())
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	sent := false
	var h heard
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		sent = true
		var err error
		h, err = t.do(ctx, got, gate, by)
		return err
	})
	switch {
	case !sent:
		return outcome{}, err
	case errors.Is(err, fault.DialogOpen):
		return outcome{effect: Confirmed}, nil
	case errors.Is(err, errWorldGone), errors.Is(err, cdp.ErrDetached):
		return outcome{effect: t.moved(ctx, got.frame, before)}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return outcome{effect: Unknown}, nil // the page is busy with it, or hangs
	case err != nil:
		return outcome{}, err
	case h.has(by.done...), len(t.tabs.List()) > tabs:
		return outcome{effect: Confirmed, heard: h}, nil
	case !h.Any && !h.deaf:
		return outcome{effect: None, heard: h}, nil
	}
	return outcome{effect: Unknown, heard: h}, nil
}

// moved tells a page that went elsewhere from a document that merely vanished.
func (t *Tab) moved(ctx context.Context, f frame, before mark) string {
	select {
	case <-t.session.Ended():
		return Confirmed // the tab closed on it
	default:
	}
	if f.id != t.frames.main {
		_ = t.session.Conn().Settle(ctx)
		if now, ok := t.frames.get(f.id); ok && (now.session != f.session || now.world != f.world) {
			return Confirmed
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if t.life.awaitChange(ctx, before, "commit") == nil {
		return Confirmed
	}
	return Unknown
}

// mouse is the events of a click at a point, and those that tell of its arrival.
func (o ClickOptions) mouse(p Point) []input.DispatchMouseEventParams {
	button, buttons := input.MouseButton(o.Button), map[string]int64{"left": 1, "right": 2, "middle": 4}[o.Button]
	events := []input.DispatchMouseEventParams{{Type: input.DispatchMouseEventTypeMouseMoved, X: p.X, Y: p.Y}}
	for i := range int64(o.Count) {
		events = append(events,
			input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMousePressed, X: p.X, Y: p.Y, Button: button, Buttons: buttons, ClickCount: i + 1},
			input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseReleased, X: p.X, Y: p.Y, Button: button, ClickCount: i + 1})
	}
	return events
}

func (o ClickOptions) done() []string {
	switch o.Button {
	case "right":
		return []string{"contextmenu", "auxclick"}
	case "middle":
		return []string{"auxclick"}
	}
	return []string{"click"}
}

// coming are the events that the mouse brings; other means are slower than asking.
func (o ClickOptions) coming(rung string) *coming {
	if rung != byMeaning && rung != bySelector {
		return nil
	}
	return &coming{Types: o.done(), Times: o.Count}
}

// clickEvents are what is listened for while clicking.
var clickEvents = []string{"pointerdown", "mousedown", "click", "auxclick", "contextmenu"}

func (o *ClickOptions) check(op string) error {
	if o.Button == "" {
		o.Button = "left"
	}
	if o.Count == 0 {
		o.Count = 1
	}
	if o.Timeout <= 0 {
		o.Timeout = actWithin
	}
	switch {
	case o.Button != "left" && o.Button != "right" && o.Button != "middle":
		return fault.New(fault.InvalidRequest, op, "%q is no mouse button", o.Button).WithHint("Use left, right or middle.")
	case o.Count < 1 || o.Count > 3:
		return fault.New(fault.InvalidRequest, op, "a click has a count from 1 to 3, not %d", o.Count)
	}
	return nil
}

// play sends mouse events in one go and waits for the last one. They are taken
// in order, and nothing of the page's comes between them that need not.
func (t *Tab) play(ctx context.Context, events []input.DispatchMouseEventParams) error {
	t.hovers.Store(nil)
	all := make([]any, len(events))
	for i, e := range events {
		all[i] = e
	}
	return t.session.CallAll(ctx, input.DispatchMouseEvent.Method, all...)
}

// Hover moves the mouse over the element.
func (t *Tab) Hover(ctx context.Context, l Locator, timeout time.Duration) (Clicked, error) {
	strategy := l.strategy()
	got, err := t.search(ctx, hunt{op: "hover", locator: l, want: toAct.andDisabled(), within: timeout, types: []string{"mousemove", "pointermove", "mouseover"}})
	if err != nil {
		return Clicked{}, err
	}
	if err := t.listenAt(ctx, &got, l, []string{"mousemove", "pointermove", "mouseover"}); err != nil {
		return Clicked{}, err
	}
	point := t.arriving(got, func(ctx context.Context) error {
		return t.play(ctx, []input.DispatchMouseEventParams{{Type: input.DispatchMouseEventTypeMouseMoved, X: got.point.X, Y: got.point.Y}})
	})
	out, err := t.observe(ctx, got, nil, means{done: []string{"mousemove", "pointermove", "mouseover"}, act: point})
	if err != nil {
		return Clicked{}, err
	}
	return Clicked{Strategy: strategy, Effect: out.effect, Tried: []string{strategy}}, nil
}

// andDisabled lets disabled elements pass: they can be pointed at.
func (w wanted) andDisabled() wanted {
	w.Enabled = false
	return w
}
