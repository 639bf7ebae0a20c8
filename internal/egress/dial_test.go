package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/fault"
)

// names is a resolver with fixed answers.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	answers, ok := n[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	addrs := make([]netip.Addr, len(answers))
	for i, a := range answers {
		addrs[i] = netip.MustParseAddr(a)
	}
	return addrs, nil
}

// lookupFunc is a resolver made of a function.
type lookupFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func (f lookupFunc) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return f(ctx, host)
}

// recorder stands in for the network below the guard.
type recorder struct {
	mu     sync.Mutex
	dialed []netip.AddrPort
	answer func(ctx context.Context, to netip.AddrPort) error
}

func (r *recorder) connect(ctx context.Context, _ target, to netip.AddrPort) (net.Conn, error) {
	r.mu.Lock()
	r.dialed = append(r.dialed, to)
	r.mu.Unlock()
	if r.answer != nil {
		if err := r.answer(ctx, to); err != nil {
			return nil, err
		}
	}
	a, b := net.Pipe()
	_ = b.Close()
	return a, nil
}

func fixed(r *Rules) func() *Rules { return func() *Rules { return r } }

func TestNoForbiddenAddressIsEverDialled(t *testing.T) {
	t.Parallel()
	rules := compile(t, Policy{BlockPrivate: true})
	// An independent statement of what is public, coarser than the table.
	public := func(a netip.Addr) bool {
		a = a.Unmap()
		if wellKnownNAT64.Contains(a) {
			a = low32(a)
		}
		return a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLinkLocalUnicast() && a.Zone() == "" &&
			!slices.ContainsFunc(forbidden, func(r prefixRow) bool { return r.prefix.Contains(a) })
	}
	anyAddr := rapid.Custom(func(t *rapid.T) netip.Addr {
		if rapid.Bool().Draw(t, "from a forbidden range") {
			p := rapid.SampledFrom(forbidden).Draw(t, "row").prefix
			raw := p.Addr().AsSlice()
			noise := rapid.SliceOfN(rapid.Byte(), len(raw), len(raw)).Draw(t, "host bits")
			for i := range len(raw) * 8 {
				if i >= p.Bits() {
					raw[i/8] |= noise[i/8] & (0x80 >> (i % 8))
				}
			}
			a, _ := netip.AddrFromSlice(raw)
			return a
		}
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
		a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "bytes"))
		if size == 4 && rapid.Bool().Draw(t, "mapped") {
			a = netip.AddrFrom16(a.As16())
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfN(anyAddr, 0, 8).Draw(t, "answers")
		host := rapid.SampledFrom([]string{"site.example", "localhost", "nas.local", "[::1]", "127.1", "update.googleapis.com"}).Draw(t, "host")
		if len(answers) > 0 && rapid.Bool().Draw(t, "literal") {
			host = answers[0].String()
		}
		below := &recorder{answer: func(context.Context, netip.AddrPort) error { return errors.New("down") }}
		blocks := 0
		d := NewDialer(fixed(rules), &DialerOptions{
			Resolver: lookupFunc(func(context.Context, string) ([]netip.Addr, error) { return slices.Clone(answers), nil }),
			OnBlock:  func(Block) { blocks++ },
		})
		d.connect = below.connect
		_, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort(strings.Trim(host, "[]"), "443"))
		if err == nil {
			t.Fatal("the recorder answered")
		}
		for _, to := range below.dialed {
			if !public(to.Addr()) {
				t.Fatalf("%s was dialled for %s with answers %v", to, host, answers)
			}
		}
		refused := errors.Is(err, fault.BlockedTarget)
		if refused != (blocks == 1) || refused && len(below.dialed) > 0 {
			t.Fatalf("refused %v, %d blocks, dialled %v", refused, blocks, below.dialed)
		}
		if host == "site.example" && len(answers) > 0 {
			if bad := slices.ContainsFunc(answers, func(a netip.Addr) bool { return rules.judgeAddr(target{name: host, port: 443}, a.Unmap()) != "" }); bad != refused {
				t.Fatalf("answers %v: refused %v", answers, refused)
			}
			if !refused && len(below.dialed) != len(answers) {
				t.Fatalf("dialled %v of %v", below.dialed, answers)
			}
		}
	})
}

func TestANameIsResolvedOnceForEachConnection(t *testing.T) {
	t.Parallel()
	lookups := 0
	rebinding := lookupFunc(func(context.Context, string) ([]netip.Addr, error) {
		lookups++
		if lookups == 1 {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})
	rec := &recorder{}
	d := NewDialer(fixed(compile(t, Policy{BlockPrivate: true})), &DialerOptions{Resolver: rebinding})
	d.connect = rec.connect
	c, err := d.DialContext(t.Context(), "tcp", "rebind.example:80")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "rebind.example:80"); !errors.Is(err, fault.BlockedTarget) {
		t.Fatalf("the second answer was not refused: %v", err)
	}
	if want := netip.MustParseAddrPort("8.8.8.8:80"); lookups != 2 || len(rec.dialed) != 1 || rec.dialed[0] != want {
		t.Fatalf("%d lookups, dialled %v", lookups, rec.dialed)
	}
}

func TestTheLastLookBeforeConnect(t *testing.T) {
	t.Parallel()
	rules := compile(t, Policy{BlockPrivate: true})
	d := NewDialer(func() *Rules { return rules }, nil)
	to := target{name: "x.example", port: 80}
	look := func(judged, address string) error {
		return d.control(to, netip.MustParseAddrPort(judged))(t.Context(), "tcp", address, nil)
	}
	if err := look("8.8.8.8:80", "8.8.8.8:80"); err != nil {
		t.Errorf("the judged address was refused: %v", err)
	}
	for _, address := range []string{"127.0.0.1:80", "8.8.8.8:81", "[::1]:80", "nonsense"} {
		if look("8.8.8.8:80", address) == nil {
			t.Errorf("%s was let through", address)
		}
	}
	if err := look("10.0.0.1:80", "10.0.0.1:80"); err == nil {
		t.Error("a forbidden address was let through")
	}
	rules = nil
	if err := look("8.8.8.8:80", "8.8.8.8:80"); err == nil {
		t.Error("it passed without rules")
	}
}

func TestARefusalAtTheLastLookIsReported(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	asked := 0
	var blocks []Block
	d := NewDialer(func() *Rules {
		asked++
		if asked == 1 {
			return compile(t, Policy{})
		}
		return compile(t, Policy{BlockPrivate: true})
	}, &DialerOptions{OnBlock: func(b Block) { blocks = append(blocks, b) }})
	_, err = d.DialContext(t.Context(), "tcp", ln.Addr().String())
	if !errors.Is(err, fault.BlockedTarget) || len(blocks) != 1 || blocks[0].Rule != "loopback" || blocks[0].Addr != "127.0.0.1" {
		t.Fatalf("%v, %+v", err, blocks)
	}
}

func TestASilentAddressDoesNotHoldUpTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{answer: func(ctx context.Context, to netip.AddrPort) error {
			if to.Addr() == netip.MustParseAddr("1.1.1.1") {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		d := NewDialer(fixed(compile(t, Policy{BlockPrivate: true})), &DialerOptions{Resolver: names{"a.example": {"1.1.1.1", "2606:4700::1"}}})
		d.connect = rec.connect
		began := time.Now()
		c, err := d.DialContext(t.Context(), "tcp", "a.example:443")
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if took := time.Since(began); took != dialStagger {
			t.Errorf("it took %v", took)
		}
		if len(rec.dialed) != 2 {
			t.Errorf("dialled %v", rec.dialed)
		}
	})
}

func TestADialEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		rules := fixed(compile(t, Policy{BlockPrivate: true}))
		d := NewDialer(rules, &DialerOptions{Resolver: names{"a.example": {"1.1.1.1", "1.1.1.2"}}, Timeout: 3 * time.Second})
		d.connect = (&recorder{answer: func(ctx context.Context, _ netip.AddrPort) error { return hang(ctx) }}).connect
		began := time.Now()
		if _, err := d.DialContext(t.Context(), "tcp", "a.example:443"); !isTimeout(err) || time.Since(began) != 3*time.Second {
			t.Errorf("connect: %v after %v", err, time.Since(began))
		}
		d = NewDialer(rules, &DialerOptions{Timeout: time.Second, Resolver: lookupFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, hang(ctx) })})
		if _, err := d.DialContext(t.Context(), "tcp", "a.example:443"); !isTimeout(err) {
			t.Errorf("resolve: %v", err)
		}
	})
}

func TestAPanicInACallbackIsAnError(t *testing.T) {
	t.Parallel()
	d := NewDialer(fixed(nil), &DialerOptions{OnBlock: func(Block) { panic("oh") }})
	if c, err := d.DialContext(t.Context(), "tcp", "a.example:443"); err == nil || c != nil {
		t.Fatal("the panic was lost")
	}
}

func TestWhatCannotBeDialled(t *testing.T) {
	t.Parallel()
	d := NewDialer(fixed(compile(t, Policy{})), &DialerOptions{Resolver: names{"empty.example": nil}})
	for _, tt := range [][2]string{{"udp", "8.8.8.8:53"}, {"unix", "/x"}, {"tcp", "a.example"}, {"tcp", "a..b:80"}, {"tcp", "a:0"}, {"tcp", "a:http"}, {"tcp", "empty.example:80"}, {"tcp", "none.example:80"}} {
		if c, err := d.DialContext(t.Context(), tt[0], tt[1]); err == nil {
			_ = c.Close()
			t.Errorf("%v was dialled", tt)
		}
	}
}
