package holder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tapin/internal/egress"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

const (
	// ownIDs is where the holder's own message ids begin, out of any client's reach.
	ownIDs = 2_000_000_000
	// idleAck paces the picture while nobody watches.
	idleAck = 500 * time.Millisecond
	// helloWithin is how long a stranger may hold a connection without a word.
	helloWithin = 5 * time.Second
)

// Options are for tests and for doors of our own; nil means the defaults.
type Options struct {
	Resolver egress.Resolver // how names are looked up; default the system's
	// Guarded says that this process is the holder: what panics in it is reported
	// in the home of this folder's folder, and falls alone where it can.
	Guarded bool
	Version string
}

// Main is the whole life of a holder process: it reads its Config from in,
// says one line on out, and returns when browser and folder are gone.
func Main(ctx context.Context, in io.Reader, out io.Writer, opts *Options) error {
	var cfg Config
	err := json.NewDecoder(in).Decode(&cfg)
	if err == nil && cfg.Protocol != Protocol {
		err = fmt.Errorf("protocol %d is not spoken here", cfg.Protocol)
	}
	if err == nil && opts != nil && opts.Guarded {
		home := filepath.Dir(filepath.Dir(cfg.Dir))
		defer guard.Install(&guard.Process{Reports: &guard.Reports{Home: home, Part: "holder", Version: opts.Version}})()
	}
	var h *holder
	if err == nil {
		h, err = start(cfg, opts)
	}
	say := ready{OK: err == nil}
	if err != nil {
		say.Error = err.Error()
	}
	_ = json.NewEncoder(out).Encode(say)
	if err != nil {
		return err
	}
	return h.run(ctx)
}

type holder struct {
	cfg      Config
	browser  *process
	lanes    lanes
	listener net.Listener
	ended    chan struct{} // closed when the end was asked for
	endOnce  sync.Once
	clients  sync.WaitGroup

	mu        sync.Mutex
	table     *table
	epoch     uint64
	client    *client
	leftAt    time.Time // when the last client went
	missed    uint64
	blocks    uint64
	keepUntil time.Time
	policyMu  sync.Mutex // held while a policy is put into force, so that they come in the order of their clients
	ownID     int64
	enders    []func() // answers owed to those who asked for the end
	over      bool     // there is no browser any more, only its traces
}

// client is one connected sidecar.
type client struct {
	conn net.Conn
	out  *outbox
	done chan struct{}
}

func start(cfg Config, opts *Options) (*holder, error) {
	if opts == nil {
		opts = &Options{}
	}
	h := &holder{cfg: cfg, table: newTable(), ended: make(chan struct{}), ownID: ownIDs, keepUntil: cfg.KeepUntil}
	h.lanes = lanes{resolver: opts.Resolver, onBlock: h.blocked, onFailure: h.failed, open: map[string]*egress.Proxy{}}
	if cfg.Upstream != "" {
		up, err := egress.ParseUpstream(secret.New(cfg.Upstream))
		if err != nil {
			return nil, err
		}
		h.lanes.upstream = up
	}
	if err := h.lanes.setPolicy(cfg.Policy); err != nil {
		return nil, err
	}
	proxyAt, err := h.lanes.add("")
	if err != nil {
		return nil, err
	}
	h.browser, err = launch(cfg, proxyAt)
	if err != nil {
		_ = h.lanes.closeAll()
		return nil, err
	}
	h.listener, err = listen(cfg.Dir)
	if err != nil {
		h.browser.end()
		_ = h.lanes.closeAll()
		return nil, err
	}
	return h, nil
}

// private lets only this user's programs use the proxy: it may lend them the
// owner's upstream proxy, and reaches what the owner has allowed.
type private struct{ net.Listener }

func (l private) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || ofThisUser(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

// listen opens the socket for this user alone.
func listen(dir string) (net.Listener, error) {
	path, release, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the holder's socket cannot be opened: %w", err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // the folder goes as a whole
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// run serves until the browser is gone, the time is over, or the end is asked for.
func (h *holder) run(ctx context.Context) error {
	pumped := make(chan struct{})
	go func() {
		defer guard.Vital("holder")
		defer close(pumped)
		h.pump()
	}()
	go func() {
		defer guard.Vital("holder")
		h.accept()
	}()

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var cause string
wait:
	for {
		select {
		case <-pumped:
			cause = h.browser.cause()
			break wait
		case <-h.browser.exited:
			cause = h.browser.cause()
			break wait
		case <-h.ended:
			break wait
		case <-ctx.Done():
			cause = "the holder was told to end"
			break wait
		case <-tick.C:
			// The wall clock decides: timers stand still while a laptop sleeps.
			if h.overdue(time.Now()) {
				cause = "its time was over"
				break wait
			}
		}
	}
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	if cause != "" {
		// Whoever waits for an answer should not wait for our tidying too.
		h.dismiss(cause)
	}
	h.browser.end()
	<-pumped
	_ = h.listener.Close()
	err := errors.Join(h.lanes.closeAll(), Remove(h.cfg.Dir))
	h.dismiss("it was ended")
	h.goodbye()
	return err
}

// goodbye waits for the last words to be read, but not for a client that never will.
func (h *holder) goodbye() {
	gone := make(chan struct{})
	go func() {
		defer guard.Catch("holder")
		h.clients.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(2 * time.Second):
	}
}

func (h *holder) overdue(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.keepUntil.IsZero() && now.Round(0).After(h.keepUntil)
}

// dismiss tells the client that the browser is gone, and whoever asked for it.
func (h *holder) dismiss(cause string) {
	payload, _ := json.Marshal(lost{Cause: cause})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, answer := range h.enders {
		answer()
	}
	h.enders = nil
	if h.client != nil {
		h.client.out.push(frameLost, payload)
		h.client.out.close()
	}
}

// pump drains the browser's pipe for as long as it lives, client or not.
func (h *holder) pump() {
	in := messages{r: bufio.NewReaderSize(h.browser.out, 256<<10)}
	for {
		raw, err := in.next()
		if err != nil {
			return
		}
		h.fromBrowser(raw)
	}
}

// fromBrowser carries out what a message means and passes it on. It is not kept.
func (h *holder) fromBrowser(raw []byte) {
	id, method := look(raw)
	if id >= ownIDs {
		return
	}
	brief := raw
	if method == "Page.screencastFrame" {
		brief = withoutPicture(raw)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	present := h.client != nil
	if method != "" && !present {
		h.missed++
	}
	if tracked[method] {
		var e envelope
		if json.Unmarshal(brief, &e) == nil {
			h.table.fromBrowser(&e, raw, present)
			if method == "Page.screencastFrame" && !present {
				h.ackLater(frameKey{e.Session, e.cast()})
			}
		}
	}
	if !present {
		return
	}
	switch {
	case h.client.out.push(frameMessage, raw):
	case method == "Page.screencastFrame":
		var e envelope
		if json.Unmarshal(brief, &e) == nil {
			h.table.fromClient(&envelope{Method: "Page.screencastFrameAck", Session: e.Session, Params: e.Params})
			h.ackLater(frameKey{e.Session, e.cast()})
		}
	default:
		h.drop(h.client)
	}
}

// drop lets a client go; what it left undone is settled. Called with the lock held.
func (h *holder) drop(c *client) {
	if h.client != c {
		return
	}
	h.client = nil
	h.leftAt = time.Now()
	h.missed, h.blocks = 0, 0
	close(c.done)
	_ = c.conn.Close()
	c.out.close()
	for key, n := range h.table.takeUnacked() {
		for range n {
			h.ackLater(key)
		}
	}
}

// ackLater acknowledges a picture nobody saw, slowly: the cast goes on, at a
// pace that costs little. Called with the lock held.
func (h *holder) ackLater(key frameKey) {
	h.ownID++
	raw, _ := json.Marshal(map[string]any{
		"id": h.ownID, "method": "Page.screencastFrameAck", "sessionId": key.session,
		"params": map[string]any{"sessionId": key.cast},
	})
	time.AfterFunc(idleAck, func() {
		defer guard.Catch("holder")
		_ = h.browser.write(raw, h.ended, nil)
	})
}

// failed is called by the guard before it answers the browser, for what it would
// have let through.
func (h *holder) failed(f egress.Failure) {
	payload, _ := json.Marshal(f)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client != nil {
		h.client.out.push(frameFailed, payload)
	}
}

// blocked is called by the guard before it answers the browser, so that the
// client hears of the block before it hears of its effect.
func (h *holder) blocked(b egress.Block) {
	payload, _ := json.Marshal(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client == nil {
		h.blocks++
		return
	}
	h.client.out.push(frameBlocked, payload)
}
