package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"tapin/internal/browser/browsertest"
	"testing"
	"time"
)

// rewind puts a time in a record on the disk back, as if it had passed.
func (w *world) rewind(file, field string, to time.Time) {
	w.t.Helper()
	file = filepath.Join(w.home, file)
	raw, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(raw, &record); err != nil {
		w.t.Fatal(err)
	}
	if record[field] == nil {
		w.t.Fatalf("the record has no %s: %s", field, raw)
	}
	record[field] = to.UTC()
	if raw, err = json.Marshal(record); err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// age makes the record of a session say that its last use is long past, as it
// is when a person has worked for a while, or the machine was off.
func (w *world) age(session string) {
	w.t.Helper()
	w.rewind(filepath.Join("sessions", session+".json"), "last_used_at", time.Now().Add(-5*time.Minute))
}

func TestAHandoffWhoseTimePassesDuringAnOutageEndsAsItShould(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"close", "return"} {
		for _, browser := range []string{"lives on", "is gone too"} {
			t.Run(way+", the browser "+browser, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.up()
				session := w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login", "context": "demo", "screenshot": false}).text("session_id")
				begun := w.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login", "on_timeout": way})
				id := begun.text("handoff_id")
				w.kill(append(w.pids("daemon"), w.pids("sidecar")...)...)
				if browser == "is gone too" {
					w.kill(w.pids("browser")...)
				}
				w.age(session)
				deadline := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
				w.rewind(filepath.Join("handoffs", id, "meta.json"), "deadline", deadline)
				w.up()
				var over answer
				w.within("the end of the hand-off", func() bool {
					over = w.must("agent", "GET", "/handoff/"+id, nil)
					return over.text("status") != "RUNNING"
				})
				if over.text("status") != "TIMED_OUT" || over.text("deadline") != deadline.Format(time.RFC3339) {
					t.Fatalf("it is %v", over.body)
				}
				todos := func() int { return len(w.must("agent", "GET", "/todos", nil).body["todos"].([]any)) }
				kept := way == "return" && browser == "lives on"
				if !kept { // it is written after the end is
					w.within("the to-do", func() bool { return todos() > 0 })
				}
				active := w.must("agent", "GET", "/session/status", nil).body["active"] == true
				if active != kept || kept && todos() > 0 {
					t.Errorf("the session is there: %v, and there are %d to-dos", active, todos())
				} else if kept {
					w.must("agent", "POST", "/session/reload", map[string]any{"screenshot": false})
				} else if strings.Contains(over.text("resume_hint"), "you have the wheel") {
					t.Errorf("the agent is told: %s", over.text("resume_hint"))
				}
				if saved := over.body["context_saved"]; way == "close" && browser == "lives on" && saved != true {
					t.Errorf("the login was saved: %v", saved)
				}
			})
		}
	}
}

func TestASidecarThatIsKilledIdleClosesItsSession(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	w := newWorld(t)
	w.up()
	session := w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login", "context": "demo", "screenshot": false}).text("session_id")
	browsers := append(w.holders(), w.pids("browser")...)
	before := w.pids("sidecar")
	// The daemon must not be quicker than the passing of five minutes.
	daemon := w.pids("daemon")[0]
	if err := syscall.Kill(daemon, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.kill(before...)
	w.age(session)
	if err := syscall.Kill(daemon, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.serving(before...)
	if got := w.must("agent", "GET", "/session/status", nil); got.body["active"] != false {
		t.Errorf("the session is %v", got.body)
	}
	for _, pid := range browsers {
		w.within("the end of the browser", func() bool {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
		})
	}
	if got := w.must("agent", "GET", "/contexts/demo", nil); got.body["last_used"] == nil {
		t.Errorf("the login was not saved: %v", got.body)
	}
	w.must("agent", "POST", "/session/start", map[string]any{"context": "demo", "screenshot": false})
}

func TestASidecarThatIsKilledInAHandoffGoesOnWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	session := w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login?round=1", "screenshot": false}).text("session_id")
	begun := w.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"})
	id := begun.text("handoff_id")
	w.must("owner", "POST", "/handoff/"+id+"/type", map[string]any{"text": "half"})
	daemon, before := w.pids("daemon")[0], w.pids("sidecar")
	if err := syscall.Kill(daemon, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.kill(before...)
	w.age(session) // the agent has waited for long
	if err := syscall.Kill(daemon, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.serving(before...)
	now := w.must("agent", "GET", "/handoff/"+id, nil)
	if now.text("status") != "RUNNING" || now.text("deadline") != begun.text("deadline") || now.text("session_id") != session || now.body["generation"] != float64(1) {
		t.Fatalf("it is %v and was %v", now.body, begun.body)
	}
	waited := make(chan answer, 1)
	go func() {
		got, _ := w.try("agent", "GET", "/handoff/"+id+"?after="+fmt.Sprint(now.body["version"])+"&wait_ms=50000", nil, "")
		waited <- got
	}()
	w.must("owner", "POST", "/handoff/"+id+"/type", map[string]any{"text": "way"})
	w.within("the page's word", func() bool {
		_, value := w.site.field()
		return value == "halfway"
	})
	w.must("owner", "POST", "/handoff/"+id+"/finish", map[string]any{})
	if got := <-waited; got.text("status") != "FINISHED" {
		t.Errorf("the agent, which waited, heard %v", got.body)
	}
	if times, _ := w.site.loaded("1"); times != 1 {
		t.Errorf("the page was loaded %d times", times)
	}
	w.must("agent", "POST", "/sessions/"+session+"/reload", map[string]any{"screenshot": false})
}

func TestAHandoffWaitsForTapinToComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	w.must("agent", "POST", "/session/start", map[string]any{"url": w.site.URL + "/login?round=1", "screenshot": false})
	begun := w.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login"})
	id, session := begun.text("handoff_id"), begun.text("session_id")
	if out, err := w.tapin("down"); err != nil {
		t.Fatalf("down: %v %s", err, out)
	}
	if left := processes(w.home); len(left) > 0 || len(w.holders()) > 0 {
		t.Fatalf("still there: %v", left)
	}
	w.up()
	now := w.must("agent", "GET", "/handoff/"+id, nil)
	if now.text("status") != "RUNNING" || now.body["parked"] != true {
		t.Fatalf("it is %v", now.body)
	}
	for _, path := range []string{"/sessions/" + session + "/reload", "/session/reload"} {
		if got := w.ask("agent", "POST", path, map[string]any{}); got.text("error") != "HUMAN_IN_CONTROL" && got.text("error") != "NO_SESSION" {
			t.Errorf("%s gave %v", path, got.body)
		}
	}
	if got := w.ask("owner", "POST", "/handoff/"+id+"/finish", map[string]any{}); got.text("error") != "HANDOFF_NOT_RUNNING" {
		t.Errorf("a parked one was finished: %v", got.body)
	}
	back := w.must("owner", "POST", "/handoff/"+id+"/resume", map[string]any{})
	if back.body["parked"] != false || back.body["generation"] != float64(2) {
		t.Errorf("it came back as %v", back.body)
	}
	if times, cookie := w.site.loaded("1"); times != 2 || !cookie {
		t.Errorf("the page was loaded %d times, with its cookie: %v", times, cookie)
	}
	w.must("owner", "POST", "/handoff/"+id+"/type", map[string]any{"text": "done"})
	w.must("owner", "POST", "/handoff/"+id+"/finish", map[string]any{})
	w.must("agent", "POST", "/sessions/"+session+"/reload", map[string]any{"screenshot": false})
}
