package page_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// testNames finds every name under .test on this machine.
type testNames struct{}

func (testNames) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(strings.TrimSuffix(host, "."), ".test") {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}

// bank is a site that notes who asks it for what, under any name and as any origin.
type bank struct {
	*httptest.Server
	routes map[string]http.HandlerFunc
	conns  atomic.Int64

	mu    sync.Mutex
	asked []string // host, path, cookies
}

func newBank(t *testing.T, tls bool, routes map[string]http.HandlerFunc) *bank {
	t.Helper()
	b := &bank{routes: routes}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			b.conns.Add(1)
		}
	}
	if tls {
		b.StartTLS()
	} else {
		b.Start()
	}
	t.Cleanup(b.Close)
	t.Cleanup(b.CloseClientConnections)
	return b
}

func (b *bank) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/favicon.ico" {
		http.NotFound(w, r)
		return
	}
	b.mu.Lock()
	b.asked = append(b.asked, r.URL.Path+" "+r.Header.Get("Cookie"))
	b.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	if route, ok := b.routes[r.URL.Path]; ok {
		route(w, r)
		return
	}
	_, _ = io.WriteString(w, "<!doctype html><title>plain</title>")
}

func (b *bank) port() string { return b.URL[strings.LastIndexByte(b.URL, ':')+1:] }

// at is the site's origin under a name.
func (b *bank) at(name string) string {
	scheme, _, _ := strings.Cut(b.URL, ":")
	return scheme + "://" + name + ":" + b.port()
}

// heard is what the site was asked since the last time.
func (b *bank) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.asked
	b.asked = nil
	return out
}

// visitor is a browser of its own that may visit the banks.
type visitor struct {
	inst browser.Instance
	tabs *page.Tabs
	// again connects to the same browser as a later process would.
	again func(context.Context) (browser.Instance, error)

	mu       sync.Mutex
	surprise []page.Surprise
	origins  []string
}

var visitorNames = []string{"127.0.0.1", "localhost", "bank.test", "app.bank.test", "login.bank.test", "shop.test", "other.test"}

func newVisitor(t *testing.T, banks ...*bank) *visitor {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	policy := egress.Policy{BlockPrivate: true}
	for _, b := range banks {
		for _, name := range visitorNames {
			policy.Allow = append(policy.Allow, name+":"+b.port())
		}
	}
	ctx := browsertest.Context(t)
	p := local.New(dir, 1, nil)
	v := &visitor{}
	v.again = func(ctx context.Context) (browser.Instance, error) {
		p = local.New(dir, 2, nil)
		return p.Reconnect(ctx, v.inst.Ref())
	}
	v.inst, err = p.Create(ctx, browser.Spec{ID: "ses_visit-1", KeepUntil: testwait.Late(), Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	v.tabs, err = page.Open(ctx, v.inst, &page.Options{
		OnSurprise: func(s page.Surprise) { v.mu.Lock(); defer v.mu.Unlock(); v.surprise = append(v.surprise, s) },
		OnOrigin:   func(o string) { v.mu.Lock(); defer v.mu.Unlock(); v.origins = append(v.origins, o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.tabs.Close()
		browsertest.End(t, p, v.inst.Ref())
	})
	return v
}

func (v *visitor) front(ctx context.Context, t *testing.T) (*page.Tab, browsertest.Tab) {
	t.Helper()
	tab, err := v.tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := browsertest.Attach(ctx, t, v.inst, targetID(tab))
	if err := at.Session.Call(ctx, "Security.setIgnoreCertificateErrors", map[string]bool{"ignore": true}, nil); err != nil {
		t.Fatal(err)
	}
	return tab, at
}

func (v *visitor) open(ctx context.Context, t *testing.T, url string) browsertest.Tab {
	t.Helper()
	tab, at := v.front(ctx, t)
	if _, err := tab.Navigate(ctx, url, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	return at
}

func (v *visitor) read(ctx context.Context, t *testing.T) browser.State {
	t.Helper()
	st, skipped, err := v.tabs.ReadState(ctx)
	if err != nil || len(skipped) > 0 {
		t.Fatalf("reading the state: %v, skipped %q", err, skipped)
	}
	return st
}

func (v *visitor) restore(ctx context.Context, t *testing.T, st browser.State) page.Restored {
	t.Helper()
	got, err := v.tabs.Restore(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// revealed makes secrets comparable; only tests may.
var revealed = cmp.Transformer("reveal", func(s secret.Text) string { return s.Reveal() })

func items(pairs ...string) []browser.Item {
	out := []browser.Item{}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, browser.Item{Key: secret.New(pairs[i]), Value: secret.New(pairs[i+1])})
	}
	return out
}

func TestALoginMovesToAnotherBrowserBeforeItsSiteHearsOfIt(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	login := func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "cookie-token", Path: "/", HttpOnly: true})
		_, _ = io.WriteString(w, `<!doctype html><title>in</title><script>
			localStorage.setItem('token', 'local-token'); sessionStorage.setItem('tab', 'session-token')
			window.ready = new Promise(yes => { const r = indexedDB.open('auth', 3); r.onupgradeneeded = () => r.result.createObjectStore('tokens').put({token: 'db-token', at: new Date(5)}, 'main'); r.onsuccess = () => { r.result.close(); yes('made') } })
		</script>`)
	}
	// The first inline script judges: what it does not find is not there in time.
	home := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>home</title><body><script>
			const local = localStorage.getItem('token'), tab = sessionStorage.getItem('tab')
			window.verdict = new Promise(yes => { const r = indexedDB.open('auth'); r.onsuccess = () => { const g = r.result.transaction('tokens').objectStore('tokens').get('main')
				g.onsuccess = () => yes([local, tab, g.result.token, +g.result.at, r.result.version].join(' ')) }; r.onerror = () => yes('no database') })
			document.body.append(local === 'local-token' ? 'logged in' : 'logged out')
		</script>`)
	}
	site := newBank(t, false, map[string]http.HandlerFunc{"/login": login, "/home": home})
	a := newVisitor(t, site)
	tab := a.open(ctx, t, site.at("bank.test")+"/login")
	tab.Eval(ctx, t, "ready")
	st := a.read(ctx, t)

	b := newVisitor(t, site)
	site.heard()
	before := site.conns.Load()
	got := b.restore(ctx, t, st)
	if want := (page.Restored{Cookies: 1, Keys: 2, Databases: 1}); !cmp.Equal(got, want) {
		t.Errorf("restored %+v, want %+v", got, want)
	}
	if heard, conns := site.heard(), site.conns.Load()-before; len(heard) > 0 || conns > 0 {
		t.Errorf("the site heard %q over %d connections while its state was restored", heard, conns)
	}
	tab = b.open(ctx, t, site.at("bank.test")+"/home")
	if heard := site.heard(); !cmp.Equal(heard, []string{"/home sid=cookie-token"}) {
		t.Errorf("the first requests were %q", heard)
	}
	if got := tab.Eval(ctx, t, "document.body.textContent.trim().split('\\n').at(-1).trim()"); got != "logged in" {
		t.Errorf("the page says %q", got)
	}
	if got := tab.Eval(ctx, t, "verdict"); got != "local-token session-token db-token 5 3" {
		t.Errorf("the first script found %q", got)
	}
	if again := b.read(ctx, t); !cmp.Equal(st, again, revealed) {
		t.Errorf("what was restored reads differently: %s", cmp.Diff(st, again, revealed))
	}
}

func TestAnOriginThatIsNotLoadedIsReadWithoutItsSite(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, map[string]http.HandlerFunc{
		"/worker.js": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, `addEventListener('fetch', e => e.respondWith(new Response('<script>localStorage.setItem("worker", "answered")</script>', {headers: {'Content-Type': 'text/html'}})));
				addEventListener('install', () => skipWaiting()); addEventListener('activate', e => e.waitUntil(clients.claim()))`)
		},
		"/": document(`<!doctype html><title>spy</title><script>localStorage.setItem('visits', 1 + Number(localStorage.getItem('visits') ?? 0))</script>`),
	})
	v := newVisitor(t, site)
	// localhost is where workers may be.
	tab := v.open(ctx, t, site.at("localhost")+"/")
	tab.Eval(ctx, t, "navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => 'ready')")
	tab = v.open(ctx, t, site.at("shop.test")+"/")
	tab.Eval(ctx, t, "localStorage.setItem('cart', 'full')")
	tab = v.open(ctx, t, site.at("other.test")+"/plain")
	tab.Eval(ctx, t, `(() => { window.events = []; for (const k of ['blur', 'focus', 'visibilitychange', 'storage', 'pagehide']) { addEventListener(k, () => events.push(k)); document.addEventListener(k, () => events.push(k)) } })()`)
	site.heard()
	v.mu.Lock()
	v.surprise = nil
	v.mu.Unlock()
	conns := site.conns.Load()

	st := v.read(ctx, t)
	var got []string
	for _, o := range st.Origins {
		for _, item := range o.Local {
			got = append(got, strings.Replace(o.Origin, site.port(), "", 1)+" "+item.Key.Reveal()+"="+item.Value.Reveal())
		}
		if o.Session != nil {
			t.Errorf("the sessionStorage of %s, which is not loaded, was said to be known", o.Origin)
		}
	}
	want := []string{"http://localhost: visits=1", "http://shop.test: cart=full", "http://shop.test: visits=1"}
	if !cmp.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if heard := site.heard(); len(heard) > 0 || site.conns.Load() != conns {
		t.Errorf("the site heard %q over %d new connections", heard, site.conns.Load()-conns)
	}
	if got := tab.Eval(ctx, t, "events.join()"); got != "" {
		t.Errorf("the page in front noticed %s", got)
	}
	if n := len(v.tabs.List()); n != 1 {
		t.Errorf("there are %d tabs", n)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.surprise) > 0 {
		t.Errorf("it was told as news: %+v", v.surprise)
	}
	// A browser answers as soon as it has begun to close one.
	testwait.For(t, "the helper to be gone", func() bool { return listTargets(ctx, t, v) == 1 })
}

// listTargets counts pages and what else of the kind is open in the visitor's context.
func listTargets(ctx context.Context, t *testing.T, v *visitor) int {
	t.Helper()
	var got struct {
		TargetInfos []struct {
			Type    string `json:"type"`
			Context string `json:"browserContextId"`
		} `json:"targetInfos"`
	}
	if err := v.inst.Conn().Root().Call(ctx, "Target.getTargets", map[string]any{"filter": []map[string]any{{"type": "page"}, {"type": "other"}}}, &got); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, info := range got.TargetInfos {
		if info.Context == v.inst.Ref().Context {
			n++
		}
	}
	return n
}

// TestManyOriginsAreReadExactly reads more origins than are read at a time. With
// TAPIN_TEST_SOAK there are 150, and the time that takes is told.
func TestManyOriginsAreReadExactly(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	many := 15
	if os.Getenv("TAPIN_TEST_SOAK") != "" {
		many = 150
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*testwait.Limit())
	defer cancel()
	site := newBank(t, false, nil)
	var st browser.State
	for n := range many {
		st.Origins = append(st.Origins, browser.OriginState{
			Origin: fmt.Sprintf("https://s%03d.test", n), Local: items("what", strings.Repeat("x", n*50), "who", fmt.Sprint(n)), // sorted, as they are read
			Databases: []byte{},
		})
	}
	v := newVisitor(t, site)
	v.restore(ctx, t, st)
	began := time.Now()
	first := v.read(ctx, t)
	t.Logf("%d origins in %s", many, time.Since(began).Round(time.Millisecond))
	if !cmp.Equal(st.Origins, first.Origins, revealed) {
		t.Errorf("what was put in reads differently: %s", cmp.Diff(st.Origins, first.Origins, revealed))
	}
	if again := v.read(ctx, t); !cmp.Equal(first, again, revealed) {
		t.Errorf("the same state reads differently: %s", cmp.Diff(first, again, revealed))
	}
	if n := len(v.tabs.List()); n != 1 {
		t.Errorf("%d tabs are left", n)
	}
}

func TestBackDoesNotLeadToWhatRestoreShowed(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	st := browser.State{}
	for _, name := range []string{"bank.test", "shop.test"} {
		st.Origins = append(st.Origins, browser.OriginState{Origin: site.at(name), Session: []browser.Item{{Key: secret.New("k"), Value: secret.New(name)}}})
	}
	v.restore(ctx, t, st)
	for _, name := range []string{"bank.test", "shop.test"} {
		tab := v.open(ctx, t, site.at(name)+"/")
		if got := tab.Eval(ctx, t, "sessionStorage.k"); got != name {
			t.Errorf("the tab has %q at %s", got, name)
		}
	}
	front, at := v.front(ctx, t)
	if got := at.Eval(ctx, t, "history.length"); got != "3" { // the blank tab it began with, and two pages
		t.Errorf("the history has %s entries", got)
	}
	if nav, err := front.Travel(ctx, -1, ""); err != nil || nav.URL != site.at("bank.test")+"/" {
		t.Fatalf("back led to %+v, %v", nav, err)
	}
	if nav, err := front.Travel(ctx, -1, ""); err == nil {
		t.Errorf("back led further, to %+v", nav)
	}
}

func TestOneBadOriginDoesNotSpoilTheOthers(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	item := func(k, val string) []browser.Item {
		return []browser.Item{{Key: secret.New(k), Value: secret.New(val)}}
	}
	canary := "canary-value"
	st := browser.State{
		Cookies: []browser.Cookie{
			{Name: "good", Value: secret.New("1"), Domain: "bank.test", Path: "/"},
			{Name: "bad;name", Value: secret.New(canary), Domain: "bank.test", Path: "/"},
			{Name: "quiet", Value: secret.New(canary), Domain: "bank.test", Path: "/", SameSite: "None"}, // dropped without a word
			{Name: "old", Value: secret.New(canary), Domain: "bank.test", Path: "/", Expires: 1000},
		},
		Origins: []browser.OriginState{
			{Origin: "javascript:alert(1)", Local: item("x", canary)},
			{Origin: site.at("other.test"), Local: item("a", "1"), Databases: []byte(`[{"name":"` + canary + `","version":1,"stores":[{"name":"s","keyPath":null,"autoIncrement":false,"indexes":[],"rows":[{"zz":1}]}]},{"name":"fine","version":2,"stores":[]}]`)},
			{Origin: site.at("shop.test"), Local: item("k", "v"), Databases: []byte("no JSON " + canary)},
		},
	}
	got := v.restore(ctx, t, st)
	want := page.Restored{Cookies: 1, Refused: 2, Keys: 2, Databases: 1, Skipped: []string{
		"1 cookies have expired", "2 cookies were refused by the browser",
		"javascript:alert(1): not all of it was restored: it is no origin of the web",
		site.at("other.test") + ": 1 databases were left out: it is not in the form it is kept in",
		site.at("shop.test") + ": not all of it was restored: the browser did not take what is stored: it is not in the form it is kept in",
	}}
	if !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	if text := fmt.Sprintf("%+v %#v", got, got); strings.Contains(text, canary) {
		t.Errorf("the account holds a value: %s", text)
	}
	tab := v.open(ctx, t, site.at("shop.test")+"/")
	if got := tab.Eval(ctx, t, "localStorage.k"); got != "v" {
		t.Errorf("the good part has %q", got)
	}
}
