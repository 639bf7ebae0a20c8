package session_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/testwait"
)

// stocked is a host in whose place browsers are kept ready, until end or the end of
// the test.
func stocked(t *testing.T, dir string, site *httptest.Server) (h *house, end func()) {
	t.Helper()
	var provider *local.Provider
	h = moveWith(t, dir, site, session.Options{}, keeper{"127.0.0.1"}, holderOver{way: func(p browser.Provider) browser.Provider {
		provider = p.(*local.Provider) //nolint:forcetypeassert // that is what move makes
		return p
	}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		provider.KeepSpares(ctx, local.Stock{Always: 1}, browser.Spec{}, h.host.OpenAhead)
	}()
	end = func() { stop(); <-ended }
	t.Cleanup(end)
	return h, end
}

// ready waits for a browser that is nobody's, and tells its name.
func ready(t *testing.T, h *house, dir string) string {
	t.Helper()
	testwait.For(t, "a browser that is ready", func() bool { return h.host.OpenedAhead() == 1 })
	found, err := filepath.Glob(filepath.Join(dir, "run", "spare*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v are ready, %v", found, err)
	}
	return filepath.Base(found[0])
}

func TestTabsThatWereOpenedAheadAreTheirSessions(t *testing.T) {
	t.Parallel()
	ctx, dir := browsertest.Context(t), place(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>Bank</title><style>body{margin:0}input{display:block;border:0;width:400px;height:60px;font:40px monospace}</style>
		<input id=word aria-label=Word><p id=echo></p><button onclick="echo.textContent = innerWidth + ' is ' + word.value">Echo</button><button onclick="alert('so')">Ask</button>`)
	}))
	t.Cleanup(site.Close)
	before, runOut := stocked(t, dir, site)
	ready(t, before, dir)

	s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL, Viewport: &session.Viewport{Width: 640, Height: 480}})
	if err != nil || before.host.OpenedAhead() != 0 {
		t.Fatalf("%v; %d are still ready", err, before.host.OpenedAhead())
	}
	if _, _, err := s.Fill(ctx, []session.Field{{Locator: page.Locator{Label: "Word"}, Credential: "mine"}}, testwait.Limit()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Click(ctx, page.Locator{Text: "Echo"}, page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	if outline, err := s.Snapshot(ctx, page.SnapshotOptions{}); err != nil || !strings.Contains(outline.Text, "640 is ‹hidden›") {
		t.Errorf("%s, %v", outline.Text, err)
	}
	if shows(ctx, t, s) {
		t.Error("the picture shows the field")
	}
	if _, _, err := s.Click(ctx, page.Locator{Text: "Ask"}, page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the news of the dialog", func() bool {
		events, _ := before.feed.Since(0, 10)
		return len(events) == 2 && events[1].Type == "session."+page.SurpriseQuestion
	})
	if _, err := s.Answer(ctx, true, secret.Text{}); err != nil {
		t.Fatal(err)
	}

	runOut() // what is being started would not die with the host here
	before.crash()
	after := moveWith(t, dir, site, session.Options{}, keeper{"127.0.0.1"})
	if found, err := after.host.Recover(ctx); err != nil || len(found.Reconnected) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	again, err := after.host.Active()
	if err != nil || again.ID() != s.ID() || shows(ctx, t, again) {
		t.Errorf("%v: another session, or its picture shows the field", err)
	}
}

func TestTabsOfABrowserThatDiesUnusedAreLetGoOf(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx, site, dir := browsertest.Context(t), browsertest.Site(t), place(t)
	h, _ := stocked(t, dir, site)
	dead := ready(t, h, dir)
	if err := syscall.Kill(browsertest.BrowserOf(dead), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the end of its tabs", func() bool { return h.host.OpenedAhead() == 0 })
	if _, err := h.host.Start(ctx, session.StartOptions{URL: site.URL}); err != nil {
		t.Error(err)
	}
}
