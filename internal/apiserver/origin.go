package apiserver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"tapin/internal/fault"
)

// names are the names the server answers to, besides those of loopback. They
// keep a page of a foreign site from reaching us under a name of its own.
type names struct {
	mu      sync.RWMutex
	allowed map[string]int // how often a name was allowed and not yet forgotten
}

func (n *names) allow(name string) (forget func()) {
	name = strings.ToLower(strings.TrimSpace(name))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.allowed[name]++
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.allowed[name]--; n.allowed[name] == 0 {
			delete(n.allowed, name)
		}
	})
}

func (n *names) has(host string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return host != "" && (n.allowed[host] > 0 || n.allowed[strings.TrimSuffix(host, ":443")] > 0)
}

// loopback reports whether host is this machine, at the port of the listener
// the request came through.
func loopback(r *http.Request, host string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	_, port, _ := net.SplitHostPort(at.String())
	for _, name := range [...]string{"127.0.0.1", "localhost", "[::1]"} {
		if host == name+":"+port || (port == "80" && host == name) {
			return true
		}
	}
	return false
}

// ours refuses requests that a browser sent on behalf of a foreign page: by the
// name they were sent to, the page they came from, or the browser's own word.
func (s *Server) ours(r *http.Request) error {
	host := strings.ToLower(r.Host)
	if !loopback(r, host) && !s.names.has(host) {
		return fault.New(fault.Forbidden, "", "this server does not answer to that Host").
			WithHint("Use the address tapin listens on, such as http://127.0.0.1:3849.")
	}
	refused := fault.New(fault.Forbidden, "", "a page of another origin may not call this server").
		WithHint("Call tapin from a program, not from a web page.")
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
	default: // same-site is foreign too: another port of localhost
		return refused
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	scheme, name, _ := strings.Cut(strings.ToLower(origins[0]), "://")
	switch {
	case len(origins) > 1:
		return refused
	case scheme == "http" && loopback(r, name), scheme == "https" && s.names.has(name):
		return nil
	}
	return refused
}
