package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// desk is the owner at the console of a real sidecar, without a browser around.
type desk struct {
	t      *testing.T
	base   string // of the public listener
	cookie *http.Cookie
	conn   *websocket.Conn
	seq    int
	state  map[string]any
	opened string
	told   map[string]any // of figures
}

// signIn opens the console with a sign-in as the terminal shows it.
func (r *running) signIn(ctx context.Context) *desk {
	r.t.Helper()
	status, made, _ := r.owner().do(http.MethodPost, "/console/sign-in", "{}")
	address, _ := made["open_url"].(string)
	base, token, ok := strings.Cut(address, "/console#t=")
	if status != http.StatusOK || !ok {
		r.t.Fatalf("the sign-in: %d", status)
	}
	d := &desk{t: r.t, base: base}
	answer := d.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}`)
	if len(answer.Cookies()) != 1 {
		r.t.Fatalf("the claim: %d", answer.StatusCode)
	}
	d.cookie = answer.Cookies()[0]
	header := http.Header{"Origin": {base}, "Cookie": {d.cookie.Name + "=" + d.cookie.Value}}
	conn, _, err := websocket.Dial(ctx, strings.Replace(base, "http", "ws", 1)+"/console/ws", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		r.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	r.t.Cleanup(func() { _ = conn.CloseNow() })
	d.conn = conn
	return d
}

func (d *desk) request(ctx context.Context, method, path, body string) *http.Response {
	d.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if method != http.MethodGet {
		r.Header.Set("Origin", d.base)
		r.Header.Set("Content-Type", "application/json")
	}
	if d.cookie != nil {
		r.AddCookie(d.cookie)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatal(err)
	}
	raw, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		d.t.Fatal(err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	return answer
}

// read takes one message in.
func (d *desk) read(ctx context.Context) map[string]any {
	d.t.Helper()
	_, raw, err := d.conn.Read(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		d.t.Fatal(err)
	}
	switch m["t"] {
	case "state":
		d.state = m
	case "figures":
		d.told = m
	case "open":
		d.opened, _ = m["url"].(string)
	}
	return m
}

// sees waits for a state that is so, and tells what the lists then hold.
func (d *desk) sees(ctx context.Context, what, list string, is func(first map[string]any, all []any) bool) map[string]any {
	d.t.Helper()
	ctx, cancel := testwait.Within(ctx)
	defer cancel()
	for {
		all, _ := d.state[list].([]any)
		first := map[string]any{}
		if len(all) > 0 {
			first, _ = all[0].(map[string]any)
		}
		if d.state != nil && is(first, all) {
			return first
		}
		if ctx.Err() != nil {
			d.t.Fatalf("%s: %v", what, d.state[list])
		}
		d.read(ctx)
	}
}

// does asks for something and returns the answer.
func (d *desk) does(ctx context.Context, m map[string]any) map[string]any {
	d.t.Helper()
	d.seq++
	m["t"], m["seq"] = "do", d.seq
	raw, err := json.Marshal(m)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		d.t.Fatal(err)
	}
	for {
		if m := d.read(ctx); m["t"] == "note" && m["seq"] == float64(d.seq) {
			return m
		}
	}
}

func TestTheOwnerSeesAndDecidesEverythingAtTheConsole(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := openDoor(t)
	r := start(t, site)
	d := r.signIn(ctx)
	d.sees(ctx, "no session", "sessions", func(_ map[string]any, all []any) bool { return len(all) == 0 })
	if status, _, _ := r.do(http.MethodPost, "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`); status != 200 {
		t.Fatal(status)
	}
	on := d.sees(ctx, "the session", "sessions", func(s map[string]any, _ []any) bool { return s["title"] == "Sign in" })
	if on["driver"] != "agent" || on["host"] != "127.0.0.1" || on["thumb"] == nil {
		t.Errorf("the session: %v", on)
	}
	id := on["id"].(string)
	before := len(journalOf(t, r))
	picture := d.request(ctx, http.MethodGet, "/console/thumb/"+id, "")
	raw, _ := io.ReadAll(picture.Body)
	if small, err := jpeg.Decode(bytes.NewReader(raw)); err != nil || small.Bounds().Dx() != 480 {
		t.Errorf("its picture: %d %v", picture.StatusCode, err)
	}
	if len(journalOf(t, r)) != before {
		t.Error("the owner's look is in the journal as the agent's")
	}

	status, begun, _ := r.do(http.MethodPost, "/handoff/start", `{"reason":"login","instruction":"Please sign in.","verify":[{"text":"Balance"}]}`)
	if status != 200 {
		t.Fatal(status, begun)
	}
	handed := d.sees(ctx, "the hand-off", "handoffs", func(h map[string]any, _ []any) bool { return h["instruction"] == "Please sign in." })
	d.sees(ctx, "whose turn it is", "sessions", func(s map[string]any, _ []any) bool { return s["driver"] == "nobody" && s["thumb"] == nil })
	if answer := d.request(ctx, http.MethodGet, "/console/thumb/"+id, ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a picture while it is the owner's: %d", answer.StatusCode)
	}
	version := handed["version"].(float64)
	if n := d.does(ctx, map[string]any{"a": "done", "id": handed["id"], "version": version + 1}); n["ok"] != false || n["code"] != "INVALID_REQUEST" {
		t.Errorf("a decision about what was not shown: %v", n)
	}
	if n := d.does(ctx, map[string]any{"a": "done", "id": handed["id"], "version": version}); n["ok"] != false || !strings.Contains(n["text"].(string), "does not look done") {
		t.Errorf("done that is not: %v", n)
	}
	if n := d.does(ctx, map[string]any{"a": "extend", "id": handed["id"], "minutes": 15}); n["ok"] != true {
		t.Errorf("more time: %v", n)
	}

	if n := d.does(ctx, map[string]any{"a": "open", "id": id}); n["ok"] != true {
		t.Fatalf("open: %v", n)
	}
	path, token, _ := strings.Cut(d.opened, "#t=")
	answer := d.request(ctx, http.MethodPost, path+"/claim", `{"token":"`+token+`"}`)
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 || !strings.Contains(string(body), `"drive"`) {
		t.Fatalf("the live view on this device: %d %s", answer.StatusCode, body)
	}
	d.sees(ctx, "the link", "links", func(l map[string]any, all []any) bool {
		return len(all) == 1 && l["this_device"] == true && l["claimed"] == true
	})

	if status, said, _ := r.owner().do(http.MethodPost, "/session/click", `{"selector":"input","screenshot":false}`); status != 200 {
		t.Fatal(status, said)
	}
	if status, said, _ := r.owner().do(http.MethodPost, "/handoff/"+handed["id"].(string)+"/type", `{"text":"`+relayed+`"}`); status != 200 {
		t.Fatal(status, said)
	}
	if status, _, _ := r.owner().do(http.MethodPost, "/session/press", `{"key":"Enter"}`); status != 200 {
		t.Fatal(status)
	}
	if status, said, _ := r.owner().do(http.MethodPost, "/session/wait", `{"text":"Balance","screenshot":false}`); status != 200 {
		t.Fatal(status, said)
	}
	for _, h := range d.state["handoffs"].([]any) {
		version = h.(map[string]any)["version"].(float64)
	}
	if n := d.does(ctx, map[string]any{"a": "done", "id": handed["id"], "version": version}); n["ok"] != true {
		t.Errorf("done: %v", n)
	}
	past := d.sees(ctx, "what became of it", "history", func(h map[string]any, _ []any) bool { return h["status"] == "FINISHED" })
	if past["verified"] != true || len(past["delta"].([]any)) == 0 || past["site"] == "" {
		t.Errorf("history: %v", past)
	}
	d.sees(ctx, "an empty inbox", "handoffs", func(_ map[string]any, all []any) bool { return len(all) == 0 })
	d.sees(ctx, "the agent again", "sessions", func(s map[string]any, _ []any) bool { return s["driver"] == "agent" && s["thumb"] != nil })

	if n := d.does(ctx, map[string]any{"a": "end_session", "id": id}); n["ok"] != true {
		t.Errorf("the end of the session: %v", n)
	}
	d.sees(ctx, "no session", "sessions", func(_ map[string]any, all []any) bool { return len(all) == 0 })
	d.sees(ctx, "no link", "links", func(_ map[string]any, all []any) bool { return len(all) == 0 })
	for _, canary := range []string{relayed, handoffCookie, handoffLocal, token, d.cookie.Value} {
		if strings.Contains(r.log.String(), canary) {
			t.Error("a secret is in the log")
		}
	}
}

func journalOf(t *testing.T, r *running) []any {
	t.Helper()
	_, answer, _ := r.do(http.MethodGet, "/journal", "")
	entries, _ := answer["entries"].([]any)
	return entries
}

func TestADeviceThatIsSignedOutLosesTheBrowserItHasOpen(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := openDoor(t)
	r := start(t, site)
	if status, _, _ := r.do(http.MethodPost, "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`); status != 200 {
		t.Fatal(status)
	}
	lost := r.signIn(ctx)
	on := lost.sees(ctx, "the session", "sessions", func(_ map[string]any, all []any) bool { return len(all) == 1 })
	lost.does(ctx, map[string]any{"a": "open", "id": on["id"]})
	path, token, _ := strings.Cut(lost.opened, "#t=")
	answer := lost.request(ctx, http.MethodPost, path+"/claim", `{"token":"`+token+`"}`)
	live := answer.Cookies()[0]
	header := http.Header{"Origin": {lost.base}, "Cookie": {live.Name + "=" + live.Value}}
	conn, _, err := websocket.Dial(ctx, strings.Replace(lost.base, "http", "ws", 1)+path+"/ws", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(8 << 20)
	_, devices, _ := r.owner().do(http.MethodGet, "/console/devices", "")
	device := devices["devices"].([]any)[0].(map[string]any)["device_id"].(string)
	if status, _, _ := r.do(http.MethodDelete, "/console/devices/"+device, ""); status != http.StatusForbidden {
		t.Errorf("the agent signs the owner out: %d", status)
	}
	if status, _, _ := r.owner().do(http.MethodDelete, "/console/devices/"+device, ""); status != 200 {
		t.Fatal(status)
	}
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	if code := websocket.CloseStatus(err); code != 4410 {
		t.Errorf("the live view on it ended with %v", err)
	}
	for err = nil; err == nil; {
		_, _, err = lost.conn.Read(ctx)
	}
	if code := websocket.CloseStatus(err); code != 4401 {
		t.Errorf("the console on it ended with %v", err)
	}
}

func TestTheAddressThatTheAgentKnowsLetsTheSignedInOwnerIn(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := openDoor(t)
	r := start(t, site, "public_url=https://tapin.example.com")
	status, begun, _ := r.do(http.MethodPost, "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	address, _ := begun["live_view_url"].(string)
	path, ok := strings.CutPrefix(address, "https://tapin.example.com")
	if status != 200 || !ok {
		t.Fatal(status, address)
	}
	_, made, _ := r.owner().do(http.MethodPost, "/console/sign-in", "{}")
	_, token, _ := strings.Cut(made["open_url"].(string), "#t=")
	_, where, _ := r.owner().do(http.MethodGet, "/public", "")
	// As a tunnel on this machine passes it on.
	far := func(path, body string, cookies ...*http.Cookie) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, where["local"].(string)+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "tapin.example.com"
		for name, value := range map[string]string{"Origin": "https://tapin.example.com", "Content-Type": "application/json", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"} {
			req.Header.Set(name, value)
		}
		for _, c := range cookies {
			req.AddCookie(c)
		}
		answer, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	if answer := far(path+"/claim", "{}"); answer.StatusCode != http.StatusConflict {
		t.Errorf("a stranger with the address: %d", answer.StatusCode)
	}
	in := far("/console/claim", `{"token":"`+token+`"}`)
	if in.StatusCode != 200 || len(in.Cookies()) != 1 || in.Cookies()[0].Name != "__Host-console" {
		t.Fatalf("the sign-in: %d %v", in.StatusCode, in.Cookies())
	}
	if answer := far(path+"/claim", "{}", in.Cookies()...); answer.StatusCode != 200 || len(answer.Cookies()) != 1 {
		t.Errorf("the owner with the address: %d", answer.StatusCode)
	}
}

func TestAYesAtTheConsoleIsToThePolicyThatWasShown(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	r := start(t, openDoor(t))
	book := filepath.Join(r.dir, "browser-contexts.yaml")
	says := func(amount string) {
		t.Helper()
		if err := os.WriteFile(book, []byte("contexts:\n  shop:\n    domain: 127.0.0.1\n    payment_approval: {max_amount: "+amount+", currency: EUR, auto_approve: true}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says("50")
	d := r.signIn(ctx)
	waits := func(amount string) any {
		t.Helper()
		l := d.sees(ctx, "a policy that waits", "logins", func(l map[string]any, _ []any) bool {
			p, _ := l["policy"].(map[string]any)
			said, _ := p["max_amount"].(string)
			return p["pending"] == true && strings.TrimSuffix(said, ".00") == amount
		})
		return l["policy"].(map[string]any)["proposal"]
	}
	inForce := func() int {
		_, now, _ := r.owner().do(http.MethodGet, "/policies", "")
		all, _ := now["policies"].([]any)
		return len(all)
	}
	shown := waits("50")
	says("5000") // while the owner makes up his mind
	if n := d.does(ctx, map[string]any{"a": "policy_confirm", "id": "shop", "proposal": shown}); n["ok"] != false || inForce() != 0 {
		t.Errorf("a yes to 50 allows something else: %v, %d in force", n, inForce())
	}
	if n := d.does(ctx, map[string]any{"a": "policy_confirm", "id": "shop"}); n["ok"] != false || inForce() != 0 {
		t.Errorf("a yes to nothing: %v", n)
	}
	if n := d.does(ctx, map[string]any{"a": "policy_confirm", "id": "shop", "proposal": waits("5000")}); n["ok"] != true || inForce() != 1 {
		t.Errorf("a yes to what is shown: %v, %d in force", n, inForce())
	}
}
