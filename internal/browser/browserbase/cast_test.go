package browserbase_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func TestPicturesGoOnAfterALostLine(t *testing.T) {
	t.Parallel()
	s, ctx := cloud(t, nil), browsertest.Context(t)
	p := provider(t, s, nil)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><title>moving</title><h1 id=n>0</h1><script>setInterval(() => { n.textContent++ }, 50)</script>`)
	}))
	t.Cleanup(site.Close)
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_cast-1"})
	if err != nil {
		t.Fatal(err)
	}
	var recipes page.Recipes
	for round := range 3 {
		tabs, err := page.Open(ctx, inst, &page.Options{Recipes: recipes})
		if err != nil {
			t.Fatal(err)
		}
		frames := make(chan page.Frame, 100)
		cast := tabs.Cast(page.CastOptions{MaxWidth: 400, MaxHeight: 300, Quality: 40}, func(f page.Frame) {
			select {
			case frames <- f:
			default:
			}
		})
		if round == 0 {
			tab, err := tabs.Front(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tab.Navigate(ctx, site.URL, page.WaitLoad); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			select {
			case f := <-frames:
				cast.Ack(ctx, f.Number)
			case <-testwait.Over():
				t.Fatalf("round %d: no picture", round)
			}
		}
		recipes = tabs.Recipes()
		cast.Close()
		_ = inst.Conn().Close()
		tabs.Close()
		if inst, err = p.Reconnect(ctx, inst.Ref()); err != nil {
			t.Fatal(err)
		}
	}
	if err := inst.End(ctx); err != nil {
		t.Fatal(err)
	}
}
