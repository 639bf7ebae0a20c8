package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tapin/internal/egress"
	"tapin/internal/fault"
)

// keptNews bounds what is remembered of the guard; only the news of the
// navigation under way are ever asked for.
const keptNews = 64

// guardNews is what the network guard told: what it refused, and what it could
// not reach. The browser itself only knows that its proxy said no.
type guardNews struct {
	mu       sync.Mutex
	blocks   []egress.Block
	failures []egress.Failure
}

func (g *guardNews) blocked(b egress.Block) {
	if b.Vendor {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocks = lastOf(append(g.blocks, b))
}

func (g *guardNews) failed(f egress.Failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = lastOf(append(g.failures, f))
}

func lastOf[T any](list []T) []T { return list[max(0, len(list)-keptNews):] }

// verdict is the fault behind a navigation to that address that began then, nil
// when the guard had no part in it. It shows as the guard's own page over plain
// HTTP, and as a failed tunnel over TLS; after a redirect the tunnel's address is
// not told, and the last news must be the one.
func (g *guardNews) verdict(op, address string, since time.Time, tunnel bool) error {
	host, port := hostPort(address)
	g.mu.Lock()
	defer g.mu.Unlock()
	is := func(h string, p uint16) bool {
		return strings.EqualFold(strings.Trim(h, "[]"), host) && strconv.Itoa(int(p)) == port
	}
	for _, exact := range []bool{true, false} {
		if !exact && !tunnel {
			break
		}
		for _, b := range slices.Backward(g.blocks) {
			if !b.At.Before(since) && (!exact || is(b.Host, b.Port)) {
				return blockedFault(op, b)
			}
		}
		for _, f := range slices.Backward(g.failures) {
			if !f.At.Before(since) && (!exact || is(f.Host, f.Port)) {
				return fault.New(fault.NavigationFailed, op, "%s: %s", f.Host, failureReason(f.Kind)).With("reason", f.Kind)
			}
		}
	}
	return nil
}

func hostPort(address string) (host, port string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	port = u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Hostname(), port
}

// portNumber is a port as a number, 0 where there is none.
func portNumber(port string) uint16 {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

func blockedFault(op string, b egress.Block) error {
	f := fault.New(fault.BlockedTarget, op, "the network guard refused %s (rule %s)", b.Host, b.Rule).With("rule", b.Rule).With("host", b.Host)
	if b.Hint != "" {
		return f.WithHint("%s", b.Hint)
	}
	return f
}

// failureReason says it as the browser would without a proxy.
func failureReason(kind string) string {
	if reason, ok := map[string]string{
		"dns":         "the name cannot be resolved (net::ERR_NAME_NOT_RESOLVED)",
		"refused":     "the connection was refused (net::ERR_CONNECTION_REFUSED)",
		"timeout":     "the connection timed out (net::ERR_CONNECTION_TIMED_OUT)",
		"unreachable": "the address cannot be reached (net::ERR_ADDRESS_UNREACHABLE)",
		"reset":       "the connection was closed (net::ERR_CONNECTION_CLOSED)",
		"upstream":    "the upstream proxy failed (net::ERR_PROXY_CONNECTION_FAILED)",
	}[kind]; ok {
		return reason
	}
	return "the connection failed (net::ERR_CONNECTION_FAILED)"
}
