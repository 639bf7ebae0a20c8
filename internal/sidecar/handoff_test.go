package sidecar_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/sidecar"
)

const (
	relayed       = "canary-relay-51ce"
	handoffCookie = "canary-handoff-cookie-9a"
	handoffLocal  = "canary-handoff-local-3f"
)

// openDoor is a site that lets in who knows the password.
func openDoor(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<!doctype html><title>Sign in</title><form id=login method=post action=/login><label>Password <input name=p type=password></label></form>`)
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("p") != relayed {
			http.Redirect(w, r, "/login?wrong="+r.FormValue("p"), http.StatusSeeOther)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: handoffCookie, Path: "/"})
		http.Redirect(w, r, "/home?code="+handoffCookie, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /home", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Accounts</title><h1>Balance</h1><script>localStorage.setItem("session", %q)</script>`, handoffLocal)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// owner is the same sidecar, spoken to with the owner's token.
func (r *running) owner() *running {
	r.t.Helper()
	token, err := os.ReadFile(filepath.Join(r.dir, sidecar.OwnerTokenFile))
	if err != nil {
		r.t.Fatal(err)
	}
	o := *r
	o.agent = strings.TrimSpace(string(token))
	return &o
}

func TestAPersonLogsInAndTheAgentGoesOn(t *testing.T) {
	t.Parallel()
	site := openDoor(t)
	r := start(t, site)
	owner := r.owner()
	r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	run := r.must("POST", "/task-run/start", `{"goal":"look at the balance"}`)["run_id"].(string)
	h := r.must("POST", "/handoff/start", `{"reason":"login","instruction":"Please log in","task":"read the balance","run_id":"`+run+`","capture_screenshot":true,"verify":[{"url":"/home"},{"absent":"#login"}]}`)
	id := h["handoff_id"].(string)

	for _, call := range [][3]string{
		{"GET", "/session/screenshot", ""}, {"GET", "/session/snapshot", ""}, {"POST", "/session/click", `{"label":"Password"}`},
		{"POST", "/session/navigate", `{"url":"` + site.URL + `"}`}, {"POST", "/session/type", `{"text":"x"}`},
	} {
		r.refused(call[0], call[1], call[2], "HUMAN_IN_CONTROL")
	}
	owner.refused("POST", "/handoff/"+id+"/type", `{"text":"`+relayed+`"}`, "NO_FOCUSED_FIELD")
	owner.must("POST", "/session/click", `{"label":"Password","screenshot":false}`)
	typed := owner.must("POST", "/handoff/"+id+"/type", `{"text":"`+relayed+`"}`)
	if typed["field"] != "password" || typed["characters"] != float64(len(relayed)) || typed["origin"] != site.URL {
		t.Errorf("typed %v", typed)
	}
	again := owner.must("POST", "/handoff/"+id+"/finish", `{}`)
	if again["status"] != "RUNNING" || again["attempts"] != 2.0 {
		t.Errorf("done too early gave %v", again)
	}
	r.refused("POST", "/handoff/"+id+"/cancel", `{}`, "HUMAN_IN_CONTROL")
	owner.must("POST", "/session/press", `{"key":"Enter","screenshot":false}`)

	var done map[string]any
	for version := again["version"]; ; version = done["version"] {
		done = r.must("GET", fmt.Sprintf("/handoff/%s?after=%v&wait_ms=30000", id, version), "")
		if done["status"] != "RUNNING" {
			break
		}
	}
	after, _ := done["after"].(map[string]any)
	if done["status"] != "FINISHED" || done["finished_by"] != "verify" || after["url"] != site.URL+"/home" || after["title"] != "Accounts" || after["cookie_count"] != 1.0 {
		t.Errorf("got %v", done)
	}
	for _, c := range done["delta"].([]any) {
		change := c.(map[string]any)
		if same := change["field"] == "origin"; same != (change["change"] == "unchanged") {
			t.Errorf("%v", change)
		}
	}
	if evidence := r.must("GET", "/task-run/"+run, "")["evidence"].([]any); len(evidence) != 1 || evidence[0].(map[string]any)["ref"] != id {
		t.Errorf("the evidence is %v", evidence)
	}
	if text := r.must("GET", "/session/text", "")["text"].(string); !strings.Contains(text, "Balance") {
		t.Errorf("the agent reads %q", text)
	}
	owner.refused("POST", "/handoff/"+id+"/type", `{"text":"`+relayed+`"}`, "HANDOFF_NOT_RUNNING")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	noCanary(t, r.dir, relayed, handoffCookie, handoffLocal)
	if strings.Contains(r.log.String(), "canary") {
		t.Error("a secret is in the log")
	}
}

func TestAStopInTheMiddleOfAHandoffEndsNothing(t *testing.T) {
	t.Parallel()
	site := openDoor(t)
	r := start(t, site)
	r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	h := r.must("POST", "/handoff/start", `{"reason":"login"}`)
	id := h["handoff_id"].(string)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.begin([]string{"listen.control=127.0.0.1:0", "egress.allow=" + strings.TrimPrefix(site.URL, "http://")})
	owner := r.owner()
	if got := r.must("GET", "/handoff/"+id, ""); got["status"] != "RUNNING" || got["parked"] != true {
		t.Fatalf("got %v", got)
	}
	back := owner.must("POST", "/handoff/"+id+"/resume", `{}`)
	if back["parked"] != false || back["generation"] != 2.0 || back["session_id"] != h["session_id"] {
		t.Errorf("got %v", back)
	}
	r.refused("GET", "/session/screenshot", "", "HUMAN_IN_CONTROL")
	owner.must("POST", "/session/click", `{"label":"Password","screenshot":false}`)
	owner.must("POST", "/session/type", `{"text":"`+relayed+`","submit":true,"screenshot":false}`)
	done := owner.must("POST", "/handoff/"+id+"/finish", `{}`)
	if done["status"] != "FINISHED" || done["verified"] != nil || !strings.Contains(done["resume_hint"].(string), "nothing was verified") {
		t.Errorf("got %v", done)
	}
	if text := r.must("GET", "/session/text", "")["text"].(string); !strings.Contains(text, "Balance") {
		t.Errorf("the agent reads %q", text)
	}
	second := r.must("POST", "/handoff/start", `{"reason":"other","follows":"`+id+`"}`)
	over := owner.must("POST", "/handoff/"+second["handoff_id"].(string)+"/cancel", `{}`)
	if over["status"] != "CANCELLED" || over["attempts"] != 2.0 {
		t.Errorf("got %v", over)
	}
	r.refused("GET", "/session/text", "", "NO_SESSION")
}
