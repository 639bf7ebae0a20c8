package console_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"tapin/internal/browser/browsertest"
	"tapin/internal/console"
	"tapin/internal/testwait"
)

func TestWhoIsNotSignedIn(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	in := h.device(ctx)
	out := h.device(ctx)
	// The later of the two is the first in the list.
	if err := h.door.SignOut(ctx, h.door.Devices(ctx)[0].ID); err != nil {
		t.Fatal(err)
	}
	printed := h.signIn()
	for name, cookie := range map[string]*http.Cookie{
		"no cookie":                          nil,
		"an empty one":                       {Name: "console", Value: ""},
		"a made-up one":                      {Name: "console", Value: strings.Repeat("A", 43)},
		"a sign-in's token":                  {Name: "console", Value: printed},
		"the encrypted name without the way": {Name: "__Host-console", Value: in.Value},
		"a device that was signed out":       out,
	} {
		conn, _, err := h.dial(ctx, cookie)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, raw, err := conn.Read(ctx)
		if got := websocket.CloseStatus(err); got != 4401 || len(raw) > 0 {
			t.Errorf("%s: closed with %d after %q", name, got, raw)
		}
		change := func(*http.Request) {}
		if cookie != nil {
			change = with(cookie)
		}
		if answer := h.request(ctx, http.MethodGet, "/console/thumb/ses_1", "", change); answer.StatusCode != 401 {
			t.Errorf("%s: a picture: %d", name, answer.StatusCode)
		}
		if status, set := h.claim(ctx, "", change); status != 401 || set != nil {
			t.Errorf("%s: the claim: %d, %v", name, status, set)
		}
	}
	if conn, _, err := h.dial(ctx, in); err != nil {
		t.Error(err)
	} else if _, raw, err := conn.Read(ctx); err != nil || !strings.Contains(string(raw), `"t":"state"`) {
		t.Errorf("the device that is in: %v", err)
	}
}

func TestASignInIsAPostAndWorksOnce(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	token := h.signIn()
	// What previews and mail scanners do with a link, and what else is no claim.
	for name, answer := range map[string]*http.Response{
		"the shell":      h.request(ctx, http.MethodGet, "/console", ""),
		"the token":      h.request(ctx, http.MethodGet, "/console?t="+token, ""),
		"claim by GET":   h.request(ctx, http.MethodGet, "/console/claim?token="+token, ""),
		"claim by HEAD":  h.request(ctx, http.MethodHead, "/console/claim?token="+token, ""),
		"claim by PUT":   h.request(ctx, http.MethodPut, "/console/claim", `{"token":"`+token+`"}`),
		"a form":         h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }),
		"no origin":      h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}`, func(r *http.Request) { r.Header.Del("Origin") }),
		"another origin": h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}`, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }),
		"another host":   h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}`, func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") }),
		"something else": h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`","x":1}`),
		"two bodies":     h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}{}`),
		"too long":       h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"`+strings.Repeat(" ", 2000)+"}"),
		"in the clear":   h.request(ctx, http.MethodPost, "/console/claim", `{"token":"`+token+`"}`, tunnelled, func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "http") }),
	} {
		if len(answer.Cookies()) != 0 {
			t.Errorf("%s sets a cookie", name)
		}
		if body, _ := io.ReadAll(answer.Body); strings.Contains(string(body), token) {
			t.Errorf("%s quotes the token", name)
		}
	}
	status, cookie := h.claim(ctx, token, tunnelled)
	if status != 200 || cookie == nil || cookie.Name != "__Host-console" || !cookie.HttpOnly || !cookie.Secure ||
		cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 30*24*3600 {
		t.Fatalf("the claim: %d, %v", status, cookie)
	}
	if status, again := h.claim(ctx, token); status != 401 || again != nil {
		t.Errorf("the same token again: %d, %v", status, again)
	}
	if status, _ := h.claim(ctx, "", tunnelled, with(cookie)); status != 200 {
		t.Errorf("a reload of the page: %d", status)
	}
	// A device that is in spends a further sign-in and stays one device.
	next := h.signIn()
	if status, set := h.claim(ctx, next, tunnelled, with(cookie)); status != 200 || set != nil {
		t.Errorf("a further sign-in of the same device: %d, %v", status, set)
	}
	if status, _ := h.claim(ctx, next); status != 401 {
		t.Errorf("it was not spent: %d", status)
	}
	if devices := h.door.Devices(ctx); len(devices) != 1 {
		t.Errorf("devices: %v", devices)
	}
	for _, secret := range []string{token, next, cookie.Value} {
		absent(t, h.dir, secret)
	}
}

// absent looks for a secret in all files of the home.
func absent(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s holds a secret in the clear", e.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestThousandsOfGuessesGetNobodyInAndKeepNobodyOut(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	token := h.signIn()
	limited := 0
	visit := console.Visit{Origin: "https://tapin.example.com", Address: "203.0.113.1", Secure: true}
	// Straight at the door: the listener in front would stop nearly all of them.
	door := h.open(func(d *console.Deps) { d.Visit = func(*http.Request) console.Visit { return visit } })
	for i := range testwait.Rounds(2_000, 10_000) {
		guess := token[:len(token)-4] + string(rune('A'+i%26)) + string(rune('a'+i/26%26)) + string(rune('A'+i/676%26)) + "!"
		w := newAnswer()
		door.ServeHTTP(w, post(ctx, t, `{"token":"`+guess+`"}`))
		switch {
		case w.status == http.StatusTooManyRequests:
			limited++
		case w.status != http.StatusUnauthorized:
			t.Fatalf("guess %d: %d", i, w.status)
		}
		if w.head.Get("Set-Cookie") != "" {
			t.Fatal("a guess was given a cookie")
		}
	}
	if limited < testwait.Rounds(2_000, 10_000)-100 {
		t.Errorf("only %d guesses were turned away for their number", limited)
	}
	w := newAnswer()
	door.ServeHTTP(w, post(ctx, t, `{"token":"`+token+`"}`))
	if w.status != 200 || w.head.Get("Set-Cookie") == "" {
		t.Errorf("the owner, from the same address: %d", w.status)
	}
}

// recorded is an answer without a network.
type recorded struct {
	head   http.Header
	status int
}

func newAnswer() *recorded                            { return &recorded{head: http.Header{}} }
func (a *recorded) Header() http.Header               { return a.head }
func (a *recorded) WriteHeader(status int)            { a.status = status }
func (a *recorded) Write(b []byte) (n int, err error) { return len(b), nil }

func post(ctx context.Context, t *testing.T, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/console/claim", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

func TestPagesOfOtherSitesReachNothing(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	cookie := h.device(ctx)
	for name, change := range map[string]func(http.Header){
		"another site":          func(head http.Header) { head.Set("Origin", "https://evil.example") },
		"another port":          func(head http.Header) { head.Set("Origin", "http://127.0.0.1:1") },
		"no origin":             func(head http.Header) { head.Del("Origin") },
		"the null origin":       func(head http.Header) { head.Set("Origin", "null") },
		"two origins":           func(head http.Header) { head.Add("Origin", "https://evil.example") },
		"a site that says so":   func(head http.Header) { head.Set("Sec-Fetch-Site", "cross-site") },
		"a page of a neighbour": func(head http.Header) { head.Set("Sec-Fetch-Site", "same-site") },
	} {
		if _, answer, err := h.dial(ctx, cookie, change); err == nil || answer == nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"a picture in another site's page": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "image")
		},
		"another name": func(r *http.Request) { r.Host = "evil.example" },
	} {
		if answer := h.request(ctx, http.MethodGet, "/console/thumb/ses_1", "", with(cookie), change); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
	shell := h.request(ctx, http.MethodGet, "/console", "")
	policy := shell.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s", part)
		}
	}
	if shell.StatusCode != 200 || shell.Header.Get("X-Frame-Options") != "DENY" || shell.Header.Get("Referrer-Policy") != "no-referrer" || shell.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the shell: %d, %v", shell.StatusCode, shell.Header)
	}
	for _, path := range []string{"/console/", "/console/thumb/", "/console/thumb/ses_1/..", "/console/../console/claim", "/console/thumb/..%2f..%2fconsole.json", "/console/nothing"} {
		if answer := h.request(ctx, http.MethodGet, path, "", with(cookie)); answer.StatusCode == 200 {
			t.Errorf("GET %s is answered", path)
		}
	}
}

func TestThereIsNoConsoleOnAWayThatOthersCanRead(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	open := h.open(func(d *console.Deps) {
		d.Visit = func(*http.Request) console.Visit {
			return console.Visit{Origin: "http://192.168.1.5:3850", Address: "192.168.1.9"}
		}
	})
	token := h.signIn()
	w := newAnswer()
	open.ServeHTTP(w, post(ctx, t, `{"token":"`+token+`"}`))
	if w.status != http.StatusForbidden || w.head.Get("Set-Cookie") != "" {
		t.Errorf("the claim: %d, %v", w.status, w.head)
	}
	if status, _ := h.claim(ctx, token); status != 200 {
		t.Errorf("the sign-in was spent there: %d", status)
	}
}

func TestMessagesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := newHouse(t, nil)
	cookie := h.device(ctx)
	s := h.sheet(ctx, cookie)
	s.heard(ctx, "the state", kind("state"))
	bad := []string{
		``, `null`, `[]`, `"do"`, `{`, `{}`, `{"t":"do"}{"t":"do"}`, `{"t":"state"}`, `{"t":"do","a":"done","id":7}`, `{"t":"do","a":"done","more":1}`,
		`{"t":"do","a":"done","id":"` + strings.Repeat("x", 5000) + `"}`, "{\"t\":\"do\",\"a\":\"\xff\"}", `{"t":"do","a":"open","id":"` + strings.Repeat("y", 200) + `"}`,
	}
	for i, raw := range bad {
		if err := s.conn.Write(ctx, websocket.MessageText, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		want := i + 1
		s.heard(ctx, raw, func(map[string]any) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			notes := 0
			for _, m := range s.words {
				if m["t"] == "note" && m["ok"] == false {
					notes++
				}
			}
			return notes >= want
		})
	}
	if err := s.conn.Write(ctx, websocket.MessageBinary, []byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	s.send(ctx, map[string]any{"t": "do", "a": "launch_missiles", "seq": 99})
	if m := s.heard(ctx, "an unknown deed", note(99)); m["ok"] != false || m["code"] != "INVALID_REQUEST" {
		t.Errorf("got %v", m)
	}
	if deeds := h.done(); len(deeds) != 0 {
		t.Errorf("something was done: %v", deeds)
	}
	for range 20 {
		if s.conn.Write(ctx, websocket.MessageText, []byte("{")) != nil {
			break
		}
	}
	if code := s.end(ctx); code != 4429 {
		t.Errorf("after too many of them it ended with %d", code)
	}

	large := h.sheet(ctx, cookie)
	large.heard(ctx, "the state", kind("state"))
	_ = large.conn.Write(ctx, websocket.MessageText, []byte(`{"t":"do","id":"`+strings.Repeat("x", 1<<20)+`"}`))
	if code := large.end(ctx); code != websocket.StatusMessageTooBig {
		t.Errorf("a mebibyte: %d", code)
	}

	many := h.sheet(ctx, cookie)
	many.heard(ctx, "the state", kind("state"))
	raw, _ := json.Marshal(map[string]any{"t": "ping", "n": 1})
	for range 500 {
		if many.conn.Write(ctx, websocket.MessageText, raw) != nil {
			break
		}
	}
	// What is still on its way when the socket closes may cut off the reason.
	if code := many.end(ctx); code != 4429 && code != -1 {
		t.Errorf("500 messages at once: %d", code)
	}
	answered := 0
	for _, m := range many.words {
		if m["t"] == "pong" {
			answered++
		}
	}
	if answered > 60 {
		t.Errorf("%d of 500 messages at once were answered", answered)
	}
}
