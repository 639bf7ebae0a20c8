package oneshot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/page"
)

const (
	// standardOldest is how long a context may wait ready: names, cookies and
	// certificates of a fresh one are fresh too.
	standardOldest = 5 * time.Minute
	// mostWaiting is how many calls may wait for a place before others are sent away.
	mostWaiting = 64
)

// place is one context with its tab, for one call. Nothing is used twice: what
// a page leaves behind goes with its context.
type place struct {
	*guest
	tabs *page.Tabs
	tab  *page.Tab
	made time.Time
	// taken is closed when somebody takes a place that waited ready; nil where none did.
	taken chan struct{}

	mu     sync.Mutex
	blocks []egress.Block
}

// mostBlocks bounds what is told of one page's refusals.
const mostBlocks = 20

func (p *place) blocked(b egress.Block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !b.Vendor && len(p.blocks) < mostBlocks {
		p.blocks = append(p.blocks, b)
	}
}

func (p *place) refusals() []egress.Block {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blocks
}

// lost reports whether the place's browser is gone, or about to go.
func (p *place) lost() bool {
	select {
	case <-p.inst.Conn().Done():
		return true
	case <-p.closing:
		return true
	default:
		return false
	}
}

// pool gives out places: a warm one if there is one, else a new one. It keeps
// as many ready as it was told, makes them while nobody waits, and lets go of
// those that have waited too long. When all hands are full it makes none.
type pool struct {
	house   *house
	look    page.Look
	warm    int
	oldest  time.Duration
	figures *figures
	log     *slog.Logger

	ctx   context.Context //nolint:containedctx // the room's own lifetime
	tasks *sync.WaitGroup
	slots chan struct{} // one for each call under way

	mu       sync.Mutex
	waiting  int
	ready    []*place // the oldest first
	making   int
	bonus    int // places to make beyond what is kept ready, for calls that are announced
	setbacks int // how often it went wrong in a row
	closed   bool
}

// take is a place for one call, which must give it back. One that is made on the
// spot has the look already; one that waited ready is still to be dressed.
func (p *pool) take(ctx context.Context, look page.Look) (*place, error) {
	if err := p.queue(ctx); err != nil {
		return nil, err
	}
	if ready := p.pop(); ready != nil {
		p.figures.pool.WithLabelValues("warm").Inc()
		p.refill()
		return ready, nil
	}
	var made *place
	var err error
	defer func() {
		if made == nil { // also where making it panicked
			<-p.slots
		}
	}()
	made, err = p.make(ctx, look)
	if err != nil {
		return nil, err
	}
	p.figures.pool.WithLabelValues("cold").Inc()
	p.refill()
	return made, nil
}

// queue waits for its turn; a line that is too long is said at once.
func (p *pool) queue(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fault.New(fault.Busy, "make a browser context", "tapin is ending")
	}
	if p.waiting >= mostWaiting {
		p.mu.Unlock()
		return fault.New(fault.Busy, "make a browser context", "%d calls wait already", mostWaiting)
	}
	p.waiting++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting--
	}()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-p.ctx.Done():
		return fault.New(fault.Busy, "make a browser context", "tapin is ending")
	case <-ctx.Done():
		return fault.New(fault.Busy, "make a browser context", "%d one-shots are under way, and none ended in time", cap(p.slots))
	}
}

// pop is the freshest of the ready places that can still be used; the others of
// them are let go.
func (p *pool) pop() *place {
	p.mu.Lock()
	var got *place
	var old []*place
	for got == nil && len(p.ready) > 0 {
		last := p.ready[len(p.ready)-1]
		p.ready = p.ready[:len(p.ready)-1]
		if last.lost() || time.Since(last.made) > p.oldest {
			old = append(old, last)
			continue
		}
		got = last
		close(got.taken)
	}
	p.mu.Unlock()
	for _, each := range old {
		p.tasks.Go(func() {
			defer guard.Catch("one-shots")
			p.vacate(each)
		})
	}
	return got
}

// give takes a place back after its call. The caller does not wait for the
// tidying, but the place counts as taken until it is done.
func (p *pool) give(used *place) {
	p.tasks.Go(func() {
		defer guard.Catch("one-shots")
		defer p.refill()
		defer func() { <-p.slots }()
		p.vacate(used)
	})
}

func (p *pool) vacate(used *place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), endWithin)
	defer cancel()
	if used.tabs != nil {
		used.tabs.Close()
	}
	used.leave(ctx)
}

func (p *pool) make(ctx context.Context, look page.Look) (*place, error) {
	in, err := p.house.enter(ctx)
	if err != nil {
		return nil, err
	}
	made := &place{guest: in, made: time.Now()}
	made.tabs, err = page.Open(ctx, in.inst, &page.Options{Look: look, Unattended: true, Judge: in.judge, OnBlock: made.blocked, Logger: p.log})
	if err == nil {
		made.tab, err = made.tabs.Front(ctx)
	}
	if err != nil {
		p.tasks.Go(func() {
			defer guard.Catch("one-shots")
			p.vacate(made)
		})
		return nil, fault.Wrap(fault.SessionCreateFailed, "open a tab", err)
	}
	return made, nil
}

// announce makes one place ready for a call that is likely to come.
func (p *pool) announce() {
	p.mu.Lock()
	if len(p.ready)+p.making == 0 {
		p.bonus = 1
	}
	p.mu.Unlock()
	p.refill()
}

// refill makes what is missing, one after the other, while nobody waits.
func (p *pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.lacks() {
		p.making++
		p.bonus = 0
		p.tasks.Go(func() {
			defer guard.Catch("one-shots")
			p.prepare()
		})
	}
}

var errPanicked = errors.New("it failed inside tapin; tapin logs --crash shows where")

// lacks reports whether another place is to be made ready. Called with the lock held.
func (p *pool) lacks() bool {
	switch {
	case p.closed, p.waiting > 0, len(p.slots) == cap(p.slots), p.making > 1:
		return false
	case len(p.ready)+p.making < p.warm, p.bonus > 0:
		return p.house.shares()
	}
	return false
}

// prepare makes one place ready and sees to it that it does not wait for ever.
func (p *pool) prepare() {
	ctx, cancel := context.WithTimeout(p.ctx, attemptWithin)
	defer cancel()
	made, err := (*place)(nil), errPanicked
	func() {
		defer guard.Catch("one-shots")
		made, err = p.make(ctx, p.look)
	}()
	cancel()
	if err != nil {
		p.log.Debug("no context could be made ready", "error", err)
		p.breathe()
	}
	p.mu.Lock()
	p.making--
	keep := err == nil && !p.closed
	if keep {
		p.setbacks = 0
		made.taken = make(chan struct{})
		p.ready = append(p.ready, made)
	}
	p.mu.Unlock()
	switch {
	case keep:
		p.tasks.Go(func() {
			defer guard.Catch("one-shots")
			p.expire(made)
		})
	case err == nil:
		p.vacate(made)
	}
	p.refill()
}

// expire lets go of a place that nobody took while it was fresh, and makes
// another in its stead.
func (p *pool) expire(made *place) {
	age := time.NewTimer(p.oldest)
	defer age.Stop()
	select {
	case <-made.taken:
		return
	case <-age.C:
	case <-made.closing:
	case <-made.inst.Conn().Done():
	case <-p.ctx.Done():
	}
	if made.inst.Conn().Err() != nil {
		p.breathe()
	}
	p.mu.Lock()
	there := false
	for i, each := range p.ready {
		if each == made {
			p.ready = append(p.ready[:i:i], p.ready[i+1:]...)
			there = true
			break
		}
	}
	p.mu.Unlock()
	if there {
		p.vacate(made)
		p.refill()
	}
}

// breathe keeps a browser that does not stay up from being started without end:
// each time it goes wrong the pause is longer, up to a minute.
func (p *pool) breathe() {
	p.mu.Lock()
	wait := min(time.Minute, pauses[0]<<min(p.setbacks, 5))
	p.setbacks++
	p.mu.Unlock()
	pause := time.NewTimer(wait)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-p.ctx.Done():
	}
}

// admit counts a call in, unless the room is closing.
func (p *pool) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.tasks.Add(1)
	}
	return !p.closed
}

// busy reports whether a call is under way or waits.
func (p *pool) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0 || len(p.slots) > 0
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}
