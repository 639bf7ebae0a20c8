package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestASessionFromThePoolOutlivesASidecarAsAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "pool.warm=1", "browser_tools.enabled=false")
	w.up()
	spares := func() (found []string) {
		all, err := filepath.Glob(filepath.Join(w.home, "run", "spare_*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var session, mine string
	w.within(time.Minute, "a session from the pool", func() bool {
		w.within(time.Minute, "a spare browser", func() bool { return len(spares()) > 0 && len(w.pids("browser")) > 0 })
		session = w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login?round=1", "screenshot": false}).text("session_id")
		record, err := os.ReadFile(filepath.Join(w.home, "sessions", session+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range spares() {
			if strings.Contains(string(record), filepath.Base(dir)) {
				mine = dir
				return true
			}
		}
		w.must("agent", "POST", "/session/stop", nil) // it was not ready yet
		return false
	})
	w.within(time.Minute, "the next spare browser", func() bool { return len(spares()) == 2 })
	before := w.pids("sidecar")
	w.kill(before...)
	w.serving(before...)
	was, _ := w.site.loaded("1")
	if got := w.must("agent", "GET", "/session/status", nil); got.text("session_id") != session {
		t.Errorf("after the kill: %v", got.body)
	}
	w.within(time.Minute, "a spare browser of the new sidecar's own", func() bool {
		now := spares()
		return len(now) == 2 && (now[0] == mine) != (now[1] == mine)
	})
	w.must("agent", "POST", "/session/reload", map[string]any{"screenshot": false})
	if now, _ := w.site.loaded("1"); now != was+1 {
		t.Errorf("the page was loaded %d times, then %d", was, now)
	}
	if out, err := w.tapin("down"); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	w.within(10*time.Second, "the end of everything", func() bool { return len(spares())+len(w.pids("browser"))+len(w.holders()) == 0 })
}
