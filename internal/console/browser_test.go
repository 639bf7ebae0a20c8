package console_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/console"
	"tapin/internal/egress"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// glass is the owner's own browser, with the console in it.
type glass struct {
	t    *testing.T
	inst browser.Instance
	tab  *page.Tab
}

func (h *house) glass(ctx context.Context, others ...string) *glass {
	h.t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		h.t.Fatal(err)
	}
	provider := local.New(dir, 1, nil)
	inst, err := provider.Create(ctx, browser.Spec{ID: "ses_owner-1", KeepUntil: testwait.Late(), Policy: egress.Policy{BlockPrivate: true, Allow: append(others, h.addr)}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		browsertest.End(h.t, provider, inst.Ref())
		_ = os.RemoveAll(dir)
	})
	tabs, err := page.Open(ctx, inst, &page.Options{Look: page.Look{Width: 390, Height: 844, Mobile: true}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(tabs.Close)
	tab, err := tabs.Front(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return &glass{h.t, inst, tab}
}

func (g *glass) open(ctx context.Context, address string) {
	g.t.Helper()
	if _, err := g.tab.Navigate(ctx, address, page.WaitLoad); err != nil {
		g.t.Fatal(err)
	}
}

func (g *glass) eval(ctx context.Context, script string) string {
	g.t.Helper()
	return browsertest.Attach(ctx, g.t, g.inst, target.ID(g.tab.ID())).Eval(ctx, g.t, script)
}

// shows waits until the page says something.
func (g *glass) shows(ctx context.Context, text string) {
	g.t.Helper()
	if err := g.tab.WaitFor(ctx, page.WaitOptions{Text: text, Timeout: testwait.Limit()}); err != nil {
		g.t.Fatalf("%q: %v; it shows %s", text, err, g.eval(ctx, "document.body.innerText"))
	}
}

func (g *glass) click(ctx context.Context, selector string) {
	g.t.Helper()
	if _, err := g.tab.Click(ctx, page.Locator{CSS: selector}, page.ClickOptions{}); err != nil {
		g.t.Fatalf("%s: %v", selector, err)
	}
}

func TestTheOwnersBrowserSignsInStaysInAndActs(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	g := h.glass(ctx)
	g.open(ctx, "http://"+h.addr+"/console")
	g.shows(ctx, "Sign in")
	token := h.signIn()
	// In the tab that shows the page already: an address that only gets a fragment.
	g.eval(ctx, `(location.hash = "t=`+token+`", "")`)
	g.shows(ctx, "Please sign in.")
	if at := g.eval(ctx, "location.href + '|' + document.cookie + '|' + localStorage.length + sessionStorage.length"); at != "http://"+h.addr+"/console||00" {
		t.Errorf("the page is at %s", at)
	}
	if got := g.eval(ctx, `(async () => {
		const seen = [];
		const o = new PerformanceObserver((l) => seen.push(...l.getEntries()));
		o.observe({type: "layout-shift", buffered: true});
		await new Promise((done) => setTimeout(done, 100));
		const foreign = performance.getEntriesByType("resource").filter((r) => !r.name.startsWith(location.origin));
		return [...seen, ...o.takeRecords()].filter((e) => !e.hadRecentInput).map((e) => e.value + " " + e.sources.map((s) => s.node?.id || s.node?.className || s.node?.nodeName)).join() + "|" + foreign.length;
	})()`); got != "|0" {
		t.Errorf("layout shifts and foreign requests: %s", got)
	}
	g.open(ctx, "http://"+h.addr+"/console")
	g.shows(ctx, "Please sign in.")

	h.set(func(s *console.State) { s.Handoffs[0].Instruction = "Now enter the code." })
	g.shows(ctx, "Now enter the code.")

	g.click(ctx, `[data-do="extend"][data-id="hof_1"]`)
	g.shows(ctx, "There is more time now.")
	g.click(ctx, `[data-do="done"][data-id="hof_1"]`)
	g.shows(ctx, "Hand back to the agent?")
	if got := strings.Join(h.done(), ", "); got != "extend hof_1 15m0s" {
		t.Fatalf("before the owner has confirmed, done was: %s", got)
	}
	g.click(ctx, `dialog .button.main`)
	g.shows(ctx, "Handed back to the agent.")

	g.click(ctx, `[data-tab="sessions"]`)
	g.shows(ctx, "agent drives")
	testwait.For(t, "the picture of the session", func() bool {
		return g.eval(ctx, `String(document.querySelector("img.thumb").naturalWidth)`) == "480"
	})
	// To a browser without a number: this device is the first to have the link.
	g.click(ctx, `[data-do="open"][data-id="ses_1"]`)
	testwait.For(t, "the live view", func() bool {
		return strings.HasPrefix(g.eval(ctx, "location.pathname + location.hash"), "/live/lnk_")
	})
	testwait.For(t, "the link to be this device's", func() bool {
		links, err := h.links.List(ctx)
		return err == nil && len(links) == 1 && links[0].Claimed && len(links[0].Waiting) == 0
	})

	g.open(ctx, "http://"+h.addr+"/console")
	g.shows(ctx, "Now enter the code.")
	if err := h.door.SignOut(ctx, h.door.Devices(ctx)[0].ID); err != nil {
		t.Fatal(err)
	}
	g.shows(ctx, "Signed out")
	g.open(ctx, "http://"+h.addr+"/console")
	g.shows(ctx, "tapin console")
}

func TestAnotherSitesPageCanNeitherFrameNorUseTheConsole(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>evil</title><body>")
	}))
	t.Cleanup(evil.Close)
	g := h.glass(ctx, strings.TrimPrefix(evil.URL, "http://"))
	g.open(ctx, "http://"+h.addr+"/console#t="+h.signIn())
	g.shows(ctx, "Please sign in.")
	g.open(ctx, evil.URL)
	before := h.claims.Load()
	got := g.eval(ctx, `(async () => {
		const frame = document.createElement("iframe");
		frame.src = "http://`+h.addr+`/console";
		const loaded = new Promise((done) => { frame.onload = done; });
		document.body.append(frame);
		await loaded;
		const socket = await new Promise((done) => {
			const ws = new WebSocket("ws://`+h.addr+`/console/ws");
			ws.onopen = () => done("open"); ws.onerror = () => done("refused");
		});
		const claim = await fetch("http://`+h.addr+`/console/claim", {method: "POST", body: "{}", credentials: "include"}).then((r) => r.status, () => "refused");
		const picture = await new Promise((done) => {
			const i = new Image(); i.onload = () => done("seen"); i.onerror = () => done("refused");
			i.src = "http://`+h.addr+`/console/thumb/ses_1";
		});
		return [socket, claim, picture].join();
	})()`)
	if got != "refused,refused,refused" {
		t.Errorf("socket, claim, picture: %s", got)
	}
	if h.claims.Load() != before {
		t.Error("in the frame of another site the console came to life")
	}
}
