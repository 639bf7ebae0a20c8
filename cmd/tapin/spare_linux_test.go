package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
)

// spares are the browsers that were started before anybody asked, whosever they are now.
func (w *world) spares() []string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.home, "run", "spare_*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// fromStock starts a session once a browser is ready for it, and tells which one it
// was given.
func (w *world) fromStock() (session, spare string) {
	w.t.Helper()
	w.within("a spare browser", func() bool {
		figures := w.stream("agent", "/metrics").Body
		defer func() { _ = figures.Close() }()
		raw, err := io.ReadAll(figures)
		return err == nil && strings.Contains(string(raw), "\ntapin_browsers_ready 1\n")
	})
	session = w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login?round=1", "screenshot": false}).text("session_id")
	record, err := os.ReadFile(filepath.Join(w.home, "sessions", session+".json"))
	if err != nil {
		w.t.Fatal(err)
	}
	spares := w.spares()
	its := slices.IndexFunc(spares, func(dir string) bool { return strings.Contains(string(record), filepath.Base(dir)) })
	if its < 0 {
		w.t.Fatalf("the session has none of %v", spares)
	}
	return session, spares[its]
}

func TestASessionFromThePoolOutlivesASidecarAsAnyOther(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	w := newWorld(t, "pool.warm=1", "browser_tools.enabled=false")
	w.env = nil // as it is without a setting
	w.up()
	session, mine := w.fromStock()
	w.within("the next spare browser", func() bool { return len(w.spares()) == 2 })
	before := w.pids("sidecar")
	w.kill(before...)
	w.serving(before...)
	was, _ := w.site.loaded("1")
	if got := w.must("agent", "GET", "/session/status", nil); got.text("session_id") != session {
		t.Errorf("after the kill: %v", got.body)
	}
	var now []string
	defer func() {
		if !t.Failed() {
			return
		}
		for _, dir := range now {
			left, err := os.ReadDir(dir)
			t.Logf("of the session: %t; %s holds %v, %v", dir == mine, filepath.Base(dir), left, err)
		}
	}()
	w.within("a spare browser of the new sidecar's own", func() bool {
		now = w.spares()
		return len(now) == 2 && (now[0] == mine) != (now[1] == mine)
	})
	w.must("agent", "POST", "/session/reload", map[string]any{"screenshot": false})
	if now, _ := w.site.loaded("1"); now != was+1 {
		t.Errorf("the page was loaded %d times, then %d", was, now)
	}
	if out, err := w.tapin("down"); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	w.within("the end of everything", func() bool { return len(w.spares())+len(w.pids("browser"))+len(w.holders()) == 0 })
}

func TestTheFirstSessionFindsABrowserAndNoSecondOneIsStarted(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	w := newWorld(t, "browser_tools.enabled=false")
	w.env = nil // as it is without a setting
	w.up()
	session, mine := w.fromStock()
	before := w.pids("sidecar")
	w.kill(before...)
	w.serving(before...)
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(100 * time.Millisecond) { // short: longer than a second browser would take to come, and a slow one is only missed
		if now := w.spares(); len(now) != 1 || now[0] != mine {
			t.Fatalf("beside a session that goes on: %v", now)
		}
	}
	if got := w.must("agent", "GET", "/session/status", nil); got.text("session_id") != session {
		t.Errorf("after the kill: %v", got.body)
	}
}
