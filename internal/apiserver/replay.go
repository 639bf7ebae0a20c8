package apiserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

const (
	replayAge  = 24 * time.Hour
	maxReplays = 1024
	maxKey     = 255
)

// replays remember what the request with a key did, so that a caller that lost
// the answer finds its browser instead of opening a second one, and does not
// type its text twice.
type replays struct {
	mu      sync.Mutex
	entries map[replayKey]*replay
}

// replayKey is a key in the hands of one caller; others cannot meet it.
type replayKey struct{ caller, key string }

type replay struct {
	digest [sha256.Size]byte
	at     time.Time
	done   chan struct{} // closed when result or err is known
	result any
	err    error
}

// claim finds the entry of a key, or makes it, and then first is true.
func (p *replays) claim(key replayKey, digest [sha256.Size]byte) (entry *replay, first bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if there, ok := p.entries[key]; ok && now.Sub(there.at) < replayAge {
		if there.digest != digest {
			return nil, false, fault.New(fault.InvalidRequest, "", "that Idempotency-Key was used with another body").
				WithHint("Use a new key for a new request.")
		}
		return there, false, nil
	}
	if err := p.makeRoom(now); err != nil {
		return nil, false, err
	}
	entry = &replay{digest: digest, at: now, done: make(chan struct{})}
	p.entries[key] = entry
	return entry, true, nil
}

// makeRoom drops what is old, and the oldest when that is not enough. A call
// under way is never dropped: its repetition must find it.
func (p *replays) makeRoom(now time.Time) error {
	if len(p.entries) < maxReplays {
		return nil
	}
	var oldest replayKey
	var found *replay
	for key, e := range p.entries {
		select {
		case <-e.done:
		default:
			continue
		}
		if now.Sub(e.at) >= replayAge {
			delete(p.entries, key)
		} else if found == nil || e.at.Before(found.at) {
			oldest, found = key, e
		}
	}
	if len(p.entries) < maxReplays {
		return nil
	}
	if found == nil {
		return fault.New(fault.Busy, "", "%d calls with a key are under way already", maxReplays)
	}
	delete(p.entries, oldest)
	return nil
}

// settle tells those who wait. A failure is kept only if it may have had an
// effect; any other may pass, and is forgotten.
func (p *replays) settle(key replayKey, e *replay, result any, err error, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.result, e.err = result, err
	if err != nil && !keep {
		delete(p.entries, key)
	}
	close(e.done)
}

// errand is something to be done once for each Idempotency-Key.
type errand[R any] struct {
	digest  [sha256.Size]byte // of everything that makes it what it is
	within  time.Duration     // it goes on for so long when nobody waits any more
	do      func(context.Context) (R, error)
	settled func(error) bool // whether a failure may have had an effect, and so must not be repeated
}

// once runs an errand, or finds what the same one did before.
func once[R any](s *Server, c *call, what errand[R]) (R, error) {
	var none R
	given := c.r.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return what.do(c.r.Context())
	}
	if len(given) > 1 || !readable(given[0]) {
		return none, fault.New(fault.InvalidRequest, "", "Idempotency-Key must be one text of 1 to %d readable characters", maxKey)
	}
	key := replayKey{c.caller, given[0]}
	entry, first, err := s.replays.claim(key, what.digest)
	if err != nil {
		return none, err
	}
	if first {
		detach(c.r.Context(), s, key, entry, what)
	} else {
		c.w.Header().Set("Idempotent-Replayed", "true")
	}
	select {
	case <-entry.done:
	case <-c.r.Context().Done():
		return none, c.r.Context().Err()
	}
	result, _ := entry.result.(R)
	return result, entry.err
}

// detach runs an errand even if the caller hangs up: the repetition with the
// same key is made for just that.
func detach[R any](ctx context.Context, s *Server, key replayKey, entry *replay, what errand[R]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), what.within)
	release := context.AfterFunc(s.working, cancel)
	s.work.Go(func() {
		defer guard.Catch("API door")
		defer cancel()
		defer release()
		var result R
		err := error(fault.New(fault.Internal, "", "the call did not come back"))
		defer func() {
			if trouble := recover(); trouble != nil {
				s.log.Error("a call panicked", "panic", guard.Describe(trouble))
				guard.Note("API door", trouble)
			}
			s.replays.settle(key, entry, result, err, what.settled(err))
		}()
		result, err = what.do(ctx)
	})
}

// digestOf tells requests apart by everything that decides what they do.
func digestOf(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// readable reports whether a key is plain ASCII of a sensible length.
func readable(key string) bool {
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxKey
}
