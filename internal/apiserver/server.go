// Package apiserver is the door of the control listener: HTTP in, calls of the rooms below, JSON out.
// It owns the route table with its description, who may call what, and how much a caller may cost before being known.
// It must never decide what a session does, answer a foreign page or name, or let a token, query or body into a log, metric or answer.
package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/event"
	"tapin/internal/logins"
	"tapin/internal/origin"
	"tapin/internal/trouble"
)

// Feed is where events come from. Safe for concurrent use.
type Feed interface {
	// Since returns events after the cursor, oldest first. Resync says that
	// events between the cursor and the first one returned are gone.
	Since(cursor uint64, limit int) (events []event.Event, resync bool)
	// Wait returns once Since has something to say about the cursor.
	Wait(ctx context.Context, cursor uint64) error
	// Last is the cursor of one who wants only what is to come.
	Last() uint64
}

// Deps are what the server stands on.
type Deps struct {
	Sessions  Sessions
	Contexts  Contexts        // nil: there are no saved logins here
	Live      Live            // nil: those of live sessions cannot be carried
	Porter    logins.Porter   // nil: nothing can be sealed or opened
	Known     []string        // recipients that the owner has named; the agent may seal for these
	Handoffs  Handoffs        // nil answers DISABLED
	Runs      Runs            // nil answers DISABLED
	Approvals Approvals       // nil answers DISABLED
	Usage     Usage           // nil: nothing here is billed
	Analytics Analytics       // nil answers DISABLED
	Links     Links           // nil: there is no live view
	Theirs    ProviderView    // the live view that people are sent to; nil means ours
	Address   Address         // where links lead; nil as Links is
	Console   Console         // nil answers DISABLED
	Prober    Prober          // asks whether the public address leads here; nil: nobody does
	Nearby    func() []string // where devices of the same network may watch; nil: nowhere
	Owners    Owners          // nil answers DISABLED
	Inbox     Inbox           // nil answers DISABLED
	OneShots  OneShots        // nil answers DISABLED
	Feed      Feed
	Journal   Journal
	Cleaner   Cleaner
	Tokens    Tokens
	MCP       http.Handler         // serves /mcp, behind the same checks; nil leaves it out
	Registry  *prometheus.Registry // nil makes a private one
	Version   string
	Provider  string
	StartedAt time.Time
	Troubles  func() []trouble.Trouble // what does not work; nil: everything does
	Logger    *slog.Logger             // nil discards
}

// Options bound what callers may cost; nil and zero values mean the defaults.
type Options struct {
	MaxBody        int64         // bytes of a request body; default 1 MiB
	MaxConcurrent  int           // requests of known callers in flight; default 256
	MaxConnections int           // open connections; default 2,000
	MaxSubscribers int           // readers of /events; default 64
	MaxWrongTokens int           // a second, before they are told to wait; default 50
	Heartbeat      time.Duration // of /events; default 15 s
	Hosts          []string      // names accepted besides loopback
}

// Server answers the control listener.
type Server struct {
	sessions  Sessions
	contexts  contexts
	handoffs  Handoffs
	runs      Runs
	approvals Approvals
	usage     Usage
	analytics Analytics
	views     views
	console   Console
	prober    Prober
	people    people
	oneshots  OneShots
	nearby    func() []string
	feed      Feed
	accounts  Journal
	cleaner   Cleaner
	tokens    Tokens
	registry  *prometheus.Registry
	version   string
	provider  string
	startedAt time.Time
	troubles  func() []trouble.Trouble
	log       *slog.Logger
	options   Options

	router  *router
	openapi func() []byte
	metrics *metrics
	names   origin.Names // besides loopback
	guesses perSecond
	replays replays

	slots       chan struct{} // one for each call in flight
	subscribers chan struct{} // one for each reader of /events

	http  *http.Server
	crowd *crowd

	// The server owns what outlives a request, and these end it.
	work       sync.WaitGroup  // starts that go on without their caller
	working    context.Context // theirs
	stopWork   context.CancelFunc
	streaming  context.Context // of all readers of /events
	stopStream context.CancelFunc
}

// New makes a server; Serve or Handler puts it to work.
func New(deps Deps, options *Options) *Server {
	s := &Server{
		sessions: deps.Sessions, handoffs: deps.Handoffs, runs: deps.Runs, approvals: deps.Approvals, usage: deps.Usage, analytics: deps.Analytics, oneshots: deps.OneShots, feed: deps.Feed, accounts: deps.Journal, cleaner: deps.Cleaner, tokens: deps.Tokens, registry: deps.Registry,
		version: deps.Version, provider: deps.Provider, startedAt: deps.StartedAt, troubles: deps.Troubles, log: deps.Logger,
		contexts: contexts{saved: deps.Contexts, live: deps.Live, porter: deps.Porter, known: deps.Known, journal: deps.Journal},
		views:    views{deps.Links, deps.Address, deps.Theirs},
		console:  deps.Console,
		prober:   deps.Prober,
		nearby:   deps.Nearby,
		people:   people{deps.Owners, deps.Inbox},
		replays:  replays{entries: map[replayKey]*replay{}},
	}
	if options != nil {
		s.options = *options
	}
	s.options.fill()
	if s.troubles == nil {
		s.troubles = func() []trouble.Trouble { return []trouble.Trouble{} }
	}
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	table := routes()
	if deps.MCP != nil {
		table = append(table, mounted("/mcp", "Serves MCP hosts over streamable HTTP.", deps.MCP)...)
	}
	s.working, s.stopWork = context.WithCancel(context.Background())
	s.streaming, s.stopStream = context.WithCancel(context.Background())
	s.slots = make(chan struct{}, s.options.MaxConcurrent)
	s.subscribers = make(chan struct{}, s.options.MaxSubscribers)
	s.guesses.most = s.options.MaxWrongTokens
	s.router = newRouter(table)
	s.openapi = sync.OnceValue(func() []byte { return describe(table, s.version) }) // few ask for it
	s.crowd = &crowd{most: s.options.MaxConnections, open: map[*visitor]struct{}{}}
	s.metrics = newMetrics(s.registry, table, s.crowd)
	for _, host := range s.options.Hosts {
		s.names.Allow(host)
	}
	s.http = s.httpServer()
	return s
}

func (o *Options) fill() {
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	for _, limit := range []struct {
		value    *int
		standard int
	}{{&o.MaxConcurrent, 256}, {&o.MaxConnections, 2000}, {&o.MaxSubscribers, 64}, {&o.MaxWrongTokens, 50}} {
		if *limit.value <= 0 {
			*limit.value = limit.standard
		}
	}
}

// AllowHost accepts a further name in Host, and https://name as an origin,
// until forget is called. The tunnel's name becomes known only at run time.
func (s *Server) AllowHost(name string) (forget func()) { return s.names.Allow(name) }

// Handler is the server without its listener, for tests and for mounting.
func (s *Server) Handler() http.Handler { return s }

func (s *Server) httpServer() *http.Server {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, visitorKey{}, c)
		},
	}
	origin.DropUnspoken(server)
	return server
}

// Serve answers on the listener until Shutdown, and then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	err := s.http.Serve(s.crowd.at(ln))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown ends streams at once and lets calls under way end until ctx does;
// then it cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopStream()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	cancel := context.AfterFunc(ctx, s.stopWork)
	s.work.Wait()
	cancel()
	s.stopWork()
	return err
}
