package endpoint_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/endpoint"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

const canary = "canary-key-77aa"

// through is the address of the browser by way of the line, with a key in it.
func through(ws *url.URL, l *browsertest.Line) secret.Text {
	u := *ws
	u.Host, u.RawQuery = l.Addr(), "apiKey="+canary
	return secret.New(u.String())
}

func TestAnEndpointIsAProvider(t *testing.T) {
	ws := browsertest.Chromium(t)
	browsertest.Run(t, func(t *testing.T) browsertest.Subject {
		l := browsertest.NewLine(t, ws.Host)
		next := func() browser.Provider {
			p, err := endpoint.New(through(ws, l), nil)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		return browsertest.Subject{Provider: next(), Next: next, Sever: func(browser.Instance) { l.Cut() }, Canary: canary}
	})
}

func TestAnHTTPAddressLeadsToTheWebSocket(t *testing.T) {
	ctx := browsertest.Context(t)
	ws := browsertest.Chromium(t)
	p, err := endpoint.New(secret.New("http://"+ws.Host), map[string]secret.Text{"Authorization": secret.New("Bearer " + canary)})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_http-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.End(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestNothingThatIsNotOursIsTouched(t *testing.T) {
	ctx := browsertest.Context(t)
	ws := browsertest.Chromium(t)
	site := browsertest.Site(t)
	p, err := endpoint.New(secret.New(ws.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody else's browser context, tab and popup.
	theirs, err := p.Create(ctx, browser.Spec{ID: "ses_theirs-1"})
	if err != nil {
		t.Fatal(err)
	}
	theirs.Conn().Dispatch()
	tab := browsertest.NewTab(ctx, t, theirs)
	tab.Open(ctx, t, site.URL)
	before := targets(t, theirs)

	ours, err := p.Create(ctx, browser.Spec{ID: "ses_ours-1"})
	if err != nil {
		t.Fatal(err)
	}
	tabs, err := page.Open(ctx, ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	front, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := front.Navigate(ctx, site.URL, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	tab.Eval(ctx, t, "void window.open('about:blank')")
	if n := len(tabs.List()); n != 1 {
		t.Fatalf("we follow %d tabs, one is ours", n)
	}
	tabs.Close()
	if err := ours.End(ctx); err != nil {
		t.Fatal(err)
	}
	after := targets(t, theirs)
	for id := range before {
		if !after[id] {
			t.Fatalf("the target %s was closed and is not ours", id)
		}
	}
	if got := tab.Eval(ctx, t, "document.title"); got != "plain" {
		t.Fatalf("their page answers %q", got)
	}
	if err := theirs.End(ctx); err != nil {
		t.Fatal(err)
	}
}

func targets(t *testing.T, inst browser.Instance) map[target.ID]bool {
	t.Helper()
	got, err := proto.Call(t.Context(), inst.Conn().Root(), target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[target.ID]bool{}
	for _, info := range got.TargetInfos {
		out[info.TargetID] = true
	}
	return out
}

func TestTheRecipeIsAppliedAgainAfterAReconnect(t *testing.T) {
	ctx := browsertest.Context(t)
	ws := browsertest.Chromium(t)
	site := browsertest.Site(t)
	l := browsertest.NewLine(t, ws.Host)
	p, err := endpoint.New(through(ws, l), nil)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_recipe-1"})
	if err != nil {
		t.Fatal(err)
	}
	const seen = "innerWidth + 'x' + innerHeight + ' ' + Intl.DateTimeFormat().resolvedOptions().timeZone + ' ' + /Headless/.test(navigator.userAgent)"
	const want = "500x400 Asia/Tokyo false"
	look := page.Look{Width: 500, Height: 400, Timezone: "Asia/Tokyo"}
	tabs, err := page.Open(ctx, inst, &page.Options{Look: look})
	if err != nil {
		t.Fatal(err)
	}
	front, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := front.Navigate(ctx, site.URL, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	recipes := tabs.Recipes()
	l.Cut()
	<-inst.Conn().Done()
	tabs.Close()

	again, err := p.Reconnect(ctx, inst.Ref())
	if err != nil {
		t.Fatal(err)
	}
	// The default look, so that only the recipe can bring the state back.
	tabs, err = page.Open(ctx, again, &page.Options{Recipes: recipes})
	if err != nil {
		t.Fatal(err)
	}
	defer tabs.Close()
	front, err = tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if front.ID() == "" || len(tabs.List()) != 1 {
		t.Fatal("the tab was not found again")
	}
	if got := browsertest.Attach(ctx, t, again, target.ID(front.ID())).Eval(ctx, t, seen); got != want {
		t.Fatalf("after the reconnect the page sees %q, before %q", got, want)
	}
	if err := again.End(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestAStalledLineIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	ws := browsertest.Chromium(t)
	l := browsertest.NewLine(t, ws.Host)
	p, err := endpoint.New(through(ws, l), nil)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_stall-1"})
	if err != nil {
		t.Fatal(err)
	}
	inst.Conn().Dispatch()
	tab := browsertest.NewTab(ctx, t, inst)
	l.Stall()
	if _, err := tab.TryEval(ctx, "1"); !errors.Is(err, fault.BrowserLost) || strings.Contains(err.Error(), canary) {
		t.Fatalf("a call into a stalled line got %v", err)
	}
	l.Flow()
	browsertest.End(t, p, inst.Ref())
}

func TestErrorsDoNotRepeatTheAddress(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"nobody listens":   "ws://127.0.0.1:1/?apiKey=" + canary,
		"no such name":     "wss://" + canary + ".invalid/devtools?apiKey=" + canary,
		"nobody at http":   "http://127.0.0.1:1/?token=" + canary,
		"a page, no CDP":   browsertest.Site(t).URL + "/?token=" + canary,
		"no WebSocket":     strings.Replace(browsertest.Site(t).URL, "http", "ws", 1) + "/?token=" + canary,
		"not an address":   "ftp://" + canary,
		"a broken address": "ws://%zz" + canary,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := endpoint.New(secret.New(address), nil)
			if err == nil {
				_, err = p.Create(browsertest.Context(t), browser.Spec{ID: "ses_x-1"})
			}
			if err == nil {
				t.Fatal("it worked")
			}
			f := fault.Of(err)
			if strings.Contains(err.Error()+f.Details()+f.Advice(), canary) {
				t.Fatalf("the key is in %v", err)
			}
			if f.Code != fault.SessionCreateFailed && f.Code != fault.ProviderNotConfigured {
				t.Fatalf("the code is %s: %v", f.Code, err)
			}
		})
	}
}

func TestTheNextTryMayTakeItsTime(t *testing.T) {
	t.Parallel()
	// A cut line fails at once; only then is the time of the next try ours to choose.
	ctx := browsertest.Context(t)
	ws := browsertest.Chromium(t)
	l := browsertest.NewLine(t, ws.Host)
	p, err := endpoint.New(through(ws, l), nil)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_cut-1"})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l.Cut()
	<-inst.Conn().Done()
	if took := time.Since(began); took > 10*time.Second { // short: a line that is only silent gets longer
		t.Fatalf("the loss was noticed after %s", took)
	}
	browsertest.End(t, p, inst.Ref())
}
