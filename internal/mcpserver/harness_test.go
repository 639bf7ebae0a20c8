package mcpserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/api"
	"tapin/internal/browser/browsertest"
	"tapin/internal/config"
	"tapin/internal/mcpserver"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }

// site serves pages by their path.
func site(t *testing.T, pages map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// house is a real sidecar that can be ended and started again.
type house struct {
	t     *testing.T
	dir   string
	set   []string
	mu    sync.Mutex
	base  string
	token string
	stop  func() error
}

func open(t *testing.T, s *httptest.Server, set ...string) *house {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &house{t: t, dir: dir, set: append([]string{
		"listen.control=127.0.0.1:0", "listen.public=127.0.0.1:0", "pool.follow=" + testwait.Spare(), "egress.allow=" + strings.TrimPrefix(s.URL, "http://"),
	}, set...)}
	h.begin()
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("the sidecar ended with %v", err)
		}
	})
	return h
}

func (h *house) begin() {
	h.t.Helper()
	cfg, _, err := config.Load(config.Inputs{Set: h.set})
	if err != nil {
		h.t.Fatal(err)
	}
	home, err := store.Open(h.dir, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- sidecar.Run(ctx, sidecar.Options{Home: home, Config: cfg, Version: "test", OnReady: func(c string) { ready <- c }})
	}()
	select {
	case control := <-ready:
		h.mu.Lock()
		h.base = "http://" + control
		h.mu.Unlock()
	case err := <-ended:
		h.t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(h.dir, sidecar.AgentTokenFile))
	if err != nil {
		h.t.Fatal(err)
	}
	h.token = strings.TrimSpace(string(raw))
	h.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		_ = home.Close()
		return err
	})
}

func (h *house) at() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.base
}

func (h *house) connect(context.Context) (*api.Client, error) {
	return api.NewClient(h.at(), secret.New(h.token), nil)
}

// owner is the person, who has a token of their own.
func (h *house) owner(t *testing.T) *api.Client {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, sidecar.OwnerTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(h.at(), secret.New(strings.TrimSpace(string(raw))), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// host is an MCP client over one of the two transports.
type host struct {
	*mcp.ClientSession
	t    *testing.T
	kill func() // as if the host's process had died
}

// overPipes connects a host as tapin mcp does.
func (h *house) overPipes(t *testing.T, options *mcpserver.Options, client *mcp.ClientOptions) *host {
	t.Helper()
	server, err := mcpserver.New(options)
	if err != nil {
		t.Fatal(err)
	}
	fromHost, toServer := io.Pipe()
	fromServer, toHost := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := server.Run(context.Background(), fromHost, toHost, h.connect)
		_ = toHost.Close()
		ended <- err
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, client).
		Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = toServer.Close()
		_ = fromServer.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(kill)
	return &host{session, t, kill}
}

// bearer adds the token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP connects a host to /mcp.
func (h *house) overHTTP(t *testing.T, client *mcp.ClientOptions) *host {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: h.at() + "/mcp", HTTPClient: &http.Client{Transport: bearer{h.token}}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, client).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &host{session, t, func() {}}
}

// call calls a tool and returns its text, its structure and whether it failed.
func (h *host) call(name string, arguments map[string]any) (string, map[string]any, *mcp.CallToolResult) {
	h.t.Helper()
	result, err := h.CallTool(h.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	text := ""
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	data, _ := result.StructuredContent.(map[string]any)
	return text, data, result
}

// must is a call that succeeds.
func (h *host) must(name string, arguments map[string]any) (string, map[string]any) {
	h.t.Helper()
	text, data, result := h.call(name, arguments)
	if result.IsError {
		h.t.Fatalf("%s %v failed: %s", name, arguments, text)
	}
	return text, data
}

// refused is a call that fails with a code.
func (h *host) refused(name string, arguments map[string]any, code string) (string, map[string]any) {
	h.t.Helper()
	text, data, result := h.call(name, arguments)
	if !result.IsError || data["error"] != code || !strings.HasPrefix(text, code+":") || data["hint"] == "" {
		h.t.Fatalf("%s %v gave %v: %s", name, arguments, data, text)
	}
	return text, data
}
