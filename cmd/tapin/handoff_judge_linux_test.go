package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tapin/internal/store"
)

// judge looks whether the world is as it has to be.
func (g *game) judge() {
	g.t.Helper()
	if err := g.whole(true); err != nil {
		g.fail("%v", err)
	}
	mine := g.must("agent", "GET", "/handoffs?run_id="+g.run, nil).body["handoffs"].([]any)
	if len(mine) > 1 || len(mine) == 0 && g.start != nil && g.start.ok() {
		g.fail("there are %d hand-offs, the start was answered with %+v", len(mine), g.start)
	}
	if len(mine) == 0 {
		g.goesOn() // it never was: the agent has the wheel
		g.tidy()
		return
	}
	h := answer{200, mine[0].(map[string]any)}
	if g.start == nil || !g.start.ok() {
		g.start = &h
	}
	if g.moment == inTimeout {
		g.within("the end by the clock", func() bool {
			h = g.must("agent", "GET", "/handoff/"+g.id(), nil)
			return h.text("status") != "RUNNING"
		})
	}
	if h.text("session_id") != g.session || !g.isPaused() && (h.text("deadline") != g.start.text("deadline") || h.body["parked"] == true) {
		g.fail("it is %v and was %v", h.body, g.start.body)
	}
	switch status := h.text("status"); {
	case g.end != nil && g.end.ok() && status != g.end.text("status"):
		g.fail("it is %s, and was answered as %s", status, g.end.text("status"))
	case status == "RUNNING":
		if g.wasParked = h.body["parked"] == true || g.isPaused() && g.moment != inPark; g.wasParked {
			g.comesBack(h)
		} else {
			g.stillRuns()
		}
		h = g.must("owner", "POST", "/handoff/"+g.id()+"/finish", map[string]any{})
		if h.text("status") != "FINISHED" {
			g.fail("finished now it is %v", h.body)
		}
	case status != g.ending:
		g.fail("it is %s: %v", status, h.body)
	}
	g.once(h)
	if status := h.text("status"); status == "TIMED_OUT" || g.moment == inAbort && status == "CANCELLED" {
		g.within("the end of the session", func() bool {
			return g.must("agent", "GET", "/session/status", nil).body["active"] == false
		})
	} else {
		g.goesOn()
	}
	g.tidy()
}

// isPaused reports whether the person of this round comes back later.
func (g *game) isPaused() bool {
	return slices.Contains([]string{inPark, parked, inResume, resumed}, g.moment)
}

// comesBack looks at a hand-off that was parked: it waits, and when its person
// is there, the page comes back with what was saved.
func (g *game) comesBack(h answer) {
	g.t.Helper()
	isParked := h.body["parked"] == true
	if want := g.moment == inPark || g.moment == parked; g.pause != nil && g.pause.ok() && isParked != want {
		g.fail("it was answered as parked %v, and is %v", want, h.body)
	}
	next := map[string]any{"url": g.site.URL, "screenshot": false}
	if got := g.ask("agent", "POST", "/sessions/"+g.session+"/navigate", next); got.text("error") != "HUMAN_IN_CONTROL" {
		g.fail("the agent got %d %v", got.code, got.body)
	}
	if isParked {
		if got := g.must("owner", "POST", "/handoff/"+g.id()+"/resume", map[string]any{}); got.body["parked"] != false {
			g.fail("resumed now it is %v", got.body)
		}
	}
	now := g.must("agent", "GET", "/handoff/"+g.id(), nil)
	before, _ := g.start.body["generation"].(float64)
	if n, _ := now.body["generation"].(float64); n <= before || now.text("deadline") < g.start.text("deadline") {
		g.fail("it came back as %v", now.body)
	}
	if times, cookie := g.site.loaded(g.name); times < 2 || !cookie {
		g.fail("the page was loaded %d times, with its cookie: %v", times, cookie)
	}
	g.relay("z", "")
}

// stillRuns looks at a hand-off that survived: the agent is refused, and the
// person goes on where they were.
func (g *game) stillRuns() {
	g.t.Helper()
	if got := g.ask("agent", "POST", "/session/navigate", map[string]any{"url": g.site.URL, "screenshot": false}); got.text("error") != "HUMAN_IN_CONTROL" {
		g.fail("the agent got %d %v", got.code, got.body)
	}
	status := g.must("agent", "GET", "/session/status", nil)
	if status.text("handoff_id") != g.id() || status.body["url"] != nil {
		g.fail("the status is %v", status.body)
	}
	lost, _ := status.body["page_lost"].(bool)
	if lost != g.browser {
		g.fail("page_lost is %v, the browser was killed: %v", lost, g.browser)
	}
	if g.browser {
		if times, cookie := g.site.loaded(g.name); times != 2 || !cookie {
			g.fail("the page was loaded %d times, with its cookie: %v", times, cookie)
		}
		return
	}
	if times, _ := g.site.loaded(g.name); times != 1 {
		g.fail("the page was loaded %d times", times)
	}
	if g.typing != "" {
		// The same message, delivered again.
		again, err := g.try("owner", "POST", "/handoff/"+g.id()+"/type", map[string]any{"text": g.typing}, "k")
		if err != nil || !again.ok() && again.body["effect"] != "unknown" {
			g.fail("the text sent again got %+v, %v", again, err)
		}
	}
	before := g.load
	g.relay("z", g.typed)
	load, value := g.site.field()
	if before != "" && load != before {
		g.fail("it is not the same page")
	}
	middle := strings.TrimSuffix(strings.TrimPrefix(value, g.typed), "z")
	if !strings.HasPrefix(g.typing, middle) {
		g.fail("the field holds %q", value)
	}
}

// once looks for what must be there exactly once.
func (g *game) once(h answer) {
	g.t.Helper()
	want := map[string]int{"handoff.started": 1, "handoff." + strings.ToLower(h.text("status")): 1}
	if g.wasParked {
		want["handoff.parked"], want["handoff.resumed"] = 1, 1
	}
	for _, files := range []string{"handoffs/" + g.id() + "/events.jsonl", "events/*"} {
		got := map[string]int{}
		found, _ := filepath.Glob(filepath.Join(g.home, files))
		for _, file := range found {
			raw, _ := os.ReadFile(file)
			for line := range bytes.Lines(raw) {
				var e struct {
					Type  string
					ID    string
					Event struct{ Type, ID string }
				}
				_ = json.Unmarshal(line, &e)
				if e.ID == g.id() || e.Event.ID == g.id() {
					got[e.Type+e.Event.Type]++
				}
			}
		}
		if g.moment == inTimeout && got["handoff.reminder"] == 1 {
			delete(got, "handoff.reminder") // a third of a second was enough for it
		}
		if !maps.Equal(got, want) {
			g.fail("%s tells %v", files, got)
		}
	}
	evidence := g.must("agent", "GET", "/task-run/"+g.run, nil).body["evidence"].([]any)
	if finished := h.text("status") == "FINISHED"; finished != (len(evidence) == 1) {
		g.fail("it is %s, and the evidence is %v", h.text("status"), evidence)
	}
	todos := slices.DeleteFunc(g.must("owner", "GET", "/todos", nil).body["todos"].([]any), func(t any) bool { return t.(map[string]any)["handoff_id"] != g.id() })
	if timedOut := h.text("status") == "TIMED_OUT"; timedOut != (len(todos) == 1) || len(todos) > 1 {
		g.fail("it is %s, and the to-dos are %v", h.text("status"), todos)
	}
	if h.text("finished_by") == "agent" {
		g.quiet = append(g.quiet, g.id())
	} else {
		g.awaited = append(g.awaited, g.id())
	}
	now := g.must("agent", "GET", "/handoff/"+g.id(), nil)
	if g.end != nil && g.end.ok() && !sameRecord(now.body, g.end.body) {
		g.fail("it is %v and was answered as %v", now.body, g.end.body)
	}
}

func sameRecord(a, b map[string]any) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// goesOn looks whether the agent has the wheel, or can begin anew where the
// browser was killed under it.
func (g *game) goesOn() {
	g.t.Helper()
	next := map[string]any{"url": g.site.URL + "/on?round=on" + g.name, "screenshot": false}
	got := g.ask("agent", "POST", "/session/navigate", next)
	if g.browser && (got.text("error") == "NO_SESSION" || got.text("error") == "BROWSER_LOST") {
		g.within("the end of the session whose browser was killed", func() bool {
			return g.must("agent", "GET", "/session/status", nil).body["active"] == false
		})
		g.begin()
		got = g.ask("agent", "POST", "/session/navigate", next)
	}
	if !got.ok() || !strings.HasSuffix(got.text("url"), "/on?round=on"+g.name) {
		g.fail("the agent cannot go on: %d %v", got.code, got.body)
	}
}

// tidy looks for what nobody ends.
func (g *game) tidy() {
	g.t.Helper()
	sessions := len(g.must("agent", "GET", "/sessions", nil).body["sessions"].([]any))
	g.within("as many browsers as sessions", func() bool {
		folders, _ := os.ReadDir(filepath.Join(g.home, "run"))
		return len(g.pids("browser")) == sessions && len(g.holders()) == sessions && len(folders) == sessions
	})
	g.within("one sidecar and one daemon", func() bool { return len(g.pids("sidecar")) == 1 && len(g.pids("daemon")) == 1 })
	open, _ := os.ReadDir(filepath.Join(g.home, "handoffs", "open"))
	if len(open) != 0 {
		g.fail("hand-offs are not settled: %v", open)
	}
	// What this round tore the next lines mend, and there may have been none yet.
	tore := g.at != nil && g.at.Step == store.HalfWritten || g.start == nil || !g.start.ok()
	if err := g.whole(tore); err != nil {
		g.fail("afterwards %v", err)
	}
}
