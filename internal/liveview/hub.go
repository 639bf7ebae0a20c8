package liveview

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"tapin/internal/guard"
	"tapin/internal/page"
)

const (
	maxViewers = 64 // of a session
	// freshWithin is how old the next picture may get while nobody who sets the
	// pace has taken it; then the browser is let paint another.
	freshWithin = 120 * time.Millisecond
	// restAfter is how long nothing must have been painted before a sharp still
	// is worth it.
	restAfter = 300 * time.Millisecond
	// stillWithin bounds the wait for one.
	stillWithin = 5 * time.Second
	// driverFor is how long a driver keeps the wheel among several who may drive.
	driverFor = 2 * time.Second
)

// picture is one frame on its way to the viewers. It is never changed.
type picture struct {
	page.Frame
	number uint32
	tab    uint16
	flags  byte
	trace  uint64 // of the bytes, to know them again
}

// hub shows one session to all of its viewers, and passes on what the one who
// drives does. It lives from the first viewer to the last.
type hub struct {
	door    *Door
	session string
	screen  Screen
	wake    chan struct{} // something that the state tells is different
	ctx     context.Context
	stop    context.CancelFunc
	done    chan struct{}
	seed    maphash.Seed
	moving  atomic.Bool // a page is on its way because somebody wanted it

	unfit     chan struct{} // the page may have to be laid out
	uncovered chan struct{} // the page has changed for those who only watch

	mu       sync.Mutex
	viewers  map[*viewer]struct{}
	arrivals int // counts them
	status   Status
	glances  []page.Glance
	files    []page.Download
	numbers  map[string]uint16 // of tabs, in the order in which they were seen
	driver   *viewer
	drove    time.Time // when somebody last did something
	noted    time.Time // when that was last told to the hand-off

	tabs    *page.Tabs
	casts   int // counts them
	cast    *page.Cast
	asked   page.CastOptions // what the cast was asked for
	native  *page.NativeWatch
	places  letterbox
	fields  []byte // the last report, as a message
	last    *picture
	recent  []*picture // it and those before it that the way to a viewer may still take
	count   uint32
	pending []castNumber // shown and not acknowledged to the browser, oldest first
	fresh   *time.Timer
	rest    *time.Timer
	rested  chan struct{} // the page has been at rest for a while
	stills  []*picture    // the last few, to be shown again when their picture returns
	covered *picture      // the last for those who only watch
	grade   int
	graded  time.Time
	fitted  occasion // when the page was last laid out
	drawn   float64  // how wide the one who sets the pace draws it, in device pixels
}

// castNumber is what the cast calls a picture.
type castNumber struct {
	number uint32
	frame  uint64
}

func newHub(d *Door, session string, screen Screen) *hub {
	h := &hub{
		door: d, session: session, screen: screen, wake: make(chan struct{}, 1), done: make(chan struct{}), seed: maphash.MakeSeed(),
		rested: make(chan struct{}, 1), uncovered: make(chan struct{}, 1), unfit: make(chan struct{}, 1), places: letterbox{full: make(chan struct{}, 1)}, viewers: map[*viewer]struct{}{}, numbers: map[string]uint16{},
	}
	h.ctx, h.stop = context.WithCancel(d.ctx)
	h.status, _ = screen.Status()
	return h
}

// changed has the state looked at again.
func (h *hub) changed() {
	select {
	case h.wake <- struct{}{}:
	default: // it is going to be
	}
}

// run follows the session until the hub ends, by the events of others alone.
func (h *hub) run() {
	var helpers sync.WaitGroup
	helpers.Go(func() {
		guard.Again(h.ctx, "live view", h.placeFields)
	})
	helpers.Go(func() {
		guard.Again(h.ctx, "live view", h.takeStills)
	})
	helpers.Go(func() {
		guard.Again(h.ctx, "live view", h.takeCovers)
	})
	helpers.Go(func() {
		guard.Again(h.ctx, "live view", h.fitPages)
	})
	defer close(h.done)
	defer helpers.Wait()
	defer h.show(nil)
	defer h.stop() // nobody is to join from here on
	for h.ctx.Err() == nil {
		tabs, gone := h.screen.Tabs()
		status, statusChanged := h.screen.Status()
		h.show(tabs)
		var tabsChanged <-chan struct{}
		var glances []page.Glance
		var files []page.Download
		if tabs != nil {
			// Asked for the channel first, so that no change falls in between.
			_, tabsChanged = tabs.Glances()
			h.refresh(tabs)
			glances, _ = tabs.Glances()
			files = tabs.Downloads()
		}
		h.settle(status, glances, files)
		if status.Over {
			h.finish("stopped")
			return
		}
		select {
		case <-gone:
		case <-statusChanged:
		case <-tabsChanged:
		case <-h.wake:
		case <-h.ctx.Done():
		}
	}
}

// letterbox keeps the latest report of the fields for whoever comes to fetch it,
// so that nobody waits for anybody's lock to put one in.
type letterbox struct {
	full chan struct{}

	mu  sync.Mutex
	now *page.Native
}

func (b *letterbox) put(n page.Native) {
	b.mu.Lock()
	b.now = &n
	b.mu.Unlock()
	select {
	case b.full <- struct{}{}:
	default: // the older one gave way
	}
}

func (b *letterbox) take() *page.Native {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.now
	b.now = nil
	return n
}

func (b *letterbox) empty() { _ = b.take() }

// refresh asks the browser for titles, as it tells of none. A browser that does
// not answer has other worries.
func (h *hub) refresh(tabs *page.Tabs) {
	ctx, cancel := context.WithTimeout(h.ctx, time.Second)
	defer cancel()
	_ = tabs.Refresh(ctx)
}

// show begins to show other tabs, or none.
func (h *hub) show(tabs *page.Tabs) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tabs != tabs {
		if h.cast != nil {
			h.cast.Close()
		}
		h.tabs, h.cast, h.pending, h.stills, h.covered = tabs, nil, nil, nil, nil
		h.dropNative()
		if tabs != nil {
			h.casts++
			number := h.casts
			h.asked = options(h.look(), h.drawn, h.grade)
			h.cast = tabs.Cast(h.asked, func(f page.Frame) { h.framed(number, f) })
		}
	}
	if tabs == nil {
		for _, t := range []*time.Timer{h.fresh, h.rest} {
			if t != nil {
				t.Stop()
			}
		}
	}
}

// settle takes in how things stand, and tells everybody for whom that is new.
func (h *hub) settle(status Status, glances []page.Glance, files []page.Download) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.status
	h.status, h.glances, h.files = status, glances, files
	if !status.running() || before.running() && before.Handoff.ID != status.Handoff.ID {
		h.driver = nil
	}
	for _, g := range glances {
		h.tabNumber(g.ID)
	}
	h.wantNative()
	h.refit()
	for v := range h.viewers {
		v.tell(h.stateFor(v))
	}
	if reason := ended(before, status); reason != "" {
		for v := range h.viewers {
			v.say(encode(end{"end", reason}))
		}
	}
}

// ended is why the hand-off that ran no longer does.
func ended(before, now Status) string {
	if !before.running() || now.running() && now.Handoff.ID == before.Handoff.ID || now.Over {
		return ""
	}
	if now.Handoff == nil || now.Handoff.ID != before.Handoff.ID {
		return "finished"
	}
	switch now.Handoff.Status {
	case "CANCELLED":
		return "cancelled"
	case "TIMED_OUT":
		return "timed_out"
	case "FINISHED":
		return "finished"
	}
	return "parked"
}

// wantNative has the fields watched while somebody can use them.
func (h *hub) wantNative() {
	wanted := false
	for v := range h.viewers {
		wanted = wanted || h.canDrive(v) && !v.hidden
	}
	switch {
	case !wanted || h.tabs == nil:
		h.dropNative()
	case h.native == nil:
		h.native = h.tabs.Native(h.places.put)
	}
}

func (h *hub) dropNative() {
	if h.native != nil {
		h.native.Close()
		h.native, h.fields = nil, nil
		h.places.empty()
	}
}
