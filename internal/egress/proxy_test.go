package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"tapin/internal/fault"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local is a policy under which site.test may be on this machine.
var local = Policy{BlockPrivate: true, Allow: []string{"site.test", "*.site.test"}}

var localNames = names{"site.test": {"127.0.0.1"}, "a.site.test": {"127.0.0.1"}, "evil.test": {"127.0.0.1"}, "mixed.test": {"8.8.8.8", "10.0.0.1"}}

type bench struct {
	*Proxy
	addr   string
	client *http.Client
	mu     sync.Mutex
	blocks []Block
}

func (b *bench) seen() []Block {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.blocks)
}

// start runs a proxy and a client that goes through it, as Chromium would.
func start(t testing.TB, policy *Policy, opts ProxyOptions) *bench {
	t.Helper()
	b := &bench{}
	if opts.Resolver == nil {
		opts.Resolver = localNames
	}
	if opts.OnBlock == nil {
		opts.OnBlock = func(x Block) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.blocks = append(b.blocks, x)
		}
	}
	b.Proxy = NewProxy(&opts)
	if policy != nil {
		if err := b.SetPolicy(*policy); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- b.Serve(ln) }()
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: b.addr}),
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's own server
		DisableCompression: true,
	}
	b.client = &http.Client{Transport: tr}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := b.Close(ctx); err != nil {
			t.Errorf("close again: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return b
}

func origin(t testing.TB, h http.HandlerFunc) (srv *httptest.Server, at string) {
	t.Helper()
	srv = httptest.NewServer(h)
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	return srv, "site.test:" + port
}

func portOf(hostport string) string { return hostport[strings.LastIndexByte(hostport, ':'):] }

func get(t testing.TB, c *http.Client, u string) (*http.Response, string) {
	t.Helper()
	res, err := c.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// connect sends a raw CONNECT and returns the answer, the rest of the stream and the connection.
func connect(t testing.TB, proxy, to string) (*http.Response, *bufio.Reader, net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(testwait.End())
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return res, br, c
}

func TestAPlainPagePassesUnchanged(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, "Proxy-") || name == "Connection" || name == "X-Hop" || name == "Keep-Alive" {
				t.Errorf("the header %s reached the site", name)
			}
		}
		body, _ := io.ReadAll(r.Body)
		w.Header()["Content-Type"] = nil
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set(headerBlocked, "a site may not claim this")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.Host, r.RequestURI, r.Header.Get("X-Forwarded-For"), body)
	})
	b := start(t, &local, ProxyOptions{})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/a%2Fb//c?x=1;y&%zz", strings.NewReader("hello"))
	req.Header.Set("Proxy-Authorization", "Basic secret")
	req.Header.Set("Proxy-Connection", "keep-alive")
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "1")
	req.Header.Set("X-Forwarded-For", "page")
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body)
	if want := "POST " + at + " /a%2Fb//c?x=1;y&%zz page hello"; res.StatusCode != http.StatusTeapot || string(body) != want {
		t.Errorf("%d %q, want %q", res.StatusCode, body, want)
	}
	for _, name := range []string{"Content-Type", "Proxy-Authenticate", headerBlocked} {
		if res.Header.Get(name) != "" {
			t.Errorf("%s: %q", name, res.Header.Get(name))
		}
	}
}

func TestASecurePagePassesThroughATunnel(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	t.Cleanup(srv.Close)
	b := start(t, &local, ProxyOptions{})
	u := "https://a.site.test" + portOf(srv.URL)
	if res, body := get(t, b.client, u); res.StatusCode != 200 || "https://"+body != u {
		t.Fatalf("%d %q", res.StatusCode, body)
	}
}

func TestARefusedTarget(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") })
	b := start(t, &local, ProxyOptions{})
	port := portOf(at)
	for host, want := range map[string]string{
		"127.0.0.1" + port:              "loopback",
		"[::1]" + port:                  "loopback",
		"0x7f.1" + port:                 "loopback",
		"localhost" + port:              "private-name",
		"evil.test" + port:              "loopback",
		"mixed.test" + port:             "private",
		"169.254.169.254:80":            "metadata",
		"update.googleapis.com:443":     RuleVendor,
		"site.test" + portOf(b.addr):    RuleOwnPort,
		"a.site.test." + portOf(b.addr): RuleOwnPort,
	} {
		before := len(b.seen())
		res, body := get(t, b.client, "http://"+host+"/<script>")
		if res.StatusCode != http.StatusForbidden || res.Header.Get(headerBlocked) != want {
			t.Errorf("%s: %d %q, want 403 %q", host, res.StatusCode, res.Header.Get(headerBlocked), want)
		}
		if !strings.Contains(body, "network guard") || !strings.Contains(body, want) || strings.Contains(body, "<script>") || strings.Contains(body, "127.0.0.1") || strings.Contains(body, "10.0.0.1") {
			t.Errorf("%s: the page says %s", host, body)
		}
		cres, _, _ := connect(t, b.addr, host)
		if cres.StatusCode != http.StatusForbidden || cres.Header.Get(headerBlocked) != want {
			t.Errorf("CONNECT %s: %d %q, want 403 %q", host, cres.StatusCode, cres.Header.Get(headerBlocked), want)
		}
		blocks := b.seen()[before:]
		if len(blocks) != 2 {
			t.Fatalf("%s: blocks %+v", host, blocks)
		}
		for i, scheme := range []string{"http", "https"} {
			if strings.HasSuffix(host, ":80") && scheme == "https" {
				scheme = "ws"
			}
			if x := blocks[i]; x.Rule != want || x.Scheme != scheme || x.Vendor != (want == RuleVendor) || x.Port == 0 || x.At.IsZero() || x.Host == "" {
				t.Errorf("%s: %+v", host, x)
			}
		}
	}
	if n := b.Counts()["metadata"]; n != 2 {
		t.Errorf("counted %d", n)
	}
}

func TestTheBlockIsKnownBeforeTheBrowserIsAnswered(t *testing.T) {
	t.Parallel()
	told, release := make(chan Block), make(chan struct{})
	b := start(t, &local, ProxyOptions{OnBlock: func(x Block) { told <- x; <-release }})
	for _, request := range []string{"GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443\r\n\r\n"} {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, request)
		answered := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(c).ReadString('\n')
			answered <- line
		}()
		<-told
		select {
		case line := <-answered:
			t.Errorf("answered first: %q", line)
		default:
		}
		release <- struct{}{}
		if line := <-answered; !strings.Contains(line, "403") {
			t.Errorf("%q", line)
		}
		_ = c.Close()
	}
}

func TestNothingPassesBeforeTheFirstPolicy(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(http.ResponseWriter, *http.Request) {})
	b := start(t, nil, ProxyOptions{})
	refused := func() {
		t.Helper()
		if res, _ := get(t, b.client, "http://"+at); res.Header.Get(headerBlocked) != RuleNoPolicy {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
	}
	refused()
	if res, _, _ := connect(t, b.addr, "8.8.8.8:443"); res.Header.Get(headerBlocked) != RuleNoPolicy {
		t.Errorf("CONNECT: %d %v", res.StatusCode, res.Header)
	}
	bad := Policy{Allow: []string{"not a host"}}
	if err := b.SetPolicy(bad); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("the bad policy: %v", err)
	}
	refused()
	if err := b.SetPolicy(local); err != nil {
		t.Fatal(err)
	}
	if err := b.SetPolicy(bad); err == nil {
		t.Error("the bad policy was taken")
	}
	if res, _ := get(t, b.client, "http://"+at); res.StatusCode != 200 {
		t.Errorf("the last good policy was lost: %d", res.StatusCode)
	}
}

func TestARedirectIsJudgedAgain(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:"+r.Host[strings.LastIndexByte(r.Host, ':')+1:]+"/secret", http.StatusFound)
	})
	b := start(t, &local, ProxyOptions{})
	if res, _ := get(t, b.client, "http://"+at+"/"); res.Header.Get(headerBlocked) != "loopback" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
}

func TestAChangeOfPolicyCutsWhatItForbids(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	var mu sync.Mutex
	remotes := map[string]bool{}
	stream := make(chan struct{})
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		remotes[r.RemoteAddr] = true
		mu.Unlock()
		_, _ = io.WriteString(w, "x")
		if r.URL.Path == "/stream" {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-stream:
			case <-r.Context().Done():
			}
		}
	})
	defer close(stream)
	b := start(t, &local, ProxyOptions{})
	port := portOf(echo.Addr().String())
	_, kept, keptConn := connect(t, b.addr, "site.test"+port)
	_, cut, cutConn := connect(t, b.addr, "a.site.test"+port)
	say := func(c net.Conn, r *bufio.Reader) error {
		if _, err := io.WriteString(c, "hi\n"); err != nil {
			return err
		}
		_, err := r.ReadString('\n')
		return err
	}
	if err := errors.Join(say(keptConn, kept), say(cutConn, cut)); err != nil {
		t.Fatal(err)
	}
	_, _ = get(t, b.client, "http://a."+at+"/") // leaves an idle connection in the pool
	res, err := b.client.Get("http://a." + at + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()

	if err := b.SetPolicy(Policy{BlockPrivate: true, Allow: []string{"site.test"}}); err != nil {
		t.Fatal(err)
	}
	if err := say(keptConn, kept); err != nil {
		t.Errorf("an allowed tunnel was cut: %v", err)
	}
	if err := say(cutConn, cut); err == nil {
		t.Error("a forbidden tunnel lives on")
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a forbidden response went on")
	}
	if res, _ := get(t, b.client, "http://a."+at+"/"); res.Header.Get(headerBlocked) != "loopback" {
		t.Errorf("a pooled connection was used: %d", res.StatusCode)
	}
	b.dialer.mu.Lock()
	defer b.dialer.mu.Unlock()
	for c := range b.dialer.conns {
		if c.target.name != "site.test" {
			t.Errorf("a connection to %s is left", c.target.name)
		}
	}
}

func TestAPolicyThatChangesDuringADialIsTheOneThatCounts(t *testing.T) {
	t.Parallel()
	rules := compile(t, local)
	d := NewDialer(func() *Rules { return rules }, &DialerOptions{Resolver: localNames})
	d.connect = func(context.Context, target, netip.AddrPort) (net.Conn, error) {
		rules = compile(t, Policy{BlockPrivate: true})
		d.Recheck()
		a, other := net.Pipe()
		_ = other.Close()
		return a, nil
	}
	if _, err := d.DialContext(t.Context(), "tcp", "site.test:80"); !errors.Is(err, fault.BlockedTarget) || len(d.conns) != 0 {
		t.Fatalf("%v, %d connections", err, len(d.conns))
	}
}

func TestWebSockets(t *testing.T) {
	t.Parallel()
	_, at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		for {
			kind, msg, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, append([]byte("echo "), msg...)) != nil {
				return
			}
		}
	})
	b := start(t, &local, ProxyOptions{})
	// Chromium asks a tunnel for ws; others send the upgrade as a plain request.
	tunnelled := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		res, br, c := connect(t, b.addr, addr)
		if res.StatusCode != 200 || br.Buffered() > 0 {
			return nil, errors.New(res.Status)
		}
		return c, ctx.Err()
	}}}
	for name, client := range map[string]*http.Client{"a tunnel": tunnelled, "an upgrade": b.client} {
		ctx, cancel := testwait.Within(t.Context())
		c, _, err := websocket.Dial(ctx, "ws://"+at+"/", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 3 {
			if err := c.Write(ctx, websocket.MessageText, []byte("hi")); err != nil {
				t.Fatal(err)
			}
			if _, msg, err := c.Read(ctx); err != nil || string(msg) != "echo hi" {
				t.Fatalf("%s: %q %v", name, msg, err)
			}
		}
		if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
