package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/testwait"
)

// What must never be found again: typed by the person, or set by the site.
const (
	typedUser   = "canary-user-5f2e"
	typedPass   = "canary-Pass-7c1d"
	cookieValue = "canary-cookie-9b40"
	storedValue = "canary-stored-2a86"
	addressPart = "canary-ticket-e017" // whoever drives sees the address; no record may have it
)

// demoLogin is a site with a login, as the checklist wants one.
func demoLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	in, err := r.Cookie("sid")
	switch {
	case r.URL.Path == "/login" && r.Method == http.MethodPost && r.FormValue("user") == typedUser && r.FormValue("pass") == typedPass:
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: cookieValue, HttpOnly: true, Path: "/"})
		http.Redirect(w, r, "/secure?ticket="+addressPart, http.StatusSeeOther)
	case r.URL.Path == "/login":
		_, _ = fmt.Fprint(w, `<!doctype html><title>Login Page</title><h1>Login</h1><form method=post>
<label>Username <input name=user></label><label>Password <input name=pass type=password></label><button>Log in</button></form>`)
	case r.URL.Path == "/secure" && err == nil && in.Value == cookieValue:
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Secure Area</title><h1>You logged in</h1><a href=/out>Log out</a><script>localStorage.theme='%s'</script>`, storedValue)
	case r.URL.Path == "/plain":
		_, _ = fmt.Fprint(w, `<!doctype html><title>Plain</title><label>Name <input></label><button onclick="document.querySelector('p').textContent='Saved'">Save</button>
<div style="position:relative;width:80px"><button id=covered>Covered</button><div id=over style="position:absolute;inset:0"></div></div><p></p>`)
	default:
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, "<!doctype html><title>No</title><p>Log in first")
	}
}

var mark = regexp.MustCompile(`\d{12}|\be\d+\b|(?:ses|hof)_\w+|"url":"[^"]*"`)

// usual does what agents do all day, and tells what it was answered.
func usual(h *host) string {
	h.w.t.Helper()
	var out strings.Builder
	for _, st := range []struct {
		tool      string
		arguments map[string]any
	}{
		{"browser_navigate", map[string]any{"url": h.w.site.URL + "/plain"}},
		{"browser_type", map[string]any{"label": "Name", "text": "Ada"}},
		{"browser_click", map[string]any{"text": "Save"}},
		{"browser_snapshot", nil},
		{"browser_click", map[string]any{"target": "#covered", "timeout_ms": 300}},
		{"browser_navigate", map[string]any{"url": h.w.site.URL + "/login"}},
	} {
		text, data, _ := h.try(st.tool, st.arguments)
		raw, err := json.Marshal(data)
		if err != nil {
			h.w.t.Fatal(err)
		}
		out.WriteString(mark.ReplaceAllString(text+string(raw), "…"))
	}
	return out.String()
}

const toAgent = "an answer to the agent"

// found lists the places in which a text is kept, the browser's own profile aside.
func (w *desk) found(text string) (places []string) {
	w.t.Helper()
	if strings.Contains(w.said.String(), text) {
		places = append(places, toAgent)
	}
	files := 0
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "run" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			files++
		}
		if strings.Contains(string(raw), text) {
			places = append(places, path)
		}
		return nil
	})
	if err != nil || files < 8 {
		w.t.Fatalf("%d files were looked at (%v)", files, err)
	}
	return places
}

func changed(record map[string]any) (fields []string) {
	list, _ := record["delta"].([]any)
	for _, one := range list {
		if c := one.(map[string]any); c["change"] == "changed" {
			fields = append(fields, c["field"].(string))
		}
	}
	return fields
}

// The checklist for hand-offs, step by step and by MCP alone: the agent over the
// streams of the real program, the person with the owner's token. Everything of
// tapin that can be killed is, at each stage.
func TestTheHandOffChecklistHoldsByMCPAlone(t *testing.T) {
	t.Parallel()
	w := newDesk(t, http.HandlerFunc(demoLogin))
	agent := w.agent()
	tools, err := agent.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, tool := range tools.Tools {
		documented[tool.Name] = tool.Description
	}
	for _, name := range []string{"oc_handoff_start", "oc_handoff_status", "oc_handoff_finish", "oc_handoff_cancel"} {
		if documented[name] == "" {
			t.Errorf("%s is not documented", name)
		}
	}

	// Without a hand-off nothing is different, and nothing is left.
	agent.do("browser_start", nil)
	before := usual(agent)
	if left, err := filepath.Glob(filepath.Join(w.home, "handoffs", "hof_*")); err != nil || len(left) > 0 {
		t.Errorf("there are hand-offs that nobody started: %v", left)
	}
	if strings.Contains(before, "handoff_id") {
		t.Errorf("there is a hand-off that nobody started: %s", before)
	}

	_, run := agent.do("oc_task_run_start", map[string]any{"goal": "verify a login by hand"})
	text, over := agent.do("oc_handoff_start", map[string]any{
		"reason": "login", "instruction": "Manually complete the demo login", "capture_screenshot": true, "run_id": run["run_id"],
	})
	id := over["handoff_id"]
	deadline, err := time.Parse(time.RFC3339, over["deadline"].(string))
	if err != nil || time.Until(deadline) > 10*time.Minute || time.Until(deadline) < 9*time.Minute {
		t.Errorf("the deadline is %v (%v)", over["deadline"], err)
	}
	for _, part := range []string{id.(string), "login", deadline.UTC().Format(time.RFC3339), "Manually complete the demo login"} {
		if strings.Contains(text, "\n") || !strings.Contains(text, part) {
			t.Errorf("it is not one line with %q: %s", part, text)
		}
	}
	if at := over["before"].(map[string]any); at["title"] != "Login Page" || at["dom_fingerprint"] == "" || at["screenshot_ref"] == nil {
		t.Errorf("before is %v", at)
	}
	agent.refused("HUMAN_IN_CONTROL", "browser_snapshot", nil)
	agent.refused("HANDOFF_ACTIVE", "oc_handoff_start", map[string]any{"reason": "login"})

	// The person types; everything of tapin is killed in the middle of it.
	person := w.person()
	person.do("browser_type", map[string]any{"label": "Username", "text": typedUser})
	w.kill("daemon_pid", "sidecar_pid")
	if _, now := agent.do("oc_handoff_status", map[string]any{"handoff_id": id}); now["status"] != "RUNNING" || now["deadline"] != over["deadline"] {
		t.Fatalf("after a kill the hand-off is %v", now)
	}
	agent.refused("HUMAN_IN_CONTROL", "browser_click", map[string]any{"text": "Log in"})
	person = w.person()
	person.do("browser_type", map[string]any{"label": "Password", "text": typedPass})
	agent.refused("HUMAN_IN_CONTROL", "oc_handoff_finish", map[string]any{"handoff_id": id}) // not while they are at it
	// The agent waits through the kill of the sidecar, in one call.
	waits := agent.waiting("oc_handoff_status", map[string]any{"handoff_id": id, "wait_ms": 55_000})
	w.kill("sidecar_pid")
	testwait.For(t, "there is a sidecar again", func() bool {
		_, err := os.Stat(filepath.Join(w.home, "control.addr"))
		return err == nil && w.up()
	})
	person = w.person()
	person.do("browser_click", map[string]any{"text": "Log in"})
	_, done := person.do("oc_handoff_finish", map[string]any{"handoff_id": id})
	got := <-waits
	if got == nil || got.StructuredContent.(map[string]any)["status"] != "FINISHED" {
		t.Errorf("the agent that waited was told %v", got)
	}

	fields := []string{"url", "title", "cookie_count", "storage_keys", "dom_fingerprint"}
	if done["status"] != "FINISHED" || done["finished_by"] != "owner" || !slices.Equal(changed(done), fields) {
		t.Errorf("it ended as %v", done)
	}
	after := done["after"].(map[string]any)
	if after["url"] != w.site.URL+"/secure" || after["title"] != "Secure Area" || after["cookie_count"] != 1.0 {
		t.Errorf("after is %v", after)
	}
	if text, _ := agent.do("browser_snapshot", nil); !strings.Contains(text, "You logged in") || !strings.Contains(text, "Log out") {
		t.Errorf("the page has not advanced: %s", text)
	}
	if _, again := agent.do("oc_handoff_finish", map[string]any{"handoff_id": id}); again["finished_at"] != done["finished_at"] || again["finished_by"] != "owner" {
		t.Errorf("finishing twice gives %v", again)
	}

	// After a restart of everything the record is as it was, and the run has it once.
	w.kill("daemon_pid", "sidecar_pid")
	_, kept := agent.do("oc_handoff_status", map[string]any{"handoff_id": id})
	for _, name := range []string{"status", "version", "reason", "instruction", "session_id", "tab_id", "run_id", "finished_at", "before", "after", "delta"} {
		is, was := asJSON(t, kept[name]), asJSON(t, done[name])
		if is != was {
			t.Errorf("%s was %s and is %s", name, was, is)
		}
	}
	_, held := agent.do("oc_task_run_get", map[string]any{"run_id": run["run_id"]})
	if list := held["evidence"].([]any); len(list) != 1 || list[0].(map[string]any)["ref"] != id || list[0].(map[string]any)["kind"] != "handoff" {
		t.Errorf("the run has %v", held["evidence"])
	}

	// Called off: no checkpoint is marked as reached.
	_, off := agent.do("oc_handoff_start", map[string]any{"reason": "other", "run_id": run["run_id"]})
	_, off = agent.do("oc_handoff_cancel", map[string]any{"handoff_id": off["handoff_id"]})
	if off["status"] != "CANCELLED" || off["after"] != nil || off["delta"] != nil || off["verified"] != nil {
		t.Errorf("called off it is %v", off)
	}
	agent.refused("HANDOFF_NOT_RUNNING", "oc_handoff_finish", map[string]any{"handoff_id": off["handoff_id"]})

	// Out of time, by itself and across a kill; it cannot be finished any more.
	_, late := agent.do("oc_handoff_start", map[string]any{"reason": "2fa", "timeout_ms": 1500, "run_id": run["run_id"]})
	w.kill("sidecar_pid")
	text, now := agent.do("oc_handoff_status", map[string]any{"handoff_id": late["handoff_id"], "wait_ms": 50_000})
	if now["status"] != "TIMED_OUT" || !strings.Contains(text, "has not been done") {
		t.Errorf("out of time it is %v: %s", now, text)
	}
	agent.refused("HANDOFF_NOT_RUNNING", "oc_handoff_finish", map[string]any{"handoff_id": late["handoff_id"]})
	if _, held := agent.do("oc_task_run_get", map[string]any{"run_id": run["run_id"]}); len(held["evidence"].([]any)) != 1 {
		t.Errorf("what was not finished is evidence: %v", held["evidence"])
	}

	// And then everything is as it always was.
	if again := usual(agent); again != before {
		t.Errorf("without a hand-off it was\n%s\nand is\n%s", before, again)
	}
	for _, canary := range []string{typedUser, typedPass, cookieValue, storedValue} {
		if places := w.found(canary); len(places) > 0 {
			t.Errorf("%s is in %v", canary, places)
		}
	}
	if places := w.found(addressPart); !slices.Equal(places, []string{toAgent}) {
		t.Errorf("%s is in %v", addressPart, places)
	}
	if places := w.found("Manually complete the demo login"); len(places) < 2 {
		t.Errorf("the search finds nothing at all: %v", places)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
