package sidecar_test

import (
	"os"
	"path/filepath"
	"strings"
	"tapin/internal/browser/browsertest"
	"testing"
)

// A login from its first day to its last: found to work, found not to, and what
// is known of it then.
func TestALoginIsCheckedAndItsLifeIsKnown(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	r := start(t, site.Server)
	nobody := "http://127.0.0.1:1/"
	manifest := `contexts:
  bank: {check: {url: "` + site.URL + `/", text: Welcome back}}
  spare: {check: {url: "` + site.URL + `/", selector: "h1"}}
  down: {check: {url: "` + nobody + `", text: Welcome back}}
  plain: {}
`
	file := filepath.Join(r.dir, "browser-contexts.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bank", "down", "plain"} {
		r.login(site, name)
		r.must("POST", "/session/stop", `{}`)
	}
	check := func(name, want string) {
		t.Helper()
		if got := r.must("POST", "/contexts/"+name+"/check", `{}`); got["result"] != want || got["reason"] == "" {
			t.Errorf("%s is %v", name, got)
		}
	}
	check("bank", "valid")
	check("down", "unknown")
	r.refused("POST", "/contexts/plain/check", `{}`, "INVALID_REQUEST")
	r.refused("POST", "/contexts/spare/check", `{}`, "NOT_FOUND")
	r.refused("POST", "/contexts/nobody/check", `{}`, "NOT_FOUND")
	if login := r.must("GET", "/contexts/bank", ""); login["verified_by"] != "check" || login["stale_since"] != nil {
		t.Errorf("a login that works is %v", login)
	}
	for _, name := range []string{"bank", "down", "plain"} {
		r.refused("DELETE", "/contexts/"+name, "", "FORBIDDEN")
	}

	// The site logs everybody out.
	r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/logout","screenshot":false}`)
	r.refused("POST", "/contexts/bank/check", `{}`, "CONTEXT_LOCKED")
	r.must("POST", "/session/stop", `{}`)
	check("bank", "expired")
	login := r.must("GET", "/contexts/bank", "")
	life, _ := login["lifetime"].(map[string]any)
	if login["stale_why"] != "check" || life["count"] != 1.0 || login["last_check"].(map[string]any)["result"] != "expired" {
		t.Errorf("a login that is over is %v", login)
	}
	// Somebody logs in again: the check that failed is history.
	r.login(site, "bank")
	r.must("POST", "/session/stop", `{}`)
	r.refused("DELETE", "/contexts/bank", "", "FORBIDDEN")
	check("bank", "valid")
	if login := r.must("GET", "/contexts/bank", ""); login["stale_since"] != nil {
		t.Errorf("a login that works again is %v", login)
	}
	r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/logout","screenshot":false}`)
	r.must("POST", "/session/stop", `{}`)
	check("bank", "expired")
	if gone := r.must("DELETE", "/contexts/bank", ""); gone["state"] != true || gone["entry"] != true {
		t.Errorf("the agent may delete it, and got %v", gone)
	}
	raw, err := os.ReadFile(file) //nolint:gosec // a file of the test's own home
	if err != nil || strings.Contains(string(raw), "bank") || !strings.Contains(string(raw), "spare:") {
		t.Errorf("the manifest is %s (%v)", raw, err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "contexts", "bank*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left, _ := os.ReadDir(filepath.Join(r.dir, "run")); len(left) > 0 {
		t.Errorf("%d browsers are left", len(left))
	}
}
