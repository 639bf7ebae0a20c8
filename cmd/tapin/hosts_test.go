package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tapin/internal/testwait"
)

// Hosts are killed as an impatient person does it, in the middle of a call. What
// they worked on is the sidecar's, and whoever comes next finds it.
func TestAHostThatIsKilledInACallCostsNothing(t *testing.T) {
	t.Parallel()
	w := newDesk(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(rw, `<!doctype html><title>Form</title><label>Name <input></label><button onclick="document.title='Sent'">Send</button>`)
	}))
	first, second := w.agent(), w.agent()
	_, opened := first.do("browser_navigate", map[string]any{"url": w.site.URL})
	first.do("browser_type", map[string]any{"label": "Name", "text": "Ada"})
	if text, _ := second.do("browser_snapshot", nil); !strings.Contains(text, "Name = Ada") {
		t.Fatalf("the second host sees another page: %s", text)
	}

	// The first dies while it waits for the page.
	done := first.waiting("browser_wait_for", map[string]any{"text": "never comes", "wait_ms": 50_000})
	w.end(first.process.Pid)
	<-done
	testwait.For(t, "its call ended with it", func() bool { return !w.busy() })
	third := w.agent()
	for name, h := range map[string]*host{"the one that stayed": second, "the one that came": third} {
		_, now := h.do("browser_status", nil)
		text, _ := h.do("browser_snapshot", nil)
		if now["session_id"] != opened["session_id"] || now["driver"] != "agent" || !strings.Contains(text, "Name = Ada") {
			t.Errorf("%s finds %v: %s", name, now, text)
		}
	}

	// The second dies while it waits for a person.
	_, run := third.do("oc_task_run_start", map[string]any{"goal": "send the form"})
	_, over := second.do("oc_handoff_start", map[string]any{"reason": "other", "instruction": "Please send it.", "run_id": run["run_id"]})
	id := over["handoff_id"]
	done = second.waiting("oc_handoff_status", map[string]any{"handoff_id": id, "wait_ms": 50_000})
	w.end(second.process.Pid)
	<-done
	testwait.For(t, "its call ended with it", func() bool { return !w.busy() })
	fourth := w.agent()
	for _, h := range []*host{third, fourth} {
		if _, now := h.do("oc_handoff_status", map[string]any{"handoff_id": id}); now["status"] != "RUNNING" || now["session_id"] != opened["session_id"] {
			t.Errorf("the hand-off is %v", now)
		}
		h.refused("HUMAN_IN_CONTROL", "browser_click", map[string]any{"text": "Send"})
	}
	// It waits for whoever comes back, and for both alike.
	waits := third.waiting("oc_handoff_status", map[string]any{"handoff_id": id, "wait_ms": 50_000})
	person := w.person()
	person.do("browser_click", map[string]any{"text": "Send"})
	person.do("oc_handoff_finish", map[string]any{"handoff_id": id})
	if got := <-waits; got == nil || got.StructuredContent.(map[string]any)["status"] != "FINISHED" {
		t.Errorf("the one that waited was told %v", got)
	}
	text, now := fourth.do("oc_handoff_status", map[string]any{"handoff_id": id, "wait_ms": 50_000})
	if now["status"] != "FINISHED" || now["finished_by"] != "owner" || !strings.Contains(text, "Sent") {
		t.Errorf("the one that came back was told %v: %s", now, text)
	}
	if _, got := fourth.do("oc_task_run_get", map[string]any{"run_id": run["run_id"]}); len(got["evidence"].([]any)) != 1 {
		t.Errorf("the run has %v", got["evidence"])
	}
	if text, _ := fourth.do("browser_snapshot", nil); !strings.Contains(text, "Name = Ada") {
		t.Errorf("the page was not kept: %s", text)
	}
}
