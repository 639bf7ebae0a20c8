// Package session is one live browser at a time: how it starts, what may be
// done in it, and how it ends. It owns the session records and the deadline of
// each. It must never leave a browser behind that no record names, and never
// touch one that tapin did not start.
package session

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
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
	// TellFront has the feed say that another tab is in front also while a person
	// drives: where they look on through the provider, their link is of one tab.
	TellFront bool
	// Sweep are the providers that are asked at recovery for browsers of ours
	// which no record names, beside the local one.
	Sweep []string
	// PaymentPatterns are the owner's own, for what buttons say that take money.
	PaymentPatterns []string
	// OnBlock hears of every request the network guard refused; it must be quick.
	OnBlock func(egress.Block)
	// OnEnd hears of every session that is over, with the hand-off that held it.
	OnEnd func(session, handoff, reason string)
	// OnReplace hears of every browser that took the place of one that was lost
	// under a person, and the how manieth it is.
	OnReplace func(session string, generation int)
	// OnChange hears of every session that begins, is parked, or is no more. It
	// must be quick, and ask nothing back.
	OnChange func(session string)
	Logger   *slog.Logger
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
	Guard       Guard       // nil: nothing is asked before a payment
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
	begun  begun            // whose the downloads are
	ahead  ahead            // tabs of browsers that nobody has asked for yet
	life   context.Context  //nolint:containedctx // the host's own life, which bounds starts and reconnects
	stop   context.CancelFunc
	starts sync.WaitGroup // those under way, and what is done aside

	recovering sync.Mutex // held by whoever looks for what was left behind
	recovered  bool       // under recovering: the first look, before anything else ran, is over

	mu       sync.Mutex
	sessions map[string]*Session
	starting map[string]bool // reserved: being started
	parked   map[string]parked
	unread   map[string]error // why the record of a session cannot be read
	closing  bool
	lastEnd  string // how the last session ended, for whoever asks for it
}

// New makes a host without sessions; Recover finds those of an earlier process,
// and Run tells what happens in them.
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
	return h, nil
}

// aside does what nobody waits for; a host that is ending leaves it.
func (h *Host) aside(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closing {
		h.starts.Go(func() {
			defer guard.Catch("sessions")
			do()
		})
	}
}

// Start makes a browser and opens the address in it. The session is on record
// before anybody hears of it, and before the browser exists where that could be lost
// otherwise; when the start fails, nothing of it is left.
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
	if err := h.unread[id]; err != nil {
		return nil, err
	}
	return nil, fault.New(fault.NoSession, "", "no session %q is active", id)
}

// known is what is on record of a session that is not over, also of a parked one.
func (h *Host) known(id string) (record, error) {
	h.mu.Lock()
	p, ok := h.parked[id]
	h.mu.Unlock()
	if ok {
		return h.records.copy(p.rec), nil
	}
	s, err := h.Get(id)
	if err != nil {
		return record{}, err
	}
	return s.record(), nil
}

// Generation is the how manieth browser of its session the one now is.
func (h *Host) Generation(id string) (int, error) {
	rec, err := h.known(id)
	return rec.Generation, err
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

// IDs are those of all sessions that are not over, also of parked ones and of
// those whose records cannot be read: what is theirs must not be given away.
func (h *Host) IDs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Keys(h.sessions)), slices.Collect(maps.Keys(h.starting)), slices.Collect(maps.Keys(h.parked)), slices.Collect(maps.Keys(h.unread)))
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
