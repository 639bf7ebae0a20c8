package local_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// share starts a browser for several contexts, and ends it after the test.
func share(t *testing.T, policy egress.Policy) browser.Shared {
	t.Helper()
	run := shortDir(t)
	s, err := local.New(run, 1, nil).Share(browsertest.Context(t), browser.Spec{
		ID: "oneshot_shared-1", KeepUntil: testwait.Late(), Policy: policy,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { browsertest.End(t, local.New(run, 1<<40, nil), s.Ref()) })
	return s
}

// guest is a context of a shared browser with its tab.
type guest struct {
	inst browser.Roommate
	tabs *page.Tabs
	tab  *page.Tab

	mu     sync.Mutex
	blocks []egress.Block
}

func (g *guest) refused() []egress.Block {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]egress.Block{}, g.blocks...)
}

func move(t *testing.T, s browser.Shared) *guest {
	t.Helper()
	ctx := browsertest.Context(t)
	g := &guest{}
	var err error
	if g.inst, err = s.Context(ctx); err != nil {
		t.Fatal(err)
	}
	g.tabs, err = page.Open(ctx, g.inst, &page.Options{Unattended: true, OnBlock: func(b egress.Block) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.blocks = append(g.blocks, b)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.tabs.Close)
	if g.tab, err = g.tabs.Front(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestContextsOfOneBrowserKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/set", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "who", Value: "first", Path: "/"}) //nolint:gosec // a test's
		_, _ = io.WriteString(w, `<title>set</title>`)
	})
	mux.HandleFunc("/see", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `<title>%s</title>`, r.Header.Get("Cookie"))
	})
	mux.HandleFunc("/asks", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<title>asks</title><script>alert(1); document.title = confirm("go on?") + " " + prompt("who?")</script>`)
	})
	mux.HandleFunc("/hostile", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `<title>hostile</title><img src="http://127.0.0.1:%s/">`, r.URL.Query().Get("port"))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:4443/", http.StatusFound)
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	s := share(t, browsertest.Policy(site))
	one, other := move(t, s), move(t, s)
	if one.inst.Lane() == other.inst.Lane() || one.inst.Ref().Context == other.inst.Ref().Context {
		t.Fatal("two contexts are the same")
	}
	open := func(g *guest, path string) page.Navigation {
		t.Helper()
		nav, err := g.tab.Navigate(ctx, site.URL+path, page.WaitLoad)
		if err != nil {
			t.Fatal(err)
		}
		return nav
	}
	open(one, "/set")
	if nav := open(other, "/see"); nav.Title != "" && nav.Title != site.URL+"/see" && nav.Title != "127.0.0.1" {
		t.Errorf("the other context has the cookie: %q", nav.Title)
	}
	if nav := open(one, "/see"); nav.Title != "who=first" {
		t.Errorf("its own context has %q", nav.Title)
	}
	if nav := open(one, "/asks"); nav.Title != "false null" {
		t.Errorf("dialogs that nobody reads ended as %q", nav.Title)
	}

	open(one, "/hostile?port=81")
	testwait.For(t, "the refusal", func() bool { return len(one.refused()) > 0 })
	if b := one.refused()[0]; b.Port != 81 || b.Lane != one.inst.Lane() {
		t.Errorf("the refusal is %+v", b)
	}
	if _, err := other.tab.Navigate(ctx, site.URL+"/away", page.WaitLoad); fault.Of(err).Data["host"] != "127.0.0.1" || len(other.refused()) != 1 {
		t.Errorf("a redirect to a refused address gave %v and %+v", err, other.refused())
	}
	if got := one.refused(); len(got) != 1 {
		t.Errorf("a neighbour's refusal was told: %+v", got)
	}
}

func TestAContextThatEndsTakesItsConnectionsWithIt(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newBusySite(t)
	s := share(t, browsertest.Policy(site.Server))
	gone, stays := move(t, s), move(t, s)
	for _, g := range []*guest{gone, stays} {
		if _, err := g.tab.Navigate(ctx, site.URL+"/", page.WaitLoad); err != nil {
			t.Fatal(err)
		}
	}
	testwait.For(t, "both WebSockets", func() bool { return site.open.Load() == 2 })
	gone.tabs.Close()
	if err := gone.inst.End(ctx); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "one WebSocket to end", func() bool { return site.open.Load() == 1 })
	if _, err := stays.tab.Here(ctx); err != nil {
		t.Errorf("the neighbour was disturbed: %v", err)
	}
	stays.tabs.Close()
	if err := s.End(ctx); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
}

func TestAPolicyHoldsOnLanesThatAreOpenAlready(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := browsertest.Site(t)
	s := share(t, browsertest.Policy(site))
	g := move(t, s)
	if _, err := g.tab.Navigate(ctx, site.URL+"/", page.WaitDOM); err != nil {
		t.Fatal(err)
	}
	if err := g.inst.SetPolicy(ctx, egress.Policy{BlockPrivate: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.tab.Navigate(ctx, site.URL+"/", page.WaitDOM); fault.Of(err).Code != fault.BlockedTarget {
		t.Errorf("got %v", err)
	}
}
