package mcpserver

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/api"
	"tapin/internal/secret"
)

// Dial makes a client of the sidecar that acts with the caller's own token, so
// that a tool may do exactly what its caller may.
type Dial func(token secret.Text) (*api.Client, error)

// Door serves hosts over streamable HTTP. Whoever mounts it has already checked
// the token, the Host and the Origin of every request.
type Door struct {
	server   *Server
	dial     Dial
	sessions *mcp.StreamableHTTPHandler // hosts that keep a connection
	calls    *mcp.StreamableHTTPHandler // hosts that do not, or whose connection a restart has ended

	mu      sync.Mutex
	callers map[[sha256.Size]byte]*caller
}

// caller is one token's servers: a connection belongs to the token it was
// opened with, and no other finds it.
type caller struct{ sessions, calls *mcp.Server }

const (
	idleWithin = time.Hour // after which a connection that nobody uses is forgotten
	maxCallers = 64
)

// since20260728 is the first protocol without connections.
const since20260728 = "2026-07-28"

// Door makes the door. Close ends it.
func (s *Server) Door(dial Dial) *Door {
	d := &Door{server: s, dial: dial, callers: map[[sha256.Size]byte]*caller{}}
	// Host and Origin are the listener's business: it knows the tunnel's name.
	common := mcp.StreamableHTTPOptions{Logger: s.log, MaxRequestBodyBytes: maxMessage, DisableLocalhostProtection: true, PropagateRequestCancellation: true}
	kept, free := common, common
	kept.SessionTimeout = idleWithin
	free.Stateless = true
	d.sessions = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { return d.caller(r).sessions }, &kept)
	d.calls = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { return d.caller(r).calls }, &free)
	return d
}

// ServeHTTP serves a connection that this process knows as such, and every
// other call by itself: a host that was connected before a restart goes on.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	if r.Header.Get("Mcp-Protocol-Version") >= since20260728 || id != "" && !d.caller(r).has(id) {
		d.calls.ServeHTTP(w, r)
		return
	}
	d.sessions.ServeHTTP(w, r)
}

// Close ends the connections that are open.
func (d *Door) Close() {
	d.mu.Lock()
	callers := d.callers
	d.callers = map[[sha256.Size]byte]*caller{}
	d.mu.Unlock()
	for _, c := range callers {
		for session := range c.sessions.Sessions() {
			_ = session.Close()
		}
	}
}

// caller finds the servers of a request's token.
func (d *Door) caller(r *http.Request) *caller {
	_, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token := secret.New(strings.TrimSpace(value))
	key := sha256.Sum256([]byte(token.Reveal()))
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.callers[key]
	if c == nil {
		if len(d.callers) >= maxCallers {
			clear(d.callers) // their connections go on as single calls
		}
		l := newLine(func(context.Context) (*api.Client, error) { return d.dial(token) })
		c = &caller{sessions: d.server.serverFor(l, newViews(false), nil), calls: d.server.serverFor(l, newViews(true), nil)}
		d.callers[key] = c
	}
	return c
}

func (c *caller) has(id string) bool {
	for session := range c.sessions.Sessions() {
		if session.ID() == id {
			return true
		}
	}
	return false
}
