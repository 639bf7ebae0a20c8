package oneshot

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/endpoint"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// A browser elsewhere has no guard of ours at its network. What is left are the
// addresses as they are written: at the door, for each request of the page and
// its frames, and at the end.
func TestABrowserElsewhereIsJudgedByItsAddresses(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	var reached atomic.Int32
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer canary.Close()
	mux := http.NewServeMux()
	html(mux, "/", `<title>Elsewhere</title><p>plain`)
	html(mux, "/parts", fmt.Sprintf(`<title>parts</title><p>text<img src=%q><iframe srcdoc='<img src=%q>'></iframe><script>fetch(%q).catch(() => {})</script>`, canary.URL, canary.URL, canary.URL))
	mux.Handle("/to", http.RedirectHandler(canary.URL, http.StatusFound))
	html(mux, "/script", fmt.Sprintf(`<script>location = %q</script>`, canary.URL))
	mux.HandleFunc("/locked", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "no")
	})
	site := httptest.NewServer(mux)
	defer site.Close()
	provider, err := endpoint.New(secret.New(browsertest.Chromium(t).String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Deps{Provider: func() (browser.Provider, error) { return provider, nil }}, &Options{
		Warm: 2, Policy: egress.Policy{BlockPrivate: true, Allow: []string{strings.TrimPrefix(site.URL, "http://")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	r.Begin()
	read := func(path string) (Extract, error) {
		return r.Extract(ctx, ExtractCall{Call: Call{URL: site.URL + path}})
	}
	if got, err := read("/"); err != nil || got.Title != "Elsewhere" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := read("/parts"); err != nil || len(got.Blocked) != 1 || got.Blocked[0].Rule != "loopback" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, path := range []string{"/to", "/script"} {
		_, err := read(path)
		if f := fault.Of(err); f == nil || f.Code != fault.BlockedTarget || f.Data["rule"] != "loopback" {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err = read("/locked")
	_ = wantCode(t, err, fault.NavigationFailed)
	if n := reached.Load(); n > 0 {
		t.Errorf("the canary was reached %d times", n)
	}
	if n := r.pool.readyNow(); n != 0 {
		t.Errorf("%d browsers elsewhere wait ready: they cost", n)
	}
}
