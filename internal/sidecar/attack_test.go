package sidecar_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// stranger is somebody at the public listener who may show anything.
type stranger struct {
	t    *testing.T
	base string // of the listener
	host string // what the requests are addressed to
	http *http.Client
}

func (r *running) stranger() *stranger {
	r.t.Helper()
	base := r.as("owner").must("GET", "/public", "")["local"].(string)
	s := &stranger{t: r.t, base: base, host: strings.TrimPrefix(base, "http://"), http: &http.Client{Transport: &http.Transport{}}}
	r.t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// origin is what a page of ours calls itself there.
func (s *stranger) origin() string {
	if strings.HasSuffix(s.base, s.host) {
		return s.base
	}
	return "https://" + s.host
}

func (s *stranger) ask(ctx context.Context, method, path, body string, change ...func(*http.Request)) (*http.Response, map[string]any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = s.host
	if method != http.MethodGet {
		r.Header.Set("Origin", s.origin())
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, _ := io.ReadAll(answer.Body)
	var said map[string]any
	_ = json.Unmarshal(raw, &said)
	return answer, said
}

func (s *stranger) claim(ctx context.Context, link, body string, change ...func(*http.Request)) (int, map[string]any, *http.Cookie) {
	s.t.Helper()
	answer, said := s.ask(ctx, http.MethodPost, "/live/"+link+"/claim", body, change...)
	for _, c := range answer.Cookies() {
		return answer.StatusCode, said, c
	}
	return answer.StatusCode, said, nil
}

// socket opens one; refused is the status of a handshake that was.
func (s *stranger) socket(ctx context.Context, link string, cookie *http.Cookie, change ...func(http.Header)) (conn *websocket.Conn, refused int) {
	s.t.Helper()
	header := http.Header{"Origin": {s.origin()}}
	if cookie != nil {
		header.Set("Cookie", cookie.Name+"="+cookie.Value)
	}
	for _, c := range change {
		c(header)
	}
	conn, answer, err := websocket.Dial(ctx, strings.Replace(s.base, "http", "ws", 1)+"/live/"+link+"/ws", &websocket.DialOptions{HTTPHeader: header, Host: s.host})
	if err != nil {
		if answer == nil {
			s.t.Fatal(err)
		}
		return nil, answer.StatusCode
	}
	conn.SetReadLimit(8 << 20)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, 0
}

// closes is how a socket ends, and whether it told the state of the page.
func closes(ctx context.Context, conn *websocket.Conn) (code websocket.StatusCode, told bool) {
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err), told
		}
		told = told || strings.Contains(string(raw), `"t":"state"`)
	}
}

// until reads until a message of the kind.
func until(ctx context.Context, t *testing.T, conn *websocket.Conn, kind string) string {
	t.Helper()
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("before %s: %v", kind, err)
		}
		if strings.Contains(string(raw), `"t":"`+kind+`"`) {
			return string(raw)
		}
	}
}

// Everything that somebody at the public listener can try, against a sidecar
// with a browser in it: nothing gets in, the page feels nothing, and it serves on.
func TestStrangersAtThePublicListenerGetNowhere(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	site := newTouchy(t)
	r := start(t, site.Server)
	session := r.must("POST", "/session/start", `{"url":"`+site.URL+`/home","screenshot":false}`)
	owner, s := r.as("owner"), r.stranger()
	mint := func() (id, token string) {
		m := owner.must("POST", "/links", `{}`)
		at, token, _ := strings.Cut(m["open_url"].(string), "#t=")
		return at[strings.LastIndex(at, "/")+1:], token
	}
	withToken := func(token string) string { return `{"token":"` + token + `"}` }
	id, token := mint()

	// Opening a link claims nothing, whatever it is opened with.
	for _, path := range []string{"/live/" + id, "/live/" + id + "/claim", "/live/" + id + "?t=" + token, "/live/" + id + "/ws"} {
		if answer, _ := s.ask(ctx, http.MethodGet, path, ""); len(answer.Cookies()) != 0 {
			t.Errorf("GET %s gives a cookie", path)
		}
	}
	for _, l := range owner.must("GET", "/links", "")["links"].([]any) {
		if l.(map[string]any)["claimed"] != false {
			t.Errorf("a GET claimed %v", l)
		}
	}
	_, _, cookie := s.claim(ctx, id, withToken(token))
	if cookie == nil {
		t.Fatal("the owner is not let in")
	}
	otherID, otherToken := mint()
	_, _, otherCookie := s.claim(ctx, otherID, withToken(otherToken))
	goneID, goneToken := mint()
	_, _, goneCookie := s.claim(ctx, goneID, withToken(goneToken))
	owner.must("DELETE", "/links/"+goneID, "")
	lateID, lateToken := mint()
	_, _, lateCookie := s.claim(ctx, lateID, withToken(lateToken))
	r.expire(lateID)

	fake := func(link, value string) *http.Cookie { return &http.Cookie{Name: "live-" + link, Value: value} }
	for name, tt := range map[string]struct {
		link   string
		cookie *http.Cookie
		want   websocket.StatusCode
	}{
		"no credential":               {id, nil, 4401},
		"a wrong one":                 {id, fake(id, strings.Repeat("A", 43)), 4410},
		"the token as one":            {id, fake(id, token), 4410},
		"another link's":              {id, otherCookie, 4401},
		"another link's, renamed":     {id, fake(id, otherCookie.Value), 4410},
		"that of a revoked link":      {goneID, goneCookie, 4410},
		"that of an expired link":     {lateID, lateCookie, 4410},
		"a session's id in its place": {session["session_id"].(string), fake(session["session_id"].(string), cookie.Value), 4410},
	} {
		conn, refused := s.socket(ctx, tt.link, tt.cookie)
		if conn == nil {
			t.Errorf("%s: refused with %d", name, refused)
			continue
		}
		if code, told := closes(ctx, conn); code != tt.want || told {
			t.Errorf("%s: closed with %d, told of the page: %v", name, code, told)
		}
	}
	for name, tt := range map[string]struct {
		link, body string
		want       int
	}{
		"a wrong token":           {id, withToken(strings.Repeat("A", 43)), http.StatusGone},
		"another link's":          {id, withToken(otherToken), http.StatusGone},
		"that of a revoked link":  {goneID, withToken(goneToken), http.StatusGone},
		"that of an expired link": {lateID, withToken(lateToken), http.StatusGone},
		"no JSON":                 {id, `token=` + token, http.StatusBadRequest},
		"much":                    {id, withToken(strings.Repeat("x", 1<<16)), http.StatusBadRequest},
	} {
		if status, said, got := s.claim(ctx, tt.link, tt.body); status != tt.want || got != nil {
			t.Errorf("a claim with %s: %d %v", name, status, said)
		}
	}
	// The claim again, from elsewhere: a number, the same after a reload, and no way in.
	status, said, second := s.claim(ctx, id, withToken(token))
	number := fmt.Sprint(said["number"])
	if status != http.StatusConflict || second == nil {
		t.Fatalf("a second device: %d %v", status, said)
	}
	again := func(r *http.Request) { r.AddCookie(second) }
	if status, said, _ := s.claim(ctx, id, `{}`, again); status != http.StatusConflict || fmt.Sprint(said["number"]) != number {
		t.Errorf("after a reload: %d %v, not %s", status, said, number)
	}
	conn, _ := s.socket(ctx, id, second)
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != 4409 || !strings.Contains(err.Error(), number) {
		t.Errorf("its socket: %v", err)
	}

	// Pages and names of others.
	for name, change := range map[string]func(http.Header){
		"a foreign page":            func(h http.Header) { h.Set("Origin", "https://evil.example") },
		"a page without an origin":  func(h http.Header) { h.Set("Origin", "null") },
		"another port of loopback":  func(h http.Header) { h.Set("Origin", site.URL) },
		"the browser's own word":    func(h http.Header) { h.Set("Sec-Fetch-Site", "cross-site") },
		"no origin at all":          func(h http.Header) { h.Del("Origin") },
		"two origins":               func(h http.Header) { h.Add("Origin", "https://evil.example") },
		"https where there is none": func(h http.Header) { h.Set("Origin", strings.Replace(s.base, "http", "https", 1)) },
	} {
		if conn, refused := s.socket(ctx, id, cookie, change); conn != nil || refused != http.StatusForbidden {
			t.Errorf("a socket of %s: %d", name, refused)
		}
	}
	for _, host := range []string{"evil.example", "127.0.0.1", "localhost.evil.example:" + s.host, "tapin.example.com"} {
		if answer, _ := s.ask(ctx, http.MethodGet, "/live/"+id, "", func(r *http.Request) { r.Host = host }); answer.StatusCode != http.StatusForbidden {
			t.Errorf("Host %s: %d", host, answer.StatusCode)
		}
	}
	answer, _ := s.ask(ctx, http.MethodGet, "/live/"+id, "")
	if csp := answer.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "script-src 'self'") ||
		answer.Header.Get("X-Frame-Options") != "DENY" || answer.Header.Get("Referrer-Policy") != "no-referrer" || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the shell comes with %v", answer.Header)
	}
	// What the control listener has is not here, under no spelling.
	for _, path := range []string{
		"/health", "/session/status", "/sessions", "/links", "/public", "/mcp", "/openapi.json", "/metrics", "/events", "/owner.token", "/live/", "/live",
		"/live/" + id + "/../../owner.token", "/live/..%2f..%2fowner.token", "/assets/../../owner.token", "/assets/%2e%2e/%2e%2e/agent.token", "//session/status",
		"/live/" + id + "/download/..%2f..%2fowner.token", "/live/" + id + "/upload",
	} {
		answer, said := s.ask(ctx, http.MethodGet, path, "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+owner.agent)
			r.AddCookie(cookie)
		})
		if answer.StatusCode == http.StatusOK || said["ok"] == true {
			t.Errorf("GET %s: %d %v", path, answer.StatusCode, said)
		}
	}

	// Input while the agent drives, under a hand-off that never was, under one that
	// is over, and after the end.
	before := site.all()
	conn, _ = s.socket(ctx, id, cookie)
	until(ctx, t, conn, "state")
	push := func(handoff string) {
		t.Helper()
		for _, m := range []string{
			`{"t":"ptr","h":%q,"k":"down","x":20,"y":20,"f":0,"fingers":[{"f":0,"x":20,"y":20}]}`, `{"t":"key","h":%q,"k":"down","key":"a","code":"KeyA"}`,
			`{"t":"text","h":%q,"s":"evil"}`, `{"t":"paste","h":%q,"s":"evil"}`, `{"t":"wheel","h":%q,"x":5,"y":5,"dx":0,"dy":500}`,
			`{"t":"do","h":%q,"a":"reload"}`, `{"t":"do","h":%q,"a":"done"}`, `{"t":"do","h":%q,"a":"abort"}`, `{"t":"edit","h":%q,"id":"1.1","value":"evil","base":null,"seq":1}`,
		} {
			if err := conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, m, handoff)); err != nil {
				t.Fatal(err)
			}
			if note := until(ctx, t, conn, "note"); !regexp.MustCompile(`HANDOFF_NOT_RUNNING|INVALID_REQUEST|NOT_FOUND`).MatchString(note) {
				t.Errorf("%s under %q: %s", m, handoff, note)
			}
		}
		if status, said := s.upload(ctx, id, cookie, handoff); status < 400 {
			t.Errorf("an upload under %q: %d %v", handoff, status, said)
		}
	}
	push("")
	push("hof_00000000000000000000000000")
	first := owner.must("POST", "/session/takeover", `{}`)["handoff_id"].(string)
	owner.must("POST", "/handoff/"+first+"/finish", `{}`)
	until(ctx, t, conn, "end")
	push(first)
	later := owner.must("POST", "/session/takeover", `{}`)["handoff_id"].(string)
	push(first) // another one runs meanwhile
	owner.must("POST", "/handoff/"+later+"/finish", `{}`)
	if after := site.all(); after != before {
		t.Errorf("the page felt %s", strings.TrimPrefix(after, before))
	}

	// What makes no sense is told so, and then the socket is closed.
	conn, _ = s.socket(ctx, id, cookie)
	until(ctx, t, conn, "state")
	for i := range 30 {
		bad := []string{`{`, `[]`, `{"t":"ptr","x":"NaN"}`, `{"t":"nothing"}`, `{"t":1}`, "\xff\xfe", `{"t":"ptr","x":1e999}`}[i%7]
		if conn.Write(ctx, websocket.MessageText, []byte(bad)) != nil {
			break
		}
	}
	if code, _ := closes(ctx, conn); code != 4429 && code != 1007 {
		t.Errorf("nonsense closes with %d", code)
	}
	conn, _ = s.socket(ctx, id, cookie)
	_ = conn.Write(ctx, websocket.MessageText, []byte(`{"t":"text","s":"`+strings.Repeat("x", 1<<20)+`"}`))
	if code, _ := closes(ctx, conn); code == 1000 {
		t.Errorf("a message that is too large closes with %d", code)
	}

	s.guess(ctx, otherID, testwait.Rounds(2_000, 10_000))
	r.must("GET", "/session/status", "")
	if text := fmt.Sprint(r.must("GET", "/session/text", "")["text"]); !strings.Contains(text, "touchy-text") {
		t.Errorf("the agent sees %s", text)
	}
	for _, secret := range []string{token, otherToken, cookie.Value, second.Value} {
		if strings.Contains(r.log.String(), secret) {
			t.Error("a secret of a link is in the log")
		}
	}
	noCanary(t, filepath.Join(r.dir, "links"), token, otherToken, cookie.Value, second.Value)
}

// expire has a link's time be over, as the clock would.
func (r *running) expire(link string) {
	r.t.Helper()
	file := filepath.Join(r.dir, "links", link+".json")
	raw, err := os.ReadFile(file) //nolint:gosec // of this test's home
	if err == nil {
		raw = regexp.MustCompile(`"expires_at": ?"[^"]+"`).ReplaceAll(raw, []byte(`"expires_at":"2020-01-01T00:00:00Z"`))
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (s *stranger) upload(ctx context.Context, link string, cookie *http.Cookie, handoff string) (int, map[string]any) {
	s.t.Helper()
	const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nevil\r\n--b--\r\n"
	answer, said := s.ask(ctx, http.MethodPost, "/live/"+link+"/upload?h="+handoff, form, func(r *http.Request) {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.AddCookie(cookie)
	})
	return answer.StatusCode, said
}

// guess shows a link that many made-up tokens, from many hands at once.
func (s *stranger) guess(ctx context.Context, link string, many int) {
	s.t.Helper()
	var left, in atomic.Int64
	left.Store(int64(many))
	var hands sync.WaitGroup
	for range 8 {
		hands.Go(func() {
			for left.Add(-1) >= 0 {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/live/"+link+"/claim", strings.NewReader(fmt.Sprintf(`{"token":"%043d"}`, left.Load())))
				if err != nil {
					return
				}
				r.Header.Set("Origin", s.base)
				r.Header.Set("Content-Type", "application/json")
				answer, err := s.http.Do(r)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						s.t.Error(err)
					}
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode < 400 || len(answer.Cookies()) > 0 {
					in.Add(1)
				}
			}
		})
	}
	hands.Wait()
	if in.Load() > 0 {
		s.t.Errorf("%d of %d guesses got in", in.Load(), many)
	}
}

// Who opens the address that an agent was given, through the public name and
// without a token, waits for the owner's word.
func TestWhoOpensTheAgentsAddressFromOutsideIsLetInByTheOwner(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newTouchy(t)
	r := start(t, site.Server)
	begun := r.must("POST", "/session/start", `{"url":"`+site.URL+`/home","screenshot":false}`)
	view := begun["live_view_url"].(string)
	id := view[strings.LastIndex(view, "/")+1:]
	owner, s := r.as("owner"), r.stranger()
	outside := *s
	outside.host = "calm-tree.example"
	if answer, _ := outside.ask(ctx, http.MethodGet, "/live/"+id, ""); answer.StatusCode != http.StatusForbidden {
		t.Fatalf("a name that nobody told of: %d", answer.StatusCode)
	}
	owner.must("PUT", "/public", `{"url":"https://calm-tree.example"}`)
	testwait.For(t, "the name being ours", func() bool {
		answer, _ := outside.ask(ctx, http.MethodGet, "/live/"+id, "")
		return answer.StatusCode == http.StatusOK
	})
	if now := r.must("GET", "/session/status", "")["live_view_url"]; now != "https://calm-tree.example/live/"+id {
		t.Errorf("the agent is told %v", now)
	}
	status, said, cookie := outside.claim(ctx, id, `{}`)
	if status != http.StatusConflict || cookie == nil || !cookie.Secure || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Fatalf("it knocks: %d %v %v", status, said, cookie)
	}
	conn, _ := outside.socket(ctx, id, cookie)
	if code, told := closes(ctx, conn); code != 4409 || told {
		t.Errorf("before the owner's word: %d, told of the page: %v", code, told)
	}
	r.refused("POST", "/links/"+id+"/move", fmt.Sprintf(`{"number":%v}`, said["number"]), "FORBIDDEN")
	owner.must("POST", "/links/"+id+"/move", fmt.Sprintf(`{"number":%v}`, said["number"]))
	conn, _ = outside.socket(ctx, id, cookie)
	until(ctx, t, conn, "state")
	// On this machine, as the same user, it would have opened by itself; now it is taken.
	if status, _, _ := s.claim(ctx, id, `{}`); status != http.StatusConflict {
		t.Errorf("a second device on this machine: %d", status)
	}
	owner.must("PUT", "/public", `{"url":""}`)
	testwait.For(t, "the name being nobody's", func() bool {
		answer, _ := outside.ask(ctx, http.MethodGet, "/live/"+id, "")
		return answer.StatusCode == http.StatusForbidden
	})
	owner.must("POST", "/session/stop", `{}`)
	if code, _ := closes(ctx, conn); code != 4410 {
		t.Errorf("the end of the session closes with %d", code)
	}
	if left := owner.must("GET", "/links", "")["links"].([]any); len(left) != 0 {
		t.Errorf("links outlive their session: %v", left)
	}
}

// Who opens the agent's address on this very machine, as the same user, is in
// without a token and without a number.
func TestTheAgentsAddressOpensOnThisMachine(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newTouchy(t)
	r := start(t, site.Server)
	view := r.must("POST", "/session/start", `{"url":"`+site.URL+`/home","screenshot":false}`)["live_view_url"].(string)
	phone := browsertest.NewPhone(ctx, t, browsertest.Network{})
	phone.Open(view)
	phone.Until("the agent at work", `document.documentElement.dataset.bar === "watch" && document.querySelector("#picture").width > 1`)
	// And takes the wheel.
	phone.Tap("#takeover")
	phone.Until("the wheel", `document.documentElement.dataset.bar === "you"`)
	if now := r.must("GET", "/session/status", ""); now["driver"] != "human" {
		t.Errorf("the agent is told %v", now)
	}
}
