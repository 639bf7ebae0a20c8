package sidecar_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tapin/internal/testwait"
)

// till is a shop that counts what it was paid.
type till struct {
	*httptest.Server
	mu   sync.Mutex
	paid []string
}

func (s *till) payments() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.paid)
}

const payForm = `<form method=post action=/paid><label>Note <input id=note name=note></label><button id=pay>Confirm Payment</button></form>`

// openTill serves pages that take money, and each a trick of its own.
func openTill(t *testing.T) *till {
	t.Helper()
	s := &till{}
	pages := map[string]string{
		"/bill":   `<h1>Verizon</h1><p>Amount due: <b>$142.50</b></p>` + payForm,
		"/big":    `<h1>Verizon</h1><p>Amount due: <b>$980.00</b></p>` + payForm,
		"/two":    `<h1>Verizon</h1><p>Total: $142.50</p><p>Total: $980.00</p>` + payForm,
		"/larger": `<h1>Verizon</h1><p>Amount due: $142.50</p><p>Total $980.00</p>` + payForm,
		"/notes":  `<h1>Verizon</h1><p>Amount due: <b>$980.00</b></p><textarea>Amount due: $142.50</textarea><div contenteditable>Amount due: $142.50</div>` + payForm,
		"/echo":   `<h1>Verizon</h1><p id=e></p>` + payForm + `<script>e.textContent = 'Amount due: $' + new URLSearchParams(location.search).get('q')</script>`,
		"/mirror": `<h1>Verizon</h1><p>Amount due: <b>$980.00</b></p>` + payForm + `<p id=m></p><script>note.oninput = () => { m.textContent = note.value }</script>`,
		// The amount changes when the mouse comes near: after every look at the page.
		"/swap":   `<h1>Verizon</h1><p>Amount due: <b id=a>$142.50</b></p>` + payForm + `<script>addEventListener('pointermove', () => { a.textContent = '$980.00' }, true)</script>`,
		"/morph":  `<h1>Verizon</h1><p>Amount due: <b>$142.50</b></p><form method=post action=/paid><button id=pay>Edit</button></form><script>addEventListener('pointermove', () => { pay.textContent = 'Pay now' }, true)</script>`,
		"/framed": `<h1>Verizon</h1><p>Amount due: <b>$142.50</b></p><iframe srcdoc="<form method=post action=/paid target=_top><button id=pay>Pay now</button></form>" width=300 height=80></iframe>`,
		"/ask":    `<h1>Verizon</h1><p>Amount due: <b>$142.50</b></p><button id=pay onclick="setTimeout(() => { if (confirm('Pay $142.50 to Verizon?')) fetch('/paid', {method: 'POST'}) })">Go on</button>`,
		"/sheet":  `<h1>Verizon</h1><button id=pay onclick="try { new PaymentRequest([{supportedMethods: 'https://pay.example/x'}], {total: {label: 'Total', amount: {currency: 'USD', value: '142.50'}}}).show().then(() => { fetch('/paid', {method: 'POST'}) }, e => { out.textContent = 'refused ' + e.name }) } catch (e) { out.textContent = 'refused ' + e.name }">Open sheet</button><p id=out></p>`,
		"/pill":   `<h1>Verizon</h1><p>Amount due: <b>$142.50</b></p><div id=pay onclick="fetch('/paid', {method: 'POST'}).then(() => { document.body.textContent = 'thank you' })" style="cursor:pointer">Zahlungspflichtig bestellen</div>`,
		"/save":   `<h1>Settings</h1><form method=post action=/saved><button id=pay>Save</button></form>`,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang=en-US><title>Pay</title><body style="margin:0">%s`, body)
	})
	mux.HandleFunc("POST /paid", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.paid = append(s.paid, r.RemoteAddr)
		s.mu.Unlock()
		_, _ = fmt.Fprint(w, "<title>Thanks</title><p>thank you")
	})
	mux.HandleFunc("POST /saved", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<p>saved") })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

const aBill = `{"site":"127.0.0.1","payee":"Verizon","amount":"142.50","currency":"USD","description":"Verizon bill"}`

func (r *running) open(path string, s *till) {
	r.t.Helper()
	r.must("POST", "/session/navigate", `{"url":"`+s.URL+path+`","screenshot":false}`)
}

func clickWith(id string) string {
	return fmt.Sprintf(`{"selector":"#pay","approval_id":%q,"timeout_ms":3000,"screenshot":false}`, id)
}

func TestAPaymentNeedsTheOwnersYesAndHappensOnce(t *testing.T) {
	t.Parallel()
	s := openTill(t)
	r := start(t, s.Server)
	owner := r.owner()
	r.must("POST", "/session/start", `{"url":"`+s.URL+`/bill","screenshot":false}`)

	refused := r.refused("POST", "/session/click", clickWith(""), "APPROVAL_REQUIRED")
	next, _ := refused["suggested_next"].([]any)
	if len(next) != 2 || next[0].(map[string]any)["tool"] != "oc_approval_request" || next[0].(map[string]any)["arguments"].(map[string]any)["amount"] != "142.50" {
		t.Errorf("suggested %v", next)
	}
	for _, call := range [][2]string{
		{"/session/type", `{"selector":"#note","text":"x","submit":true,"screenshot":false}`},
		{"/session/press", `{"key":"Enter","screenshot":false}`},
		{"/session/click", `{"x":40,"y":110,"screenshot":false}`},
	} {
		if call[0] == "/session/click" {
			continue // where a point lies is for the page's own tests
		}
		r.refused("POST", call[0], call[1], "APPROVAL_REQUIRED")
	}
	if s.payments() != 0 {
		t.Fatal("it was paid without a yes")
	}

	asked := r.must("POST", "/approval/request", aBill)
	id := asked["approval_id"].(string)
	if asked["status"] != "pending" || asked["question"] != "Verizon bill is $142.50 — okay to confirm?" || asked["differs"] != nil {
		t.Errorf("asked %v", asked)
	}
	r.refused("POST", "/session/click", clickWith(id), "APPROVAL_REQUIRED")
	for _, call := range [][2]string{
		{"/approval/" + id + "/decide", `{"decision":"approve"}`}, {"/policies/say", `{"text":"auto-approve 127.0.0.1 under $500"}`},
		{"/policies/clear", `{"site":"127.0.0.1"}`}, {"/policies/prp_1/confirm", `{}`},
	} {
		r.refused("POST", call[0], call[1], "FORBIDDEN")
	}
	r.refused("PUT", "/contexts/verizon/policy", `{"max_amount":"500","currency":"USD"}`, "FORBIDDEN")
	r.refused("GET", "/approval/"+id+"/photo", "", "FORBIDDEN")
	if code, _, raw := owner.do("GET", "/approval/"+id+"/photo", ""); code != 200 || len(raw) < 500 {
		t.Errorf("the crop: %d, %d bytes", code, len(raw))
	}
	if yes := owner.must("POST", "/approval/"+id+"/decide", `{"decision":"approve"}`); yes["status"] != "approved" || yes["decided_by"] != "owner" {
		t.Errorf("decided %v", yes)
	}
	if clicked := r.must("POST", "/session/click", clickWith(id)); clicked["effect"] != "confirmed" {
		t.Errorf("clicked %v", clicked)
	}
	r.settled("thank you")
	over := r.must("GET", "/approval/"+id, "")
	if over["status"] != "used" || over["outcome"] != "confirmed" || over["notice"] != "Paid Verizon bill — $142.50." || s.payments() != 1 {
		t.Errorf("in the end %v, %d payments", over, s.payments())
	}
	r.open("/bill", s)
	r.refused("POST", "/session/click", clickWith(id), "APPROVAL_REQUIRED")
	if s.payments() != 1 {
		t.Errorf("%d payments for one yes", s.payments())
	}
	if found := r.must("GET", "/approvals?status=used", "")["approvals"].([]any); len(found) != 1 {
		t.Errorf("listed %v", found)
	}
	// Pages that take nothing are not in the way, and the owner needs no leave.
	r.open("/save", s)
	r.must("POST", "/session/click", clickWith(""))
	r.open("/bill", s)
	owner.must("POST", "/session/click", `{"selector":"#pay","screenshot":false}`)
	r.settled("thank you")
	if s.payments() != 2 {
		t.Errorf("the owner's own click: %d payments", s.payments())
	}
}

func TestAPolicyInPlainWordsPaysWithoutAsking(t *testing.T) {
	t.Parallel()
	s := openTill(t)
	r := start(t, s.Server)
	owner := r.owner()
	book := filepath.Join(r.dir, "browser-contexts.yaml")
	if err := os.WriteFile(book, []byte("# mine\ncontexts:\n  verizon: # the phone\n    domain: 127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.must("POST", "/session/start", `{"url":"`+s.URL+`/bill","screenshot":false}`)

	said := owner.must("POST", "/policies/say", `{"text":"Auto-approve Verizon payments under $200"}`)
	proposal, _ := said["proposal"].(map[string]any)
	if proposal == nil || said["sentence"] != "Approve by myself from now on — verizon (127.0.0.1): up to $200.00 a payment?" {
		t.Fatalf("said %v", said)
	}
	if asked := r.must("POST", "/approval/request", aBill); asked["status"] != "pending" {
		t.Errorf("before the yes: %v", asked["status"])
	}
	owner.must("POST", "/policies/"+proposal["proposal_id"].(string)+"/confirm", `{}`)
	if raw, err := os.ReadFile(book); err != nil || !strings.Contains(string(raw), "max_amount: 200.00") || !strings.Contains(string(raw), "# the phone") {
		t.Errorf("the manifest is\n%s", raw)
	}
	asked := r.must("POST", "/approval/request", aBill)
	if asked["status"] != "approved" || asked["decided_by"] != "policy" {
		t.Fatalf("asked %v", asked)
	}
	r.must("POST", "/session/click", clickWith(asked["approval_id"].(string)))
	r.settled("thank you")
	if over := r.must("GET", "/approval/"+asked["approval_id"].(string), ""); over["notice"] != "Paid Verizon bill — $142.50." || s.payments() != 1 {
		t.Errorf("in the end %v", over)
	}
	// A hand that raises the limit in the file raises nothing.
	raw, err := os.ReadFile(book)
	if err == nil {
		err = os.WriteFile(book, []byte(strings.Replace(string(raw), "200.00", "5000", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.open("/bill", s)
	if asked := r.must("POST", "/approval/request", aBill); asked["status"] != "pending" {
		t.Errorf("a hand-edited policy: %v", asked["status"])
	}
	if now := r.must("GET", "/policies", ""); len(now["proposals"].([]any)) != 1 {
		t.Errorf("it does not wait for the owner: %v", now)
	}
	if said := owner.must("POST", "/policies/say", `{"text":"stop auto-approving verizon"}`); !strings.HasPrefix(said["sentence"].(string), "From now on I ask again.") {
		t.Errorf("said %v", said)
	}
	if raw, err := os.ReadFile(book); err != nil || strings.Contains(string(raw), "max_amount") {
		t.Errorf("the manifest still says\n%s", raw)
	}
	if said := owner.must("POST", "/policies/say", `{"text":"what do you approve by yourself?"}`); said["sentence"] != "Nothing. I ask before every payment." {
		t.Errorf("said %v", said)
	}
}

// TestWhatAnAgentMayTry is what real pages do to a grant of $142.50 for the
// page /bill, and to a policy of $500.
func TestWhatAnAgentMayTry(t *testing.T) {
	t.Parallel()
	s := openTill(t)
	r := start(t, s.Server)
	owner := r.owner()
	r.must("POST", "/session/start", `{"url":"`+s.URL+`/bill","screenshot":false}`)
	said := owner.must("POST", "/policies/say", `{"text":"auto-approve localhost under $500"}`)
	owner.must("POST", "/policies/"+said["proposal"].(map[string]any)["proposal_id"].(string)+"/confirm", `{}`)
	grant := func() string {
		r.open("/bill", s)
		id := r.must("POST", "/approval/request", aBill)["approval_id"].(string)
		owner.must("POST", "/approval/"+id+"/decide", `{"decision":"approve"}`)
		return id
	}
	paid := 0
	for _, c := range []struct {
		name, path string
		before     func()
		pays       bool
	}{
		{name: "another page of the site with a larger sum", path: "/big"},
		{name: "a page with two totals", path: "/two"},
		{name: "the sum typed into notes", path: "/notes"},
		{name: "the sum reflected from the address", path: "/echo?q=142.50", pays: true}, // the page does say so; the owner has seen it
		{name: "the sum typed into a note that the page repeats", path: "/mirror", before: func() {
			r.must("POST", "/session/type", `{"selector":"#note","text":"Amount due: $142.50","screenshot":false}`)
		}},
		{name: "a page that changes its sum under the mouse", path: "/swap"},
		{name: "a button that becomes another under the mouse", path: "/morph", pays: true}, // it became the payment that was granted
		{name: "a button in a frame of the site", path: "/framed", pays: true},
		{name: "a plain box that pays", path: "/pill", pays: true},
	} {
		id := grant()
		r.open(c.path, s)
		if c.before != nil {
			c.before()
		}
		if !c.pays {
			r.refused("POST", "/session/click", clickWith(id), "APPROVAL_REQUIRED")
		} else if code, _, raw := r.do("POST", "/session/click", clickWith(id)); code != 200 {
			t.Errorf("%s: %d %.300s", c.name, code, raw)
		} else {
			paid++
			r.paidOnce(c.name, s, paid)
		}
		if s.payments() != paid {
			t.Fatalf("%s: %d payments, %d were allowed", c.name, s.payments(), paid)
		}
	}
	r.open("/morph", s)
	r.refused("POST", "/session/click", clickWith(""), "APPROVAL_REQUIRED")
	r.open("/ask", s)
	r.must("POST", "/session/click", clickWith(""))
	testwait.For(t, "the dialog", func() bool {
		open, _ := r.must("GET", "/session/status", "")["dialogs"].([]any)
		return len(open) > 0
	})
	r.refused("POST", "/session/dialog", `{"accept":true,"screenshot":false}`, "APPROVAL_REQUIRED")
	r.must("POST", "/session/dialog", `{"accept":false,"screenshot":false}`)
	r.open("/sheet", s)
	r.must("POST", "/session/click", clickWith(""))
	r.settled("refused")
	if s.payments() != paid {
		t.Errorf("%d payments, %d were allowed", s.payments(), paid)
	}
	// No policy for localhost covers 127.0.0.1, whatever the agent calls it.
	for _, body := range []string{aBill, strings.Replace(aBill, `"127.0.0.1"`, `"localhost"`, 1)} {
		r.open("/bill", s)
		if got := r.must("POST", "/approval/request", body); got["status"] != "pending" {
			t.Errorf("a policy for another site answered: %v", got)
		}
	}
	lie := r.must("POST", "/approval/request", strings.Replace(aBill, "142.50", "9.80", 1))
	if fmt.Sprint(lie["differs"]) != "[The agent says $9.80; the page shows $142.50.]" {
		t.Errorf("the lie is shown as %v", lie["differs"])
	}
	owner.refused("POST", "/approval/"+lie["approval_id"].(string)+"/decide", `{"decision":"approve"}`, "INVALID_REQUEST")
}

// paidOnce waits until the shop has heard of it.
func (r *running) paidOnce(what string, s *till, want int) {
	r.t.Helper()
	for range 200 {
		if s.payments() >= want {
			return
		}
		r.must("POST", "/session/wait", `{"state":"networkidle","screenshot":false}`)
	}
	r.t.Errorf("%s: the shop heard nothing", what)
}
