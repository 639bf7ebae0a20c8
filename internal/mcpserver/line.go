package mcpserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// dyingFor is how much longer than its connections a sidecar that is killed may listen.
const dyingFor = 100 * time.Millisecond

// line is the way to the sidecar. It outlives the sidecar: a call that finds it
// gone looks for the next one.
type line struct {
	connect Connect

	mu     sync.Mutex
	client *api.Client
}

func newLine(connect Connect) *line { return &line{connect: connect} }

// get is the client in use, or a new one. Calls that come meanwhile wait for
// the first to find it, unless they are given up.
func (l *line) get(ctx context.Context) (*api.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.client == nil {
		client, err := l.connect(ctx)
		if err != nil {
			return nil, err
		}
		l.client = client
	}
	return l.client, nil
}

// drop forgets a client whose sidecar is gone.
func (l *line) drop(c *api.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == c {
		l.client = nil
		c.Close()
	}
}

// ask makes a call that may be made twice: it changes nothing.
func ask[A any](ctx context.Context, l *line, fn func(*api.Client) (A, error)) (A, error) {
	return through(ctx, l, true, fn)
}

// tell makes a call that may change something. It is repeated only where the
// first one cannot have arrived.
func tell[A any](ctx context.Context, l *line, fn func(*api.Client) (A, error)) (A, error) {
	return through(ctx, l, false, fn)
}

func through[A any](ctx context.Context, l *line, harmless bool, fn func(*api.Client) (A, error)) (A, error) {
	for tried := false; ; tried = true {
		var none A
		client, err := l.get(ctx)
		if err != nil {
			return none, err
		}
		answer, err := fn(client)
		broken := errors.Is(err, api.ErrBroken)
		// A new sidecar may have new tokens; a refused call did nothing.
		unsent := errors.Is(err, api.ErrNotRunning) || errors.Is(err, fault.Unauthorized)
		if !broken && !unsent || ctx.Err() != nil {
			return answer, err
		}
		l.drop(client)
		switch {
		case broken && !harmless:
			return none, fault.New(fault.Busy, "", "tapin was restarted in the middle of this call; whether it was done is not known").
				WithHint("The browser was kept. Look with browser_snapshot before you do it again.")
		case tried:
			return none, err
		case broken:
			select {
			case <-time.After(dyingFor):
			case <-ctx.Done():
			}
		}
	}
}
