// Package console is the door to the owner's inbox on the web: what waits for
// him, what runs, what is saved, who is signed in. It owns the sign-ins and the
// devices that have made one. It must never let in a device that has not, keep a
// token in the clear, or show a page while a person drives it.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/origin"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// Deps are what the door works with; all but Approvals are required.
type Deps struct {
	Home     *store.Home
	Journal  *event.Journal
	House    House
	Handoffs Handoffs
	Logins   Logins
	Links    Links
	Sessions Sessions
	// Approvals are the payments that wait; nil means that there are none.
	Approvals Approvals
	// Lookups are the last one-shots; nil means that there are none.
	Lookups Lookups
	// Figures tell how asking the owner went; nil means that there are none.
	Figures Figures
	// Visit tells how a request came. Whoever mounts the door has checked Host
	// and Origin before, and set the headers that hold for all answers.
	Visit func(*http.Request) Visit
}

// Visit is how a request reached the public listener.
type Visit struct {
	Origin  string // what a page of ours there calls itself
	Address string // whose it is, as far as that can be known; only ever counted
	Secure  bool   // nobody on the way can read or change it
}

// Options change how the door behaves; nil means the defaults.
type Options struct {
	Logger *slog.Logger
}

// Door is the handler of what is under /console/. It is safe for concurrent use.
type Door struct {
	deps   Deps
	log    *slog.Logger
	book   *book
	claims *origin.Limit // wrong tokens, by address
	camera chan struct{} // one place for each picture that is being taken
	routes *http.ServeMux
	ctx    context.Context //nolint:containedctx // the lifetime of the sockets
	stop   context.CancelFunc
	poked  chan struct{} // something of our own has changed
	opened chan struct{} // holds one token when a socket has come

	mu      sync.Mutex
	sockets map[*socket]struct{}
	now     *State // as it was last seen; nil before that
	off     string // why nothing is looked at; "" while it is
	unwatch context.CancelFunc
	tasks   sync.WaitGroup
	closed  bool
}

// New makes a door, and finishes what an earlier process left half done.
func New(ctx context.Context, deps Deps, opts *Options) *Door {
	if opts == nil {
		opts = &Options{}
	}
	d := &Door{
		deps: deps, log: opts.Logger, claims: origin.NewLimit(wrongPerMinute, time.Minute), routes: http.NewServeMux(),
		camera: make(chan struct{}, maxShots), poked: make(chan struct{}, 1), opened: make(chan struct{}, 1), sockets: map[*socket]struct{}{},
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.book = openBook(ctx, deps.Home, deps.Links, d.log)
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.routes.HandleFunc("POST /console/claim", d.claim)
	d.routes.HandleFunc("GET /console/ws", d.socket)
	d.routes.HandleFunc("GET /console/thumb/{session}", d.thumb)
	d.routes.HandleFunc("GET /console/shot/{lookup}", d.photo)
	d.routes.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, fault.New(fault.NotFound, "", "there is no such page"))
	})
	return d
}

// ServeHTTP answers what is under /console/. On a way that others can read there
// is no console: who reads a cookie there is the owner from then on.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.deps.Visit(r).Secure {
		refuse(w, fault.New(fault.Forbidden, "", "the console needs https, or this very machine").
			WithHint("Open it at the public address, or on the machine that tapin runs on."))
		return
	}
	d.routes.ServeHTTP(w, r)
}

// Close ends every socket.
func (d *Door) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	for s := range d.sockets {
		s.cancel(leave{reason: "stopped"})
	}
	d.mu.Unlock()
	d.stop()
	gone := make(chan struct{})
	go func() {
		defer guard.Catch("console")
		d.tasks.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SignIn makes a one-time sign-in. The path is for the owner's eyes alone and
// works once, until it expires.
func (d *Door) SignIn(context.Context) (path secret.Text, expires time.Time, err error) {
	token, expires, err := d.book.mint()
	if err != nil {
		return secret.Text{}, time.Time{}, err
	}
	d.note("console.link", nil)
	return secret.New("/console#t=" + token.Reveal()), expires, nil
}

// Devices are those that are signed in, the one last seen first.
func (d *Door) Devices(context.Context) []Device {
	devices := d.book.list()
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.sockets {
		for i := range devices {
			if devices[i].ID == s.device {
				devices[i].SeenAt = time.Now().UTC()
			}
		}
	}
	return devices
}

// SignOut ends the sign-in of a device, what it has open, and the links it made.
func (d *Door) SignOut(ctx context.Context, device string) error {
	err := d.book.signOut(ctx, device)
	if errors.Is(err, fault.NotFound) {
		return err
	}
	// Whatever else may have failed, it is on record that the device is out.
	d.mu.Lock()
	for s := range d.sockets {
		if s.device == device {
			s.cancel(leave{code: closedUnclaimed, reason: "signed_out"})
		}
	}
	d.mu.Unlock()
	d.note("console.sign_out", err)
	d.poke()
	return err
}

// Lets reports whether a request comes from a device that is signed in. The link
// it is let in by is the device's from then on, and ends with its sign-in.
func (d *Door) Lets(r *http.Request, link string) bool {
	id, _, _, err := d.enter(r)
	return err == nil && d.book.adopt(r.Context(), id, link) == nil
}

// note writes a line of journal about a sign-in or a sign-out.
func (d *Door) note(what string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(fault.Of(err).Code)
	}
	if err := d.deps.Journal.Write(event.Entry{Who: "owner", What: what, Outcome: outcome}); err != nil {
		d.log.Warn("the journal could not be written", "error", err)
	}
}

func refuse(w http.ResponseWriter, err error) {
	f := fault.Of(err)
	if f.Code == fault.RateLimited {
		w.Header().Set("Retry-After", "60")
	}
	answer(w, f.Code.Status(), map[string]any{"ok": false, "error": f.Code, "details": f.Details(), "hint": f.Advice()})
}

func answer(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"ok":false,"error":"INTERNAL"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}
