package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/testwait"
)

// desk is a home of the program and a site that its browser may open. All that
// runs in it was started by an MCP host.
type desk struct {
	t    *testing.T
	home string
	site *httptest.Server
	env  []string

	mu   sync.Mutex
	said strings.Builder // every answer that an agent got, as text and as JSON
}

// newDesk makes a home, and a site for it.
func newDesk(t *testing.T, site http.Handler) *desk {
	t.Helper()
	served := httptest.NewServer(site)
	t.Cleanup(func() {
		served.CloseClientConnections()
		served.Close()
	})
	return newHome(t, served)
}

// newHome makes a home for a site; what is still running in it ends with the test.
func newHome(t *testing.T, site *httptest.Server) *desk {
	t.Helper()
	home, err := os.MkdirTemp("", "tapin") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(home)
		_ = os.RemoveAll(home)
	})
	return &desk{t: t, home: home, site: site, env: append(os.Environ(),
		"TAPIN_POOL_FOLLOW="+testwait.Spare(), "TAPIN_HOME="+home, "HOME="+home, "TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0",
		"TAPIN_EGRESS_ALLOW="+site.Listener.Addr().String(), "TAPIN_UPLOADS="+filepath.Join(home, "up"))}
}

// host is an MCP client of the desk.
type host struct {
	*mcp.ClientSession
	w       *desk
	process *os.Process // of tapin mcp, if it has one of its own
	heard   func(tool string, arguments map[string]any, text string)
}

// agent starts tapin mcp as hosts do, and speaks to it over its streams.
func (w *desk) agent() *host {
	w.t.Helper()
	cmd := exec.CommandContext(context.Background(), "tapin", "mcp") // ended by closing its streams
	cmd.Env, cmd.Stderr = w.env, w.t.Output()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(w.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return &host{ClientSession: session, w: w, process: cmd.Process}
}

// bearer adds a token to every request.
type bearer string

// RoundTrip sends the request with the token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (w *desk) read(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.home, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// person is the owner at the page: the same tools, with the owner's token.
func (w *desk) person() *host {
	w.t.Helper()
	transport := &mcp.StreamableClientTransport{
		Endpoint:   "http://" + w.read("control.addr") + "/mcp",
		HTTPClient: &http.Client{Transport: bearer(w.read("owner.token"))}, DisableStandaloneSSE: true,
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "person", Version: "1"}, nil).Connect(w.t.Context(), transport, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return &host{ClientSession: session, w: w}
}

// try calls a tool, and returns what it says and whether it failed.
func (h *host) try(tool string, arguments map[string]any) (string, map[string]any, bool) {
	h.w.t.Helper()
	result, err := h.CallTool(h.w.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		h.w.t.Fatalf("%s: %v", tool, err)
	}
	text := ""
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	raw, err := json.Marshal(result)
	if err != nil {
		h.w.t.Fatal(err)
	}
	if h.process != nil {
		h.w.mu.Lock()
		h.w.said.WriteString(text)
		h.w.said.Write(raw)
		h.w.mu.Unlock()
	}
	if h.heard != nil {
		h.heard(tool, arguments, text)
	}
	data, _ := result.StructuredContent.(map[string]any)
	return text, data, result.IsError
}

// do is a call that succeeds.
func (h *host) do(tool string, arguments map[string]any) (string, map[string]any) {
	h.w.t.Helper()
	text, data, failed := h.try(tool, arguments)
	if failed {
		h.w.t.Fatalf("%s %v failed: %s", tool, arguments, text)
	}
	return text, data
}

// refused is a call that fails with a code.
func (h *host) refused(code, tool string, arguments map[string]any) map[string]any {
	h.w.t.Helper()
	text, data, failed := h.try(tool, arguments)
	if !failed || data["error"] != code {
		h.w.t.Fatalf("%s %v is not refused with %s: %s", tool, arguments, code, text)
	}
	return data
}

// kill ends processes of the desk as a crash does: by what status calls them.
func (w *desk) kill(names ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "tapin", "--json", "status")
	cmd.Env = w.env
	raw, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	var now map[string]any
	if err := json.Unmarshal(raw, &now); err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		pid, _ := now[name].(float64)
		if pid < 2 {
			w.t.Fatalf("there is no %s in %s", name, raw)
		}
		w.end(int(pid))
	}
}

func (w *desk) end(pid int) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	testwait.For(w.t, fmt.Sprintf("process %d is gone", pid), func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
	})
}

// figures are the sidecar's own, or nothing while there is none.
func (w *desk) figures() string {
	w.t.Helper()
	client := &http.Client{Transport: bearer(w.read("agent.token"))}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+w.read("control.addr")+"/metrics", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(raw)
}

var inFlight = regexp.MustCompile(`(?m)^tapin_http_in_flight (\d+)$`)

// up reports whether a sidecar answers.
func (w *desk) up() bool { return inFlight.MatchString(w.figures()) }

// busy reports whether the sidecar works on a call.
func (w *desk) busy() bool {
	found := inFlight.FindStringSubmatch(w.figures())
	return found != nil && found[1] > "2" // the one that asks is one, the daemon that listens another
}

// waiting makes a long call in the background, and returns when it is under way.
func (h *host) waiting(tool string, arguments map[string]any) <-chan *mcp.CallToolResult {
	h.w.t.Helper()
	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		result, err := h.CallTool(context.WithoutCancel(h.w.t.Context()), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			result = nil
		}
		done <- result
	}()
	testwait.For(h.w.t, tool+" is under way", h.w.busy)
	return done
}
