package liveview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/browser/browsertest"
	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

func TestWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := closed(t, nil)
	l, token := h.mint(link.Drive)
	_, _, cookie := h.claim(ctx, l.ID, token)
	other, otherToken := h.mint(link.Drive)
	_, _, otherCookie := h.claim(ctx, other.ID, otherToken)
	elsewhere, elsewhereToken, err := h.links.Mint(ctx, "ses_other", link.Drive, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	_, _, elsewhereCookie := h.claim(ctx, elsewhere.ID, elsewhereToken)
	revoked, revokedToken := h.mint(link.Drive)
	_, _, revokedCookie := h.claim(ctx, revoked.ID, revokedToken)
	if err := h.links.Revoke(ctx, revoked.ID); err != nil {
		t.Fatal(err)
	}
	fake := func(id, value string) *http.Cookie { return &http.Cookie{Name: "live-" + id, Value: value} }
	for name, tt := range map[string]struct {
		id     string
		cookie *http.Cookie
		want   websocket.StatusCode
	}{
		"no credential":                      {l.ID, nil, 4401},
		"an empty one":                       {l.ID, fake(l.ID, ""), 4401},
		"a made-up one":                      {l.ID, fake(l.ID, strings.Repeat("A", 43)), 4410},
		"the token itself":                   {l.ID, fake(l.ID, token.Reveal()), 4410},
		"another link's cookie":              {l.ID, otherCookie, 4401},
		"another link's secret":              {l.ID, fake(l.ID, otherCookie.Value), 4410},
		"the encrypted name without the way": {l.ID, &http.Cookie{Name: "__Host-live-" + l.ID, Value: cookie.Value}, 4401},
		"a link that was revoked":            {revoked.ID, revokedCookie, 4410},
		"a link that never was":              {"lnk_00000000000000000000000000", fake("lnk_00000000000000000000000000", cookie.Value), 4410},
		"a link into a session that is over": {elsewhere.ID, elsewhereCookie, 4410},
	} {
		conn, _, err := h.dial(ctx, tt.id, tt.cookie, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for err == nil {
			var raw []byte
			_, raw, err = conn.Read(ctx)
			if bytes.Contains(raw, []byte(`"state"`)) {
				t.Errorf("%s: it is told the state", name)
			}
		}
		if got := websocket.CloseStatus(err); got != tt.want {
			t.Errorf("%s: closed with %d, want %d", name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"no token":              {`{}`, 401},
		"an empty token":        {`{"token":""}`, 401},
		"a wrong token":         {`{"token":"` + strings.Repeat("A", 43) + `"}`, 410},
		"another link's token":  {`{"token":"` + otherToken.Reveal() + `"}`, 410},
		"a device's secret":     {`{"token":"` + cookie.Value + `"}`, 410},
		"something else":        {`{"token":"x","also":1}`, 400},
		"two bodies":            {`{"token":"x"}{}`, 400},
		"no JSON":               {`token=x`, 400},
		"more than any token":   {`{"token":"` + strings.Repeat("x", 5000) + `"}`, 400},
		"a token that is a map": {`{"token":{}}`, 400},
	} {
		answer := h.request(ctx, http.MethodPost, "/live/"+l.ID+"/claim", tt.token)
		if answer.StatusCode != tt.want || len(answer.Cookies()) != 0 {
			t.Errorf("%s: %d, cookies %v", name, answer.StatusCode, answer.Cookies())
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	if answer := h.request(ctx, http.MethodPost, "/live/"+l.ID+"/claim", `{"token":"`+token.Reveal()+`"}`, form); answer.StatusCode != 400 {
		t.Errorf("a form of another site: %d", answer.StatusCode)
	}
}

func TestOnlyAPostClaimsAndOnlyOnce(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	var logged bytes.Buffer
	h := closed(t, &liveview.Options{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	l, token := h.mint(link.Drive)
	// What previews and mail scanners do with a link.
	for _, path := range []string{"/live/" + l.ID, "/live/" + l.ID + "/claim", "/live/" + l.ID + "?t=" + token.Reveal()} {
		answer := h.request(ctx, http.MethodGet, path, "")
		if len(answer.Cookies()) != 0 {
			t.Errorf("GET %s sets a cookie", path)
		}
	}
	if now, _ := h.links.Get(ctx, l.ID); now.Claimed {
		t.Fatal("a GET claimed the link")
	}
	status, said, cookie := h.claim(ctx, l.ID, token)
	if status != 200 || said["mode"] != "drive" || cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Fatalf("the claim: %d %v %v", status, said, cookie)
	}
	first := h.phone(ctx, l.ID, cookie, nil)
	first.word("hello", 0, nil)
	again := func(r *http.Request) { r.AddCookie(cookie) }
	if answer := h.request(ctx, http.MethodPost, "/live/"+l.ID+"/claim", `{}`, again); answer.StatusCode != 200 || len(answer.Cookies()) != 0 {
		t.Errorf("the same device again: %d %v", answer.StatusCode, answer.Cookies())
	}
	// The same token from elsewhere: a number, and no way in without the owner's word.
	status, said, second := h.claim(ctx, l.ID, token)
	number, _ := said["number"].(float64)
	if status != 409 || said["error"] != "LINK_CLAIMED" || number < 10 || second == nil {
		t.Fatalf("the second device: %d %v", status, said)
	}
	conn, _, err := h.dial(ctx, l.ID, second, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != 4409 {
		t.Errorf("it waits: %v", err)
	}
	if _, err := h.links.Move(ctx, l.ID, int(number)); err != nil {
		t.Fatal(err)
	}
	first.word("end", 0, func(m map[string]any) bool { return m["reason"] == "moved" })
	first.until("the first one's end", func() bool { return first.closed != nil })
	moved := h.phone(ctx, l.ID, second, nil)
	moved.word("hello", 0, nil)
	if err := h.links.Revoke(ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	moved.word("end", 0, func(m map[string]any) bool { return m["reason"] == "revoked" })
	moved.until("its end", func() bool { return websocket.CloseStatus(moved.closed) == 4410 })

	short, shortToken, err := h.links.Mint(ctx, session, link.Drive, time.Now().Add(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	_, _, shortCookie := h.claim(ctx, short.ID, shortToken)
	p := h.phone(ctx, short.ID, shortCookie, nil)
	p.word("end", 0, func(m map[string]any) bool { return m["reason"] == "expired" })
	for _, s := range []string{token.Reveal(), cookie.Value, second.Value, l.ID} {
		if strings.Contains(logged.String(), s) {
			t.Error("a secret is in the log")
		}
	}
}

// ask has the door answer a request as if it had come that way.
func (h *house) ask(r *http.Request, local string) *httptest.ResponseRecorder {
	addr, err := net.ResolveTCPAddr("tcp", local)
	if err != nil {
		h.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.door.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr))))
	return w
}

func TestTheWayARequestCameDecides(t *testing.T) {
	t.Parallel()
	const own = "127.0.0.1:3850"
	for name, tt := range map[string]struct {
		local, peer, host, origin string
		header                    map[string]string
		want                      int
		mode, cookie              string
	}{
		"a browser on this machine":                  {own, "127.0.0.1:5000", own, "http://" + own, nil, 200, "drive", "live-"},
		"a browser on this machine by name":          {own, "127.0.0.1:5000", "localhost:3850", "http://localhost:3850", nil, 200, "drive", "live-"},
		"through the tunnel":                         {own, "127.0.0.1:5000", "tapin.example.com", "https://tapin.example.com", map[string]string{"X-Forwarded-Proto": "https", "Cf-Connecting-Ip": "203.0.113.7"}, 200, "drive", "__Host-live-"},
		"through the tunnel without encryption":      {own, "127.0.0.1:5000", "tapin.example.com", "https://tapin.example.com", map[string]string{"X-Forwarded-Proto": "http"}, 403, "", ""},
		"a name that points here":                    {own, "127.0.0.1:5000", "evil.example", "http://evil.example", nil, 403, "", ""},
		"our own name at another port":               {own, "127.0.0.1:5000", "127.0.0.1:80", "http://127.0.0.1:80", nil, 403, "", ""},
		"no name":                                    {own, "127.0.0.1:5000", "", "http://", nil, 403, "", ""},
		"this machine's name through a proxy":        {own, "127.0.0.1:5000", own, "http://" + own, map[string]string{"X-Forwarded-For": "203.0.113.7"}, 403, "", ""},
		"the public name, plain, from the network":   {"192.168.1.5:3850", "192.168.1.9:5000", "tapin.example.com", "https://tapin.example.com", nil, 403, "", ""},
		"this machine's name from the network":       {"192.168.1.5:3850", "192.168.1.9:5000", "127.0.0.1:3850", "http://127.0.0.1:3850", nil, 403, "", ""},
		"our address in the network only watches":    {"192.168.1.5:3850", "192.168.1.9:5000", "192.168.1.5:3850", "http://192.168.1.5:3850", nil, 200, "watch", "live-"},
		"our address in the network from afar":       {"192.168.1.5:3850", "203.0.113.7:5000", "192.168.1.5:3850", "http://192.168.1.5:3850", nil, 403, "", ""},
		"another page of this machine":               {own, "127.0.0.1:5000", own, "http://127.0.0.1:8080", nil, 403, "", ""},
		"the plain twin of the public page":          {own, "127.0.0.1:5000", "tapin.example.com", "http://tapin.example.com", nil, 403, "", ""},
		"no origin at all":                           {own, "127.0.0.1:5000", own, "", nil, 403, "", ""},
		"a hidden origin":                            {own, "127.0.0.1:5000", own, "null", nil, 403, "", ""},
		"a page of another site, by its own browser": {own, "127.0.0.1:5000", own, "http://" + own, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := closed(t, &liveview.Options{Names: []string{"Tapin.example.com"}, WatchOnLAN: true})
			l, token := h.mint(link.Drive)
			r := httptest.NewRequest(http.MethodPost, "/live/"+l.ID+"/claim", strings.NewReader(`{"token":"`+token.Reveal()+`"}`))
			r.Host, r.RemoteAddr = tt.host, tt.peer
			r.Header.Set("Content-Type", "application/json")
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := h.ask(r, tt.local)
			var said map[string]any
			_ = json.Unmarshal(w.Body.Bytes(), &said)
			if w.Code != tt.want || tt.mode != "" && said["mode"] != tt.mode {
				t.Fatalf("%d %v", w.Code, said)
			}
			now, _ := h.links.Get(t.Context(), l.ID)
			if now.Claimed != (tt.want == 200) {
				t.Errorf("claimed: %v", now.Claimed)
			}
			if tt.want == 200 {
				c := w.Result().Cookies()[0]
				if c.Name != tt.cookie+l.ID || c.Secure != strings.HasPrefix(tt.cookie, "__Host-") || !c.HttpOnly || c.Domain != "" {
					t.Errorf("the cookie is %v", c)
				}
				// Whoever listened on the way may show the same secret on another.
				in, err := h.links.Enter(t.Context(), l.ID, secret.New(c.Value))
				if err != nil || string(in.Mode) != tt.mode {
					t.Errorf("its secret allows to %s elsewhere, %v", in.Mode, err)
				}
			}
		})
	}
}

func TestAtThisMachineNoTokenIsNeededIfTheOwnerWantsItSo(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := closed(t, &liveview.Options{SameUser: true, Names: []string{"tapin.example.com"}})
	l, _ := h.mint(link.Drive)
	r := httptest.NewRequest(http.MethodPost, "/live/"+l.ID+"/claim", strings.NewReader(`{}`))
	r.Host, r.RemoteAddr = "tapin.example.com", "127.0.0.1:5000"
	r.Header.Set("Origin", "https://tapin.example.com")
	r.Header.Set("Content-Type", "application/json")
	if w := h.ask(r, h.addr); w.Code != 401 {
		t.Errorf("through the tunnel: %d", w.Code)
	}
	if status, said, _ := h.claim(ctx, l.ID, secret.Text{}); status != 200 {
		t.Errorf("at this machine: %d %v", status, said)
	}
}

// Browsers open connections in reserve. Nobody waits for them at the end.
func TestAnEndDoesNotWaitForThoseWhoSayNothing(t *testing.T) {
	t.Parallel()
	h := closed(t, nil)
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if resp, err := http.Get("http://" + h.addr + "/nowhere"); err != nil { // the one before is known by now
		t.Fatal(err)
	} else {
		_ = resp.Body.Close()
	}
	began := time.Now()
	if err := h.door.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 4*time.Second { // short: they would be waited for until they are five seconds old
		t.Errorf("it took %v", took)
	}
}

func TestSocketsOfOtherPagesAreRefused(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := closed(t, nil)
	l, token := h.mint(link.Drive)
	_, _, cookie := h.claim(ctx, l.ID, token)
	for name, header := range map[string]http.Header{
		"another site":           {"Origin": {"https://evil.example"}},
		"another port":           {"Origin": {"http://127.0.0.1:1"}},
		"no origin":              {},
		"two origins":            {"Origin": {"http://" + h.addr, "https://evil.example"}},
		"the browser's own word": {"Origin": {"http://" + h.addr}, "Sec-Fetch-Site": {"cross-site"}},
	} {
		header.Set("Cookie", cookie.Name+"="+cookie.Value)
		conn, answer, err := websocket.Dial(ctx, "ws://"+h.addr+"/live/"+l.ID+"/ws", &websocket.DialOptions{HTTPHeader: header})
		if err == nil {
			_ = conn.CloseNow()
			t.Errorf("%s: let in", name)
		} else if answer == nil || answer.StatusCode != 403 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThousandsOfGuessesLeadNowhere(t *testing.T) {
	t.Parallel()
	h := closed(t, &liveview.Options{Names: []string{"tapin.example.com"}})
	l, token := h.mint(link.Drive)
	try := func(from, token string) int {
		r := httptest.NewRequest(http.MethodPost, "/live/"+l.ID+"/claim", strings.NewReader(`{"token":"`+token+`"}`))
		r.Host, r.RemoteAddr = "tapin.example.com", "127.0.0.1:5000"
		r.Header.Set("Origin", "https://tapin.example.com")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", from)
		return h.ask(r, "127.0.0.1:3850").Code
	}
	answered := 0
	for i := range testwait.Rounds(2_000, 10_000) {
		// From many addresses, as whoever really tries would.
		switch code := try(fmt.Sprintf("198.51.%d.%d", i/1000, i%250), fmt.Sprintf("guess-%d", i)); code {
		case 410:
			answered++
		case 429:
		default:
			t.Fatalf("guess %d: %d", i, code)
		}
	}
	if answered > 20 { // ten a minute for a link
		t.Errorf("%d guesses were answered", answered)
	}
	if code := try("203.0.113.9", token.Reveal()); code != 200 {
		t.Errorf("the right token afterwards: %d", code)
	}
}

func TestNothingElseIsServedAndNothingCanBeFramed(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := closed(t, nil)
	l, _ := h.mint(link.Drive)
	body := func(path string, change ...func(*http.Request)) (*http.Response, string) {
		answer := h.request(ctx, http.MethodGet, path, "", change...)
		raw, _ := io.ReadAll(answer.Body)
		return answer, string(raw)
	}
	answer, shell := body("/live/" + l.ID)
	_, other := body("/live/lnk_anything")
	if shell != other || !strings.Contains(shell, "<title>live</title>") {
		t.Errorf("the shell is %q and %q", shell, other)
	}
	for header, want := range map[string]string{
		"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := answer.Header.Get(header); got != want {
			t.Errorf("%s: %q", header, got)
		}
	}
	policy := answer.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy is %s", policy)
	}
	_, rest, _ := strings.Cut(shell, `src="`)
	script, _, _ := strings.Cut(rest, `"`)
	answer, source := body(script)
	if answer.StatusCode != 200 || source != "import './input.js'\n" || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("the script %s: %d %q", script, answer.StatusCode, source)
	}
	zipped := func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }
	if answer, _ := body(strings.Replace(script, "main.js", "input.js", 1), zipped); answer.StatusCode != 200 || answer.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the module beside it: %d %s", answer.StatusCode, answer.Header.Get("Content-Encoding"))
	}
	if !strings.Contains(shell, `href="https://example.com/"`) {
		t.Error("a link to elsewhere was rewritten")
	}
	framed := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "iframe")
	}
	if answer, _ := body("/live/"+l.ID, framed); answer.StatusCode != 403 {
		t.Errorf("in a frame of another site: %d", answer.StatusCode)
	}
	tapped := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	}
	if answer, _ := body("/live/"+l.ID, tapped); answer.StatusCode != 200 {
		t.Errorf("a tap on a link in a chat: %d", answer.StatusCode)
	}
	folder, _, _ := strings.Cut(strings.TrimPrefix(script, "/assets/"), "/")
	for _, path := range []string{
		"/", "/live", "/live/", "/live/a/b", "/live/%2e%2e", "/live/..%2f..%2fowner.token", "/live/%00", "/live/" + strings.Repeat("a", 100), "/live/" + l.ID + "/", "/live/" + l.ID + "/upload",
		"/assets/", "/assets/" + folder, "/assets/" + folder + "/live/index.html", "/assets/" + folder + "/..%2f..%2fgo.mod", "/assets/live/main.js", "/session/status", "/openapi.json", "/health", "/console/claim", "/live/" + l.ID + "/download/x",
	} {
		answer, text := body(path)
		if answer.StatusCode == 200 || strings.Contains(text, "<script") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
}

func TestMessagesThatMakeNoSenseEndASocket(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := closed(t, nil)
	bad := []string{`{}`, `[]`, `null`, `"x"`, `{"t":1}`, `{"t":"shell"}`, `{"t":"ptr","x":"a"}`, `{"t":"edit","id":[]}`, "\xff\xfe", strings.Repeat(`[`, 2000), `{"t":"key","key":"` + strings.Repeat("k", 70_000) + `"}`}
	p := h.enter(ctx, link.Drive)
	for i := range 25 {
		p.send(ctx, []byte(bad[i%len(bad)]))
	}
	p.until("the end", func() bool { return p.closed != nil })
	if got := websocket.CloseStatus(p.closed); got != 4429 {
		t.Errorf("closed with %v", p.closed)
	}
	notes := 0
	for _, m := range p.said() {
		if m["t"] == "note" {
			notes++
		}
	}
	if notes < 10 || notes > 20 {
		t.Errorf("%d notes", notes)
	}
	p = h.enter(ctx, link.Drive)
	p.send(ctx, []byte(`{"t":"paste","s":"`+strings.Repeat("x", 300_000)+`"}`))
	p.until("the end of one who says too much at once", func() bool { return p.closed != nil })
	p = h.enter(ctx, link.Drive)
	_ = p.conn.Write(ctx, websocket.MessageBinary, []byte("{}"))
	p.word("note", 0, func(m map[string]any) bool { return m["code"] == "INVALID_REQUEST" })
	for range 3000 {
		p.send(ctx, []byte(`{"t":"ping","n":1}`))
	}
	p.until("the end of a flood", func() bool { return p.closed != nil })
}

func TestInputThatNoHandOffCoversGoesNowhere(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": `<!doctype html><title>0</title><input aria-label=field style="position:absolute;left:0;top:0;width:300px;height:100px"><script>
let n = 0; for (const e of ['mousedown', 'keydown', 'wheel', 'input', 'focusin']) addEventListener(e, () => n++, true)</script>`}, nil)
	p, watcher := h.enter(ctx, link.Drive), h.enter(ctx, link.Watch)
	id := "1.1"
	try := func(p *phone, handoff, code string) {
		t.Helper()
		for _, m := range []map[string]any{
			{"t": "ptr", "k": "down", "x": 50, "y": 50, "f": -1, "b": "left", "c": 1}, {"t": "wheel", "x": 1, "y": 1, "dx": 0, "dy": 100},
			{"t": "key", "k": "down", "key": "a", "code": "KeyA"}, {"t": "text", "s": "secret"}, {"t": "paste", "s": "secret"}, {"t": "compose", "s": "x", "a": 1, "b": 1}, {"t": "copy"},
			{"t": "edit", "id": id, "value": "secret", "base": "", "seq": 1}, {"t": "choose", "id": id, "values": []string{"a"}}, {"t": "focus", "id": id}, {"t": "enter", "id": id},
			{"t": "do", "a": "reload"}, {"t": "do", "a": "back"}, {"t": "do", "a": "dialog", "accept": true}, {"t": "do", "a": "done"}, {"t": "do", "a": "abort"}, {"t": "do", "a": "extend"}, {"t": "do", "a": "later"},
		} {
			m["h"] = handoff
			from := p.heard()
			p.send(ctx, m)
			got := p.word("note", from, nil)
			if got["code"] != code {
				t.Errorf("%v: %v, want %s", m, got, code)
			}
			if strings.Contains(fmt.Sprint(got), "secret") {
				t.Errorf("the note says what was typed: %v", got)
			}
			if m["t"] == "focus" {
				p.word("reached", from, nil) // what waits for an answer gets one
			}
		}
	}
	try(p, "", "HANDOFF_NOT_RUNNING")      // the agent drives
	try(p, "hof_1", "HANDOFF_NOT_RUNNING") // it has not begun
	h.lend("hof_1")
	p.state("a hand-off", func(s map[string]any) bool { return s["can_drive"] == true })
	try(p, "", "HANDOFF_NOT_RUNNING")
	try(p, "hof_0", "HANDOFF_NOT_RUNNING") // an older one
	try(watcher, "hof_1", "FORBIDDEN")
	h.set(func(s *liveview.Status) { o := *s.Handoff; o.Parked = true; s.Handoff = &o })
	p.word("end", 0, func(m map[string]any) bool { return m["reason"] == "parked" })
	h.over("TIMED_OUT")
	p.state("over", func(s map[string]any) bool { return s["handoff"].(map[string]any)["status"] == "TIMED_OUT" })
	try(p, "hof_1", "HANDOFF_NOT_RUNNING")
	if got := h.eval(ctx, `n + document.querySelector('input').value + document.activeElement.localName`); got != "0body" {
		t.Errorf("something reached the page: %s", got)
	}
	if h.decisions() != "" {
		t.Errorf("decided: %s", h.decisions())
	}
	// The session's own gate has the last word, also when the state lags behind.
	h.lend("hof_2")
	p.state("another hand-off", func(s map[string]any) bool { return s["can_drive"] == true })
	h.stage.mu.Lock()
	h.status.Handoff = &liveview.Handoff{ID: "hof_2", Status: "FINISHED"}
	h.stage.mu.Unlock()
	from := p.heard()
	p.tap(ctx, "hof_2", 50, 50)
	p.word("note", from, func(m map[string]any) bool { return m["code"] == "HANDOFF_NOT_RUNNING" })
	if got := h.eval(ctx, `n`); got != "0" {
		t.Errorf("%s events reached the page past the gate", got)
	}
}

func TestAnAddressIsProvenByANumberThatWasAskedFor(t *testing.T) {
	t.Parallel()
	open := map[string]string{"NUMBER": "ANSWER"}
	h := closed(t, &liveview.Options{Names: []string{"tapin.example.com"}, Reach: func(number string) (string, bool, bool) {
		answer, ok := open[number]
		return answer, true, ok
	}})
	for name, tt := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
		body   string
	}{
		"the number":                     {"/reach/NUMBER", func(*http.Request) {}, 200, "ANSWER"},
		"the number by the public name":  {"/reach/NUMBER", func(r *http.Request) { r.Host = "tapin.example.com"; r.Header.Set("X-Forwarded-Proto", "https") }, 200, "ANSWER"},
		"under another name":             {"/reach/NUMBER", func(r *http.Request) { r.Host = "evil.example" }, 403, ""},
		"by a page of another site":      {"/reach/NUMBER", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, ""},
		"a guess":                        {"/reach/OTHER", func(*http.Request) {}, 404, ""},
		"no number":                      {"/reach/", func(*http.Request) {}, 404, ""},
		"more than a number":             {"/reach/NUMBER/x", func(*http.Request) {}, 404, ""},
		"something else than a question": {"/reach/NUMBER", func(r *http.Request) { r.Method = http.MethodPut; r.Header.Set("Origin", "http://"+r.URL.Host) }, 405, ""},
	} {
		answer := h.request(t.Context(), http.MethodGet, tt.path, "", tt.change)
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != tt.status || tt.body != "" && string(body) != tt.body || tt.body == "" && strings.Contains(string(body), "ANSWER") {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
		if answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: it may be kept", name)
		}
	}
}

// A proxy that leaves out whom it speaks for makes the whole world look like a
// user of this machine, who needs no token.
func TestAProxyThatHidesItsVisitorsOpensNothing(t *testing.T) {
	t.Parallel()
	h := closed(t, &liveview.Options{SameUser: true, Names: []string{"tapin.example.com"}, Reach: func(string) (string, bool, bool) { return "ANSWER", false, true }})
	first, _ := h.mint(link.Drive)
	if status, said, _ := h.claim(t.Context(), first.ID, secret.Text{}); status != http.StatusOK {
		t.Fatalf("who sits at this machine is not let in: %d %v", status, said)
	}
	if answer := h.request(t.Context(), http.MethodGet, "/reach/NUMBER", ""); answer.StatusCode != http.StatusForbidden {
		t.Errorf("the address is proven by a proxy that hides its visitors: %d", answer.StatusCode)
	}
	second, token := h.mint(link.Drive)
	if status, said, _ := h.claim(t.Context(), second.ID, secret.Text{}); status == http.StatusOK {
		t.Errorf("a stranger is taken for the owner: %v", said)
	}
	if status, said, _ := h.claim(t.Context(), second.ID, token); status != http.StatusOK {
		t.Errorf("who has the token is kept out: %d %v", status, said)
	}
}

func TestNobodyIsSomebodyElseByAHeaderOfHisOwn(t *testing.T) {
	t.Parallel()
	h := closed(t, &liveview.Options{Names: []string{"tapin.example.com"}})
	refused := 0
	for i := range 300 {
		answer := h.request(t.Context(), http.MethodGet, "/live/lnk_1", "", func(r *http.Request) {
			r.Host = "tapin.example.com"
			r.Header.Set("X-Forwarded-Proto", "https")
			r.Header.Set("Cf-Connecting-Ip", fmt.Sprintf("198.51.100.%d", i%250))
			r.Header.Add("X-Forwarded-For", fmt.Sprintf("203.0.113.%d, 192.0.2.9", i%250))
		})
		if answer.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 50 { // a minute may end in between
		t.Errorf("of 300 requests of one visitor %d were refused", refused)
	}
}

func TestAProxyMayNameThePortThatABrowserLeavesOut(t *testing.T) {
	t.Parallel()
	h := closed(t, &liveview.Options{Names: []string{"tapin.example.com"}})
	l, token := h.mint(link.Drive)
	answer := h.request(t.Context(), http.MethodPost, "/live/"+l.ID+"/claim", `{"token":"`+token.Reveal()+`"}`, func(r *http.Request) {
		r.Host = "tapin.example.com:443"
		r.Header.Set("Origin", "https://tapin.example.com")
		r.Header.Set("X-Forwarded-Proto", "https")
	})
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the phone is refused: %d", answer.StatusCode)
	}
}
