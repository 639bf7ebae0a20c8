package egress

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

func TestAResponseIsNotHeldBack(t *testing.T) {
	t.Parallel()
	for name, header := range map[string][2]string{
		"server-sent events":         {"Content-Type", "text/event-stream"},
		"a body of known length":     {"Content-Length", "24"},
		"a body of a length unknown": {"Content-Type", "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := make(chan struct{})
			_, at := origin(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(header[0], header[1])
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n", i)
					_ = http.NewResponseController(w).Flush()
					<-next
				}
			})
			defer close(next)
			b := start(t, &local, ProxyOptions{})
			ctx, cancel := testwait.Within(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at, nil)
			res, err := b.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			lines := bufio.NewReader(res.Body)
			for i := range 3 {
				// The server goes on only when this line has arrived.
				if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
					t.Fatalf("%q %v", line, err)
				}
				next <- struct{}{}
			}
		})
	}
}

func TestARequestBodyIsStreamed(t *testing.T) {
	t.Parallel()
	got := make(chan string)
	_, at := origin(t, func(_ http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 5)
		for {
			n, err := io.ReadFull(r.Body, buf)
			if n > 0 {
				got <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	})
	b := start(t, &local, ProxyOptions{})
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		res, err := b.client.Post("http://"+at, "text/plain", r)
		if err == nil {
			err = res.Body.Close()
		}
		done <- err
	}()
	for range 3 {
		_, _ = io.WriteString(w, "12345")
		if s := <-got; s != "12345" {
			t.Fatalf("%q", s)
		}
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestExpectContinueIsAskedOfTheSite(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Errorf("the site was not asked: %v", r.Header)
		}
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	b := start(t, &local, ProxyOptions{})
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(testwait.End())
	fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: %s\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", at, at)
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err != nil || res.StatusCode != http.StatusContinue {
		t.Fatalf("%+v %v", res, err)
	}
	_, _ = io.WriteString(c, "body")
	for res.StatusCode == http.StatusContinue {
		if res, err = http.ReadResponse(br, nil); err != nil {
			t.Fatal(err)
		}
	}
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "body" {
		t.Fatalf("%d %q", res.StatusCode, body)
	}
}

func TestATunnelPassesOnAHalfClose(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		all, _ := io.ReadAll(c) // ends only when the browser's half-close arrives
		fmt.Fprintf(c, "got %d", len(all))
	}()
	b := start(t, &local, ProxyOptions{})
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(testwait.End())
	to := "site.test" + portOf(ln.Addr().String())
	// The first bytes come along with the request, before it is answered.
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\nearly", to, to)
	_, _ = c.Write(make([]byte, 1<<20))
	_ = c.(*net.TCPConn).CloseWrite()
	br := bufio.NewReader(c)
	if res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect}); err != nil || res.StatusCode != 200 {
		t.Fatalf("%+v %v", res, err)
	}
	if rest, err := io.ReadAll(br); err != nil || string(rest) != fmt.Sprintf("got %d", 1<<20+5) {
		t.Fatalf("%q %v", rest, err)
	}
}

func TestFailuresHaveTheirStatus(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "site.test" + portOf(ln.Addr().String())
	_ = ln.Close()
	hangs := lookupFunc(func(ctx context.Context, host string) ([]netip.Addr, error) {
		if host == "slow.test" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return localNames.LookupNetIP(ctx, "ip", host)
	})
	b := start(t, &local, ProxyOptions{Resolver: hangs, Timeout: 50 * time.Millisecond})
	for to, want := range map[string]string{
		"nowhere.test:80": "502 dns",
		"slow.test:80":    "502 dns",
		dead:              "502 refused",
		"a..b:80":         "400 address",
	} {
		res, body := get(t, b.client, "http://"+to)
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get(headerError)); got != want || strings.Contains(body, "127.0.0.1") {
			t.Errorf("%s: %s %q, want %s", to, got, body, want)
		}
		res, _, _ = connect(t, b.addr, to)
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get(headerError)); got != want {
			t.Errorf("CONNECT %s: %s, want %s", to, got, want)
		}
	}
	if len(b.seen()) != 0 {
		t.Errorf("a failure is not a block: %+v", b.seen())
	}
	for err, want := range map[error]string{
		context.DeadlineExceeded:       "504 timeout",
		syscall.EHOSTUNREACH:           "502 unreachable",
		syscall.ECONNRESET:             "502 reset",
		errors.New("x"):                "502 failed",
		&upstreamError{"slow", true}:   "504 upstream",
		&upstreamError{what: "broken"}: "502 upstream",
	} {
		status, kind := statusOf(fmt.Errorf("wrapped: %w", err))
		if got := fmt.Sprint(status, " ", kind); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestWhatIsNoProxyRequest(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s arrived", r.URL) })
	b := start(t, &local, ProxyOptions{})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: " + at + "\r\n\r\n":                                                    "400",
		"GET https://" + at + "/ HTTP/1.1\r\nHost: x\r\n\r\n":                                           "400",
		"GET ftp://" + at + "/ HTTP/1.1\r\nHost: x\r\n\r\n":                                             "400",
		"CONNECT site.test HTTP/1.1\r\nHost: x\r\n\r\n":                                                 "400",
		"CONNECT /x HTTP/1.1\r\nHost: x\r\n\r\n":                                                        "400",
		"POST http://" + at + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n": "400",
		"POST http://" + at + "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n":    "501",
		"GET http://" + at + "/ HTTP/1.1\r\nHost : x\r\n\r\n":                                           "400",
		"GET http://127.0.0.1" + portOf(at) + "/ HTTP/1.1\r\nHost: " + at + "\r\n\r\n":                  "403",
		"GET http://u:p@127.0.0.1" + portOf(at) + "/ HTTP/1.1\r\nHost: " + at + "\r\n\r\n":              "403",
	} {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(testwait.End())
		_, _ = io.WriteString(c, request)
		line, _ := bufio.NewReader(c).ReadString('\n')
		_ = c.Close()
		if !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Errorf("%q: %q, want %s", request, line, want)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(http.ResponseWriter, *http.Request) {})
	b := start(t, &local, ProxyOptions{})
	b.limit = 1
	_, _, tunnel := connect(t, b.addr, at)
	if res, _, _ := connect(t, b.addr, at); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get(headerError) != "busy" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	_ = tunnel.Close()
	// The proxy learns of it a moment later; each try is a round trip.
	testwait.For(t, "the place that was given back", func() bool {
		res, _, c := connect(t, b.addr, at)
		_ = c.Close()
		return res.StatusCode == 200
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	looking := make(chan struct{})
	slow := lookupFunc(func(ctx context.Context, host string) ([]netip.Addr, error) {
		if host == "slow.test" {
			close(looking)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return localNames.LookupNetIP(ctx, "ip", host)
	})
	b := start(t, &local, ProxyOptions{Resolver: slow})
	_, br, _ := connect(t, b.addr, at)
	res, err := b.client.Get("http://" + at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	go func() {
		if res, err := b.client.Get("http://slow.test"); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-looking
	ctx, cancel := testwait.Within(t.Context())
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := br.ReadByte(); err == nil {
		t.Error("the tunnel lives on")
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the response lives on")
	}
	if len(b.dialer.conns) != 0 {
		t.Errorf("%d connections are left", len(b.dialer.conns))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Serve(ln); err != nil {
		t.Errorf("serve after close: %v", err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("the listener was left open")
	}
}

func TestTheProxyIsNotOpenToTheNetwork(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := NewProxy(nil).Serve(ln); err == nil {
		t.Fatal("it served")
	}
}

func TestAPanicReachesNobody(t *testing.T) {
	t.Parallel()
	b := start(t, &local, ProxyOptions{OnBlock: func(Block) { panic("oh") }})
	if res, _ := get(t, b.client, "http://10.0.0.1/"); res.StatusCode != http.StatusBadGateway {
		t.Errorf("%d", res.StatusCode)
	}
	if res, _, _ := connect(t, b.addr, "10.0.0.1:443"); res.StatusCode != http.StatusBadGateway {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestAnUpstreamProxyIsAskedForTheJudgedAddress(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	asked := make(chan *http.Request, 4)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:hunter2")) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		c, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		client, rw, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		(&tunnel{client: client, origin: c}).run(rw.Reader)
		_, _ = client.Close(), c.Close()
	}))
	t.Cleanup(upstream.Close)
	host := strings.TrimPrefix(upstream.URL, "http://")
	for user, want := range map[string]int{"me:hunter2@": 200, "me:wrong@": 502} {
		up, err := ParseUpstream(secret.New("http://" + user + host))
		if err != nil {
			t.Fatal(err)
		}
		b := start(t, &local, ProxyOptions{Upstream: up})
		res, body := get(t, b.client, "http://"+at)
		if res.StatusCode != want || want == 200 && body != at {
			t.Errorf("%d %q", res.StatusCode, body)
		}
		if r := <-asked; r.Method != http.MethodConnect || r.Host != "127.0.0.1"+portOf(at) {
			t.Errorf("asked %s %s", r.Method, r.Host)
		}
		if res, _ := get(t, b.client, "http://10.0.0.1/"); res.Header.Get(headerBlocked) != "private" || len(asked) != 0 {
			t.Errorf("the upstream was asked for a refused address: %v", res.Header)
		}
	}
}

func TestUpstreamErrorsShowNothing(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "hunter2", "socks5://me:hunter2@h:1", "http://me:hunter2@", "http://me:hunter2@h:0", "http://me:hunter2@h:99999", "http://me:hunter2@h:1/p", "http://me:hunter2@h\x7f", "://hunter2"} {
		_, err := ParseUpstream(secret.New(raw))
		if !errors.Is(err, fault.InvalidRequest) || strings.Contains(fmt.Sprintf("%v %+v %s", err, err, fault.Of(err).Advice()), "hunter2") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	up, err := ParseUpstream(secret.New("https://me:hunter2@" + ln.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.connect(t.Context(), netip.MustParseAddrPort("8.8.8.8:80")); err == nil || strings.Contains(fmt.Sprintf("%v %+v %+v", err, err, up), "hunter2") || strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("%v", err)
	}
}

func TestASilentUpstreamIsGivenUp(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	up, err := ParseUpstream(secret.New("http://" + ln.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // short: it must run out
	defer cancel()
	_, err = up.connect(ctx, netip.MustParseAddrPort("8.8.8.8:80"))
	if status, kind := statusOf(err); status != http.StatusGatewayTimeout || kind != "upstream" {
		t.Fatalf("%d %s: %v", status, kind, err)
	}
}

func BenchmarkPlainRequest(b *testing.B) {
	_, at := origin(b, func(http.ResponseWriter, *http.Request) {})
	p := start(b, &local, ProxyOptions{})
	for b.Loop() {
		_, _ = get(b, p.client, "http://"+at)
	}
}

func BenchmarkJudge(b *testing.B) {
	rules := compile(b, Policy{BlockPrivate: true, OwnPorts: []uint16{3849}})
	to, a := target{name: "site.example", port: 443}, netip.MustParseAddr("2606:4700::1111")
	for b.Loop() {
		if rules.judgeAddr(to, a) != "" {
			b.Fatal("refused")
		}
	}
}
