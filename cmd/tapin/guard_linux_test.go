package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/guard"
)

// planted is a world in which what runs can be made to panic.
type planted struct {
	*world
	folder string
}

func newPlanted(t *testing.T) *planted {
	p := &planted{world: newWorld(t, "lan=watch"), folder: t.TempDir()}
	p.env = append(p.env, plantFolder+"="+p.folder)
	return p
}

func (p *planted) order(what string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, what), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// seen are the rooms that have begun.
func (p *planted) seen() (rooms []string) {
	files, _ := filepath.Glob(filepath.Join(p.folder, "seen *"))
	for _, f := range files {
		rooms = append(rooms, strings.TrimPrefix(filepath.Base(f), "seen "))
	}
	return rooms
}

// troubles is the one list, by what does not work.
func (p *planted) troubles() map[string]string {
	all := map[string]string{}
	for _, one := range p.must("agent", "GET", "/health", nil).body["troubles"].([]any) {
		t := one.(map[string]any)
		all[t["what"].(string)] = t["state"].(string)
	}
	return all
}

// A panic in every background room of both processes, all while a hand-off is
// under way; then one in what says who has the wheel.
func TestEveryRoomFallsAloneAndTheLeaseStopsTheProcess(t *testing.T) {
	t.Parallel()
	p := newPlanted(t)
	p.up()
	daemon, sidecar := p.pids("daemon"), p.pids("sidecar")
	p.must("agent", "POST", "/session/start", map[string]any{"url": p.site.URL + "/login", "screenshot": false})
	id := p.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"}).text("handoff_id")
	rooms := p.seen()
	if len(rooms) < 10 {
		t.Fatalf("only %q have begun", rooms)
	}
	for _, room := range rooms {
		p.order("room " + room)
	}
	fell := map[string]bool{}
	p.within("the fall of every room that still runs", func() bool {
		for what := range p.troubles() {
			fell[what] = true
		}
		reports, _ := guard.List(p.home)
		for _, r := range reports {
			fell[r.Room] = true
		}
		left, _ := filepath.Glob(filepath.Join(p.folder, "room *"))
		for _, file := range left {
			// What has nothing to do in this world has ended by itself.
			if !strings.HasSuffix(file, ".struck") && !p.idle(strings.TrimPrefix(filepath.Base(file), "room ")) {
				return false
			}
		}
		return len(fell) >= 8
	})
	t.Logf("%d rooms began, %d fell: %v", len(rooms), len(fell), fell)
	if over := p.must("owner", "POST", "/handoff/"+id+"/finish", map[string]any{}); over.text("status") != "FINISHED" {
		t.Fatalf("the hand-off ended as %v", over.body)
	}
	p.must("agent", "POST", "/session/reload", map[string]any{"screenshot": false})
	p.must("owner", "GET", "/analytics", nil)
	p.within("every room", func() bool { return len(p.troubles()) == 0 })
	if got := p.must("agent", "GET", "/health", nil); got.text("status") != "ok" {
		t.Errorf("then health says %v", got.body)
	}
	if d, s := p.pids("daemon"), p.pids("sidecar"); len(d) != 1 || d[0] != daemon[0] || len(s) != 1 || s[0] != sidecar[0] {
		t.Fatalf("daemon %v, sidecar %v; before %v and %v", d, s, daemon, sidecar)
	}
	for _, r := range reportsOf(t, p.home) {
		if r.Stopped || len(r.Stack) == 0 || r.Version == "" {
			t.Errorf("a report: %+v", r)
		}
	}

	next := p.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"}).text("handoff_id")
	p.order("at lease")
	_, _ = p.try("agent", "POST", "/session/reload", map[string]any{"screenshot": false}, "") // whoever asks meets it
	p.serving(sidecar...)
	if got := p.must("agent", "GET", "/handoff/"+next, nil); got.text("status") != "RUNNING" {
		t.Fatalf("the hand-off goes on as %v", got.body)
	}
	if got := p.ask("agent", "POST", "/session/reload", map[string]any{"screenshot": false}); got.text("error") != "HUMAN_IN_CONTROL" {
		t.Fatalf("the agent meanwhile: %d %v", got.code, got.body)
	}
	if over := p.must("owner", "POST", "/handoff/"+next+"/finish", map[string]any{}); over.text("status") != "FINISHED" {
		t.Fatalf("the hand-off ended as %v", over.body)
	}
	if last := reportsOf(t, p.home)[0]; last.Room != "lease" || !last.Stopped {
		t.Errorf("the newest report: %+v", last)
	}
	out, err := p.tapin("logs", "--crash")
	if err != nil || !strings.Contains(out, "lease") || !strings.Contains(out, "planted by a test") || strings.Contains(out, p.site.URL) {
		t.Errorf("logs --crash: %v\n%s", err, out)
	}
}

// idle reports whether a room has nothing to do in this world, and has ended.
func (p *planted) idle(room string) bool {
	switch room {
	case guard.LaterWork, guard.Tunnel, guard.ChatNews, guard.Spares, guard.Nearby, guard.Discovered, guard.Sweeps, guard.RunSweeps, guard.WakeNews, guard.Wakes:
		return true
	}
	return false
}

func reportsOf(t *testing.T, home string) []guard.Kept {
	t.Helper()
	all, err := guard.List(home)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	return all
}

// A room that takes the process down as nothing can prevent is left out by the
// start after next, and everything else serves.
func TestACrashLoopLeavesOutWhatCrashes(t *testing.T) {
	t.Parallel()
	p := newPlanted(t)
	p.order("read figures.json")
	p.up() // three sidecars die of it
	p.within("the start without the figures", func() bool {
		got, err := p.try("agent", "GET", "/health", nil, "")
		return err == nil && got.ok() && p.troubles()[guard.Figures] == "left_out"
	})
	if got := p.must("agent", "GET", "/health", nil); got.text("status") != "degraded" {
		t.Errorf("health says %v", got.body)
	}
	if got := p.ask("owner", "GET", "/analytics", nil); got.text("error") != "DISABLED" || !strings.Contains(got.text("details"), "left out") {
		t.Errorf("the figures: %d %v", got.code, got.body)
	}
	p.must("agent", "POST", "/session/start", map[string]any{"url": p.site.URL + "/login", "screenshot": false})
	id := p.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"}).text("handoff_id")
	if over := p.must("owner", "POST", "/handoff/"+id+"/finish", map[string]any{}); over.text("status") != "FINISHED" {
		t.Fatalf("the hand-off ended as %v", over.body)
	}
	reports := reportsOf(t, p.home)
	if len(reports) != 3 || reports[0].Room != guard.Figures || !reports[0].Stopped || !strings.HasPrefix(reports[0].Cause, "sync: unlock of unlocked mutex") {
		t.Errorf("%d reports, the newest: %+v", len(reports), reports[0])
	}
	for args, want := range map[string]string{"doctor": "is left out", "status": "is left out", "logs --crash": "figures"} {
		out, err := p.tapin(strings.Fields(args)...)
		if err != nil && args != "doctor" || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	if err := os.Remove(filepath.Join(p.folder, "read figures.json")); err != nil {
		t.Fatal(err)
	}
	if out, _ := p.tapin("doctor", "--fix", "--yes"); !strings.Contains(out, "tries everything again") {
		t.Errorf("doctor --fix:\n%s", out)
	}
	if out, err := p.tapin("down"); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	p.up()
	p.must("owner", "GET", "/analytics", nil)
	if got := p.troubles(); len(got) != 0 {
		t.Errorf("after doctor --fix: %v", got)
	}
}
