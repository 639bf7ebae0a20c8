package session

import (
	"context"
	"time"

	"tapin/internal/fault"
)

// Driver is who acts in a browser.
type Driver string

// The drivers. Whoever does not say who he is, is the agent.
const (
	Agent Driver = "agent"
	Owner Driver = "owner"
)

type driverKey struct{}

// As says who acts in what is done under the context.
func As(ctx context.Context, d Driver) context.Context { return context.WithValue(ctx, driverKey{}, d) }

func driverOf(ctx context.Context) Driver {
	if d, ok := ctx.Value(driverKey{}).(Driver); ok {
		return d
	}
	return Agent
}

// lease is who has the wheel. It is derived from a running hand-off and never
// kept: after a restart the hand-off's record gives it back.
type lease struct {
	handoff string    // "" means that the agent drives
	human   time.Time // when a person last did something
}

// permit refuses the agent while a person drives.
func (s *Session) permit(d Driver) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.handoff == "" {
		return nil
	}
	if d == Owner {
		s.lease.human = time.Now()
		return nil
	}
	return inControl(s.lease.handoff)
}

func inControl(handoff string) error {
	return fault.New(fault.HumanInControl, "", "a person drives this browser").With("handoff_id", handoff).
		WithHint("Wait for the hand-off to end: GET /handoff/%s?wait_ms=55000.", handoff)
}

// heldBy is the hand-off that has the wheel, "" when none has.
func (s *Session) heldBy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.handoff
}

// Presence is when a person last did something in a session.
func (h *Host) Presence(id string) time.Time {
	s, err := h.Get(id)
	if err != nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.human
}
