package sidecar_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
)

func TestTheOwnerDecidesAboutMoneyAtTheConsole(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := openTill(t)
	r := start(t, s.Server)
	book := filepath.Join(r.dir, "browser-contexts.yaml")
	const written = "contexts:\n  verizon:\n    domain: 127.0.0.1\n    payment_approval: {max_amount: 200, currency: USD, auto_approve: true}\n"
	if err := os.WriteFile(book, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	d := r.signIn(ctx)
	r.must("POST", "/session/start", `{"url":"`+s.URL+`/bill","screenshot":false}`)

	lie := r.must("POST", "/approval/request", strings.Replace(aBill, "142.50", "9.80", 1))["approval_id"].(string)
	card := d.sees(ctx, "the request", "approvals", func(a map[string]any, _ []any) bool { return a["id"] == lie })
	reading, _ := card["page"].(map[string]any)
	if card["amount"] != "9.80" || reading["amount"] != "142.50" || reading["agrees"] != false || !strings.Contains(card["description"].(string), "the page shows $142.50") {
		t.Errorf("the card of a lie: %v", card)
	}
	if n := d.does(ctx, map[string]any{"a": "approve", "id": lie}); n["ok"] != false {
		t.Errorf("a plain yes to a lie: %v", n)
	}
	if n := d.does(ctx, map[string]any{"a": "deny", "id": lie}); n["ok"] != true {
		t.Errorf("no: %v", n)
	}

	id := r.must("POST", "/approval/request", aBill)["approval_id"].(string) // what a hand wrote into the file approves nothing
	d.sees(ctx, "the honest request", "approvals", func(a map[string]any, _ []any) bool { return a["id"] == id })
	if n := d.does(ctx, map[string]any{"a": "approve", "id": id}); n["ok"] != true {
		t.Errorf("yes: %v", n)
	}
	r.must("POST", "/session/click", clickWith(id))
	r.settled("thank you")

	var proposal any
	d.sees(ctx, "the policy that waits", "logins", func(l map[string]any, _ []any) bool {
		p, _ := l["policy"].(map[string]any)
		proposal = p["proposal"]
		return l["name"] == "verizon" && p["pending"] == true
	})
	if n := d.does(ctx, map[string]any{"a": "policy_confirm", "id": "verizon"}); n["ok"] != false {
		t.Errorf("a yes to nothing that was shown: %v", n)
	}
	if n := d.does(ctx, map[string]any{"a": "policy_confirm", "id": "verizon", "proposal": proposal}); n["ok"] != true {
		t.Errorf("the policy's yes: %v", n)
	}
	r.open("/bill", s)
	asked := r.must("POST", "/approval/request", aBill)
	if asked["status"] != "approved" || asked["decided_by"] != "policy" {
		t.Errorf("after the yes: %v", asked)
	}
	r.must("POST", "/session/click", clickWith(asked["approval_id"].(string)))
	r.settled("thank you")
	if s.payments() != 2 {
		t.Errorf("%d payments", s.payments())
	}
}
