package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/session"
)

const (
	replayAge  = 24 * time.Hour
	maxReplays = 1024
	maxKey     = 255
	startTime  = 3 * time.Minute // for a start that nobody may be waiting for
)

// replays remember which session a key started, so that a caller that lost the
// answer finds its browser instead of opening a second one.
type replays struct {
	mu      sync.Mutex
	entries map[replayKey]*replay
}

// replayKey is a key in the hands of one caller; others cannot meet it.
type replayKey struct{ caller, key string }

type replay struct {
	digest [sha256.Size]byte
	at     time.Time
	done   chan struct{} // closed when id or err is known
	id     string
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

// makeRoom drops what is old, and the oldest when that is not enough. A start
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
		return fault.New(fault.Busy, "", "%d starts are under way already", maxReplays)
	}
	delete(p.entries, oldest)
	return nil
}

// settle tells those who wait. A failure is forgotten: it may pass.
func (p *replays) settle(key replayKey, e *replay, id string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.id, e.err = id, err
	if err != nil {
		delete(p.entries, key)
	}
	close(e.done)
}

// startOnce starts a session, or finds the one that the request's
// Idempotency-Key started before.
func (s *Server) startOnce(c *call, req *api.StartRequest, o session.StartOptions) (Session, error) {
	given := c.r.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return s.sessions.Start(c.r.Context(), o)
	}
	if len(given) > 1 || !readable(given[0]) {
		return nil, fault.New(fault.InvalidRequest, "", "Idempotency-Key must be one text of 1 to %d readable characters", maxKey)
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	key := replayKey{c.caller, given[0]}
	entry, first, err := s.replays.claim(key, sha256.Sum256(body))
	if err != nil {
		return nil, err
	}
	if first {
		s.startDetached(c.r.Context(), key, entry, o)
	} else {
		c.w.Header().Set("Idempotent-Replayed", "true")
	}
	select {
	case <-entry.done:
	case <-c.r.Context().Done():
		return nil, c.r.Context().Err()
	}
	if entry.err != nil {
		return nil, entry.err
	}
	started, err := s.sessions.Get(entry.id)
	if err != nil {
		return nil, fault.New(fault.NoSession, "", "the session that this Idempotency-Key started is over").
			With("session_id", entry.id).WithHint("Use a new key to start another one.")
	}
	return started, nil
}

// startDetached starts a session even if the caller hangs up: the repetition
// with the same key is made for just that.
func (s *Server) startDetached(ctx context.Context, key replayKey, entry *replay, o session.StartOptions) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTime)
	detach := context.AfterFunc(s.working, cancel)
	s.work.Go(func() {
		defer cancel()
		defer detach()
		id, err := "", error(fault.New(fault.Internal, "start", "the start did not come back"))
		defer func() {
			if trouble := recover(); trouble != nil {
				s.log.Error("start panicked", "panic", trouble)
			}
			s.replays.settle(key, entry, id, err)
		}()
		started, failed := s.sessions.Start(ctx, o)
		if err = failed; err == nil {
			id = started.Info().ID
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fault.New(fault.SessionCreateFailed, "start", "no browser within %s", startTime)
		}
	})
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
