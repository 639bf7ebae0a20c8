package egress

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tapin/internal/guard"
)

// maxClients is how many connections of the browser are served at once.
const maxClients = 1024

// ProxyOptions of NewProxy; nil means defaults.
type ProxyOptions struct {
	Resolver Resolver    // nil means the system's
	OnBlock  func(Block) // called before the refusal is written; must be quick
	// OnFailure is called before the browser is told that an allowed target
	// cannot be reached; must be quick.
	OnFailure func(Failure)
	Upstream  *Upstream     // nil means to connect directly
	Timeout   time.Duration // for resolving and connecting together; 0 means 30 s
	Logger    *slog.Logger  // nil means silence
}

// Proxy is the forward proxy of one browser: absolute-form requests for http,
// CONNECT for everything else. Until SetPolicy has succeeded once it refuses
// everything. It is safe for concurrent use.
//
// It has no list of ports of its own: Chromium refuses the classic abuse ports
// before it asks, and any other process here has the network without us.
type Proxy struct {
	dialer    *Dialer
	transport *http.Transport
	forward   *httputil.ReverseProxy
	server    *http.Server
	onBlock   func(Block)
	onFailure func(Failure)
	log       *slog.Logger

	rules   atomic.Pointer[Rules]
	clients atomic.Int64
	limit   int64

	ctx    context.Context // ends with the proxy, and every dial with it
	cancel context.CancelFunc
	active sync.WaitGroup // requests and tunnels

	mu      sync.Mutex
	closed  bool
	policy  *Policy  // the last good one
	ports   []uint16 // of our own listeners
	tunnels map[*tunnel]struct{}
	counts  map[string]uint64
}

// NewProxy makes a proxy that refuses everything until it has a policy.
func NewProxy(opts *ProxyOptions) *Proxy {
	if opts == nil {
		opts = &ProxyOptions{}
	}
	p := &Proxy{
		onBlock:   opts.OnBlock,
		onFailure: opts.OnFailure,
		log:       opts.Logger,
		limit:     maxClients,
		tunnels:   map[*tunnel]struct{}{},
		counts:    map[string]uint64{},
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.dialer = NewDialer(p.rules.Load, &DialerOptions{
		Resolver: opts.Resolver, OnBlock: p.blocked, Upstream: opts.Upstream, Timeout: opts.Timeout,
	})
	p.transport = &http.Transport{
		DialContext:           p.dial,
		DisableCompression:    true, // what the browser asked for is what it gets
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   6, // as many as a browser opens to one host
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	p.forward = p.newForward()
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.serve),
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       5 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return p
}

// SetPolicy puts a policy in force. Connections that it forbids are ended,
// also those in use. A bad policy is an error and changes nothing.
func (p *Proxy) SetPolicy(policy Policy) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.install(policy)
}

// install compiles and applies a policy, with our own listeners in it. The
// caller holds the mutex.
func (p *Proxy) install(policy Policy) error {
	policy.Allow, policy.OwnPorts = slices.Clone(policy.Allow), slices.Clone(policy.OwnPorts)
	guarded := policy
	guarded.OwnPorts = slices.Concat(policy.OwnPorts, p.ports)
	rules, err := guarded.Compile()
	if err != nil {
		return err
	}
	p.policy = &policy
	p.rules.Store(rules)
	p.transport.CloseIdleConnections()
	p.dialer.Recheck()
	return nil
}

// Serve answers on ln until Close, then returns nil. The listener must be on a
// loopback address: anywhere else it would be an open proxy.
func (p *Proxy) Serve(ln net.Listener) error {
	at, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil || !at.Addr().IsLoopback() {
		_ = ln.Close()
		return errors.New("egress: the proxy listens on loopback only")
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		_ = ln.Close()
		return nil
	}
	p.ports = append(p.ports, at.Port())
	if p.policy != nil {
		err = p.install(*p.policy)
	}
	p.mu.Unlock()
	if err != nil {
		_ = ln.Close()
		return err
	}
	if err := p.server.Serve(&countingListener{ln, &p.clients}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends the listeners, every connection and every tunnel, and waits for
// their goroutines until ctx is done. It may be called again.
func (p *Proxy) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	tunnels := maps.Clone(p.tunnels)
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	for t := range tunnels {
		t.end()
	}
	p.dialer.CloseAll()
	p.transport.CloseIdleConnections()

	done := make(chan struct{})
	go func() {
		defer guard.Catch("network guard")
		p.active.Wait()
		close(done)
	}()
	select {
	case <-done:
		// A dial that was under way may have come through after all.
		p.dialer.CloseAll()
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Counts tells how many connections each rule has refused.
func (p *Proxy) Counts() map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// blocked counts a refusal and passes it on.
func (p *Proxy) blocked(b Block) {
	p.mu.Lock()
	p.counts[b.Rule]++
	p.mu.Unlock()
	if p.onBlock != nil {
		p.onBlock(b)
	}
}

// enter counts a request in, unless the proxy is closing.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.active.Add(1)
	return true
}

// dial is the dialer under the proxy's own life: http.Transport lets a dial
// outlive the request that asked for it.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !p.enter() {
		return nil, net.ErrClosed
	}
	defer p.active.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	return p.dialer.DialContext(ctx, network, address)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		fail(w, r, http.StatusServiceUnavailable, "closing")
		return
	}
	defer p.active.Done()
	defer func() {
		v := recover()
		switch {
		case v == nil:
		case v == http.ErrAbortHandler: //nolint:errorlint // net/http compares it the same way
			panic(v) // net/http cuts the connection, which is what the browser must see
		default:
			p.log.Error("the proxy panicked", "panic", guard.Describe(v))
			guard.Note("network guard", v)
			fail(w, r, http.StatusInternalServerError, "internal")
		}
	}()
	if p.clients.Load() > p.limit {
		fail(w, r, http.StatusServiceUnavailable, "busy")
		return
	}
	if r.Method == http.MethodConnect {
		p.serveConnect(w, r)
		return
	}
	p.serveForward(w, r)
}

// countingListener counts the connections that are open, hijacked ones as well.
type countingListener struct {
	net.Listener
	open *atomic.Int64
}

// Accept waits for the next connection.
func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &countedConn{Conn: c, open: l.open}, nil
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close ends the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite tells the browser that nothing more comes.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *countedConn) unwrap() net.Conn { return c.Conn }
