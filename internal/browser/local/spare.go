package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/store"
)

const (
	spareMark  = "spare"          // what their names begin with: of no session
	spareLease = 2 * time.Minute  // how long one outlives a sidecar that was killed
	spareRenew = 30 * time.Second // how often that is put off
	// spareAfter leaves the machine to whoever has just begun.
	spareAfter = time.Second
	// spareWithin bounds its answer: starting another takes less than waiting longer.
	spareWithin = 2 * time.Second
)

// Stock is how many browsers are kept ready.
type Stock struct {
	Always int // whatever happens
	// Follow is for how long one is kept in the place of a browser that has ended:
	// whoever is done with one thing often begins the next.
	Follow time.Duration
}

// spares are browsers that were started before anybody asked: each has a
// private context and a blank tab, and is used once.
type spares struct {
	mu     sync.Mutex
	ready  []*instance
	stock  Stock
	vacant time.Time     // until when a place is kept for whoever comes next
	news   chan struct{} // told when one more may be wanted; nil while none are kept
}

// KeepSpares keeps browsers ready until ctx ends; then they end too. What there is
// to do in each before anybody asks for it, open does; nil means nothing.
func (p *Provider) KeepSpares(ctx context.Context, stock Stock, spec browser.Spec, open func(context.Context, browser.Instance) error) {
	if stock == (Stock{}) {
		return
	}
	news := make(chan struct{}, 1)
	p.spares.mu.Lock()
	p.spares.stock, p.spares.news = stock, news
	p.spares.mu.Unlock()
	defer p.endSpares()
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-news:
			wait = spareAfter
		case <-time.After(wait):
			p.renewSpares(ctx)
			n, until := p.spares.wanted()
			wait = min(spareRenew, until)
			if p.Spares() >= n {
				p.endBeyond(n)
				continue
			}
			made, err := p.spare(ctx, spec)
			if err == nil && open != nil {
				if err = open(ctx, made); err != nil {
					_ = made.End(context.WithoutCancel(ctx))
				}
			}
			switch {
			case err == nil:
				p.spares.put(made)
				wait = 0
			case ctx.Err() == nil:
				p.log.Warn("no browser could be made ready", "error", err)
			}
		}
	}
}

// Spares is how many are ready now.
func (p *Provider) Spares() int {
	p.spares.mu.Lock()
	defer p.spares.mu.Unlock()
	return len(p.spares.ready)
}

// spare makes one.
func (p *Provider) spare(ctx context.Context, spec browser.Spec) (*instance, error) {
	spec.ID, spec.KeepUntil = store.NewID(spareMark), time.Now().Add(spareLease)
	inst, err := p.start(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := inst.rehearse(ctx); err != nil {
		_ = inst.End(context.WithoutCancel(ctx))
		return nil, err
	}
	return inst, nil
}

// takeSpare gives one away as the browser that spec wants; nil means that there
// is none. One that has died is no reason not to start another.
func (p *Provider) takeSpare(ctx context.Context, spec browser.Spec) *instance {
	for {
		inst := p.spares.pop()
		if inst == nil {
			return nil
		}
		err := inst.become(ctx, spec)
		if err == nil {
			return inst
		}
		p.log.Warn("a browser that was kept ready is of no use", "error", err)
		_ = inst.End(context.WithoutCancel(ctx))
	}
}

// become makes a spare browser the one that spec wants.
func (i *instance) become(ctx context.Context, spec browser.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, spareWithin)
	defer cancel()
	prepared := make(chan error, 1) // by the browser, while the holder answers
	go func() { prepared <- browser.Prepare(ctx, i.conn, i.ref.Context, spec) }()
	err := i.KeepUntil(ctx, spec.KeepUntil)
	if err == nil {
		err = i.SetPolicy(ctx, spec.Policy)
	}
	return errors.Join(err, <-prepared)
}

// renewSpares puts their ends off, with the lock held: one that is given away
// meanwhile has another end. Those that are dead are cleared away after that.
func (p *Provider) renewSpares(ctx context.Context) {
	renewing, cancel := context.WithTimeout(ctx, spareWithin)
	defer cancel()
	var dead []*instance
	s := &p.spares
	s.mu.Lock()
	s.ready = slices.DeleteFunc(s.ready, func(inst *instance) bool {
		if inst.KeepUntil(renewing, time.Now().Add(spareLease)) == nil {
			return false
		}
		dead = append(dead, inst)
		return true
	})
	s.mu.Unlock()
	for _, inst := range dead {
		_ = inst.End(context.WithoutCancel(ctx))
	}
}

func (p *Provider) endSpares() {
	p.spares.mu.Lock()
	p.spares.news = nil
	p.spares.mu.Unlock()
	p.endBeyond(0)
}

// endBeyond ends those that are more than n.
func (p *Provider) endBeyond(n int) {
	s := &p.spares
	s.mu.Lock()
	surplus := slices.Clone(s.ready[min(n, len(s.ready)):])
	s.ready = s.ready[:len(s.ready)-len(surplus)]
	s.mu.Unlock()
	for _, inst := range surplus {
		_ = inst.End(context.Background())
	}
}

func (s *spares) put(inst *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, inst)
}

// wanted is how many are to be ready, and for how long.
func (s *spares) wanted() (n int, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := time.Until(s.vacant); left > 0 {
		return max(s.stock.Always, 1), left
	}
	return s.stock.Always, spareRenew
}

// vacate keeps the place of a browser that has ended, for a while.
func (s *spares) vacate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacant = time.Now().Add(s.stock.Follow)
	s.tell()
}

// pop gives one away. Whether there is one or not, somebody takes the place that
// was kept.
func (s *spares) pop() *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacant = time.Time{}
	if len(s.ready) == 0 {
		return nil
	}
	inst := s.ready[0]
	s.ready = s.ready[1:]
	s.tell()
	return inst
}

func (s *spares) tell() {
	select {
	case s.news <- struct{}{}: // a nil channel is never ready
	default:
	}
}
