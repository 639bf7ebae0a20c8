package holder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"tapin/internal/egress"
	"tapin/internal/guard"
)

// maxLanes bounds what a client may open; far more than a browser of ours has contexts.
const maxLanes = 256

// lanes are the guarded ways to the network of one browser: its own, and one
// more for each context that asked for it. Each is a proxy of its own, so that
// nothing is shared between two of them, not even an idle connection, and what
// is refused is known to be whose. All obey the same policy.
type lanes struct {
	resolver  egress.Resolver
	upstream  *egress.Upstream
	onBlock   func(egress.Block)
	onFailure func(egress.Failure)

	mu     sync.Mutex
	policy egress.Policy
	made   int
	open   map[string]*egress.Proxy // by id; the browser's own has none
	closed bool
}

// add opens a lane of that id and tells where it listens.
func (l *lanes) add(id string) (string, error) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("the network guard cannot listen: %w", err)
	}
	proxy := egress.NewProxy(&egress.ProxyOptions{
		Resolver: l.resolver, Upstream: l.upstream,
		OnBlock:   func(b egress.Block) { b.Lane = id; l.onBlock(b) },
		OnFailure: func(f egress.Failure) { f.Lane = id; l.onFailure(f) },
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch err = proxy.SetPolicy(l.policy); {
	case err != nil:
	case l.closed:
		err = errors.New("the browser is ending")
	case len(l.open) > maxLanes:
		err = fmt.Errorf("there are %d lanes already", maxLanes)
	}
	if err != nil {
		_ = at.Close()
		return "", err
	}
	l.open[id] = proxy
	go func() {
		defer guard.Catch("holder")
		_ = proxy.Serve(private{at})
	}()
	return at.Addr().String(), nil
}

// another opens a lane under a name that was never used before.
func (l *lanes) another() (*Lane, error) {
	l.mu.Lock()
	l.made++
	id := strconv.Itoa(l.made)
	l.mu.Unlock()
	proxy, err := l.add(id)
	if err != nil {
		return nil, err
	}
	return &Lane{ID: id, Proxy: "http://" + proxy}, nil
}

// shut ends a lane with all its connections. The browser's own stays.
func (l *lanes) shut(id string) {
	l.mu.Lock()
	proxy := l.open[id]
	if id != "" {
		delete(l.open, id)
	}
	l.mu.Unlock()
	if proxy != nil && id != "" {
		_ = closeProxy(proxy)
	}
}

// setPolicy puts a policy into force everywhere. A bad one changes nothing.
func (l *lanes) setPolicy(p egress.Policy) error {
	if _, err := p.Compile(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy = p
	var errs []error
	for _, proxy := range l.open {
		errs = append(errs, proxy.SetPolicy(p))
	}
	return errors.Join(errs...)
}

func (l *lanes) closeAll() error {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = map[string]*egress.Proxy{}
	l.mu.Unlock()
	errs := make([]error, 0, len(open))
	for _, proxy := range open {
		errs = append(errs, closeProxy(proxy))
	}
	return errors.Join(errs...)
}

func closeProxy(p *egress.Proxy) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return p.Close(ctx)
}
