package sidecar

import (
	"context"
	"time"

	"tapin/internal/handoff"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
)

// stage shows the sessions to the hand-offs in the words of theirs. The two
// rooms do not know each other.
type stage struct {
	// Set before anything asks: they need the hand-offs first.
	sessions *session.Host
	presence func(id string) (last time.Time, watching bool)
	parted   func(id string) // a parked session ended, of which nobody else tells
}

var _ handoff.Stage = (*stage)(nil)

func (s *stage) Lend(ctx context.Context, id, by string, o handoff.LendOptions) (handoff.Lent, error) {
	lent, err := s.sessions.Lend(ctx, id, by, session.LendOptions(o))
	return handoff.Lent(lent), err
}

func (s *stage) Return(ctx context.Context, id, by string, loggedIn bool) error {
	return s.sessions.Return(ctx, id, by, loggedIn)
}

func (s *stage) Observe(ctx context.Context, id, by string, o page.ObserveOptions) (page.Observation, error) {
	return s.sessions.Observe(ctx, id, by, o)
}

func (s *stage) Plain(ctx context.Context, id, by string) (func(), bool, error) {
	return s.sessions.Plain(ctx, id, by)
}

func (s *stage) Fitted(id string) bool { return s.sessions.Fitted(id) }

func (s *stage) Holds(ctx context.Context, id, by string, conditions []page.Condition) ([]bool, error) {
	return s.sessions.Holds(ctx, id, by, conditions)
}

func (s *stage) Stale(ctx context.Context, id string) error { return s.sessions.Stale(ctx, id) }

func (s *stage) Generation(id string) (int, error) { return s.sessions.Generation(id) }

func (s *stage) KeepUntil(ctx context.Context, id string, t time.Time) error {
	return s.sessions.KeepUntil(ctx, id, t)
}

func (s *stage) Screenshot(ctx context.Context, id, by string) (page.Image, error) {
	return s.sessions.Photograph(ctx, id, by)
}

func (s *stage) Type(ctx context.Context, id, by string, text secret.Text, key string) (page.Typed, error) {
	return s.sessions.Relay(ctx, id, by, text, key)
}

func (s *stage) Close(ctx context.Context, id, reason string) (bool, error) {
	stopped, err := s.sessions.Shut(ctx, id, reason)
	if err == nil {
		s.parted(id)
	}
	return stopped.ContextSaved, err
}

func (s *stage) Park(ctx context.Context, id, by string) error { return s.sessions.Park(ctx, id, by) }

func (s *stage) Unpark(ctx context.Context, id, by string) (int, error) {
	return s.sessions.Unpark(ctx, id, by)
}

func (s *stage) Presence(id string) (time.Time, bool) { return s.presence(id) }
