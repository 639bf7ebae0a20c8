// Package origin knows under which names our listeners may be addressed, how
// often one address may ask, and who has come and not asked anything yet. It owns
// the list of those names, which grows and shrinks while tapin runs, and what
// counts as this very machine. It must
// never take a name for ours because a request says so: a foreign page can have
// a browser send any.
package origin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

// Names are the hosts that a listener answers to besides those of loopback. The
// zero value has none. It is safe for concurrent use.
type Names struct {
	mu      sync.RWMutex
	allowed map[string]int // how often a name was allowed and not yet forgotten
}

// Allow adds a name until forget is called as often as it was allowed.
func (n *Names) Allow(name string) (forget func()) {
	name = plain(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.allowed == nil {
		n.allowed = map[string]int{}
	}
	n.allowed[name]++
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.allowed[name]--; n.allowed[name] == 0 {
			delete(n.allowed, name)
		}
	})
}

// Has reports whether host, as a request or an origin has it, is one of them.
func (n *Names) Has(host string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	host = plain(host)
	return host != "" && n.allowed[host] > 0
}

// plain is a host without the port that https has anyway.
func plain(host string) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimSpace(host)), ":443")
}

// Loopback reports whether host is this machine, at the port of the listener
// that the request came through.
func Loopback(r *http.Request, host string) bool {
	_, port, ok := Listener(r)
	if !ok {
		return false
	}
	for _, name := range [...]string{"127.0.0.1", "localhost", "[::1]"} {
		if host == name+":"+port || port == "80" && host == name {
			return true
		}
	}
	return false
}

// Listener is the address that a request came in at.
func Listener(r *http.Request) (address netip.Addr, port string, ok bool) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return netip.Addr{}, "", false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return netip.Addr{}, "", false
	}
	_, port, _ = net.SplitHostPort(local.String())
	return at.Addr().Unmap(), port, true
}
