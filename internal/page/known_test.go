package page_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/page"
)

// TestATabThatWaitsForASiteIsUsableAfterAReconnect: while a site leaves a
// navigation unanswered the browser keeps back everything that is for the page.
// A client that comes then has to get along without it.
func TestATabThatWaitsForASiteIsUsableAfterAReconnect(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	asked, answer := make(chan struct{}, 9), make(chan struct{})
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/fine": document(`<title>fine</title>`),
		"/never": func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-answer:
			}
		},
	})
	for n, from := range []string{"about:blank", s.URL + "/fine"} {
		tab := s.front(ctx, t)
		if n > 0 {
			if _, err := tab.Navigate(ctx, from, ""); err != nil {
				t.Fatal(err)
			}
		}
		leaving, leave := context.WithCancel(ctx)
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = tab.Navigate(leaving, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)+"/never", "")
		}()
		<-asked
		leave()
		<-left
		s.tabs.Close()
		_ = s.inst.Release()

		var err error
		s.provider = local.New(filepath.Dir(s.folder), uint64(n)+2, nil)
		if s.inst, err = s.provider.Reconnect(ctx, s.inst.Ref()); err != nil {
			t.Fatal(err)
		}
		if s.tabs, err = page.Open(ctx, s.inst, &page.Options{OnSurprise: s.hear}); err != nil {
			t.Fatal(err)
		}
		ends(t, "coming back from "+from, func() {
			if nav, err := s.front(ctx, t).Navigate(ctx, s.URL+"/fine", ""); err != nil || nav.Title != "fine" {
				t.Errorf("from %s: %+v, %v", from, nav, err)
			}
		})
	}
}
