package page

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chromedp/cdproto/input"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// under is where a point lies in the document that an element holds.
type under struct {
	Point
	Frame int `json:"frame"` // 0 where nobody has told the element yet
}

// seatings is how often a frame that nobody knows is waited for: some never
// become known, such as those of the browser's own viewers.
const seatings = 5

// beneath are the documents in frames that lie at a point of the page, outermost
// first, as far as they are known. Nobody else is asked: a frame that hangs is in
// nobody's way elsewhere.
func (t *Tab) beneath(ctx context.Context, p Point) ([]frame, error) {
	for tries, began := 0, time.Now(); ; {
		chain, whole, err := t.descend(ctx, p)
		gone := errors.Is(err, errWorldGone) && time.Since(began) < frameWithin // as one comes, another goes
		if whole || !gone && (err != nil || tries == seatings) {
			return chain, err
		}
		if !gone {
			tries++
		}
		t.seatFrames(ctx)
		if err := rest(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// descend follows a point into the frames that lie there, and tells whether it
// has come to the last of them.
func (t *Tab) descend(ctx context.Context, p Point) (chain []frame, whole bool, err error) {
	in, known := t.frames.get(t.frames.main)
	for known {
		var at sighting
		if err := t.call(ctx, in, "at", p, &at); err != nil {
			return nil, false, err
		}
		if at.Under == nil {
			return chain, true, nil
		}
		if in, known = t.frames.numbered(at.Under.Frame); known {
			chain, p = append(chain, in), at.Under.Point
		}
	}
	return chain, false, nil
}

// listenAt makes the documents listen, whoever is at a point: it names no
// element that could be asked beforehand.
func (t *Tab) listenAt(ctx context.Context, got *found, l Locator, types []string) error {
	if l.X == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	err := t.unlessDialog(limited, func(ctx context.Context) error {
		if err := t.listenThere(ctx, got, types); err != nil {
			return err
		}
		t.listenBeside(ctx, got, types)
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fault.New(fault.WaitTimeout, "", "what is at %s does not answer", l)
	}
	return err
}

// listenThere makes those listen who are known to be at the point: they must.
func (t *Tab) listenThere(ctx context.Context, got *found, types []string) error {
	args := map[string][]string{"types": types}
	if err := t.call(ctx, got.frame, "watchAll", args, &got.watch); err != nil {
		return err
	}
	for _, f := range got.under {
		inner := found{frame: f}
		if err := t.call(ctx, f, "watchAll", args, &inner.watch); err == nil {
			got.inner = append(got.inner, inner)
		} else if !errors.Is(err, errWorldGone) {
			return err
		}
	}
	return nil
}

// listenBeside makes the other frames listen too: one may hide its owner, or come
// under the hand meanwhile. One that hangs is in nobody's way.
func (t *Tab) listenBeside(ctx context.Context, got *found, types []string) {
	others := slices.DeleteFunc(t.frames.list(), func(f frame) bool { return f.id == got.frame.id || got.over(f) })
	watches := make([]int, len(others))
	errs := t.askEach(ctx, others, func(ctx context.Context, i int) error {
		return t.call(ctx, others[i], "watchAll", map[string][]string{"types": types}, &watches[i])
	})
	var beside []found
	for i, f := range others {
		if errs[i] == nil {
			beside = append(beside, found{frame: f, watch: watches[i]})
		}
	}
	got.inner, got.deaf = append(beside, got.inner...), len(beside) < len(others)
}

// over tells whether a frame is known to lie at the point.
func (got found) over(f frame) bool {
	return slices.ContainsFunc(got.under, func(there frame) bool { return there.id == f.id })
}

// received asks those who listen who heard it, and ends the listening. At a point
// the innermost is asked first: when that has heard it nobody else is waited for.
func (t *Tab) received(ctx context.Context, got found, gate *passage, patience time.Duration) (heard, error) {
	if got.watch == 0 {
		return heard{}, nil
	}
	first := 0
	if len(got.under) > 0 {
		first = len(got.inner)
	}
	answers, errs := make([]heard, 1+len(got.inner)), make([]error, 1+len(got.inner))
	ask := func(i int, patience time.Duration) {
		if i == 0 {
			answers[i], errs[i] = t.ears(ctx, got, gate, patience)
			return
		}
		in := got.inner[i-1]
		within := frameWithin
		if got.over(in.frame) {
			within = settleWithin
		}
		limited, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		answers[i], errs[i] = t.ears(limited, in, nil, patience)
	}
	ask(first, patience)
	var others guard.Group
	for i := range answers {
		if i != first {
			others.Run(func() { ask(i, answers[first].patience()) })
		}
	}
	others.Wait()
	h, err := answers[0], errs[0]
	for i, in := range got.inner {
		if answers[i+1].Any {
			h = answers[i+1]
		}
		switch {
		case !got.over(in.frame):
			got.deaf = got.deaf || errs[i+1] != nil
		case err == nil:
			err = errs[i+1]
		}
	}
	h.deaf = got.deaf
	return h, err
}

// throughWithin is how long a frame that has just come may take to be known to
// those who pass the mouse on.
const throughWithin = 2 * time.Second

// comeThrough waits until the mouse reaches the innermost document at a point.
// Before a frame of another site has been drawn where it is the mouse does not
// get into it: a press would be lost, where a move does no harm.
func (t *Tab) comeThrough(ctx context.Context, p Point) error {
	for began := time.Now(); time.Since(began) < throughWithin; {
		stopped, err := t.stops(ctx, p)
		if errors.Is(err, errWorldGone) { // a frame may go as it comes
			stopped, err = true, nil
		}
		if err != nil || !stopped {
			return err
		}
		if err := rest(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// arriving is an act that begins when the mouse gets in, where there is a frame.
func (t *Tab) arriving(got found, act func(context.Context) error) func(context.Context) error {
	if len(got.under) == 0 {
		return act
	}
	return func(ctx context.Context) error {
		if err := t.comeThrough(ctx, got.point); err != nil {
			return err
		}
		return act(ctx)
	}
}

// stops moves the mouse to a point and tells whether it is heard of, but not in
// the innermost document there.
func (t *Tab) stops(ctx context.Context, p Point) (bool, error) {
	main, ok := t.frames.get(t.frames.main)
	if !ok {
		return false, errWorldGone
	}
	chain, _, err := t.descend(ctx, p)
	if err != nil || !slices.ContainsFunc(chain, func(f frame) bool { return f.session != main.session }) {
		return false, err // a document in the same process is reached at once
	}
	got := found{frame: main, under: chain}
	if err := t.listenThere(ctx, &got, []string{"mousemove"}); err != nil {
		return false, err
	}
	if err := t.play(ctx, []input.DispatchMouseEventParams{{Type: input.DispatchMouseEventTypeMouseMoved, X: p.X, Y: p.Y}}); err != nil {
		return false, err
	}
	h, err := t.received(ctx, got, nil, 0)
	return h.Any && h.from != chain[len(chain)-1].id, err
}

// reaches refuses what would go into a frame that hangs: its gate is open, and it
// takes in later what is done now.
func (p *passage) reaches(ctx context.Context, t *Tab, at Point) error {
	if p == nil || !p.hangs {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, frameWithin)
	defer cancel()
	there, err := t.beneath(limited, at)
	if err == nil && !slices.ContainsFunc(there, func(f frame) bool { return p.deaf[f.id] }) {
		return nil
	}
	p.disarm(ctx, t)
	p.settle(ctx, None)
	return hangingFrame(p.kind)
}

func hangingFrame(op string) error {
	return fault.New(fault.WaitTimeout, op, "the frame that this would go into does not answer").WithHint("Nothing was done. Try again in a moment, or act on another part of the page.")
}
