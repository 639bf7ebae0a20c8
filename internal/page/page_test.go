package page_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local/holder"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) { browsertest.Main(m, &holder.Options{Resolver: testNames{}}) }

// web is a site of the test's own pages, and a browser that may visit it.
type web struct {
	*httptest.Server
	inst browser.Instance
	tabs *page.Tabs

	mu     sync.Mutex
	agents map[string]string // User-Agent by path
}

func visit(t *testing.T, pages map[string]string, look page.Look) *web {
	t.Helper()
	return visitIn(t, browsertest.Room(t), pages, look)
}

func visitIn(t *testing.T, inst browser.Instance, pages map[string]string, look page.Look) *web {
	t.Helper()
	w := &web{agents: map[string]string{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.agents[r.URL.Path] = r.UserAgent() + " | " + r.Header.Get("Sec-Ch-Ua")
		w.mu.Unlock()
		body, ok := pages[r.URL.Path]
		switch {
		case r.URL.Path == "/never":
			_, _ = io.WriteString(rw, "<title>never</title>")
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		case r.URL.Path == "/silent": // not a byte, by which a picture could be known as none
			<-r.Context().Done()
		case r.URL.Path == "/reset":
			panic(http.ErrAbortHandler)
		case !ok:
			http.NotFound(rw, r)
		case strings.HasSuffix(r.URL.Path, ".js"):
			rw.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(rw, body)
		default:
			rw.Header().Set("Content-Type", "text/html")
			_, port, _ := strings.Cut(r.Host, ":")
			_, _ = io.WriteString(rw, strings.ReplaceAll(body, "OTHER", "http://localhost:"+port))
		}
	}))
	t.Cleanup(w.Close)
	t.Cleanup(w.CloseClientConnections)
	w.inst = inst
	var err error
	w.tabs, err = page.Open(browsertest.Context(t), w.inst, &page.Options{Look: look})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.tabs.Close)
	return w
}

func (w *web) front(ctx context.Context, t *testing.T) *page.Tab {
	t.Helper()
	tab, err := w.tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// title is that of the tab in front.
func (w *web) title(ctx context.Context, t *testing.T) string {
	t.Helper()
	if err := w.tabs.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	_, title := w.front(ctx, t).Address()
	return title
}

// eval runs a script in the page itself, beside the room under test.
func (w *web) eval(ctx context.Context, t *testing.T, tab *page.Tab, script string) string {
	t.Helper()
	return browsertest.Attach(ctx, t, w.inst, target.ID(tab.ID())).Eval(ctx, t, script)
}

func TestTheBrowserLooksLikeOne(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const told = `navigator.userAgent + "|" + navigator.webdriver`
	w := visit(t, map[string]string{
		"/":          `<title>t</title>`,
		"/worker.js": `fetch("/from-worker").finally(() => postMessage(` + told + `))`,
		"/sw.js":     `self.onmessage = e => e.source.postMessage(navigator.userAgent)`,
	}, page.Look{Locale: "de-CH", Timezone: "Europe/Zurich"})
	tab := w.front(ctx, t)
	if _, err := tab.Navigate(ctx, w.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"the page": told,
		"a worker": `new Promise(r => new Worker("/worker.js").onmessage = e => r(e.data))`,
		"a service worker": `navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready).then(reg => new Promise(r => {
			navigator.serviceWorker.onmessage = e => r(e.data); reg.active.postMessage(1) }))`,
		"a frame": `(f => (document.body.append(f), f.contentWindow.navigator.userAgent + "|" + f.contentWindow.navigator.webdriver))(document.createElement("iframe"))`,
	} {
		got := w.eval(ctx, t, tab, script)
		if strings.Contains(got, "Headless") || !strings.Contains(got, "Chrome/") || strings.Contains(got, "true") {
			t.Errorf("%s says %q", name, got)
		}
	}
	w.mu.Lock()
	for path, agent := range w.agents {
		if strings.Contains(agent, "Headless") || !strings.Contains(agent, "Chromium") && !strings.Contains(agent, "Chrome") {
			t.Errorf("%s was asked for by %q", path, agent)
		}
	}
	w.mu.Unlock()
	for script, want := range map[string]string{
		`navigator.webdriver`:            "false",
		`typeof window.chrome`:           "object",
		`navigator.plugins.length > 0`:   "true",
		`navigator.languages.length > 0`: "true",
		`navigator.userAgentData.brands.some(b => b.brand.includes("Headless"))`:                              "false",
		`navigator.userAgentData.brands.length > 1`:                                                           "true",
		`Intl.DateTimeFormat().resolvedOptions().timeZone`:                                                    "Europe/Zurich",
		`Intl.NumberFormat().resolvedOptions().locale`:                                                        "de-CH",
		`screen.width + "x" + screen.height + " " + innerWidth + "x" + innerHeight`:                           "1280x720 1280x720",
		`outerWidth + "x" + outerHeight + " at " + screenX + "," + screenY`:                                   "1280x720 at 0,0",
		`Object.getOwnPropertyNames(window).filter(n => /cdc|tapin|playwright|puppeteer|__/i.test(n)).join()`: "",
		`document.documentElement.getAttributeNames().join()`:                                                 "",
	} {
		if got := w.eval(ctx, t, tab, script); got != want {
			t.Errorf("%s is %q, not %q", script, got, want)
		}
	}
}

func TestPopupsAreFollowedAndTheOpenerComesBack(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{"/": `<title>opener</title>`, "/popup": `<title>popup</title>`}, page.Look{Width: 600, Height: 500})
	opener := w.front(ctx, t)
	if _, err := opener.Navigate(ctx, w.URL+"/", ""); err != nil {
		t.Fatal(err)
	}
	w.eval(ctx, t, opener, `void (window.p = window.open("/popup"))`)
	testwait.For(t, "the popup in front", func() bool { return w.title(ctx, t) == "popup" })
	popup := w.front(ctx, t)
	if got := w.eval(ctx, t, popup, "innerWidth"); got != "600" {
		t.Errorf("the popup is %s wide", got)
	}
	if shot, err := popup.Screenshot(ctx, page.ShotOptions{Asked: true}); err != nil || shot.Title != "popup" {
		t.Fatalf("the picture is of %q, %v", shot.Title, err)
	}
	w.eval(ctx, t, opener, `void p.close()`)
	testwait.For(t, "the opener in front", func() bool { return len(w.tabs.List()) == 1 && w.front(ctx, t) == opener })
	if err := w.inst.Conn().Root().Call(ctx, "Target.closeTarget", map[string]string{"targetId": opener.ID()}, nil); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "a new tab after the last one closed", func() bool { return w.front(ctx, t) != opener })
}

func TestFramesAndWorkersOfOtherSitesRun(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/":      `<title>top</title><iframe src="OTHER/frame"></iframe><script>onmessage = e => document.title = e.data</script>`,
		"/frame": `<iframe src="/inner"></iframe>`,
		// A script that a busy browser fails to load is asked for again: what this is
		// about is a worker that waits for ever, which says nothing.
		"/inner": `<script>const work = () => { const w = new Worker("/w.js"); w.onerror = work; w.onmessage = e => top.postMessage(e.data, "*") }; work()</script>`,
		"/w.js":  `postMessage("all run")`,
	}, page.Look{})
	tab := w.front(ctx, t)
	if _, err := tab.Navigate(ctx, w.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the worker in the frame in the frame", func() bool { return w.title(ctx, t) == "all run" })
}

func TestADialogIsToldAndNeverWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/":       `<title>t</title>`,
		"/prompt": `<title>p</title><script>window.said = prompt("your name?", "nobody")</script>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	if _, err := tab.Navigate(ctx, w.URL+"/prompt", ""); !errors.Is(err, fault.DialogOpen) {
		t.Fatalf("opening a page that asks gave %v", err)
	}
	if d := tab.Dialog(); d == nil || d.Kind != "prompt" || d.Message != "your name?" || d.Default != "nobody" {
		t.Fatalf("the dialog is %+v", d)
	}
	for name, err := range map[string]error{
		"navigate":   second(tab.Navigate(ctx, w.URL+"/", "")),
		"screenshot": second(tab.Screenshot(ctx, page.ShotOptions{})),
	} {
		if !errors.Is(err, fault.DialogOpen) {
			t.Errorf("%s under a dialog gave %v", name, err)
		}
	}
	if err := tab.Answer(ctx, true, "owner"); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the answer", func() bool { return tab.Dialog() == nil })
	if got := w.eval(ctx, t, tab, "window.said"); got != "owner" {
		t.Fatalf("the page was told %q", got)
	}
	if err := tab.Answer(ctx, true, ""); !errors.Is(err, fault.NotFound) {
		t.Fatalf("answering nothing gave %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNavigationsEndAndSayHow(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/":      `<title>home</title>`,
		"/moved": `<title>moving</title><script>location.replace("/")</script>`,
		"/hash":  `<title>hash</title>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	for _, tt := range []struct {
		path   string
		wait   page.Wait
		title  string
		status int
		code   fault.Code
	}{
		{"/", "", "home", 200, ""},
		{"/missing", "", "", 404, ""},
		{"/hash", page.WaitNetwork, "hash", 200, ""},
		{"/hash#part", "", "hash", 200, ""},
		{"/never", page.WaitCommit, "", 200, ""},
		{"/never", page.WaitLoad, "", 0, fault.NavigationTimeout},
		{"/", "someday", "", 0, fault.InvalidRequest},
		{"/", "", "home", 200, ""},
	} {
		name := fmt.Sprintf("%s until %s", tt.path, tt.wait)
		limited, cancel := testwait.Within(ctx)
		if tt.code == fault.NavigationTimeout {
			limited, cancel = context.WithTimeout(ctx, 3*time.Second) // short: it must run out
		}
		nav, err := tab.Navigate(limited, w.URL+tt.path, tt.wait)
		cancel()
		switch {
		case tt.code != "" && !errors.Is(err, tt.code):
			t.Errorf("%s: got %v", name, err)
		case tt.code == "" && (err != nil || nav.Status != tt.status || tt.title != "" && nav.Title != tt.title):
			t.Errorf("%s: got %+v, %v", name, nav, err)
		}
	}
}

func TestWhatALoadedPageCannotFetchIsNotItsOwnFailure(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{"/": `<title>fine</title><script src="/reset"></script><p>text`}, page.Look{})
	tab := w.front(ctx, t)
	if nav, err := tab.Navigate(ctx, w.URL+"/", page.WaitLoad); err != nil || nav.Title != "fine" || nav.Status != 200 {
		t.Fatalf("got %+v, %v", nav, err)
	}
}

func TestReloadAndHistorySayWhenAPageIsGone(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{"/": `<title>one</title>`, "/two": `<title>two</title>`}, page.Look{})
	tab := w.front(ctx, t)
	for _, path := range []string{"/", "/two"} {
		if _, err := tab.Navigate(ctx, w.URL+path, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.CloseClientConnections()
	w.Close()
	if nav, err := tab.Reload(ctx, ""); !errors.Is(err, fault.NavigationFailed) || !strings.Contains(err.Error(), "ERR_CONNECTION_REFUSED") {
		t.Fatalf("a reload gave %+v, %v", nav, err)
	}
}
