package console_test

import (
	"bytes"
	"context"
	"image/jpeg"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/console"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

func TestTheStateComesAtOnceAndAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	s := h.sheet(ctx, h.device(ctx))
	first := s.heard(ctx, "the state", kind("state"))
	if at, ok := first["now"].(float64); !ok || time.Since(time.UnixMilli(int64(at))).Abs() > time.Minute {
		t.Errorf("now is %v", first["now"])
	}
	for _, list := range []string{"handoffs", "approvals", "sessions", "logins", "history", "todos", "links", "devices", "troubles"} {
		if _, ok := first[list].([]any); !ok {
			t.Errorf("%s is %v", list, first[list])
		}
	}
	h.set(func(s *console.State) { s.Handoffs = s.Handoffs[:1] })
	s.heard(ctx, "one hand-off less", func(m map[string]any) bool {
		list, _ := m["handoffs"].([]any)
		return m["t"] == "state" && len(list) == 1
	})
	// What nobody told of is found all the same.
	h.mu.Lock()
	h.state.Sessions[0].Title = "Another page"
	h.mu.Unlock()
	s.heard(ctx, "another title", func(m map[string]any) bool {
		list, _ := m["sessions"].([]any)
		return len(list) == 1 && list[0].(map[string]any)["title"] == "Another page"
	})
	s.send(ctx, map[string]any{"t": "ping", "n": 7})
	s.heard(ctx, "a pong", func(m map[string]any) bool { return m["t"] == "pong" && m["n"] == 7.0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	states := 0
	for _, m := range s.words {
		if m["t"] == "state" {
			states++
			if m["n"] != float64(states) {
				t.Errorf("state %d has number %v", states, m["n"])
			}
		}
	}
	if states != 3 {
		t.Errorf("three states were there to tell, and %d were", states)
	}
}

func TestAStateThatIsTooLargeIsCut(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	h.set(func(s *console.State) {
		for range 200 {
			s.Handoffs, s.History = append(s.Handoffs, console.Handoff{Instruction: strings.Repeat("ä", 5000)}), append(s.History, console.Past{Summary: strings.Repeat("x", 9000)})
			s.Logins, s.Todos, s.Sessions = append(s.Logins, console.Login{}), append(s.Todos, console.Todo{}), append(s.Sessions, console.Session{Title: strings.Repeat("t", 9000)})
		}
	})
	m := h.sheet(ctx, h.device(ctx)).heard(ctx, "the state", kind("state"))
	for list, most := range map[string]int{"handoffs": 50, "sessions": 50, "logins": 50, "todos": 50, "history": 20} {
		if got, _ := m[list].([]any); len(got) != most {
			t.Errorf("%d %s", len(got), list)
		}
	}
}

func TestEverythingTheOwnerCanDo(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	h.past["c1"] = []console.Past{{ID: "hof_old", Summary: "old"}}
	s := h.sheet(ctx, h.device(ctx))
	for seq, tt := range []struct {
		do   map[string]any
		want string // of what is behind the door; "" means nothing
		ok   bool
		text string
	}{
		{map[string]any{"a": "done", "id": "hof_1", "version": 3}, "finish hof_1 3", true, "Handed back"},
		{map[string]any{"a": "done", "id": "hof_stuck", "version": 1}, "finish hof_stuck 1", false, "does not look done"},
		{map[string]any{"a": "abort", "id": "hof_1", "version": 3}, "cancel hof_1 3", true, "declined"},
		{map[string]any{"a": "later", "id": "hof_1", "version": 3}, "park hof_1 3", true, "later"},
		{map[string]any{"a": "resume", "id": "hof_2", "version": 5}, "resume hof_2 5", true, "open again"},
		{map[string]any{"a": "extend", "id": "hof_1", "minutes": 15}, "extend hof_1 15m0s", true, "more time"},
		{map[string]any{"a": "extend", "id": "hof_1", "minutes": 100000}, "", false, "not a time"},
		{map[string]any{"a": "todo_done", "id": "tdo_1"}, "todo tdo_1", true, "list"},
		{map[string]any{"a": "check_login", "id": "shop"}, "check shop", true, "It works"},
		{map[string]any{"a": "delete_login", "id": "shop"}, "delete shop", true, "deleted"},
		{map[string]any{"a": "end_session", "id": "ses_1"}, "end ses_1", true, "closed"},
		{map[string]any{"a": "move", "id": "lnk_x", "number": 5}, "", false, "two digits"},
		{map[string]any{"a": "move", "id": "lnk_x", "number": 47}, "", false, "link"},
		{map[string]any{"a": "open", "id": "ses_gone"}, "", false, "session"},
		{map[string]any{"a": "sign_out", "id": "dev_x"}, "", false, "no such device"},
		{map[string]any{"a": "history", "before": "c1"}, "", true, ""},
		{map[string]any{"a": "history", "before": "c9"}, "", false, "list"},
		{map[string]any{"a": "approve", "id": "apr_1"}, "", false, "payments"},
		{map[string]any{"a": "policy_confirm", "id": "shop"}, "", false, "payments"},
	} {
		before := len(h.done())
		tt.do["t"], tt.do["seq"] = "do", seq+1
		s.send(ctx, tt.do)
		m := s.heard(ctx, "an answer", note(seq+1))
		text, _ := m["text"].(string)
		if m["ok"] != tt.ok || !strings.Contains(text, tt.text) {
			t.Errorf("%v: %v", tt.do, m)
		}
		if got := strings.Join(h.done()[before:], ", "); got != tt.want {
			t.Errorf("%v: done was %q, want %q", tt.do, got, tt.want)
		}
	}
	if m := s.heard(ctx, "older hand-offs", kind("history")); len(m["items"].([]any)) != 1 || m["more"] != "" {
		t.Errorf("history: %v", m)
	}
}

// payments are approvals of one kind.
type payments struct{ *stage }

func (p payments) Pending(context.Context) ([]console.Approval, error) {
	return []console.Approval{{ID: "apr_1", Payee: "Paper Shop", Amount: "42.80", Currency: "EUR"}}, nil
}

func (p payments) Policies(context.Context) (map[string]console.Policy, error) {
	return map[string]console.Policy{"shop": {MaxAmount: "50.00", Currency: "EUR", Pending: true, Proposal: "pol_1"}}, fault.New(fault.Internal, "", "half of them")
}

func (p payments) Decide(_ context.Context, id string, approve bool, amount, currency string) error {
	return p.did("decide", id, approve, amount+currency)
}

func (p payments) DecidePolicy(_ context.Context, login, proposal string, allow bool) error {
	return p.did("policy", login, proposal, allow)
}

func TestPaymentsJoinTheInbox(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	h.door = h.open(func(d *console.Deps) { d.Approvals = payments{h.stage} })
	s := h.sheet(ctx, h.device(ctx))
	m := s.heard(ctx, "the state", kind("state"))
	if list := m["approvals"].([]any); len(list) != 1 || list[0].(map[string]any)["amount"] != "42.80" {
		t.Errorf("approvals: %v", m["approvals"])
	}
	if p, _ := m["logins"].([]any)[0].(map[string]any)["policy"].(map[string]any); p["pending"] != true || p["proposal"] != "pol_1" {
		t.Errorf("logins: %v", m["logins"])
	}
	if troubles := m["troubles"].([]any); len(troubles) != 1 {
		t.Errorf("troubles: %v", troubles)
	}
	for i, a := range []string{"approve", "deny"} {
		s.send(ctx, map[string]any{"t": "do", "a": a, "id": "apr_1", "amount": "43.00", "currency": "EUR", "seq": i})
		s.send(ctx, map[string]any{"t": "do", "a": []string{"policy_confirm", "policy_deny"}[i], "id": "shop", "proposal": "pol_1", "seq": 10 + i})
		s.heard(ctx, a, note(i))
		s.heard(ctx, a, note(10+i))
	}
	got := h.done()
	slices.Sort(got)
	if want := []string{"decide apr_1 false", "decide apr_1 true 43.00EUR", "policy shop pol_1 false", "policy shop pol_1 true"}; !slices.Equal(got, want) {
		t.Errorf("done: %v", got)
	}
}

func TestOpeningABrowserNeedsNoNumberOnTheDeviceThatAskedForIt(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	cookie := h.device(ctx)
	s := h.sheet(ctx, cookie)
	s.send(ctx, map[string]any{"t": "do", "a": "open", "id": "ses_1", "seq": 1})
	m := s.heard(ctx, "where it is", kind("open"))
	path, token, ok := strings.Cut(m["url"].(string), "#t=")
	if !ok || !strings.HasPrefix(path, "/live/lnk_") || m["id"] != "ses_1" {
		t.Fatal("that leads nowhere")
	}
	s.heard(ctx, "the answer", note(1))
	answer := h.request(ctx, http.MethodPost, path+"/claim", `{"token":"`+token+`"}`, with(cookie))
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 || !strings.Contains(string(body), `"drive"`) {
		t.Errorf("the claim: %d %s", answer.StatusCode, body)
	}
	s.heard(ctx, "the link in the list, as this device's", func(m map[string]any) bool {
		list, _ := m["links"].([]any)
		return len(list) == 1 && list[0].(map[string]any)["this_device"] == true && list[0].(map[string]any)["claimed"] == true
	})
	other := h.sheet(ctx, h.device(ctx))
	state := other.heard(ctx, "the state elsewhere", kind("state"))
	if l := state["links"].([]any)[0].(map[string]any); l["this_device"] != false {
		t.Errorf("another device takes it for its own: %v", l)
	}
	absent(t, h.dir, token)
}

func TestSigningADeviceOutEndsAllItHas(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	lost, mine := h.device(ctx), h.device(ctx)
	phone := h.sheet(ctx, lost)
	phone.send(ctx, map[string]any{"t": "do", "a": "open", "id": "ses_1", "seq": 1})
	phone.heard(ctx, "a link", note(1))
	laptop := h.sheet(ctx, mine)
	id := ""
	laptop.heard(ctx, "both devices", func(m map[string]any) bool {
		list, _ := m["devices"].([]any)
		for _, d := range list {
			if d := d.(map[string]any); d["this_device"] == false {
				id, _ = d["id"].(string)
			}
		}
		return len(list) == 2
	})
	laptop.send(ctx, map[string]any{"t": "do", "a": "sign_out", "id": id, "seq": 2})
	if m := laptop.heard(ctx, "the answer", note(2)); m["ok"] != true {
		t.Errorf("got %v", m)
	}
	phone.heard(ctx, "the end", func(m map[string]any) bool { return m["t"] == "end" && m["reason"] == "signed_out" })
	if code := phone.end(ctx); code != 4401 {
		t.Errorf("its socket ended with %d", code)
	}
	if links, err := h.links.List(ctx); err != nil || len(links) != 0 {
		t.Errorf("its link lives on: %v %v", links, err)
	}
	if status, _ := h.claim(ctx, "", with(lost)); status != 401 {
		t.Errorf("it is still let in: %d", status)
	}
	if status, _ := h.claim(ctx, "", with(mine)); status != 200 {
		t.Errorf("the one that did it: %d", status)
	}
}

func TestASignOutThatAKillInterruptsIsFinishedAtTheNextStart(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	cookie := h.device(ctx)
	s := h.sheet(ctx, cookie)
	s.send(ctx, map[string]any{"t": "do", "a": "open", "id": "ses_1", "seq": 1})
	s.heard(ctx, "a link", note(1))
	h.mu.Lock()
	h.sticks = true // as far as the disk is concerned, a kill is this
	h.mu.Unlock()
	if err := h.door.SignOut(ctx, h.door.Devices(ctx)[0].ID); err == nil {
		t.Error("a link that could not be revoked is not told of")
	}
	if code := s.end(ctx); code != 4401 {
		t.Errorf("its socket ended with %d", code)
	}
	if status, _ := h.claim(ctx, "", with(cookie)); status != 401 || len(h.door.Devices(ctx)) != 0 {
		t.Errorf("it is still in: %d", status)
	}
	h.mu.Lock()
	h.sticks = false
	h.mu.Unlock()
	if links, _ := h.links.List(ctx); len(links) != 1 {
		t.Fatalf("links: %v", links)
	}
	h.door = h.open(nil)
	if links, _ := h.links.List(ctx); len(links) != 0 {
		t.Errorf("the next start leaves its link: %v", links)
	}
}

func TestDevicesStaySignedInAcrossARestart(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	cookie, token := h.device(ctx), h.signIn()
	if err := h.door.Close(ctx); err != nil {
		t.Fatal(err)
	}
	h.door = h.open(nil)
	if status, _ := h.claim(ctx, "", with(cookie)); status != 200 {
		t.Errorf("the device: %d", status)
	}
	if status, _ := h.claim(ctx, token); status != 200 {
		t.Errorf("the sign-in that was printed: %d", status)
	}
	// A book that cannot be read lets nobody in, and keeps nothing from starting.
	if err := h.home.Write("console.json", []byte("{")); err != nil {
		t.Fatal(err)
	}
	h.door = h.open(nil)
	if status, _ := h.claim(ctx, "", with(cookie)); status != 503 {
		t.Errorf("with a damaged book: %d", status)
	}
	if raw, err := h.home.Read("console.json"); err != nil || string(raw) != "{" {
		t.Errorf("it was overwritten: %q, %v", raw, err)
	}
	// As soon as it is mended all is as before, without a restart.
	if err := h.home.TakeBefore("console.json"); err != nil {
		t.Fatal(err)
	}
	if status, _ := h.claim(ctx, "", with(cookie)); status != 200 {
		t.Errorf("with the version before: %d", status)
	}
	h.device(ctx)
}

func TestAPictureIsSmallAndOnlyWhileNobodyDrives(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	cookie := h.device(ctx)
	answer := h.request(ctx, http.MethodGet, "/console/thumb/ses_1?n=1", "", with(cookie))
	raw, _ := io.ReadAll(answer.Body)
	small, err := jpeg.Decode(bytes.NewReader(raw))
	if err != nil || answer.Header.Get("Content-Type") != "image/jpeg" || answer.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %v", answer.StatusCode, answer.Header, err)
	}
	if b := small.Bounds(); b.Dx() != 480 || b.Dy() != 270 {
		t.Errorf("it is %v", b)
	}
	r, g, _, _ := small.At(470, 10).RGBA()
	if r>>8 < 220 || g>>8 > 30 {
		t.Errorf("its top right is %d %d", r>>8, g>>8)
	}
	h.mu.Lock()
	h.driven = true
	h.mu.Unlock()
	if answer := h.request(ctx, http.MethodGet, "/console/thumb/ses_1?n=1", "", with(cookie)); answer.StatusCode != 404 {
		t.Errorf("while a person drives: %d", answer.StatusCode)
	}
	if answer := h.request(ctx, http.MethodGet, "/console/thumb/ses_2", "", with(cookie)); answer.StatusCode != 404 {
		t.Errorf("of no session: %d", answer.StatusCode)
	}
}

func TestNothingSecretIsPrinted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	path, expires, err := h.door.SignIn(t.Context())
	if err != nil || path.String() == path.Reveal() || !path.Equal(secret.New(path.Reveal())) {
		t.Errorf("the sign-in prints: %v %v", path, err)
	}
	if left := time.Until(expires); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("it works for %v", left)
	}
}
