package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"tapin/internal/browser"
	"tapin/internal/guard"
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
	// spareMade bounds the making of one, which is to be started and rehearsed, and
	// spareAwaited how long somebody waits for it who could start one too.
	spareMade    = startWithin + 20*time.Second
	spareAwaited = 5 * time.Second
)

// KeepSpares keeps browsers ready until ctx ends; then they end too. What there is
// to do in each before anybody asks for it, open does; nil means nothing.
func (p *Provider) KeepSpares(ctx context.Context, stock Stock, spec browser.Spec, open func(context.Context, browser.Instance) error) {
	if stock.Always == 0 && stock.Follow == 0 {
		return
	}
	news := p.spares.keep(stock)
	defer p.endSpares()
	wait := spareAfter
	if stock.Always > 0 {
		wait = 0
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			wait = spareAfter
		case <-time.After(wait):
			p.renewSpares(ctx)
			n, until, begun := p.spares.begin()
			wait = min(spareRenew, until)
			if !begun {
				p.endBeyond(n)
				continue
			}
			made, err := p.spare(ctx, spec, open)
			given := p.spares.put(made)
			switch {
			case err != nil && ctx.Err() == nil:
				p.log.Warn("no browser could be made ready", "error", err)
			case given:
				wait = spareAfter
			case err == nil:
				wait = 0
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

// spare makes one. Who waits for it wants it soon, and has no use for a rehearsal.
func (p *Provider) spare(ctx context.Context, spec browser.Spec, open func(context.Context, browser.Instance) error) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, spareMade)
	defer cancel()
	spec.ID, spec.KeepUntil = store.NewID(spareMark), time.Now().Add(spareLease)
	inst, err := p.start(ctx, spec)
	if err != nil {
		return nil, err
	}
	if !p.spares.isAwaited() {
		err = inst.rehearse(ctx)
	}
	if err == nil && open != nil {
		err = open(ctx, inst)
	}
	if err != nil {
		_ = inst.End(context.WithoutCancel(ctx))
		return nil, err
	}
	return inst, nil
}

// takeSpare gives one away as the browser that spec wants; nil means that there
// is none. One that has died is no reason not to start another; who has left takes no
// more of them.
func (p *Provider) takeSpare(ctx context.Context, spec browser.Spec) *instance {
	for ctx.Err() == nil {
		inst := p.spares.pop(ctx)
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
	return nil
}

// become makes a spare browser the one that spec wants.
func (i *instance) become(ctx context.Context, spec browser.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, spareWithin)
	defer cancel()
	prepared := make(chan error, 1) // by the browser, while the holder answers
	go func() {
		prepared <- guard.Call("local browsers", func() error { return browser.Prepare(ctx, i.conn, i.ref.Context, spec) }, errPanicked)
	}()
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

var errPanicked = errors.New("a part of it panicked")
