package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tapin/internal/guard"
)

// planted is a world in which what runs can be made to panic.
type planted struct {
	*world
	folder string
}

func plantIn(t *testing.T, w *world) *planted {
	p := &planted{world: w, folder: t.TempDir()}
	p.env = append(p.env, plantFolder+"="+p.folder)
	return p
}

// everyRoom is a world in which each background room has something to do: an
// owner with a chat, a tunnel, an agent to be woken, a spare browser, neighbours.
func everyRoom(t *testing.T) *planted {
	t.Helper()
	k := newTalk(t, "lan=watch", "tunnel=cloudflared", "on_resume.webhook=http://127.0.0.1:9/")
	k.forgiven = "message is not modified" // a chat that begins anew may say the same again
	programs := t.TempDir()
	tunnel := "#!/bin/sh\nexit 1\n"                                                                     // which is started again and again
	if err := os.WriteFile(filepath.Join(programs, "cloudflared"), []byte(tunnel), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	k.env = append(k.env, "TAPIN_POOL_FOLLOW=1m", "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	return plantIn(t, k.world)
}

// namesOfRooms are all names that a room may have, as the guard declares them.
func namesOfRooms(t *testing.T) (names []string) {
	t.Helper()
	var decls []ast.Decl
	for _, name := range []string{"leftout.go", "names.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "internal", "guard", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, file.Decls...)
	}
	for _, d := range decls {
		consts, ok := d.(*ast.GenDecl)
		if !ok || consts.Tok != token.CONST {
			continue
		}
		for _, spec := range consts.Specs {
			for _, v := range spec.(*ast.ValueSpec).Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					name, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// noRooms are names that no goroutine of their own runs under, or not here.
var noRooms = map[string]string{
	guard.LeftOutFile: "the name of a file",
	guard.OneShots:    "runs in requests: each fails alone",
	guard.MCP:         "runs in requests: each fails alone",
	guard.Deadlines:   "each fires alone, and is planted by itself below",
	guard.LaterWork:   "runs only after a provider did not answer at the start",
}

func (p *planted) order(what string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, what), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
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
// under way; then one in a deadline, and one in what says who has the wheel.
func TestEveryRoomFallsAloneAndTheLeaseStopsTheProcess(t *testing.T) {
	t.Parallel()
	p := everyRoom(t)
	p.up()
	daemon, sidecar := p.pids("daemon"), p.pids("sidecar")
	p.must("agent", "POST", "/session/start", map[string]any{"url": p.site.URL + "/login", "screenshot": false})
	id := p.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"}).text("handoff_id")
	var rooms []string
	for _, name := range namesOfRooms(t) {
		if noRooms[name] == "" {
			rooms = append(rooms, name)
			p.order("room " + name)
		}
	}
	fell := map[string]bool{}
	p.within("the fall of every room", func() bool {
		reports, _ := guard.List(p.home)
		for _, r := range reports {
			fell[r.Room] = true
		}
		return !slices.ContainsFunc(rooms, func(name string) bool { return !fell[name] })
	})
	t.Logf("%d rooms fell: %v", len(fell), fell)
	if over := p.must("owner", "POST", "/handoff/"+id+"/finish", map[string]any{}); over.text("status") != "FINISHED" {
		t.Fatalf("the hand-off ended as %v", over.body)
	}
	p.must("agent", "POST", "/session/reload", map[string]any{"screenshot": false})
	p.within("every room", func() bool { return len(p.troubles()) == 0 })
	p.must("owner", "GET", "/analytics", nil)
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

	p.order("at " + guard.Deadlines)
	short := p.must("agent", "POST", "/handoff/start", map[string]any{"reason": "other", "timeout_ms": 1000, "on_timeout": "return"}).text("handoff_id")
	p.within("the end of a hand-off whose deadline panicked as it fired", func() bool {
		return p.must("agent", "GET", "/handoff/"+short, nil).text("status") == "TIMED_OUT"
	})
	if newest := reportsOf(t, p.home)[0]; newest.Room != guard.Deadlines || newest.Stopped {
		t.Errorf("the report of the deadline: %+v", newest)
	}

	next := p.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"}).text("handoff_id")
	p.order("at lease")
	_, _ = p.try("agent", "POST", "/session/reload", map[string]any{"screenshot": false}, "") // this request panics
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
	p := plantIn(t, newWorld(t))
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
	if len(reports) != 1 || reports[0].Times != 3 || reports[0].Room != guard.Figures || !reports[0].Stopped || !strings.HasPrefix(reports[0].Cause, "sync: unlock of unlocked mutex") {
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
	// The daemon itself has nobody who would hear what it dies of.
	daemon := p.pids("daemon")
	if err := syscall.Kill(daemon[0], syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	p.within("the end of the daemon", func() bool { return len(p.pids("daemon")) == 0 })
	out, err := p.tapin("logs", "--crash")
	if err != nil || !strings.Contains(out, "daemon, the process ended with it") {
		t.Errorf("logs --crash: %v\n%s", err, out)
	}
	if left, err := os.ReadFile(filepath.Join(p.home, "logs", "daemon.stderr")); err != nil || len(left) > 0 {
		t.Errorf("what it printed is still there: %v\n%s", err, left)
	}
}
