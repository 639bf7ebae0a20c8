package endpoint_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/endpoint"
	"tapin/internal/page"
	"tapin/internal/secret"
)

func TestStateMovesBetweenContextsOfASharedBrowser(t *testing.T) {
	ctx := browsertest.Context(t)
	ws := browsertest.Chromium(t)
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/favicon.ico" { // the browser asks for that when it likes
			asked.Add(1)
		}
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "1"})
		w.Header().Set("Content-Type", "text/html")
	}))
	t.Cleanup(site.Close)
	other := strings.Replace(site.URL, "127.0.0.1", "localhost", 1)
	p, err := endpoint.New(secret.New(ws.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(id string) (browser.Instance, *page.Tabs) {
		inst, err := p.Create(ctx, browser.Spec{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = inst.End(ctx) })
		tabs, err := page.Open(ctx, inst, &page.Options{OnSurprise: func(s page.Surprise) {
			if s.Kind != page.SurpriseTabOpened || s.Tab == "" {
				t.Errorf("told of %+v", s)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tabs.Close)
		return inst, tabs
	}
	inst, tabs := open("ses_state-1")
	front, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{other, site.URL} {
		if _, err := front.Navigate(ctx, url+"/", page.WaitLoad); err != nil {
			t.Fatal(err)
		}
		for _, tab := range tabs.List() {
			browsertest.Attach(ctx, t, inst, target.ID(tab.ID())).Eval(ctx, t, "localStorage.setItem('k', location.host)")
		}
	}
	was := asked.Load()
	st, skipped, err := tabs.ReadState(ctx)
	if err != nil || len(skipped) > 0 || len(st.Origins) != 2 || len(st.Cookies) != 2 {
		t.Fatalf("read %d origins, %d cookies, %q, %v", len(st.Origins), len(st.Cookies), skipped, err)
	}
	_, next := open("ses_state-2")
	if got, err := next.Restore(ctx, st); err != nil || got.Keys != 2 || got.Cookies != 2 {
		t.Fatalf("restored %+v, %v", got, err)
	}
	again, skipped, err := next.ReadState(ctx)
	if err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	// In front there is nothing now, whose sessionStorage could be known.
	for i := range st.Origins {
		st.Origins[i].Session = nil
	}
	if diff := cmp.Diff(st, again, cmp.Transformer("reveal", func(s secret.Text) string { return s.Reveal() })); diff != "" {
		t.Error(diff)
	}
	if n := asked.Load() - was; n > 0 || len(tabs.List()) != 1 || len(next.List()) != 1 {
		t.Errorf("%d requests, %d and %d tabs", n, len(tabs.List()), len(next.List()))
	}
}
