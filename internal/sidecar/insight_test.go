package sidecar_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
)

// TestHowAskingWentIsCountedFromWhatHappened goes the whole way: hand-offs that
// end in different ways, a payment, and the figures at every door, also of the
// next process.
func TestHowAskingWentIsCountedFromWhatHappened(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := openTill(t)
	r := start(t, s.Server)
	owner := r.owner()
	session := r.must("POST", "/session/start", `{"url":"`+s.URL+`/bill?canary-query","screenshot":false}`)["session_id"].(string)
	handoff := func(reason string) string {
		return r.must("POST", "/handoff/start", `{"reason":"`+reason+`","instruction":"canary-instruction"}`)["handoff_id"].(string)
	}
	first := handoff("login")
	owner.must("POST", "/handoff/"+first+"/present", `{}`)
	owner.must("POST", "/handoff/"+first+"/finish", `{}`)
	r.must("POST", "/handoff/"+handoff("captcha")+"/cancel", `{}`)
	taken := owner.must("POST", "/sessions/"+session+"/takeover", `{}`)["handoff_id"].(string)
	owner.must("POST", "/handoff/"+taken+"/finish", `{}`)
	bill := r.must("POST", "/approval/request", aBill)["approval_id"].(string)
	owner.must("POST", "/approval/"+bill+"/decide", `{"decision":"approve"}`)
	r.must("POST", "/session/click", clickWith(bill))
	runs := handoff("login")

	r.refused("GET", "/analytics", "", "FORBIDDEN")
	check := func(when string, got map[string]any) {
		t.Helper()
		h := got["handoffs"].(map[string]any)
		site := got["sites"].([]any)[0].(map[string]any)
		for name, want := range map[string]float64{"asked": 3, "running": 1, "ended": 2, "unblocked": 1, "abandoned": 1, "unblock_rate": .5} {
			if h[name] != want || name != "unblock_rate" && site[name] != want {
				t.Errorf("%s: %s is %v, and %v of the site", when, name, h[name], site[name])
			}
		}
		if site["site"] != "127.0.0.1" || site["advice"] != "A saved login could have avoided 1 of 3." || got["takeovers"] != 1.0 {
			t.Errorf("%s: %v taken over, and the site %v", when, got["takeovers"], site)
		}
		if came := h["time_to_human"].(map[string]any); came["count"] != 1.0 {
			t.Errorf("%s: a person came %v", when, came)
		}
		a := got["approvals"].(map[string]any)
		paid, _ := a["paid"].([]any)
		if a["asked"] != 1.0 || a["approved_by_owner"] != 1.0 || len(paid) != 1 || paid[0].(map[string]any)["amount"] != "142.50" || paid[0].(map[string]any)["currency"] != "USD" {
			t.Errorf("%s: the payments %v", when, a)
		}
	}
	check("over HTTP", owner.must("GET", "/analytics?days=7", ""))
	d := r.signIn(ctx)
	d.does(ctx, map[string]any{"a": "figures", "days": 7})
	check("at the console", d.told)
	if note := d.does(ctx, map[string]any{"a": "figures", "days": 700}); note["code"] != "INVALID_REQUEST" {
		t.Errorf("for 700 days the console says %v", note)
	}
	_, _, metrics := r.do("GET", "/metrics", "")
	for _, want := range []string{
		`tapin_handoffs_ended_total{end="unblocked",reason="login"} 1`, `tapin_handoffs_ended_total{end="abandoned",reason="captcha"} 1`,
		`tapin_handoffs_ended_total{end="expired",reason="2fa"} 0`, `tapin_handoff_time_to_human_seconds_count{reason="login"} 1`,
		`tapin_handoff_time_to_done_seconds_bucket{reason="login",le="+Inf"} 1`, "tapin_takeovers_total 1",
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	if strings.Contains(string(metrics), "127.0.0.1") {
		t.Error("a site became a label")
	}

	owner.must("POST", "/handoff/"+runs+"/cancel", `{}`)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(r.dir, "figures.json"))
	if err != nil || strings.Contains(string(kept), "canary-") || strings.Contains(string(kept), "http") || strings.Contains(string(kept), "Verizon") {
		t.Errorf("the file of figures holds %s, %v", kept, err)
	}
	r.begin([]string{"listen.control=127.0.0.1:0"})
	again := r.owner().must("GET", "/analytics", "")
	if h := again["handoffs"].(map[string]any); again["days"] != 30.0 || h["ended"] != 3.0 || h["aborted"] != 1.0 || h["running"] != 0.0 {
		t.Errorf("the next process tells %v", h)
	}
	_, _, metrics = r.do("GET", "/metrics", "")
	if !strings.Contains(string(metrics), `tapin_handoffs_ended_total{end="unblocked",reason="login"} 0`) {
		t.Error("what ended before this process was counted as if it ended now")
	}
}
