package session_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/secret"
	"tapin/internal/session"
)

// told is all that an origin has, as text.
func told(c session.Captured) string {
	out := ""
	for _, each := range c.State.Cookies {
		out += each.Name + "=" + each.Value.Reveal() + ";"
	}
	for _, o := range c.State.Origins {
		for _, items := range [][]browser.Item{o.Local, o.Session} {
			for _, item := range items {
				out += item.Key.Reveal() + "=" + item.Value.Reveal()[:1] + ","
			}
			out += "|"
		}
	}
	return out
}

// The line to the browser is cut at every moment of an import, from before its
// first change until after its last.
func TestAnImportThatIsCutOffIsUndone(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("old"); err != nil {
			for i := range 20 {
				http.SetCookie(w, &http.Cookie{Name: fmt.Sprintf("old%d", i), Value: "1"})
			}
			http.SetCookie(w, &http.Cookie{Name: "old", Value: "1"})
		}
		_, _ = fmt.Fprint(w, `<!doctype html><title>t</title><script>
			if (!localStorage.length) { for (let i = 0; i < 20; i++) localStorage['old' + i] = '1'; sessionStorage.tab = '1' }</script>`)
	}))
	t.Cleanup(site.Close)
	ctx := browsertest.Context(t)
	dir := place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	capture := func() session.Captured {
		t.Helper()
		got, err := s.Capture(ctx, session.CaptureOptions{Origin: site.URL})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	was := capture()
	before := told(was)
	next := browser.OriginState{Origin: site.URL, Session: []browser.Item{}}
	cookies := []browser.Cookie{}
	for i := range 50 {
		next.Local = append(next.Local, browser.Item{Key: secret.New(fmt.Sprintf("new%d", i)), Value: secret.New("2")})
	}
	for i := range 40 {
		cookies = append(cookies, browser.Cookie{Name: fmt.Sprintf("new%d", i), Value: secret.New("2"), Domain: "127.0.0.1", Path: "/"})
	}
	apply := func() error {
		_, err := s.Apply(ctx, site.URL, cookies, next, session.ApplyOptions{})
		return err
	}
	restore := func() {
		t.Helper()
		had := was.State.Origins[0]
		had.Databases = nil
		if _, err := s.Apply(ctx, site.URL, was.State.Cookies, had, session.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		if now := told(capture()); now != before {
			t.Fatalf("restored there is\n%s\nwas\n%s", now, before)
		}
	}
	began := time.Now()
	if err := apply(); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(began)
	after := told(capture())
	restore()
	const moments = 16
	undone := 0
	for i := range moments {
		ended := make(chan error, 1)
		go func() { ended <- apply() }()
		select {
		case err = <-ended:
		case <-time.After(whole * time.Duration(i) / moments):
			h.host.Sever(s.ID())
			err = <-ended
		}
		switch now := told(capture()); { // which waits until the line is mended
		case err == nil && now == after:
			restore()
		case err != nil && now == before:
			undone++
		default:
			t.Fatalf("cut off at %d of %d (%v) there is\n%s\nwas\n%s", i, moments, err, now, before)
		}
	}
	if undone == 0 {
		t.Error("none was cut off")
	}
	t.Logf("of %d imports of %s %d were cut off and undone", moments, whole, undone)
	if _, err := os.Stat(filepath.Join(dir, "sessions", s.ID()+".undo")); err == nil {
		t.Error("what was there before is still kept")
	}
}
