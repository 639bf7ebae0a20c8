package session

import (
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// Driver is who acts in a browser.
type Driver string

// The drivers. Whoever does not say who he is, is the agent.
const (
	Agent Driver = "agent"
	Owner Driver = "owner"
)

// actor is who acts, and under which hand-off if that is known.
type actor struct {
	driver  Driver
	handoff string
}

type actorKey struct{}

// As says who acts in what is done under the context.
func As(ctx context.Context, d Driver) context.Context {
	return context.WithValue(ctx, actorKey{}, actor{driver: d})
}

// acting says that the owner acts under a hand-off: what is done once that is
// over is refused, however long it had waited.
func acting(ctx context.Context, handoff string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor{Owner, handoff})
}

func actorOf(ctx context.Context) actor {
	if a, ok := ctx.Value(actorKey{}).(actor); ok {
		return a
	}
	return actor{driver: Agent}
}

func driverOf(ctx context.Context) Driver { return actorOf(ctx).driver }

// lease is who has the wheel. It is derived from a running hand-off and never
// kept: after a restart the hand-off's record gives it back.
type lease struct {
	handoff string    // "" means that the agent drives
	taking  bool      // the browser is on its way to the person: lost now, it is nobody's
	human   time.Time // when a person last did something
	noted   time.Time // what the record says of that
	ending  bool      // the wheel is on its way back: nothing new is begun
}

// leaseOf is the lease that a record gives back after a restart. The record may
// be a little behind of when a person last did something: the doubt is theirs.
func leaseOf(rec record, handoff string, now time.Time) lease {
	if rec.HumanIn != handoff {
		return lease{handoff: handoff} // that was somebody before
	}
	human := rec.HumanAt
	if human.Before(now) {
		human = human.Add(min(touchEvery, now.Sub(human)))
	}
	return lease{handoff: handoff, human: human, noted: rec.HumanAt}
}

// permit refuses the agent while a person drives, and whoever acts under a
// hand-off that does not have the wheel.
func (s *Session) permit(ctx context.Context) error {
	note, err := s.admits(actorOf(ctx))
	if note != nil {
		note()
	}
	return err
}

// admits is permit without the disk: note, if there is one, brings the record up to
// date with when a person last did something.
func (s *Session) admits(a actor) (note func(), err error) {
	defer guard.Vital(leaseRoom)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.handoff != "" && a.handoff != s.lease.handoff:
		return nil, notHeld("")
	case s.lease.handoff == "":
		return nil, nil
	case a.driver != Owner:
		return nil, inControl(s.lease.handoff)
	}
	now, handoff := time.Now(), s.lease.handoff
	s.lease.human = now
	if now.Sub(s.lease.noted) >= touchEvery {
		s.lease.noted = now
		note = func() {
			if err := s.host.records.sawHuman(s.rec, handoff, now.UTC()); err != nil {
				s.host.log.Warn("that a person is there could not be kept", "session", s.ID(), "error", err)
			}
		}
	}
	return note, nil
}

func notHeld(op string) error {
	return fault.New(fault.HandoffNotRunning, op, "that hand-off does not hold this browser")
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

// taken reports whether a person has the browser.
func (s *Session) taken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.handoff != "" && !s.lease.taking
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
