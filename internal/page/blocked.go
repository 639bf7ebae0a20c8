package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapin/internal/egress"
	"tapin/internal/fault"
)

// keptBlocks bounds the refusals that are remembered; only those of the
// navigation under way are ever asked for.
const keptBlocks = 64

func (t *Tabs) blocked(b egress.Block) {
	if b.Vendor {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks = append(t.blocks, b)
	if len(t.blocks) > keptBlocks {
		t.blocks = t.blocks[len(t.blocks)-keptBlocks:]
	}
}

// refused is the guard's last refusal since then of that address, of any where
// it is empty. It shows as the guard's own page over plain HTTP, and as a failed
// tunnel over TLS.
func (t *Tabs) refused(since time.Time, address string) *egress.Block {
	host, port := "", ""
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			return nil
		}
		host, port = u.Hostname(), u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range slices.Backward(t.blocks) {
		if b.At.Before(since) {
			return nil
		}
		if host == "" || strings.EqualFold(strings.Trim(b.Host, "[]"), host) && strconv.Itoa(int(b.Port)) == port {
			return &b
		}
	}
	return nil
}

func blockedFault(op string, b *egress.Block) error {
	f := fault.New(fault.BlockedTarget, op, "the network guard refused %s (rule %s)", b.Host, b.Rule).With("rule", b.Rule).With("host", b.Host)
	if b.Hint != "" {
		return f.WithHint("%s", b.Hint)
	}
	return f
}
