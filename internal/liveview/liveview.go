// Package liveview is the door through which a person sees a live browser and
// takes its wheel: pages, claims, pictures, input, fields. It owns the viewers
// of each session and who of them drives. It must never let in whoever has not
// claimed a link, pass on input that no running hand-off covers, or keep or log
// anything of what is shown or typed.
package liveview

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/origin"
	"tapin/internal/secret"
)

// maxConnections bounds what strangers can open; those that say nothing are
// closed after a few seconds.
const maxConnections = 512

// Deps are what the door works with; all are required.
type Deps struct {
	Links    Links
	Screens  Screens
	Handoffs Handoffs
	// Pages gives live/index.html, console/index.html and what they load. It is
	// asked when somebody opens the first of them.
	Pages func() (fs.FS, error)
	// Uploads is a folder of ours for the files that people send to pages.
	Uploads string
}

// Options change how the door behaves; nil means the defaults.
type Options struct {
	// Names are the hosts it answers to besides this machine's own, as the
	// public address has them: "tapin.example.com". Allow adds some at run time.
	Names []string
	// SameUser lets somebody in without a token who comes over loopback: where
	// the agent runs as the same user, a token would be no secret from it.
	SameUser bool
	// WatchOnLAN lets browsers of the local network watch over plain HTTP.
	WatchOnLAN bool
	// MiniApp lets in whoever Telegram says opened a link, by what it handed to
	// the page, and gives the device a secret of its own, also to one that has to
	// wait; nil means that Telegram opens nothing here.
	MiniApp func(ctx context.Context, id string, data secret.Text) (device secret.Text, err error)
	// Console answers what is under /console/; nil means nothing does.
	Console http.Handler
	// Owner reports whether a request comes from a device that is signed in as the
	// owner, and takes note that it is let in by a link; nil means that none is.
	Owner func(r *http.Request, link string) bool
	// Reach answers a number by which somebody makes sure that an address leads to
	// this process, and tells whether that address is this machine's own; nil means
	// that nobody asks.
	Reach  func(number string) (answer string, near, ok bool)
	Logger *slog.Logger
}

// Door is the handler of the public listener. It is safe for concurrent use.
type Door struct {
	deps   Deps
	opts   Options
	log    *slog.Logger
	pages  func() (*pages, error)
	names  origin.Names
	claims *origin.Limit // by address
	visits *origin.Limit
	routes *http.ServeMux
	server *http.Server
	masked atomic.Bool     // a proxy makes strangers look like users of this machine
	ctx    context.Context //nolint:containedctx // the lifetime of the viewers
	stop   context.CancelFunc

	layouts layouts // until this process ends

	mu      sync.Mutex
	hubs    map[string]*hub // by session
	sockets sync.WaitGroup
	closed  bool
}

// New makes a door.
func New(deps Deps, opts *Options) *Door {
	if opts == nil {
		opts = &Options{}
	}
	d := &Door{
		deps: deps, opts: *opts, log: opts.Logger, hubs: map[string]*hub{},
		claims: origin.NewLimit(30, time.Minute), visits: origin.NewLimit(240, time.Minute), routes: http.NewServeMux(),
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	for _, name := range opts.Names {
		d.names.Allow(name)
	}
	d.pages = sync.OnceValues(func() (*pages, error) { return readPages(deps.Pages) })
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.route()
	d.server = &http.Server{
		Handler: guard.Serve("live view", d), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // its words may hold addresses
	}
	origin.DropUnspoken(d.server)
	return d
}

func (d *Door) route() {
	d.routes.HandleFunc("GET /live/{link}", d.shell("live/index.html"))
	d.routes.HandleFunc("POST /live/{link}/claim", d.claim)
	d.routes.HandleFunc("GET /live/{link}/ws", d.socket)
	d.routes.HandleFunc("POST /live/{link}/upload", d.upload)
	d.routes.HandleFunc("GET /live/{link}/download/{file}", d.download)
	d.routes.HandleFunc("GET /assets/", d.asset)
	if d.opts.MiniApp != nil {
		d.routes.HandleFunc("GET /tg/{link}", d.appShell)
		d.routes.HandleFunc("POST /tg/{link}/claim", d.appClaim)
	}
	if d.opts.Reach != nil {
		d.routes.HandleFunc("GET /reach/{number}", d.reached)
	}
	d.routes.HandleFunc("GET /console", d.shell("console/index.html"))
	if d.opts.Console != nil {
		d.routes.Handle("/console/", d.opts.Console)
	}
}

// ServeHTTP answers what the public listener is asked.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, err := d.look(r)
	d.harden(w, at)
	if err == nil {
		err = at.ours(r)
	}
	if err == nil && !d.visits.Allow(at.address, time.Now()) {
		err = fault.New(fault.RateLimited, "", "too many requests come from this address")
	}
	if err != nil {
		refuse(w, err)
		return
	}
	d.routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, at)))
}

// Serve answers on a listener until Shutdown.
func (d *Door) Serve(ln net.Listener) error {
	if err := d.server.Serve(netutil.LimitListener(ln, maxConnections)); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fault.Wrap(fault.Internal, "serve the live view", err)
	}
	return nil
}

// Shutdown ends every viewer's connection and the listener.
func (d *Door) Shutdown(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	err := d.server.Shutdown(ctx)
	gone := make(chan struct{})
	go func() {
		defer guard.Catch("live view")
		d.sockets.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Allow makes the door answer to another name, such as a tunnel's, until forget.
func (d *Door) Allow(name string) (forget func()) { return d.names.Allow(name) }

// Presence tells when somebody last did something at the live view of a session,
// and whether somebody who may drive looks at it now.
func (d *Door) Presence(session string) (last time.Time, watching bool) {
	d.mu.Lock()
	h := d.hubs[session]
	d.mu.Unlock()
	if h == nil {
		return time.Time{}, false
	}
	return h.presence()
}

// reached answers whoever asks whether an address leads here. What was sent to
// the world and comes back as if from this machine has been through a proxy that
// hides whom it speaks for: then nobody is taken for a user of this machine any
// more, since everybody would be.
func (d *Door) reached(w http.ResponseWriter, r *http.Request) {
	answer, near, ok := d.opts.Reach(r.PathValue("number"))
	switch {
	case !ok:
		refuse(w, fault.New(fault.NotFound, "", "there is no such page"))
		return
	case visitOf(r).local && !near:
		if !d.masked.Swap(true) {
			d.log.Error("a proxy does not pass on the Host header: nobody is let in without a token any more, also not on this machine")
		}
		refuse(w, fault.New(fault.Forbidden, "", "the Host header was not passed on"))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, answer)
}

// refuse answers with a fault.
func refuse(w http.ResponseWriter, err error) {
	f := fault.Of(err)
	body := map[string]any{}
	for key, value := range f.Data {
		body[key] = value
	}
	body["ok"], body["error"], body["details"], body["hint"] = false, f.Code, f.Details(), f.Advice()
	if f.Code == fault.RateLimited {
		w.Header().Set("Retry-After", "60")
	}
	answer(w, f.Code.Status(), body)
}
