package page

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// frameWithin is how long one frame of another process may keep the others waiting.
const frameWithin = 2 * time.Second

// patient bounds what one of several documents is asked: only the page itself,
// without which there is nothing to tell, may take its time on a slow machine.
func (t *Tab) patient(ctx context.Context, f frame) (context.Context, context.CancelFunc) {
	if f.id == t.frames.main {
		return context.WithTimeout(ctx, actWithin)
	}
	return context.WithTimeout(ctx, frameWithin)
}

// refs is what a tab remembers of the names its snapshots gave to elements: the
// numbers that are taken, so that none means two elements, not even in two
// documents; and which frames' owners their parents were told of.
type refs struct {
	turn chan struct{} // holds one token: numbers are given by one snapshot at a time

	mu   sync.Mutex
	next map[proto.FrameID]int
	told map[proto.FrameID]frame // the parent as it was when told
	// spans are the numbers of the page's own documents, the newest last.
	spans []span
}

// span are the numbers that one outline gave to elements of one document.
type span struct {
	loader      proto.LoaderID
	first, last int
}

// maxSpans is more documents than anybody remembers refs of. One that is forgotten
// is asked.
const maxSpans = 64

// note notes which document has given numbers.
func (r *refs) note(s span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.loader == "" || s.last < s.first {
		return // nobody has told yet which document it is, or nothing new has a number
	}
	if len(r.spans) == maxSpans {
		r.spans = r.spans[1:]
	}
	r.spans = append(r.spans, s)
}

// others reports whether a number is known to be another document's.
func (r *refs) others(n int, now proto.LoaderID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Backward(r.spans) {
		if s.first <= n && n <= s.last {
			return s.loader != now
		}
	}
	return false
}

// heardOf reports whether numbers of a document are known, also of one that was
// left and has come back.
func (r *refs) heardOf(loader proto.LoaderID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.spans, func(s span) bool { return s.loader == loader })
}

func newRefs() *refs {
	return &refs{turn: make(chan struct{}, 1), next: map[proto.FrameID]int{}, told: map[proto.FrameID]frame{}}
}

// take waits for the turn; the returned func gives it back.
func (r *refs) take(ctx context.Context) (func(), error) {
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// from is the first number that a new document in that frame may give. Where an
// earlier client of the tab may have given some, it is far from those.
func (r *refs) from(id proto.FrameID, known bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next[id] == 0 {
		r.next[id] = 1
		if known {
			r.next[id] = 10_000 + rand.IntN(90_000) //nolint:gosec // no secret, only unlike others
		}
	}
	return r.next[id]
}

// given notes the last number that a frame's document has given.
func (r *refs) given(id proto.FrameID, last int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next[id] = max(r.next[id], last+1)
}

// forget drops what is known of frames that are gone.
func (r *refs) forget(living []frame) {
	is := map[proto.FrameID]bool{}
	for _, f := range living {
		is[f.id] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.next {
		if !is[id] {
			delete(r.next, id)
		}
	}
	for id := range r.told {
		if !is[id] {
			delete(r.told, id)
		}
	}
}

func (r *refs) knows(child, parent frame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, ok := r.told[child.id]
	return ok && parent.world != 0 && told.session == parent.session && told.world == parent.world
}

func (r *refs) tell(child, parent frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[child.id] = parent
}

// parseRef splits "e12" or "f2e7" into the frame's number, 1 being the page
// itself, and the element's.
func parseRef(ref string) (frameNo, n int, ok bool) {
	frameNo = 1
	rest := strings.Trim(strings.TrimSpace(ref), "[]")
	if inner, found := strings.CutPrefix(rest, "f"); found {
		digits, after, cut := strings.Cut(inner, "e")
		no, err := strconv.Atoi(digits)
		if !cut || err != nil || no < 2 {
			return 0, 0, false
		}
		frameNo, rest = no, "e"+after
	}
	digits, found := strings.CutPrefix(rest, "e")
	n, err := strconv.Atoi(digits)
	return frameNo, n, found && err == nil && n > 0
}

// byRef finds the element that a snapshot called so: its frame and its kept id
// there. An element or document that is gone is STALE_REF, never another one.
func (t *Tab) byRef(ctx context.Context, ref string) (frame, int, error) {
	no, n, ok := parseRef(ref)
	if !ok {
		return frame{}, 0, fault.New(fault.InvalidRequest, "", "%q is no ref", ref).WithHint("Refs look like e12 or f2e7 and come from a snapshot.")
	}
	gone := fault.New(fault.StaleRef, "", "what the snapshot called %s is gone", ref)
	if no == 1 && t.refs.others(n, t.life.now().loader) {
		return frame{}, 0, gone
	}
	f, ok := t.frames.numbered(no)
	if !ok {
		return frame{}, 0, gone
	}
	var id int
	err := t.call(ctx, f, "refKept", map[string]int{"frame": no, "n": n}, &id)
	switch {
	case errors.Is(err, errWorldGone):
		return frame{}, 0, gone
	case err != nil:
		return frame{}, 0, err
	case id == 0:
		return frame{}, 0, gone
	}
	return f, id, nil
}

// seatFrames makes every document know which of its elements holds which frame,
// and returns the frames. A frame that goes away meanwhile has no seat.
func (t *Tab) seatFrames(ctx context.Context) []frame {
	all := t.frames.list()
	t.refs.forget(all)
	var busy guard.Group
	for _, f := range all {
		if f.id == t.frames.main {
			continue
		}
		busy.Run(func() {
			ctx, cancel := context.WithTimeout(ctx, frameWithin)
			defer cancel()
			_ = t.seat(ctx, f)
		})
	}
	busy.Wait()
	return all
}

// seat tells a frame's parent which element holds it, once in a document's life.
func (t *Tab) seat(ctx context.Context, child frame) error {
	parent, ok := t.frames.get(child.parent)
	if !ok {
		return errWorldGone
	}
	if t.refs.knows(child, parent) {
		return nil
	}
	if parent.world == 0 {
		// Any call makes sure of the world.
		if err := t.call(ctx, parent, "here", nil, nil); err != nil {
			return err
		}
		if parent, ok = t.frames.get(child.parent); !ok || parent.world == 0 {
			return errWorldGone
		}
	}
	owner, err := proto.Call(ctx, parent.session, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: child.id})
	if err != nil {
		return worldError(err)
	}
	if err := t.callOn(ctx, parent, owner.BackendNodeID, "function(frame) { globalThis.tapin.holds(this, frame) }", child.order, nil); err != nil {
		return err
	}
	t.refs.tell(child, parent)
	return nil
}
