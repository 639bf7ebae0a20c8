package mcpserver_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/testwait"
)

func TestTwoHostsShareTheBrowserAndADeathCostsNothing(t *testing.T) {
	t.Parallel()
	s := site(t, shopPages)
	h := open(t, s)
	first, second := h.overPipes(t, nil, nil), h.overPipes(t, nil, nil)
	_, data := first.must("browser_navigate", map[string]any{"url": s.URL})
	id := data["session_id"]
	second.must("browser_type", map[string]any{"label": "Full name", "text": "Ada"})

	// What the second host did is news to the first, and not to itself.
	if text, _ := first.must("browser_snapshot", map[string]any{"diff": true}); !strings.Contains(text, "Full name = Ada") {
		t.Errorf("the first host was not told: %s", text)
	}
	if _, data := second.must("browser_snapshot", map[string]any{"diff": true}); page(data)["kind"] != "unchanged" {
		t.Errorf("the second host was told what it did itself: %v", data)
	}

	// The first host dies in the middle of a long call.
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		_, _ = first.CallTool(context.Background(), &mcp.CallToolParams{Name: "browser_wait_for", Arguments: map[string]any{"text": "never comes", "wait_ms": 50_000}})
	}()
	testwait.For(t, "the call", func() bool { return inFlight(t, h) })
	first.kill()
	<-waiting
	testwait.For(t, "the end of the call", func() bool { return !inFlight(t, h) }) // its call ended with it

	third := h.overPipes(t, nil, nil)
	for name, c := range map[string]*host{"the one that stayed": second, "the one that came": third} {
		text, data := c.must("browser_status", nil)
		if data["session_id"] != id {
			t.Errorf("%s sees %v, not %v", name, data["session_id"], id)
		}
		if text2, _ := c.must("browser_snapshot", nil); !strings.Contains(text2, "Full name = Ada") {
			t.Errorf("%s sees %s %s", name, text, text2)
		}
	}
}

func page(data map[string]any) map[string]any {
	p, _ := data["page"].(map[string]any)
	return p
}

// inFlight tells whether the sidecar is waiting for a page, from its own figures.
func inFlight(t *testing.T, h *house) bool {
	t.Helper()
	client, err := h.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	figures, err := client.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(figures)) {
		if strings.Contains(line, "in_flight") && !strings.HasPrefix(line, "#") {
			return !strings.HasSuffix(strings.TrimSpace(line), " 1") // the one that asks is one
		}
	}
	t.Fatal("the figures do not tell what is in flight")
	return false
}

func TestACancelledCallStopsAndALongOneTellsThatItGoesOn(t *testing.T) {
	t.Parallel()
	s := site(t, shopPages)
	h := open(t, s)
	progress := make(chan string, 100)
	c := h.overPipes(t, nil, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Message },
	})
	c.must("browser_navigate", map[string]any{"url": s.URL})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		params := &mcp.CallToolParams{Name: "browser_wait_for", Arguments: map[string]any{"text": "never comes", "wait_ms": 55_000}}
		params.SetProgressToken("p1")
		_, err := c.CallTool(ctx, params)
		ended <- err
	}()
	if said := <-progress; !strings.Contains(said, "still") {
		t.Errorf("progress says %q", said)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call ended well")
	}
	testwait.For(t, "the end of the call", func() bool { return !inFlight(t, h) })
	c.must("browser_status", nil)
}

func TestARestartOfTheSidecarIsSurvived(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*house, *testing.T) *host{
		"standard input and output": func(h *house, t *testing.T) *host { return h.overPipes(t, nil, nil) },
		"streamable HTTP":           func(h *house, t *testing.T) *host { return h.overHTTP(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t, shopPages)
			h := open(t, s)
			c := connect(h, t)
			c.must("browser_navigate", map[string]any{"url": s.URL})
			if err := h.stop(); err != nil {
				t.Fatal(err)
			}
			// An ordered end closes the browser; the next sidecar has none. What
			// matters here is that the host need not be started again.
			h.set[0] = "listen.control=" + strings.TrimPrefix(h.at(), "http://")
			h.begin()
			t.Cleanup(func() { _ = h.stop() })
			if text, _ := c.must("browser_status", nil); !strings.Contains(text, "There is no session") {
				t.Errorf("after the restart: %s", text)
			}
			c.must("browser_navigate", map[string]any{"url": s.URL})
		})
	}
}

func TestTheDoorIsBehindTheListenersChecks(t *testing.T) {
	t.Parallel()
	s := site(t, shopPages)
	h := open(t, s)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"as it should be":     {func(*http.Request) {}, 200},
		"without a token":     {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"with a wrong token":  {func(r *http.Request) { r.Header.Set("Authorization", "Bearer nope") }, 401},
		"under another name":  {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"from another origin": {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"from a foreign page": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"too large": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 5<<20))), 5<<20
		}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.at()+"/mcp", strings.NewReader(hello))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+h.token)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			tt.change(r)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.status || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %v, want %d", resp.StatusCode, resp.Header, tt.status)
			}
		})
	}
}

// lasting is an address that nobody takes while its sidecar is away: below the ports
// that the system gives to whoever connects somewhere.
func lasting(t *testing.T) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			_ = ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// A host of an older protocol keeps a connection by its id, and knows nothing
// of a restart: its next call must simply work.
func TestAHostWithAConnectionFromBeforeARestartGoesOn(t *testing.T) {
	t.Parallel()
	s := site(t, shopPages)
	h := open(t, s, "listen.control="+lasting(t))
	send := func(id, body string) (string, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.at()+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + h.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2025-06-18", "Mcp-Session-Id": id,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode > 299 {
			t.Fatalf("%s gave %d %s (%v)", body, resp.StatusCode, raw, err)
		}
		return string(raw), resp.Header.Get("Mcp-Session-Id")
	}
	tool := func(id, name, arguments string) string {
		t.Helper()
		said, _ := send(id, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`)
		return said
	}
	_, id := send("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if id == "" {
		t.Fatal("the connection has no id")
	}
	send(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	tool(id, "browser_navigate", `{"url":"`+s.URL+`"}`)
	if said := tool(id, "browser_snapshot", `{"diff":true}`); !strings.Contains(said, `"kind":"unchanged"`) {
		t.Errorf("the connection is not remembered: %s", said)
	}
	if said := tool("of-somebody-else", "browser_snapshot", `{"diff":true}`); !strings.Contains(said, `"kind":"snapshot"`) {
		t.Errorf("a stranger's connection has a memory: %s", said)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	h.begin()
	t.Cleanup(func() { _ = h.stop() })
	if said := tool(id, "browser_status", `{}`); !strings.Contains(said, "There is no session") {
		t.Errorf("after the restart: %s", said)
	}
}
