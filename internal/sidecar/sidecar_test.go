package sidecar_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// running is a sidecar and the means to speak to it as curl would.
type running struct {
	t     *testing.T
	dir   string
	base  string
	agent string
	log   *safeBuffer
	stop  func() error
	vault *vault.Options
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func start(t *testing.T, site *httptest.Server, set ...string) *running {
	t.Helper()
	return startWith(t, site, ring{}, set...)
}

func startWith(t *testing.T, site *httptest.Server, keys ring, set ...string) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Never the keychain of whoever runs the tests.
	r := &running{t: t, dir: dir, log: &safeBuffer{}, vault: &vault.Options{Keyring: keys}}
	// Nor a browser for somebody who may come: most tests ask for none.
	r.begin(append([]string{"pool.follow=0", "listen.control=127.0.0.1:0", "egress.allow=" + strings.TrimPrefix(site.URL, "http://")}, set...))
	return r
}

func (r *running) begin(set []string) {
	r.t.Helper()
	cfg, _, err := config.Load(config.Inputs{Set: set})
	if err != nil {
		r.t.Fatal(err)
	}
	home, err := store.Open(r.dir, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- sidecar.Run(ctx, sidecar.Options{
			Home: home, Config: cfg, Version: "test", Vault: r.vault, OnReady: func(c string) { ready <- c },
			Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	}()
	select {
	case control := <-ready:
		r.base = "http://" + control
	case err := <-ended:
		r.t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(r.dir, sidecar.AgentTokenFile))
	if err != nil {
		r.t.Fatal(err)
	}
	r.agent = strings.TrimSpace(string(token))
	r.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		_ = home.Close()
		return err
	})
	r.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			r.t.Errorf("the sidecar ended with %v", err)
		}
	})
}

// do is one request; the answer is decoded when it is JSON.
func (r *running) do(method, path, body string) (int, map[string]any, []byte) {
	r.t.Helper()
	if strings.HasSuffix(path, "/wait") && strings.HasPrefix(body, "{") && !strings.Contains(body, "timeout_ms") {
		body = `{"timeout_ms":60000,` + body[1:] // as long as anybody may wait there
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.agent)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var answer map[string]any
	_ = json.Unmarshal(raw, &answer)
	return resp.StatusCode, answer, raw
}

func picture(t *testing.T, answer map[string]any) string {
	t.Helper()
	text, _ := answer["screenshot"].(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil || answer["mime_type"] != "image/png" {
		t.Fatalf("the answer carries no PNG (%v): %v", answer["mime_type"], err)
	}
	return text
}

func TestTheWholeWayThroughHTTP(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := browsertest.Site(t)
	r := start(t, site)

	if code, health, _ := r.do("GET", "/health", ""); code != 200 || health["status"] != "ok" || health["active_session"] != nil || health["provider"] != "local" {
		t.Fatalf("health is %d %v", code, health)
	}
	code, begun, _ := r.do("POST", "/session/start", `{"url":"`+site.URL+`"}`)
	id, _ := begun["session_id"].(string)
	if live, _ := begun["live_view_url"].(string); code != 200 || begun["ok"] != true || id == "" || !strings.Contains(live, "/live/lnk_") || strings.Contains(live, "#") {
		t.Fatalf("start gave %d, %v, live view %q", code, begun["error"], live)
	}
	first := picture(t, begun)
	if code, again, _ := r.do("POST", "/session/start", `{}`); code != 409 || again["error"] != "SESSION_ACTIVE" || again["session_id"] != id {
		t.Fatalf("a second start gave %d %v", code, again)
	}
	code, moved, _ := r.do("POST", "/sessions/"+id+"/navigate", `{"url":"`+site.URL+`/agent"}`)
	if code != 200 || moved["title"] != "agent" || picture(t, moved) == first {
		t.Fatalf("navigate gave %d %v", code, moved["title"])
	}
	if code, _, raw := r.do("GET", "/session/screenshot?format=jpeg", ""); code != 200 || !bytes.HasPrefix(raw, []byte{0xff, 0xd8}) {
		t.Fatalf("screenshot gave %d, %d bytes", code, len(raw))
	}
	if code, status, _ := r.do("GET", "/session/status", ""); code != 200 || status["active"] != true || status["url"] != site.URL+"/agent" {
		t.Fatalf("status is %d %v", code, status)
	}
	if code, refused, _ := r.do("POST", "/session/navigate", `{"url":"http://169.254.169.254/latest"}`); code != 403 || refused["error"] != "BLOCKED_TARGET" || refused["rule"] == nil {
		t.Fatalf("a forbidden address gave %d %v", code, refused)
	}
	if code, stopped, _ := r.do("POST", "/session/stop", ""); code != 200 || stopped["stopped"] != true {
		t.Fatalf("stop gave %d %v", code, stopped)
	}
	if code, status, _ := r.do("GET", "/session/status", ""); code != 200 || status["active"] != false {
		t.Fatalf("after the stop the status is %d %v", code, status)
	}
	for _, route := range []string{"POST /session/navigate", "GET /session/screenshot", "POST /session/stop", "POST /sessions/" + id + "/reload"} {
		method, path, _ := strings.Cut(route, " ")
		body := ""
		if strings.HasSuffix(path, "navigate") {
			body = `{"url":"` + site.URL + `"}`
		}
		if code, gone, _ := r.do(method, path, body); code != 404 || gone["error"] != "NO_SESSION" || gone["hint"] == "" {
			t.Fatalf("%s after the stop gave %d %v", route, code, gone)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(r.dir, "run")); len(left) > 0 {
		t.Fatalf("%d browsers are left", len(left))
	}
}

func TestAPageCannotReachTapinItselfWhateverIsAllowed(t *testing.T) {
	t.Parallel()
	site := browsertest.Site(t)
	r := start(t, site, "egress.block_private=false")
	code, answer, _ := r.do("POST", "/session/start", `{"url":"`+r.base+`/health"}`)
	if code != 403 || answer["error"] != "BLOCKED_TARGET" || answer["rule"] != "own-port" {
		t.Fatalf("opening the control listener in a page gave %d %v", code, answer)
	}
	// A redirect gets past the door and not past the guard.
	port := r.base[strings.LastIndexByte(r.base, ':')+1:]
	hop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://localhost:"+port+"/health", http.StatusFound)
	}))
	defer hop.Close()
	code, answer, _ = r.do("POST", "/session/start", `{"url":"`+hop.URL+`"}`)
	if code != 403 || answer["error"] != "BLOCKED_TARGET" || answer["rule"] != "own-port" {
		t.Fatalf("a redirect to the control listener gave %d %v", code, answer)
	}
	if _, _, metrics := r.do("GET", "/metrics", ""); !strings.Contains(string(metrics), `tapin_egress_blocked_total{rule="own-port"} 1`) {
		t.Fatal("the block was not counted")
	}
}

func TestTheReasonWhyAPageDoesNotOpenIsTheBrowsers(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := browsertest.Site(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	r := start(t, site, "egress.allow="+strings.Join([]string{strings.TrimPrefix(site.URL, "http://"), nobody, strings.TrimPrefix(tls.URL, "https://")}, ","))
	if code, answer, _ := r.do("POST", "/session/start", `{"screenshot":false}`); code != 200 {
		t.Fatalf("start gave %d %v", code, answer)
	}
	for url, want := range map[string]string{
		"http://" + nobody + "/":  "ERR_CONNECTION_REFUSED",
		"https://" + nobody + "/": "ERR_CONNECTION_REFUSED",
		"http://nobody.invalid/":  "ERR_NAME_NOT_RESOLVED",
		"https://nobody.invalid/": "ERR_NAME_NOT_RESOLVED",
		tls.URL:                   "ERR_CERT_AUTHORITY_INVALID",
	} {
		code, answer, _ := r.do("POST", "/session/navigate", `{"url":"`+url+`"}`)
		details, _ := answer["details"].(string)
		if code != 502 || answer["error"] != "NAVIGATION_FAILED" || !strings.Contains(details, want) {
			t.Errorf("%s gave %d %v", url, code, answer)
		}
	}
	if code, answer, _ := r.do("POST", "/session/navigate", `{"url":"`+site.URL+`","screenshot":false}`); code != 200 || answer["title"] != "plain" {
		t.Fatalf("the session is not usable any more: %d %v", code, answer)
	}
}

// Whoever asks where tapin is may meet a stranger at the address that a killed one left.
func TestTheAddressOfAKilledOneIsTakenAwayFirst(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	cfg, _, err := config.Load(config.Inputs{Set: []string{"listen.control=" + taken.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	if err := home.Write(sidecar.AddressFile, []byte("127.0.0.1:9\n")); err != nil {
		t.Fatal(err)
	}
	if err := sidecar.Run(t.Context(), sidecar.Options{Home: home, Config: cfg, Version: "test"}); err == nil {
		t.Fatal("it serves at an address that is taken")
	}
	if left, err := home.Read(sidecar.AddressFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q is left, %v", left, err)
	}
}

func TestASecondSidecarIsRefused(t *testing.T) {
	t.Parallel()
	site := browsertest.Site(t)
	r := start(t, site)
	home, err := store.Open(r.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	cfg, _, err := config.Load(config.Inputs{Set: []string{"listen.control=127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sidecar.Run(t.Context(), sidecar.Options{Home: home, Config: cfg}); fault.Of(err).Code != fault.Busy {
		t.Fatalf("got %v", err)
	}
}

func TestTheEndIsOrderlyAndQuickWithABrowserOpen(t *testing.T) {
	t.Parallel()
	site := browsertest.Site(t)
	r := start(t, site)
	if code, answer, _ := r.do("POST", "/session/start", `{"screenshot":false}`); code != 200 {
		t.Fatalf("start gave %d %v", code, answer)
	}
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second { // short: a browser that does not end gets ten seconds
		t.Fatalf("the end took %s", took)
	}
	for _, name := range []string{"run", "sessions/open"} {
		if left, _ := os.ReadDir(filepath.Join(r.dir, name)); len(left) > 0 {
			t.Fatalf("%s still holds %d", name, len(left))
		}
	}
}

// Everything that is secret so far: the tokens, and what stands in addresses
// and pages. None of it may be anywhere but where it belongs.
func TestNoSecretIsWrittenAnywhere(t *testing.T) {
	t.Parallel()
	const inQuery, inFragment, inPage, inUser = "canary-query-1f", "canary-fragment-2e", "canary-page-3d", "canary-user-4c"
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "canary-cookie-5b", HttpOnly: true})
		_, _ = fmt.Fprintf(w, `<title>t</title><script>localStorage.setItem("k", "canary-storage-6a")</script><p>%s`, inPage)
	})
	site := httptest.NewServer(mux)
	defer site.Close()
	r := start(t, site)
	address := strings.Replace(site.URL, "http://", "http://"+inUser+":pw@", 1) + "/?token=" + inQuery + "#" + inFragment
	r.do("POST", "/session/start", `{"url":"`+address+`"}`)
	r.do("POST", "/session/navigate", `{"url":"`+address+`"}`)
	r.do("POST", "/session/navigate", `{"url":"http://nobody.invalid/?token=`+inQuery+`"}`)
	r.do("POST", "/session/navigate", `{"url":"http://10.0.0.1/?token=`+inQuery+`"}`)
	r.do("POST", "/session/navigate", `{"url":"nonsense `+inQuery+`","`+inQuery+`":1}`)
	secrets := []string{r.agent, inQuery, inFragment, inPage, inUser, "canary-cookie-5b", "canary-storage-6a"}
	_, _, metrics := r.do("GET", "/metrics", "")
	clean := func(where, text string) {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s is in %s", s, where)
			}
		}
	}
	clean("the metrics", string(metrics))
	clean("the log", r.log.String())
	for _, name := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + name)
		for _, file := range files {
			raw, err := os.ReadFile(file) //nolint:gosec // the process list
			if err != nil || !bytes.Contains(raw, []byte("remote-debugging-pipe")) && !bytes.Contains(raw, []byte("\x00holder\x00")) && name == "cmdline" {
				continue
			}
			clean(file, string(raw))
		}
	}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".token") || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a file that went away meanwhile holds nothing
		}
		raw, _ := os.ReadFile(path) //nolint:gosec // our own home
		clean(path, string(raw))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
