// Package session is one live browser at a time: how it starts, what may be
// done in it, and how it ends. It owns the session records and the deadline of
// each. It must never leave a browser behind that no record names, and never
// touch one that tapin did not start.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/store"
)

// grace is how much longer than its session a browser lives when nobody is left
// to end it.
const grace = 2 * time.Minute

// Providers returns the provider of that name, "" meaning the configured one,
// or a fault that says why it cannot be used.
type Providers func(name string) (browser.Provider, error)

// Options are the settings of a host; zero values mean the defaults.
type Options struct {
	Max       int           // sessions at a time; default 1
	Timeout   time.Duration // life of a session; default 30 min
	Policy    egress.Policy // what pages may reach
	Look      page.Look     // what browsers look like unless a start says otherwise
	Downloads string        // folder under which each session gets its own; empty refuses downloads
	Uploads   string        // folder that files for pages are taken from; empty refuses uploads
	// OnBlock hears of every request the network guard refused; it must be quick.
	OnBlock func(egress.Block)
	Logger  *slog.Logger
}

// Deps is what a host works with. All are required but for the credentials.
type Deps struct {
	Home      *store.Home
	Pump      *event.Pump
	Schedule  *event.Schedule
	Journal   *event.Journal
	Providers Providers
	// Credentials are the owner's; nil means that there are none to fill in.
	Credentials Credentials
}

// Host has the sessions of this sidecar. It is safe for concurrent use.
type Host struct {
	deps    Deps
	opts    Options
	rules   *egress.Rules
	records *records
	log     *slog.Logger

	news   chan event.Event // surprises that wait to be told
	life   context.Context  //nolint:containedctx // the host's own life, which bounds starts and reconnects
	stop   context.CancelFunc
	starts sync.WaitGroup // those under way, and the one who tells news

	recovering sync.Mutex // held by whoever looks for what was left behind
	recovered  bool       // under recovering: the first look, before anything else ran, is over

	mu       sync.Mutex
	sessions map[string]*Session
	starting map[string]bool // reserved: being started
	closing  bool
	lastEnd  string // how the last session ended, for whoever asks for it
}

// New makes a host without sessions; Recover finds those of an earlier process.
func New(deps Deps, opts *Options) (*Host, error) {
	h := &Host{deps: deps, sessions: map[string]*Session{}, starting: map[string]bool{}}
	if opts != nil {
		h.opts = *opts
	}
	if h.opts.Max <= 0 {
		h.opts.Max = 1
	}
	if h.opts.Timeout <= 0 {
		h.opts.Timeout = 30 * time.Minute
	}
	h.log = h.opts.Logger
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	rules, err := h.opts.Policy.Compile()
	if err != nil {
		return nil, err
	}
	h.rules = rules
	h.life, h.stop = context.WithCancel(context.Background())
	h.records = newRecords(deps.Home, deps.Pump)
	h.news = make(chan event.Event, maxNews)
	h.starts.Go(func() { h.tellNews(h.life) })
	return h, nil
}

// Start makes a browser and opens the address in it. The session is on record
// before the browser exists; when the start fails, nothing of it is left.
func (h *Host) Start(ctx context.Context, o StartOptions) (*Session, error) {
	began := time.Now()
	s, err := h.start(ctx, o)
	entry := event.Entry{At: began, Who: "agent", What: "session.start", Took: time.Since(began), Outcome: outcome(err)}
	if s != nil {
		entry.Session = s.ID()
	}
	h.journal(entry)
	return s, err
}

func (h *Host) start(ctx context.Context, o StartOptions) (*Session, error) {
	const op = "start a session"
	plan, err := h.plan(o)
	if err != nil {
		return nil, err
	}
	provider, err := h.deps.Providers(o.Provider)
	if err != nil {
		return nil, err
	}
	id := store.NewID("ses")
	if err := h.reserve(id); err != nil {
		return nil, err
	}
	defer h.unreserve(id)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()

	now := time.Now().UTC()
	rec := &record{
		ID: id, Version: 1, State: stateStarting, Generation: 1, StartedAt: now, LastUsedAt: now, Deadline: now.Add(plan.timeout),
		Ref: browser.Ref{Provider: provider.Name(), ID: id + "-1"}, Look: plan.look,
	}
	if err := h.records.open(rec); err != nil {
		return nil, fault.Wrap(fault.Internal, op, err)
	}
	s, err := h.launch(ctx, provider, rec)
	if err == nil && o.URL != "" {
		if _, err = s.Navigate(ctx, o.URL, ""); err != nil {
			s.abandon()
		}
	}
	if err == nil {
		err = h.admit(ctx, s)
	}
	if err != nil {
		h.undo(context.WithoutCancel(ctx), provider, rec)
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return s, nil
}

// launch creates the browser and takes its tabs. Where it can be found again is
// on record before anything is done with it.
func (h *Host) launch(ctx context.Context, provider browser.Provider, rec *record) (*Session, error) {
	spec := browser.Spec{ID: rec.Ref.ID, KeepUntil: rec.Deadline.Add(grace), Policy: h.opts.Policy}
	if h.opts.Downloads != "" {
		spec.Downloads = h.opts.Downloads + "/" + rec.ID
	}
	inst, err := provider.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := h.records.change(ctx, rec, "", func(r *record) { r.Ref = inst.Ref() }); err != nil {
		rec.Ref = inst.Ref() // for the one who undoes it
		_ = inst.Release()
		return nil, err
	}
	v, err := h.open(ctx, inst, rec, nil)
	if err != nil {
		return nil, err
	}
	return newSession(h, provider, v, rec), nil
}

// open takes the tabs of a browser.
func (h *Host) open(ctx context.Context, inst browser.Instance, rec *record, recipes page.Recipes) (view, error) {
	id := rec.ID
	if rec.hidden == nil {
		rec.hidden = page.NewHidden(rec.Hides)
	}
	tabs, err := page.Open(ctx, inst, &page.Options{
		Look: rec.Look, Recipes: recipes, OnBlock: h.opts.OnBlock, Logger: h.log,
		OnSurprise: func(s page.Surprise) { h.surprised(id, s) }, Hidden: rec.hidden,
	})
	if err != nil {
		_ = inst.Release()
		return view{}, err
	}
	return view{inst, tabs}, nil
}

// admit puts a started session on record as active and begins to watch over it.
func (h *Host) admit(ctx context.Context, s *Session) error {
	if err := h.records.change(ctx, s.rec, "session.started", func(r *record) { r.State = stateActive }); err != nil {
		s.abandon()
		return err
	}
	h.take(s)
	return nil
}

// take makes a session one of ours.
func (h *Host) take(s *Session) {
	h.mu.Lock()
	h.sessions[s.ID()] = s
	h.mu.Unlock()
	h.watch(s)
}

// forget lets go of a session without ending anything.
func (h *Host) forget(s *Session, reason string) {
	h.deps.Schedule.Cancel(s.ID())
	s.abandon()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s.ID())
	h.lastEnd = reason
}

// undo removes what a failed start left.
func (h *Host) undo(ctx context.Context, provider browser.Provider, rec *record) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := provider.End(ctx, rec.Ref); err != nil {
		// The record stays: the next start of the sidecar tries again.
		h.log.Warn("a browser that failed to start could not be removed", "session", rec.ID, "error", err)
		return
	}
	if err := h.records.close(ctx, rec, ""); err != nil {
		h.log.Warn("the record of a failed start could not be removed", "session", rec.ID, "error", err)
	}
}

func (h *Host) reserve(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return fault.New(fault.Busy, "start a session", "tapin is ending")
	}
	if len(h.sessions)+len(h.starting) < h.opts.Max {
		h.starting[id] = true
		h.starts.Add(1)
		return nil
	}
	f := fault.New(fault.SessionActive, "start a session", "%d of %d sessions are in use", len(h.sessions)+len(h.starting), h.opts.Max)
	for active := range h.sessions {
		f = f.With("session_id", active)
	}
	for active := range h.starting {
		if len(h.sessions) == 0 {
			f = f.With("session_id", active)
		}
	}
	return f
}

func (h *Host) unreserve(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.starting, id)
	h.starts.Done()
}

// Get returns a live session.
func (h *Host) Get(id string) (*Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[id]; s != nil {
		return s, nil
	}
	return nil, fault.New(fault.NoSession, "", "no session %q is active", id)
}

// Active returns the one live session.
func (h *Host) Active() (*Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch len(h.sessions) {
	case 0:
		if h.lastEnd != "" {
			return nil, fault.New(fault.NoSession, "", "no session is active; the last one ended because %s", h.lastEnd)
		}
		return nil, fault.New(fault.NoSession, "", "no session is active")
	case 1:
		for _, s := range h.sessions {
			return s, nil
		}
	}
	return nil, fault.New(fault.InvalidRequest, "", "%d sessions are active", len(h.sessions)).
		WithHint("Name one with /sessions/{id}/…; GET /sessions lists them.")
}

// List tells of all live sessions, the oldest first.
func (h *Host) List() []Info {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Info, 0, len(h.sessions))
	for _, s := range h.sessions {
		out = append(out, s.Info())
	}
	sortInfos(out)
	return out
}

// Stop ends a session and its browser.
func (h *Host) Stop(ctx context.Context, id string, _ *bool) (Stopped, error) {
	s, err := h.Get(id)
	if err != nil {
		return Stopped{}, err
	}
	return h.end(ctx, s, "")
}

// retryEndAfter is when an end that failed is tried again.
const retryEndAfter = 5 * time.Second

// end is the one way out: gate, browser, record, news. Whoever comes second
// waits for the first and gets the same answer. It goes on when its caller has
// hung up, and one that failed is tried again: until it succeeds the session is
// still listed, because its browser may still run.
func (h *Host) end(ctx context.Context, s *Session, reason string) (Stopped, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), judgeWithin)
	defer cancel()
	return s.end(func() (Stopped, error) {
		began := time.Now()
		h.deps.Schedule.Cancel(s.ID())
		inst := s.view().inst
		s.close(whyOver(reason, inst.Conn().Err()))
		err := inst.End(ctx)
		if err != nil {
			// It may be unreachable from here: the provider knows other ways.
			err = s.provider.End(ctx, inst.Ref())
		}
		if err == nil {
			err = h.records.close(ctx, s.rec, reason)
		}
		h.journal(event.Entry{At: began, Who: who(reason), What: "session.stop", Session: s.ID(), Took: time.Since(began), Outcome: outcome(err)})
		if err != nil {
			h.deps.Schedule.Set(s.ID(), time.Now().Add(retryEndAfter), func(ctx context.Context) { _, _ = h.end(ctx, s, reason) })
			return Stopped{}, err
		}
		h.mu.Lock()
		delete(h.sessions, s.ID())
		h.lastEnd = reason
		h.mu.Unlock()
		return Stopped{ID: s.ID()}, nil
	})
}

// Close ends all sessions, also those that are still being started; it is the
// sidecar's orderly end.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	h.stop()
	h.starts.Wait() // bounded: their context is over

	h.mu.Lock()
	var all []*Session
	for _, s := range h.sessions {
		all = append(all, s)
	}
	h.mu.Unlock()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { _, errs[i] = h.end(ctx, s, "tapin was stopped") })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *Host) journal(e event.Entry) {
	if err := h.deps.Journal.Write(e); err != nil {
		h.log.Warn("the journal could not be written", "error", err)
	}
}

// whyOver is what those are told whose work an end cuts off; empty where the
// browser was lost before, which speaks for itself.
func whyOver(reason string, lost error) string {
	switch {
	case lost != nil:
		return ""
	case reason == "":
		return "it was stopped"
	}
	return reason
}

// who tells a caller's wish from our own doing.
func who(reason string) string {
	if reason == "" {
		return "agent"
	}
	return "tapin"
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(fault.Of(err).Code)
}
