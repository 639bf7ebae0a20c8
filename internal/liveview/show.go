package liveview

import (
	"context"
	"encoding/base64"
	"hash/maphash"
	"slices"
	"time"

	"tapin/internal/guard"
	"tapin/internal/link"
	"tapin/internal/page"
)

// keptStills is how many sharp pictures are kept to be shown again: a blinking
// caret makes a page alternate between two.
const keptStills = 2

// framed takes in a picture. It runs between the browser and everything else, so
// it only notes and wakes.
func (h *hub) framed(cast int, f page.Frame) {
	trace := maphash.Bytes(h.seed, f.JPEG)
	if native := h.taken(cast, f, trace); native != nil {
		native.Poke(h.ctx)
	}
}

func (h *hub) taken(cast int, f page.Frame, trace uint64) *page.NativeWatch {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.take(cast, f, trace)
}

// take returns the watch that is to be told that something was painted.
func (h *hub) take(cast int, f page.Frame, trace uint64) *page.NativeWatch {
	if cast != h.casts || h.cast == nil {
		return nil
	}
	before := h.last
	if before != nil && before.trace == trace && sameView(before.Frame, f) {
		// Painted again without a change: nobody needs to see that.
		h.cast.Ack(h.ctx, f.Number)
		return nil
	}
	p := &picture{Frame: f, tab: h.tabNumber(f.Tab), trace: trace}
	if before == nil || before.Tab != f.Tab {
		p.flags |= flagFirst
	}
	if sharp := h.knownStill(p); sharp != nil && h.wide() {
		p.Frame.JPEG, p.flags = sharp.JPEG, p.flags|flagSharp
	}
	h.publish(p)
	h.pending = append(h.pending, castNumber{p.number, f.Number})
	h.keepFresh()
	if p.flags&flagSharp == 0 {
		h.awaitRest()
	}
	return h.native
}

func sameView(a, b page.Frame) bool {
	return a.Tab == b.Tab && a.Width == b.Width && a.Height == b.Height && a.Scale == b.Scale && a.Top == b.Top && a.ScrollX == b.ScrollX && a.ScrollY == b.ScrollY
}

// publish gives a picture its number and wakes the viewers.
func (h *hub) publish(p *picture) {
	h.count++
	p.number = h.count
	if h.last != nil && h.last.Tab != p.Tab {
		h.recent = nil
	}
	h.recent = append(h.recent, p)
	h.recent = h.recent[max(0, len(h.recent)-page.FramesInFlight):]
	h.last = p
	for v := range h.viewers {
		if v.mode != link.Watch {
			v.rouse()
		}
	}
	h.cover()
}

// knownStill is the sharp picture of the same moving one.
func (h *hub) knownStill(p *picture) *picture {
	i := slices.IndexFunc(h.stills, func(s *picture) bool { return s.trace == p.trace && sameView(s.Frame, p.Frame) })
	if i < 0 {
		return nil
	}
	return h.stills[i]
}

// wide reports whether large pictures go through easily for all who look.
func (h *hub) wide() bool {
	for v := range h.viewers {
		if !v.hidden && v.pace.transfer() > shortOnly {
			return false
		}
	}
	return true
}

// keepFresh lets the browser paint on when nobody took the last picture in time.
func (h *hub) keepFresh() {
	if h.fresh == nil {
		h.fresh = time.AfterFunc(freshWithin, func() {
			defer guard.Catch("live view")
			h.goOn()
		})
		return
	}
	h.fresh.Reset(freshWithin)
}

func (h *hub) goOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		if !v.hidden {
			h.ack(h.count)
			return
		}
	}
}

// ack tells the browser that a picture, and all before it, has been drawn.
func (h *hub) ack(number uint32) {
	n, frame := 0, uint64(0)
	for ; n < len(h.pending) && int32(number-h.pending[n].number) >= 0; n++ { //nolint:gosec // numbers may wrap
		frame = h.pending[n].frame
	}
	if n == 0 {
		return
	}
	h.pending = h.pending[n:]
	if h.cast != nil {
		h.cast.Ack(h.ctx, frame)
	}
	if len(h.pending) == 0 && h.fresh != nil {
		h.fresh.Stop()
	}
}

// paint lets the browser paint the next picture before the last is drawn, where the
// way to the one who sets the pace is long: one that is filled moves smoothly.
// Called with the lock held.
func (h *hub) paint(v *viewer) {
	if h.paces(v) && v.pace.outlasts() {
		h.ack(v.shown)
	}
}

// sent says that a picture is on its way to a viewer: what else comes of it could
// wait for that.
func (h *hub) sent(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paint(v)
}

// paces reports whether a viewer sets the pace: the driver does; where nobody
// drives, whoever is fastest.
func (h *hub) paces(v *viewer) bool {
	return h.driver == nil || h.driver == v || h.driver.hidden
}

// drew takes a viewer's word that it has drawn a picture.
func (h *hub) drew(v *viewer, a ack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v.pace.acked(a.Number, time.Now())
	v.rouse()
	if !h.paces(v) {
		return
	}
	h.ack(a.Number)
	h.paint(v)
	if a.W > 0 && a.DPR > 0 && a.W < 1<<15 && a.DPR <= 8 {
		v.drawn = a.W * a.DPR
	}
	h.tune(v)
}

// tune fits the moving picture to the one who sets the pace.
func (h *hub) tune(v *viewer) {
	next := h.grade
	if h.last == nil || h.last.flags&flagSharp == 0 { // what rests is shown as well as it can be
		next = v.pace.regrade(h.grade, time.Since(h.graded))
	}
	if next != h.grade {
		h.graded = time.Now()
		v.pace.forget()
	}
	h.grade, h.drawn = next, v.drawn
	wanted := options(h.look(), h.drawn, h.grade)
	if h.cast != nil && wanted != h.asked {
		h.asked = wanted
		h.pending = nil // the cast begins anew, and what it sent before counts no more
		h.cast.Tune(h.ctx, wanted)
	}
}

// awaitRest has a sharp picture taken once nothing has been painted for a while.
func (h *hub) awaitRest() {
	if h.rest != nil {
		h.rest.Reset(restAfter)
		return
	}
	h.rest = time.AfterFunc(restAfter, func() {
		defer guard.Catch("live view")
		select {
		case h.rested <- struct{}{}:
		default: // a still is due already
		}
	})
}

// takeStills takes a sharp picture whenever the page rests.
func (h *hub) takeStills() {
	for {
		select {
		case <-h.rested:
			h.still()
		case <-h.ctx.Done():
			return
		}
	}
}

// photograph is a JPEG of a tab; nil where there is none to be had.
func photograph(ctx context.Context, tab *page.Tab, o page.ShotOptions) []byte {
	o.Format = page.JPEG
	shot, err := tab.Screenshot(ctx, o)
	if err != nil {
		return nil
	}
	jpeg, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		return nil
	}
	return jpeg
}

// seenBy reports whether somebody looks whose link is of that mode. Called with the
// lock held.
func (h *hub) seenBy(mode link.Mode) bool {
	for v := range h.viewers {
		if v.mode == mode && !v.hidden {
			return true
		}
	}
	return false
}

// still takes the sharp picture, if somebody looks and nothing moves meanwhile.
func (h *hub) still() {
	h.mu.Lock()
	at, tabs := h.last, h.tabs
	looked := h.seenBy(link.Drive)
	h.mu.Unlock()
	if !looked || tabs == nil || at == nil || at.flags&flagSharp != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, stillWithin)
	defer cancel()
	tab, err := tabs.Front(ctx)
	if err != nil || tab.ID() != at.Tab {
		return
	}
	jpeg := photograph(ctx, tab, page.ShotOptions{Quality: 88, ForDriver: true})
	if jpeg == nil {
		return // a dialog is open, or the page is gone; the moving picture stands
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != at || h.tabs != tabs {
		return
	}
	p := &picture{Frame: at.Frame, tab: at.tab, flags: at.flags&^flagFirst | flagSharp, trace: at.trace}
	p.Frame.JPEG = jpeg
	h.publish(p)
	h.stills = append(h.stills, p)
	if len(h.stills) > keptStills {
		h.stills = h.stills[1:]
	}
}

// placeFields passes on where the fields lie.
func (h *hub) placeFields() {
	for {
		select {
		case <-h.places.full:
		case <-h.ctx.Done():
			return
		}
		n := h.places.take()
		if n == nil {
			continue
		}
		raw := encode(struct {
			T string `json:"t"`
			page.Native
		}{"fields", *n})
		h.showFields(raw)
	}
}

func (h *hub) showFields(raw []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.native == nil {
		return
	}
	h.fields = raw
	for v := range h.viewers {
		if h.canDrive(v) {
			v.place(raw)
		}
	}
}
