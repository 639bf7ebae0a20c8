package oneshot

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/store"
)

// mark is what the ids of one-shot browsers begin with. Sessions leave them alone.
const mark = "oneshot"

// rhythm is when the browser is looked after.
type rhythm struct {
	tick  time.Duration // between two looks
	lease time.Duration // how long it lives on without us
	idle  time.Duration // without a guest, before it is ended
	age   time.Duration // before another takes its place
	uses  int           // the same in contexts
}

// renewWithin is how long a browser has to say that it is there; a lease outlasts several of it.
const renewWithin = 20 * time.Second

var standardRhythm = rhythm{tick: 20 * time.Second, lease: 90 * time.Second, idle: 2 * time.Minute, age: time.Hour, uses: 500}

// startWithin bounds the start of a browser; its caller may be gone earlier.
const startWithin = 25 * time.Second

// endWithin bounds the end of a browser or of a context.
const endWithin = 8 * time.Second

// house is the one browser in which one-shots happen. It is started when the
// first guest comes, replaced when it is lost or worn out, and ended when nobody
// needs it. While one is replaced its last guests may finish in the old one.
type house struct {
	provider func() (browser.Provider, error)
	policy   egress.Policy
	judge    func(address string) error // of addresses, where no guard of ours stands
	log      *slog.Logger
	rhythm   rhythm
	full     func() bool // whether somebody waits or works

	ctx   context.Context //nolint:containedctx // the room's own lifetime
	tasks *sync.WaitGroup

	mu   sync.Mutex
	now  *household
	ours map[string]bool // ids of the browsers of this process
}

// household is one browser in the life of the house.
type household struct {
	begun time.Time
	ready chan struct{} // closed when it has started, or failed to

	shared browser.Shared // set before ready
	err    error

	// Guarded by the house's lock.
	uses    int
	guests  int
	last    time.Time     // when the last guest left
	leaving bool          // nobody new comes in
	closing chan struct{} // closed when that begins
	empty   chan struct{} // closed when the last guest has left after that
}

// guest is a context and how to leave it.
type guest struct {
	inst  browser.Instance
	leave func(context.Context)
	judge func(address string) error // nil where a guard of ours stands at the network
	// closing is closed when the browser is to be replaced: who has not begun
	// there should begin elsewhere. Nil where it is the guest's alone.
	closing <-chan struct{}
}

// enter makes a context of its own, in the shared browser where the provider
// has such, else in a browser of its own.
func (h *house) enter(ctx context.Context) (*guest, error) {
	provider, err := h.provider()
	if err != nil {
		return nil, err
	}
	sharer, ok := provider.(browser.Sharer)
	if !ok {
		return h.alone(ctx, provider)
	}
	in, err := h.join(ctx, sharer)
	if err != nil {
		return nil, err
	}
	inst, err := in.shared.Context(ctx)
	if err != nil {
		h.left(in, true)
		return nil, fault.Wrap(fault.SessionCreateFailed, "make a browser context", err)
	}
	return &guest{inst: inst, closing: in.closing, leave: func(ctx context.Context) {
		err := inst.End(ctx)
		h.left(in, err != nil)
	}}, nil
}

// alone makes a browser for one call, where a provider shares none.
func (h *house) alone(ctx context.Context, provider browser.Provider) (*guest, error) {
	spec := h.spec()
	spec.KeepUntil = time.Now().Add(2 * callWithin) // nobody renews it
	inst, err := provider.Create(ctx, spec)
	if err != nil {
		return nil, fault.Wrap(fault.SessionCreateFailed, "make a browser", err)
	}
	return &guest{inst: inst, judge: h.judge, leave: func(ctx context.Context) {
		if err := inst.End(ctx); err != nil {
			_ = inst.Release()
			if err := provider.End(ctx, inst.Ref()); err != nil {
				h.log.Warn("a one-shot browser ends by its own deadline", "error", err)
			}
		}
	}}, nil
}

func (h *house) spec() browser.Spec {
	return browser.Spec{ID: store.NewID(mark), KeepUntil: time.Now().Add(h.rhythm.lease), Policy: h.policy}
}

// join waits for the browser of now and counts a guest in. Whoever finds none
// starts one, for everybody: it goes on when its first caller is gone.
func (h *house) join(ctx context.Context, sharer browser.Sharer) (*household, error) {
	h.mu.Lock()
	in := h.now
	if in == nil {
		if h.ctx.Err() != nil {
			h.mu.Unlock()
			return nil, fault.New(fault.Busy, "make a browser", "tapin is ending")
		}
		in = &household{begun: time.Now(), ready: make(chan struct{}), closing: make(chan struct{}), empty: make(chan struct{})}
		h.now = in
		h.tasks.Go(func() {
			defer guard.Catch("one-shots")
			h.keep(in, sharer)
		})
	}
	in.guests++
	in.uses++
	worn := in.uses >= h.rhythm.uses || time.Since(in.begun) > h.rhythm.age
	if worn {
		h.retire(in)
	}
	h.mu.Unlock()
	select {
	case <-in.ready:
	case <-ctx.Done():
		h.left(in, false)
		return nil, fault.New(fault.SessionCreateFailed, "make a browser", "it was not ready in time")
	}
	if in.err != nil {
		h.left(in, false)
		return nil, in.err
	}
	return in, nil
}

// left counts a guest out. A browser in which something went wrong gets no more.
func (h *house) left(in *household, trouble bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in.guests--
	in.last = time.Now()
	if trouble {
		h.retire(in)
	}
	if in.leaving && in.guests == 0 {
		close(in.empty)
	}
}

// retire lets nobody new in. Called with the lock held.
func (h *house) retire(in *household) {
	if !in.leaving {
		in.leaving = true
		close(in.closing)
	}
	if h.now == in {
		h.now = nil
	}
}

// keep is the life of one browser, from its start until nothing of it is left.
func (h *house) keep(in *household, sharer browser.Sharer) {
	spec := h.spec()
	h.mu.Lock()
	if h.ours == nil {
		h.ours = map[string]bool{}
	}
	h.ours[spec.ID] = true
	h.mu.Unlock()
	h.begin(in, sharer, spec)
	func() {
		defer func() { // also where it panics: nobody new is to come in
			h.mu.Lock()
			defer h.mu.Unlock()
			h.retire(in)
		}()
		if in.err == nil {
			h.watch(in)
		}
	}()
	if in.shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), endWithin)
	defer cancel()
	if err := in.shared.End(ctx); err != nil {
		h.log.Warn("the one-shot browser ends by its own deadline", "error", err)
	}
}

// begin starts the browser, and says in the end how that went: guests wait for it.
func (h *house) begin(in *household, sharer browser.Sharer, spec browser.Spec) {
	defer close(in.ready)
	in.err = fault.New(fault.SessionCreateFailed, "make a browser", "it failed inside tapin")
	defer guard.Catch("one-shots")
	ctx, cancel := context.WithTimeout(h.ctx, startWithin)
	defer cancel()
	shared, err := sharer.Share(ctx, spec)
	if err != nil {
		err = fault.Wrap(fault.SessionCreateFailed, "make a browser", err)
	}
	in.shared, in.err = shared, err
}

// watch renews the browser's lease until it is lost, empty for too long, or the
// room closes.
func (h *house) watch(in *household) {
	tick := time.NewTicker(h.rhythm.tick)
	defer tick.Stop()
	for {
		select {
		case <-in.shared.Done():
			return
		case <-h.ctx.Done():
			return
		case <-in.empty:
			return
		case <-tick.C:
		}
		if h.idle(in) {
			return
		}
		ctx, cancel := context.WithTimeout(h.ctx, renewWithin)
		err := in.shared.KeepUntil(ctx, time.Now().Add(h.rhythm.lease))
		cancel()
		if err != nil && h.ctx.Err() == nil {
			h.log.Warn("the one-shot browser does not answer", "error", err)
			return
		}
	}
}

// idle retires a browser that nobody has needed for a while.
func (h *house) idle(in *household) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.guests > 0 || time.Since(in.last) < h.rhythm.idle || h.full() {
		return false
	}
	h.retire(in)
	return true
}

// shares reports whether contexts cost little here, so that some may wait ready.
func (h *house) shares() bool {
	provider, err := h.provider()
	if err != nil {
		return false
	}
	_, ok := provider.(browser.Sharer)
	return ok
}

// sweep ends the browsers of earlier processes.
func (h *house) sweep(ctx context.Context) {
	provider, err := h.provider()
	if err != nil {
		return
	}
	if _, ok := provider.(browser.Sharer); !ok {
		return // those of others end by their deadline
	}
	own, err := provider.Own(ctx, nil)
	if err != nil {
		h.log.Warn("left-over one-shot browsers could not be listed", "error", err)
	}
	for _, ref := range own {
		h.mu.Lock()
		ours := h.ours[ref.ID]
		h.mu.Unlock()
		if ours || !strings.HasPrefix(ref.ID, mark) {
			continue
		}
		if err := provider.End(ctx, ref); err != nil && !errors.Is(err, context.Canceled) {
			h.log.Warn("a left-over one-shot browser ends by its own deadline", "error", err)
		}
	}
}
