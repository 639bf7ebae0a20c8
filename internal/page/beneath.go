package page

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chromedp/cdproto/input"
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
// first. Nobody else is asked: a frame that hangs is in nobody's way elsewhere.
func (t *Tab) beneath(ctx context.Context, p Point) ([]frame, error) {
	for tries := 0; ; tries++ {
		chain, whole, err := t.descend(ctx, p)
		if whole || tries == seatings || err != nil && !errors.Is(err, errWorldGone) {
			return chain, err
		}
		t.seatFrames(ctx)
		if tries > 0 {
			if err := rest(ctx, 10*time.Millisecond); err != nil {
				return nil, err
			}
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

// shifted reports whether other documents lie at a point than those that were
// listening: that none of these heard anything does not mean that nobody did.
func (t *Tab) shifted(ctx context.Context, got found) bool {
	now, err := t.beneath(ctx, got.point)
	return err != nil || !slices.EqualFunc(now, got.under, func(a, b frame) bool { return a.id == b.id })
}

// listenAt makes the documents at a point listen, whoever receives what comes:
// no element is known that could be asked beforehand.
func (t *Tab) listenAt(ctx context.Context, got *found, l Locator, types []string) error {
	if l.X == nil {
		return nil
	}
	return t.unlessDialog(ctx, func(ctx context.Context) error {
		return t.listenAll(ctx, got, types)
	})
}

func (t *Tab) listenAll(ctx context.Context, got *found, types []string) error {
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

// throughWithin is how long a frame that has just come may take to be known to
// those who pass the mouse on.
const throughWithin = 3 * time.Second

// comeThrough waits until the mouse reaches the innermost document at a point.
// Before a frame of another site has been drawn where it is the mouse does not
// get into it: a press would be lost, where a move does no harm.
func (t *Tab) comeThrough(ctx context.Context, got found) error {
	if !slices.ContainsFunc(got.under, func(f frame) bool { return f.session != got.frame.session }) {
		return nil // a document in the same process is reached at once
	}
	for began := time.Now(); ; {
		stopped, err := t.stops(ctx, got)
		if errors.Is(err, errWorldGone) { // a frame may go as it comes
			stopped, err = true, nil
		}
		if err != nil || !stopped || time.Since(began) > throughWithin {
			return err
		}
		if err := rest(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// stops moves the mouse to a point and tells whether it is heard of, but not in
// the innermost document there.
func (t *Tab) stops(ctx context.Context, at found) (bool, error) {
	got := found{frame: at.frame, under: at.under}
	if err := t.listenAll(ctx, &got, []string{"mousemove"}); err != nil {
		return false, err
	}
	if err := t.play(ctx, []input.DispatchMouseEventParams{{Type: input.DispatchMouseEventTypeMouseMoved, X: at.point.X, Y: at.point.Y}}); err != nil {
		return false, err
	}
	h, err := t.received(ctx, got, nil, 0)
	return h.Any && h.from != at.under[len(at.under)-1].id, err
}
