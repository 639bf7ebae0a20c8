package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"tapin/internal/guard"
)

const (
	dialTimeout = 30 * time.Second
	// dialStagger is how long an address may be silent before the next one is
	// tried beside it (RFC 8305).
	dialStagger = 250 * time.Millisecond
)

// Resolver turns a name into addresses; *net.Resolver is one. It is called
// from many goroutines at once.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var _ Resolver = (*net.Resolver)(nil)

// DialerOptions of NewDialer; nil means defaults.
type DialerOptions struct {
	Resolver Resolver      // nil means the system's
	OnBlock  func(Block)   // called before a refusal is returned; must be quick
	Timeout  time.Duration // for resolving and connecting together; 0 means 30 s
	Upstream *Upstream     // nil means to connect directly
}

// Dialer connects to what its rules allow and to nothing else. It resolves
// once, refuses a name with any forbidden answer, connects to the very
// addresses it judged, and keeps its connections under later rules as well.
type Dialer struct {
	rules    func() *Rules
	resolver Resolver
	onBlock  func(Block)
	timeout  time.Duration

	// connect opens the connection to an address that was judged.
	connect func(ctx context.Context, t target, to netip.AddrPort) (net.Conn, error)

	mu    sync.Mutex
	conns map[*guardedConn]struct{}
}

// NewDialer makes a dialer. It asks rules anew for each connection; nil rules
// refuse everything.
func NewDialer(rules func() *Rules, opts *DialerOptions) *Dialer {
	if opts == nil {
		opts = &DialerOptions{}
	}
	d := &Dialer{
		rules:    rules,
		resolver: opts.Resolver,
		onBlock:  opts.OnBlock,
		timeout:  opts.Timeout,
		conns:    map[*guardedConn]struct{}{},
	}
	if d.resolver == nil {
		d.resolver = net.DefaultResolver
	}
	if d.timeout <= 0 {
		d.timeout = dialTimeout
	}
	d.connect = d.connectDirectly
	if up := opts.Upstream; up != nil {
		d.connect = func(ctx context.Context, _ target, to netip.AddrPort) (net.Conn, error) {
			return up.connect(ctx, to)
		}
	}
	return d
}

// DialContext connects to "host:port" over TCP. A refused target is a
// BLOCKED_TARGET fault with a Refusal inside.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	// http.Transport dials in goroutines of its own, where a panic in a
	// callback would end the process.
	defer func() {
		if v := recover(); v != nil {
			c, err = nil, fmt.Errorf("dial: a callback panicked: %s", guard.Describe(v))
		}
	}()
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, fmt.Errorf("dial: network %s is not TCP", network)
	}
	t, err := parseTarget(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()

	answers, err := d.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	raw, to, err := d.race(ctx, t, answers)
	if err != nil {
		if r, ok := errors.AsType[*Refusal](err); ok {
			return nil, d.refuse(ctx, t, to, r.Block.Rule)
		}
		return nil, err
	}
	return d.keep(ctx, raw, t, to)
}

// resolve returns the addresses of t, all of which are allowed.
func (d *Dialer) resolve(ctx context.Context, t target) ([]netip.Addr, error) {
	rules := d.rules()
	if rule := rules.judgeName(t); rule != "" {
		return nil, d.refuse(ctx, t, t.addr, rule)
	}
	if t.addr.IsValid() {
		return []netip.Addr{t.addr.Unmap()}, nil
	}
	if isLocalhost(t.name) {
		answers, _ := rules.localAnswers(t)
		return answers, nil
	}
	answers, err := d.resolver.LookupNetIP(ctx, "ip", t.name)
	if err == nil && len(answers) == 0 {
		err = &net.DNSError{Err: "no answer", Name: t.name, IsNotFound: true}
	}
	if err != nil {
		return nil, &lookupError{err}
	}
	judged := make([]netip.Addr, len(answers))
	for i, a := range answers {
		a = a.Unmap() // the system's resolver writes IPv4 that way
		if rule := rules.judgeAddr(t, a); rule != "" {
			return nil, d.refuse(ctx, t, a, rule)
		}
		judged[i] = a
	}
	return judged, nil
}

// lookupError sets a resolver's failure apart from a failed connection.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return "resolve: " + e.err.Error() }
func (e *lookupError) Unwrap() error { return e.err }

// race tries the addresses in order, the next one as soon as one fails or is
// silent for a moment. The first connection wins; none outlives the call.
func (d *Dialer) race(ctx context.Context, t target, addrs []netip.Addr) (net.Conn, netip.Addr, error) {
	type result struct {
		conn net.Conn
		addr netip.Addr
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	var pending int
	start := func() {
		addr := addrs[0]
		addrs = addrs[1:]
		pending++
		go func() {
			defer guard.Catch("network guard", func() { results <- result{nil, addr, errPanicked} })
			c, err := d.connect(ctx, t, netip.AddrPortFrom(addr, t.port))
			results <- result{c, addr, err}
		}()
	}
	start()
	timer := time.NewTimer(dialStagger)
	defer timer.Stop()
	var won, failed result
	refused := false
	for pending > 0 {
		select {
		case <-timer.C:
		case r := <-results:
			pending--
			switch _, refusal := errors.AsType[*Refusal](r.err); {
			case refusal:
				failed, refused = r, true
				cancel()
			case r.err != nil && failed.err == nil:
				failed = r
			case r.err == nil && won.conn == nil:
				won = r
				cancel()
			case r.err == nil:
				_ = r.conn.Close()
			}
		}
		if ctx.Err() == nil && len(addrs) > 0 {
			start()
			timer.Reset(dialStagger)
		}
	}
	if refused && won.conn != nil {
		_ = won.conn.Close()
		won.conn = nil
	}
	if won.conn == nil {
		return nil, failed.addr, failed.err
	}
	return won.conn, won.addr, nil
}

// connectDirectly is the default of connect.
func (d *Dialer) connectDirectly(ctx context.Context, t target, to netip.AddrPort) (net.Conn, error) {
	nd := net.Dialer{
		// A tunnel may be silent for an hour; only a dead peer ends it.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 15 * time.Second, Count: 4},
		ControlContext:  d.control(t, to),
	}
	return nd.DialContext(ctx, "tcp", to.String())
}

// control is the last look, when the socket exists and connect comes next.
func (d *Dialer) control(t target, to netip.AddrPort) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		got, err := netip.ParseAddrPort(address)
		if err != nil || got.Addr().Unmap() != to.Addr().Unmap() || got.Port() != to.Port() {
			return errors.New("dial: the address changed after it was judged")
		}
		if rule := d.rules().judgeAddr(t, got.Addr()); rule != "" {
			return &Refusal{Block: Block{Host: t.host(), Rule: rule}}
		}
		return nil
	}
}

// refuse tells OnBlock, then returns the fault.
func (d *Dialer) refuse(ctx context.Context, t target, a netip.Addr, rule string) error {
	b := Block{Host: t.host(), Port: t.port, Rule: rule, Scheme: schemeOf(ctx, t.port), Vendor: rule == RuleVendor, At: time.Now()}
	if a.IsValid() {
		b.Addr = a.String()
	}
	b.Hint = hintFor(b)
	if d.onBlock != nil {
		d.onBlock(b)
	}
	return refuse("connect", b)
}

// schemeKey carries the scheme of a request to its dial.
type schemeKey struct{}

func withScheme(ctx context.Context, scheme string) context.Context {
	return context.WithValue(ctx, schemeKey{}, scheme)
}

func schemeOf(ctx context.Context, port uint16) string {
	if s, ok := ctx.Value(schemeKey{}).(string); ok {
		return s
	}
	switch port {
	case 443:
		return "https"
	case 80:
		return "http"
	}
	return ""
}

var errPanicked = errors.New("a part of it panicked")
