package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestASiteAsksAgainAfterARestart is a home that goes on: a login that the agent
// calls off, tapin ended and started, and the same login again, which a person
// finishes. Then nothing has died of it, and nothing dies at the next start.
func TestASiteAsksAgainAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	login := func(who, how string) {
		w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login", "screenshot": false})
		id := w.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"}).text("handoff_id")
		w.must(who, "POST", "/handoff/"+id+"/"+how, map[string]any{})
		w.must("agent", "POST", "/session/stop", map[string]any{})
	}
	w.up()
	login("agent", "cancel")
	if out, err := w.tapin("down"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.up()
	before := w.pids("sidecar")
	login("owner", "finish")
	figures := func(when string) {
		t.Helper()
		of, _ := w.must("owner", "GET", "/analytics", nil).body["handoffs"].(map[string]any)
		if of["asked"] != 2.0 || of["abandoned"] != 1.0 || of["unblocked"] != 1.0 {
			t.Errorf("%s the figures say %v", when, of)
		}
		if got := w.must("agent", "GET", "/health", nil); got.text("status") != "ok" {
			t.Errorf("%s it says of itself: %v", when, got.body)
		}
	}
	figures("afterwards")
	if now := w.pids("sidecar"); !slices.Equal(now, before) {
		t.Errorf("the sidecar %v died: %s", before, w.logs())
	}
	w.kill(before...)
	w.serving(before...)
	figures("after a kill")
	if out, err := w.tapin("down"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.up()
	figures("after another restart")
	for _, name := range []string{"daemon.log", "sidecar.log"} {
		raw, err := os.ReadFile(filepath.Join(w.home, "logs", name))
		if err != nil || strings.Contains(string(raw), "panic") {
			t.Errorf("%s: %v\n%s", name, err, raw)
		}
	}
	if reports := w.crashes(); len(reports) > 0 {
		t.Errorf("there are crash reports: %v", reports)
	}
}

// crashes are the reports of processes that died by themselves: those that a
// test killed are told apart.
func (w *world) crashes() (found []string) {
	w.t.Helper()
	all, _ := filepath.Glob(filepath.Join(w.home, "crashes", "*"))
	for _, file := range all {
		if raw, err := os.ReadFile(file); err == nil && !strings.Contains(string(raw), "killed by SIGKILL") {
			found = append(found, string(raw))
		}
	}
	return found
}
