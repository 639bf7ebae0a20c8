package sidecar_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// place is where the browsers of a test come from.
type place struct {
	name string
	set  []string
	env  []string
	line *browsertest.Line // nil: there is none that could be cut
	left func() int        // browsers there that are ours and still run
}

// everywhere runs a test with every provider.
func everywhere(t *testing.T, test func(t *testing.T, at place, site *visited)) {
	t.Helper()
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, place{name: "local"}, newVisited(t))
	})
	t.Run("cdp", func(t *testing.T) {
		t.Parallel()
		ws := *browsertest.Chromium(t)
		at := place{name: "cdp", line: browsertest.NewLine(t, ws.Host)}
		ws.Host = at.line.Addr()
		at.set = []string{"provider=cdp", "cdp.url=" + ws.String()}
		test(t, at, newVisited(t))
	})
	t.Run("browserbase", func(t *testing.T) {
		t.Parallel()
		cloud, line := newCloud(t, nil)
		test(t, place{
			name: "browserbase", line: line, set: []string{"provider=browserbase"},
			env:  []string{"BROWSERBASE_API_KEY=" + cloud.Key(), "BROWSERBASE_PROJECT_ID=" + cloud.Project(), "BROWSERBASE_BASE_URL=" + cloud.URL()},
			left: func() int { return len(cloud.Sessions("RUNNING")) },
		}, newVisited(t))
	})
}

// process starts a sidecar there that can be killed.
func (at place) process(t *testing.T, site *visited) *process {
	t.Helper()
	return startProcessWith(t, site.URL, at.env, append([]string{"listen.public=127.0.0.1:0"}, at.set...)...)
}

// The journey of the product: an agent meets a login, a person does it, the
// agent goes on, and next week it is not needed any more. In between the line
// is cut and the sidecar killed.
func TestAJourneyIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, at place, site *visited) {
		p := at.process(t, site)
		began := p.must("POST", "/session/start", `{"context":"shop","url":"`+site.URL+`/","screenshot":false}`)
		h := p.must("POST", "/handoff/start", `{"reason":"login","verify":[{"text":"welcome"}],"instruction":"log in"}`)
		id := h["handoff_id"].(string)
		p.refused("POST", "/session/reload", `{}`, "HUMAN_IN_CONTROL")
		p.owner().must("POST", "/session/type", `{"selector":"#a","text":"half a pass","screenshot":false}`)
		if at.line != nil {
			at.line.Cut()
			testwait.For(t, "the reconnect", func() bool { return strings.Contains(p.told(), `"session.reconnected"`) })
		}
		p.owner().must("POST", "/session/click", `{"selector":"#see","screenshot":false}`)
		p.kill()
		p.begin()
		now := p.owner().must("GET", "/session/status", "")
		if now["session_id"] != began["session_id"] || !strings.HasSuffix(fmt.Sprint(now["title"]), "half a pass") || now["generation"] != float64(1) {
			t.Fatalf("after the kill it is %v", now)
		}
		p.owner().must("POST", "/session/navigate", `{"url":"`+site.URL+`/login","screenshot":false}`)
		done := p.owner().must("POST", "/handoff/"+id+"/finish", `{}`)
		if done["status"] != "FINISHED" || done["delta_summary"] == "" {
			t.Fatalf("the hand-off ended as %v", done)
		}
		if stopped := p.must("POST", "/session/stop", `{}`); stopped["context_saved"] != true {
			t.Errorf("the login was not saved: %v", stopped)
		}
		again := p.must("POST", "/session/start", `{"context":"shop","url":"`+site.URL+`/who","screenshot":false}`)
		if again["context_restored"] != true || again["title"] != "true" {
			t.Errorf("next time it is %v", again)
		}
		p.must("POST", "/session/stop", `{}`)
		if at.left != nil && at.left() != 0 {
			t.Errorf("%d browsers are left", at.left())
		}
	})
}

// A login goes from every provider to every other.
func TestALoginGoesFromEveryProviderToEveryOther(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := newVisited(t)
	cloud, _ := newCloud(t, nil)
	ws := browsertest.Chromium(t)
	env := []string{"BROWSERBASE_API_KEY=" + cloud.Key(), "BROWSERBASE_BASE_URL=" + cloud.URL()}
	p := startProcessWith(t, site.URL, env, "listen.public=127.0.0.1:0", "cdp.url="+ws.String(), "max_sessions=2")
	providers := []string{"local", "cdp", "browserbase"}
	envelopes := map[string]string{}
	for _, from := range providers {
		s := p.must("POST", "/session/start", `{"provider":"`+from+`","url":"`+site.URL+`/login?`+from+`","screenshot":false}`)
		exported := p.must("POST", "/context/export", `{"session_id":"`+s["session_id"].(string)+`"}`)
		raw, err := json.Marshal(exported["envelope"])
		if err != nil {
			t.Fatal(err)
		}
		envelopes[from] = string(raw)
		p.must("POST", "/session/stop", `{}`)
	}
	for _, to := range providers {
		id := p.must("POST", "/session/start", `{"provider":"`+to+`","screenshot":false}`)["session_id"].(string)
		for from, envelope := range envelopes {
			p.must("POST", "/context/import", `{"session_id":"`+id+`","envelope":`+envelope+`}`)
			p.must("POST", "/session/navigate", `{"url":"`+site.URL+`/who","screenshot":false}`)
			if now := p.must("GET", "/session/status", ""); now["title"] != "true" {
				t.Errorf("from %s to %s: %v", from, to, now["title"])
			}
			if got := p.must("POST", "/session/extract", `{"instruction":"css: #w"}`); !strings.Contains(fmt.Sprint(got["content"]), "owner"+from) {
				t.Errorf("from %s to %s the storage is %v", from, to, got["content"])
			}
		}
		p.must("POST", "/session/stop", `{}`)
	}
	if running := cloud.Sessions("RUNNING"); len(running) != 0 {
		t.Errorf("there run %+v", running)
	}
}

// Our live view shows a browser wherever it is, and goes on showing it when the
// line to the browser was cut.
func TestTheLiveViewShowsABrowserWhereverItIs(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, at place, site *visited) {
		p := at.process(t, site)
		p.must("POST", "/session/start", `{"url":"`+site.URL+`/","screenshot":false}`)
		p.must("POST", "/handoff/start", `{"reason":"login"}`)
		v := look(t, p.running)
		v.picture()
		if at.line != nil {
			at.line.Cut()
			testwait.For(t, "the reconnect", func() bool { return strings.Contains(p.told(), `"session.reconnected"`) })
		}
		p.owner().must("POST", "/session/navigate", `{"url":"`+site.URL+`/moving","screenshot":false}`)
		v.state(func(s map[string]any) bool {
			tabs, _ := s["tabs"].([]any)
			return len(tabs) == 1 && tabs[0].(map[string]any)["title"] == "moving"
		})
		for range 5 { // what was on its way before is among them at most once
			v.picture()
		}
	})
}

// viewer is a phone that looks on.
type viewer struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // the test's, with an end
	conn *websocket.Conn
}

// look mints a link, claims it and opens it.
func look(t *testing.T, r *running) *viewer {
	t.Helper()
	ctx, cancel := testwait.Within(t.Context())
	t.Cleanup(cancel)
	made := r.as("owner").must("POST", "/links", `{}`)
	address, token, _ := strings.Cut(made["open_url"].(string), "#t=")
	body, _ := json.Marshal(map[string]string{"token": token})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/claim", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	origin := address[:strings.Index(address, "/live/")]
	req.Header.Set("Origin", origin)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		t.Fatalf("the claim got %d %s", resp.StatusCode, said)
	}
	c := resp.Cookies()[0]
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(address, "http")+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}, "Cookie": {c.Name + "=" + c.Value}}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(16 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &viewer{t, ctx, conn}
}

// next is the next message. A picture is drawn, and that is said: who does not
// say so gets no other.
func (v *viewer) next() (picture bool, message map[string]any) {
	v.t.Helper()
	kind, raw, err := v.conn.Read(v.ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	if kind == websocket.MessageText {
		_ = json.Unmarshal(raw, &message)
		return false, message
	}
	if len(raw) < 42 || raw[40] != 0xff || raw[41] != 0xd8 {
		v.t.Fatalf("%d bytes that are no picture", len(raw))
	}
	drawn := fmt.Sprintf(`{"t":"ack","number":%d,"w":400,"h":300,"dpr":1}`, binary.BigEndian.Uint32(raw[4:8]))
	if err := v.conn.Write(v.ctx, websocket.MessageText, []byte(drawn)); err != nil {
		v.t.Fatal(err)
	}
	return true, nil
}

// picture waits for the next one.
func (v *viewer) picture() {
	v.t.Helper()
	for {
		if is, _ := v.next(); is {
			return
		}
	}
}

// state waits until what is told of the session is as wanted.
func (v *viewer) state(is func(map[string]any) bool) {
	v.t.Helper()
	for {
		if _, m := v.next(); m["t"] == "state" && is(m) {
			return
		}
	}
}

// With live_view: provider the owner is sent to the provider, tab by tab; the
// agent is not.
func TestTheProvidersOwnLiveViewIsForTheOwnerAndFollowsTheTabs(t *testing.T) {
	t.Parallel()
	c := inTheCloud(t, nil, "live_view=provider")
	started := c.open("/", "")
	tab := func() string {
		tabs := c.owner.must("GET", "/session/tabs", "")["tabs"].([]any)
		for _, each := range tabs {
			if one := each.(map[string]any); one["active"] == true {
				return one["tab_id"].(string)
			}
		}
		t.Fatalf("no tab is in front: %v", tabs)
		return ""
	}
	for _, told := range []string{fmt.Sprint(started), fmt.Sprint(c.must("GET", "/session/status", ""))} {
		if strings.Contains(told, "devtools") {
			t.Errorf("the agent is told %s", told)
		}
	}
	first := c.owner.must("POST", "/links", `{}`)
	if first["provider_view"] != true || !strings.HasSuffix(first["open_url"].(string), "/devtools/page/"+tab()) {
		t.Errorf("the owner is sent to %v", first)
	}
	c.must("POST", "/handoff/start", `{"reason":"login"}`)
	c.owner.must("POST", "/session/click", `{"selector":"#pop","screenshot":false}`)
	testwait.For(t, "the news", func() bool { return strings.Contains(c.told(), `"session.view_moved"`) })
	second := c.owner.must("POST", "/links", `{}`)
	if second["open_url"] == first["open_url"] || !strings.HasSuffix(second["open_url"].(string), "/devtools/page/"+tab()) {
		t.Errorf("then the owner is sent to %v", second)
	}
	if watch := c.owner.must("POST", "/links", `{"mode":"watch"}`); watch["provider_view"] != nil {
		t.Errorf("who may only watch is sent to %v", watch)
	}
	if raw, _ := os.ReadFile(c.dir + "/journal"); strings.Contains(string(raw)+c.log.String()+c.told(), "devtools/page") {
		t.Error("the provider's address is in a log")
	}
}
