package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tapin/internal/config"
	"tapin/internal/guard"
	"tapin/internal/reach"
)

// nearEvery is how often this machine's addresses are looked at: a laptop
// changes its network without a word.
const nearEvery = 10 * time.Second

// near serves the door to the devices of this machine's own networks, which may
// watch. It is safe for concurrent use.
type near struct {
	mu   sync.Mutex
	open map[netip.Addr]net.Listener // nil: the public listener has it already
	port string
}

// addresses are where neighbours come in.
func (n *near) addresses() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range reach.Neighbours() {
		if _, ok := n.open[a]; ok {
			all = append(all, "http://"+net.JoinHostPort(a.String(), n.port))
		}
	}
	return all
}

// serveNear keeps a listener at every address that neighbours may come to, until
// ctx ends.
func (s *sidecar) serveNear(ctx context.Context, public net.Listener) {
	if s.opts.Config.LAN != config.LANWatch {
		return
	}
	at, err := netip.ParseAddrPort(public.Addr().String())
	if err != nil {
		return
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		s.near.follow(at, reach.Neighbours(), func(l net.Listener) {
			s.opts.Logger.Info("neighbours may watch", "at", l.Addr().String())
			serving.Go(func() {
				defer guard.Catch("sidecar")
				if err := s.door.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) {
					s.opts.Logger.Warn("neighbours can no longer watch", "at", l.Addr().String(), "error", err)
				}
			})
		})
		select {
		case <-time.After(nearEvery):
		case <-ctx.Done():
			s.near.follow(at, nil, nil)
			return
		}
	}
}

// follow opens and closes listeners, so that there is one at each address.
func (n *near) follow(public netip.AddrPort, addresses []netip.Addr, serve func(net.Listener)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open, n.port = map[netip.Addr]net.Listener{}, fmt.Sprint(public.Port())
	}
	for a, l := range n.open {
		if slices.Contains(addresses, a) {
			continue
		}
		if l != nil {
			_ = l.Close()
		}
		delete(n.open, a)
	}
	for _, a := range addresses {
		if _, ok := n.open[a]; ok {
			continue
		}
		if own := public.Addr(); own.IsUnspecified() && (own.Is6() || a.Is4()) || own == a {
			n.open[a] = nil
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(a.String(), n.port))
		if err != nil {
			continue // the port is somebody else's there; it is tried again
		}
		n.open[a] = l
		serve(l)
	}
}
