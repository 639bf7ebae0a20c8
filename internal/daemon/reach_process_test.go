package daemon

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// tunnelSidecar is the sidecar itself, which expects a tunnel.
func tunnelSidecar(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	cfg, _, err := config.Load(config.Inputs{Set: []string{"pool.follow=0", "listen.control=127.0.0.1:0", "listen.public=127.0.0.1:0", "tunnel=cloudflared"}})
	if err != nil {
		return 1
	}
	home, err := store.Open(path, nil)
	if err != nil {
		return 1
	}
	defer home.Close()
	if sidecar.Run(ctx, sidecar.Options{Home: home, Config: cfg, OnReady: func(string) { fmt.Println(readyWord) }}) != nil {
		return 1
	}
	return 0
}

// tunnelDaemon is the daemon itself, with a tunnel out of the PATH.
func tunnelDaemon(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	home, err := store.Open(path, nil)
	if err != nil {
		return 1
	}
	defer home.Close()
	d := newDaemon(Options{
		Home: home, Command: []string{self, "tunnel-sidecar", path}, Tunnel: TunnelOptions{Kind: config.TunnelCloudflared, Leash: []string{self, "leash"}},
		OnState: func(s State) {
			if s.Phase == Ready {
				fmt.Println(readyWord)
			}
		},
	})
	d.outlook.first, d.outlook.pauses, d.outlook.steady = 20*time.Millisecond, []time.Duration{50 * time.Millisecond}, 100*time.Millisecond
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// edge stands in for the tunnel's network: it ends the encryption for the names
// that run, and passes on to where the program with that name forwards.
type edge struct {
	*httputil.ReverseProxy
	b    *bore
	cert tls.Certificate
	ca   string // a file
	addr string
}

func newEdge(t *testing.T, b *bore) *edge {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "edge"}, DNSNames: []string{"*.trycloudflare.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{b: b, cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca: filepath.Join(t.TempDir(), "ca.pem")}
	if err := os.WriteFile(e.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	e.ReverseProxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := url.Parse(e.target(r.In.Host))
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("X-Forwarded-Proto", "https")
			r.Out.Header.Set("Cf-Connecting-Ip", "203.0.113.7")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(530) },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go e.connect(conn)
		}
	}()
	return e
}

// target is where the newest program forwards, if it has that name.
func (e *edge) target(host string) string {
	all := e.b.starts()
	if len(all) == 0 || host != fmt.Sprintf("name-%d.trycloudflare.com", len(all)) {
		return "http://127.0.0.1:1"
	}
	_, rest, _ := strings.Cut(all[len(all)-1].line, "--url ")
	to, _, _ := strings.Cut(rest, " ")
	return to
}

// connect is a proxy's CONNECT, and the edge at its other end.
func (e *edge) connect(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{e.cert}, MinVersion: tls.VersionTLS12})
	one := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	one.conn <- secure
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed || s == http.StateHijacked {
			_ = one.Close()
		}
	}}
	_ = server.Serve(one)
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (o *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *oneConn) Close() error {
	select {
	case <-o.closed:
	default:
		close(o.closed)
	}
	return nil
}
func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// begun starts the daemon as a process, and returns once its sidecar serves.
func (e *edge) begun(t *testing.T, home *store.Home) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "tunnel-daemon", home.Path())
	cmd.Env = append(os.Environ(), "HTTPS_PROXY=http://"+e.addr, "SSL_CERT_FILE="+e.ca, "PATH="+e.b.dir+":"+os.Getenv("PATH"), "TUNNEL_URL=http://elsewhere")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan error, 1)}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != readyWord {
		t.Fatalf("the daemon said %q", lines.Text())
	}
	go func() {
		for lines.Scan() { // so that it is not held up
		}
		p.done <- cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if running, err := Find(home); err == nil && running.Sidecar != 0 {
			kill(running.Sidecar)
		}
	})
	return p
}

func awaitReach(t *testing.T, home *store.Home, stand Stand, url string) {
	t.Helper()
	var r Reach
	if !testwait.Comes(func() bool {
		r = Reach{}
		err := home.ReadJSON(reachFile, &r)
		return err == nil && r.Stand == stand && r.URL == url
	}) {
		t.Fatalf("it was never %s at %s; it is %+v", stand, url, r)
	}
}

// TestAPhoneFindsItsWayThroughATunnelWhateverDies goes the whole way with
// processes: daemon, sidecar, leash, tunnel program, and the network behind it.
func TestAPhoneFindsItsWayThroughATunnelWhateverDies(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, quickSays("name-1")+"family\n", quickSays("name-2"), quickSays("name-3")+"family\n", quickSays("name-4"))
	home, e := b.home, newEdge(t, b)
	daemon := e.begun(t, home)
	const one, two, three, four = "https://name-1.trycloudflare.com", "https://name-2.trycloudflare.com", "https://name-3.trycloudflare.com", "https://name-4.trycloudflare.com"
	awaitReach(t, home, Open, one)
	if first := b.starts()[0].line; !strings.HasSuffix(first, "TUNNEL_URL=") {
		t.Errorf("it was given another tunnel's settings: %s", first)
	}
	client := ownerOf(t, home)
	if at, err := client.Public(t.Context()); err != nil || at.URL != one || at.Source != "discovered" {
		t.Fatalf("links begin with %+v, %v", at, err)
	}
	local := publicOf(t, client)
	if status := through(t, local, "name-1.trycloudflare.com"); status != http.StatusOK {
		t.Errorf("the page answers %d under the tunnel's name", status)
	}
	if status := through(t, local, "name-2.trycloudflare.com"); status != http.StatusForbidden {
		t.Errorf("the page answers %d under a name that is not ours", status)
	}

	// The tunnel dies: another name, and the old one is no longer ours.
	kill(b.starts()[0].pid)
	awaitReach(t, home, Open, two)
	if status := through(t, local, "name-1.trycloudflare.com"); status != http.StatusForbidden {
		t.Errorf("the page answers %d under the name that is gone", status)
	}
	awaitGone(t, offspring(t, b))

	// The sidecar dies: at another port, so that the tunnel has to be aimed anew.
	running, err := Find(home)
	if err != nil {
		t.Fatal(err)
	}
	kill(running.Sidecar)
	awaitReach(t, home, Open, three)
	client = ownerOf(t, home)
	if status := through(t, publicOf(t, client), "name-3.trycloudflare.com"); status != http.StatusOK {
		t.Errorf("the page answers %d after a restart", status)
	}
	if got := changesOf(t, client); !slices.Equal(slices.DeleteFunc(got, func(url string) bool { return strings.HasPrefix(url, "http://127.") }), []string{one, two, three}) {
		t.Errorf("the doors were told of %q", got)
	}

	// The daemon dies, and nothing of the tunnel is left; the next one makes another.
	daemon.kill()
	awaitGone(t, b.starts()[2].pid)
	awaitGone(t, offspring(t, b))
	daemon = e.begun(t, home)
	awaitReach(t, home, Open, four)
	if err := daemon.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-daemon.done
	daemon.done <- nil
	gone(t, b.starts()[3].pid)
	if ok, err := home.Exists(reachFile); ok || err != nil {
		t.Errorf("what it knew is still there: %v, %v", ok, err)
	}
}

func offspring(t *testing.T, b *bore) (pid int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "child"))
	if _, e := fmt.Sscan(string(raw), &pid); err != nil || e != nil {
		t.Fatal(err, e)
	}
	return pid
}

func ownerOf(t *testing.T, home *store.Home) *api.Client {
	t.Helper()
	control, err := Control(home)
	if err != nil {
		t.Fatal(err)
	}
	token, err := home.Read(ownerTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient("http://"+control, secret.New(strings.TrimSpace(string(token))), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func publicOf(t *testing.T, client *api.Client) string {
	t.Helper()
	at, err := client.Public(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at.Local
}

// through asks the public listener as the tunnel would for somebody.
func through(t *testing.T, local, name string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, local+"/live/lnk_any", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = name
	r.Header.Set("X-Forwarded-Proto", "https")
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// changesOf are the addresses that the doors were told of, in order.
func changesOf(t *testing.T, client *api.Client) (all []string) {
	t.Helper()
	ctx, cancel := testwait.Within(t.Context())
	defer cancel()
	for e, err := range client.Events(ctx, 0) {
		if err != nil {
			break
		}
		if e.Type != event.PublicChanged {
			continue
		}
		var news event.PublicNews
		if err := json.Unmarshal(e.Data, &news); err != nil {
			t.Fatal(err)
		}
		if all = append(all, news.URL); strings.Contains(news.URL, "name-3") {
			break
		}
	}
	return all
}
