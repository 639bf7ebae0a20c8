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
	"maps"
	"slices"
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
	// OnEnd hears of every session that is over, with the hand-off that held it.
	OnEnd  func(session, handoff, reason string)
	Logger *slog.Logger
}

// Deps is what a host works with. The first five are required.
type Deps struct {
	Home        *store.Home
	Pump        *event.Pump
	Schedule    *event.Schedule
	Journal     *event.Journal
	Providers   Providers
	Claims      Claims      // nil: nobody is ever in a browser
	Saved       Saved       // nil: no login is saved
	Sealer      Sealer      // nil: a lost browser is not restored, and none can be parked
	Credentials Credentials // the owner's; nil: there are none to fill in
}

// Host has the sessions of this sidecar. It is safe for concurrent use.
type Host struct {
	deps    Deps
	opts    Options
	rules   *egress.Rules
	records *records
	log     *slog.Logger

	news   chan event.Event // surprises that wait to be told
	places chan place       // that wait to be written down
	life   context.Context  //nolint:containedctx // the host's own life, which bounds starts and reconnects
	stop   context.CancelFunc
	starts sync.WaitGroup // those under way, and the one who tells news

	recovering sync.Mutex // held by whoever looks for what was left behind
	recovered  bool       // under recovering: the first look, before anything else ran, is over

	mu       sync.Mutex
	sessions map[string]*Session
	starting map[string]bool // reserved: being started
	parked   map[string]parked
	closing  bool
	lastEnd  string // how the last session ended, for whoever asks for it
}

// New makes a host without sessions; Recover finds those of an earlier process.
func New(deps Deps, opts *Options) (*Host, error) {
	h := &Host{deps: deps, sessions: map[string]*Session{}, starting: map[string]bool{}, parked: map[string]parked{}}
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
	h.news, h.places = make(chan event.Event, maxNews), make(chan place, maxNews)
	h.starts.Go(func() { h.tellNews(h.life) })
	return h, nil
}

// Start makes a browser and opens the address in it. The session is on record
// before the browser exists; when the start fails, nothing of it is left.
func (h *Host) Start(ctx context.Context, o StartOptions) (*Session, error) {
	began := time.Now()
	s, err := h.start(ctx, o)
	entry := event.Entry{At: began, Who: string(driverOf(ctx)), What: "session.start", Took: time.Since(began), Outcome: outcome(err)}
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
	rec := &record{ID: id, facts: facts{
		Version: 1, State: stateStarting, Generation: 1, StartedAt: now, LastUsedAt: now, Deadline: now.Add(plan.timeout),
		Ref: browser.Ref{Provider: provider.Name(), ID: id + "-1"}, Look: plan.look,
		Context: o.Context, NoSave: o.SaveContext != nil && !*o.SaveContext,
	}}
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

// launch makes the browser of a session, and puts the saved login into it
// before its first request leaves.
func (h *Host) launch(ctx context.Context, provider browser.Provider, rec *record) (*Session, error) {
	state, err := h.checkout(ctx, rec)
	if err != nil {
		return nil, err
	}
	v, err := h.create(ctx, provider, rec)
	if err != nil {
		return nil, err
	}
	if now := h.records.copy(rec); now.Restored {
		restored, err := v.tabs.Restore(ctx, state)
		if err != nil {
			v.close()
			return nil, err
		}
		h.log.Info("a saved login was restored", "session", rec.ID, "context", now.Context, "cookies", restored.Cookies, "keys", restored.Keys)
	}
	return newSession(h, provider, v, rec), nil
}

// create makes a browser and takes its tabs. Where it can be found again is on
// record before anything is done with it.
func (h *Host) create(ctx context.Context, provider browser.Provider, rec *record) (view, error) {
	now := h.records.copy(rec)
	spec := browser.Spec{ID: now.Ref.ID, KeepUntil: now.Deadline.Add(grace), Policy: h.opts.Policy}
	if h.opts.Downloads != "" {
		spec.Downloads = h.opts.Downloads + "/" + rec.ID
	}
	inst, err := provider.Create(ctx, spec)
	if err != nil {
		return view{}, err
	}
	if err := h.records.change(ctx, rec, "", func(r *record) { r.Ref = inst.Ref() }); err != nil {
		h.records.point(rec, inst.Ref()) // for the one who undoes it
		_ = inst.Release()
		return view{}, err
	}
	return h.open(ctx, inst, rec, nil)
}

// open takes the tabs of a browser.
func (h *Host) open(ctx context.Context, inst browser.Instance, rec *record, recipes page.Recipes) (view, error) {
	id, now := rec.ID, h.records.copy(rec)
	tabs, err := page.Open(ctx, inst, &page.Options{
		Look: now.Look, Recipes: recipes, OnBlock: h.opts.OnBlock, Logger: h.log,
		Origins: now.Origins, OnOrigin: func(origin string) { h.passOrigin(rec, origin) },
		OnSurprise: func(s page.Surprise) { h.surprised(id, s) }, Hidden: h.records.hidden(rec),
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
	h.unwatch(s.ID())
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
	if err := provider.End(ctx, h.records.copy(rec).Ref); err != nil {
		// The record stays: the next start of the sidecar tries again.
		h.log.Warn("a browser that failed to start could not be removed", "session", rec.ID, "error", err)
		return
	}
	if err := h.letGo(ctx, rec, ""); err != nil {
		h.log.Warn("the record of a failed start could not be removed", "session", rec.ID, "error", err)
	}
}

// letGo is the end of a session whose browser is gone: its login is free for
// others, what was kept for it is removed, and its record is closed.
func (h *Host) letGo(ctx context.Context, rec *record, reason string) error {
	if login := h.records.copy(rec).Context; login != "" && h.deps.Saved != nil {
		if err := h.deps.Saved.Release(ctx, login, rec.ID); err != nil {
			return err
		}
	}
	h.dropState(rec.ID)
	return h.records.close(ctx, rec, reason)
}

func (h *Host) reserve(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return fault.New(fault.Busy, "start a session", "tapin is ending")
	}
	used := len(h.starting)
	for _, s := range h.sessions {
		if !s.isFreed() {
			used++
		}
	}
	if used < h.opts.Max {
		h.starting[id] = true
		h.starts.Add(1)
		return nil
	}
	f := fault.New(fault.SessionActive, "start a session", "%d of %d sessions are in use", used, h.opts.Max)
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
	if p, ok := h.parked[id]; ok {
		return nil, inControl(p.handoff)
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

// IDs are those of all sessions that are not over, also of parked ones.
func (h *Host) IDs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Keys(h.sessions)), slices.Collect(maps.Keys(h.starting)), slices.Collect(maps.Keys(h.parked)))
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

// Stop ends a session and its browser. A login it was started with is saved,
// unless save says otherwise.
func (h *Host) Stop(ctx context.Context, id string, save *bool) (Stopped, error) {
	s, err := h.Get(id)
	if err != nil {
		return Stopped{}, err
	}
	if err := s.permit(ctx); err != nil {
		return Stopped{}, err
	}
	s.mu.Lock()
	s.saveAs = save
	s.mu.Unlock()
	return h.end(ctx, s, "")
}

// Shut ends a session on behalf of a hand-off: its person gave up, or never
// came. A parked one has nothing left to end but its record.
func (h *Host) Shut(ctx context.Context, id, reason string) (Stopped, error) {
	if h.isParked(id) {
		return Stopped{ID: id, ContextSaved: true}, h.discard(ctx, id, reason)
	}
	s, err := h.Get(id)
	if errors.Is(err, fault.NoSession) {
		return Stopped{ID: id}, nil // it is over already
	}
	if err != nil {
		return Stopped{}, err
	}
	// The gate stays closed: until the browser is gone the page is the person's.
	return h.end(ctx, s, reason)
}

// retryEndAfter is when an end that failed is tried again.
const retryEndAfter = 5 * time.Second

// end is the one way out: gate, browser, record, news. Whoever comes second
// waits for the first and gets the same answer. It goes on when its caller has
// hung up, and one that failed is tried again: until it succeeds the session is
// still listed, because its browser may still run.
func (h *Host) end(ctx context.Context, s *Session, reason string) (Stopped, error) {
	ctx = context.WithoutCancel(ctx)
	return s.end(func() (Stopped, error) {
		began := time.Now()
		h.unwatch(s.ID())
		s.shut(whyOver(reason, s.view().inst.Conn().Err()))
		s.interrupt(errStopped)
		saved := h.saveLast(ctx, s)
		s.close("")
		// Its own time: a login that took long to read must not keep a browser alive.
		ctx, cancel := context.WithTimeout(ctx, judgeWithin)
		defer cancel()
		inst := s.view().inst
		err := inst.End(ctx)
		if err != nil {
			// It may be unreachable from here: the provider knows other ways.
			err = s.provider.End(ctx, inst.Ref())
		}
		if known := s.record().Ref; err == nil && known.ID != inst.Ref().ID {
			err = s.provider.End(ctx, known) // one that was to take the place of a lost one
		}
		if err == nil {
			s.setFreed() // before it is told: whoever hears of it may start another
			err = h.letGo(ctx, s.rec, reason)
		}
		h.journal(event.Entry{At: began, Who: who(ctx, reason), What: "session.stop", Session: s.ID(), Took: time.Since(began), Outcome: outcome(err)})
		if err != nil {
			if inst.Conn().Err() != nil {
				h.tellEnd(s, reason) // out of reach, it is over for whoever was in it
			}
			h.deps.Schedule.Set(s.ID(), time.Now().Add(retryEndAfter), func(ctx context.Context) { _, _ = h.end(ctx, s, reason) })
			return Stopped{}, err
		}
		h.mu.Lock()
		delete(h.sessions, s.ID())
		h.lastEnd = reason
		h.mu.Unlock()
		h.tellEnd(s, reason)
		return Stopped{ID: s.ID(), ContextSaved: saved}, nil
	})
}

// tellEnd says once that a session is over. The one who ends it calls it.
func (h *Host) tellEnd(s *Session, reason string) {
	if s.toldEnd {
		return
	}
	s.toldEnd = true
	held := s.heldBy()
	if h.opts.OnEnd != nil {
		h.opts.OnEnd(s.ID(), held, reason)
	}
	s.openGate(held) // nobody drives it any more
}

// Close ends all sessions, also those that are still being started; it is the
// sidecar's orderly end. One that a person holds is not ended.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	h.stop()
	h.starts.Wait() // bounded: their context is over

	h.mu.Lock()
	var all []*Session
	var held []*Session
	for _, s := range h.sessions {
		if s.heldBy() != "" {
			held = append(held, s)
			continue
		}
		all = append(all, s)
	}
	h.mu.Unlock()
	for _, s := range held {
		// It could not be parked. The browser lives on in the person's hands, and
		// the next start finds it.
		h.log.Warn("a browser that a person is in is left running", "session", s.ID())
		h.forget(s, "tapin was stopped")
	}
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
func who(ctx context.Context, reason string) string {
	if reason == "" {
		return string(driverOf(ctx))
	}
	return "tapin"
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(fault.Of(err).Code)
}
