// Package oneshot gives the picture or the content of one address in one call, in a browser context that exists for that call alone.
// It owns the one-shot browser, its warm contexts, the caps on what comes back, the retries and the figures about all of it.
// It must never touch a session's browser, write anything of a page down, or leave a context, a tab or a browser behind.
package oneshot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/page"
)

// Deps are what the room stands on.
type Deps struct {
	// Provider is asked whenever a browser is needed.
	Provider func() (browser.Provider, error)
	Journal  *event.Journal // nil writes none
}

// Options adjust the room; nil means the defaults.
type Options struct {
	Disabled bool          // every call is DISABLED
	Warm     int           // contexts kept ready; 0 means none
	Most     int           // one-shots at a time; 0 means 8
	Policy   egress.Policy // what pages may reach
	Look     page.Look     // locale and timezone; sizes are the calls' own
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// Room carries out one-shots. It is safe for concurrent use.
type Room struct {
	disabled bool
	look     page.Look
	rules    *egress.Rules
	journal  *event.Journal
	log      *slog.Logger
	figures  *figures
	house    *house
	pool     *pool
	cards    cards

	tasks sync.WaitGroup
	ctx   context.Context //nolint:containedctx // the lifetime of what this owner starts
	stop  context.CancelFunc
}

// standardMost is what a small machine carries at once.
const standardMost = 8

// New makes a room. Nothing is started before it is needed, or Begin.
func New(deps Deps, options *Options) (*Room, error) {
	var o Options
	if options != nil {
		o = *options
	}
	rules, err := o.Policy.Compile()
	if err != nil {
		return nil, err
	}
	if o.Most <= 0 {
		o.Most = standardMost
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Room{disabled: o.Disabled, look: o.Look, rules: rules, journal: deps.Journal, log: o.Logger, figures: newFigures(o.Registry)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	judge := func(address string) error { return egress.CheckURL(address, rules) }
	r.house = &house{judge: judge, provider: deps.Provider, policy: o.Policy, log: o.Logger, ctx: r.ctx, tasks: &r.tasks, rhythm: standardRhythm}
	r.pool = &pool{
		house: r.house, look: o.Look, warm: o.Warm, figures: r.figures, log: o.Logger,
		ctx: r.ctx, tasks: &r.tasks, slots: make(chan struct{}, o.Most), oldest: standardOldest,
	}
	r.house.full = r.pool.busy
	return r, nil
}

// Enabled reports whether the one-shot tools are switched on.
func (r *Room) Enabled() bool { return !r.disabled }

// Begin ends what an earlier process left behind and makes the warm contexts
// ready, both while the caller goes on.
func (r *Room) Begin() {
	if r.disabled {
		return
	}
	r.tasks.Go(func() {
		defer guard.Catch("one-shots")
		r.house.sweep(r.ctx)
		r.pool.refill()
	})
}

// Close ends the browser and everything under way, and waits until nothing is
// left or ctx ends.
func (r *Room) Close(ctx context.Context) error {
	r.pool.close()
	r.stop()
	done := make(chan struct{})
	go func() {
		defer guard.Catch("one-shots")
		r.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// journalled writes the line of one call: where to and how it ended, never what
// was read.
func (r *Room) journalled(what, origin string, took time.Duration, retries int, err error) {
	if r.journal == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		outcome = string(fault.Of(err).Code)
	}
	line := event.Entry{Who: "agent", What: what, Origin: origin, Counts: map[string]int{"retries": retries}, Took: took, Outcome: outcome}
	if err := r.journal.Write(line); err != nil {
		r.log.Warn("the journal could not be written", "error", err)
	}
}
