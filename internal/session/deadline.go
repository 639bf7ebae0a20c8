package session

import (
	"context"
	"time"

	"tapin/internal/fault"
)

// warnBefore is how long before its deadline a session's owner is told.
const warnBefore = 5 * time.Minute

// arm sets the timers of a session by its record.
func (h *Host) arm(s *Session) {
	deadline := s.Info().Deadline
	h.deps.Schedule.Set(s.ID(), deadline, func(ctx context.Context) {
		if _, err := h.end(ctx, s, "its time was over"); err != nil {
			h.log.Warn("a session could not be ended at its deadline", "session", s.ID(), "error", err)
		}
	})
	warnAt := deadline.Add(-warnBefore)
	if !warnAt.After(time.Now()) || s.record().Warned.Equal(deadline) {
		h.deps.Schedule.Cancel(s.ID() + "/warn")
		return // it was short from the beginning, or has been told
	}
	h.deps.Schedule.Set(s.ID()+"/warn", warnAt, func(ctx context.Context) {
		if err := h.records.change(ctx, s.rec, "session.expiring", func(r *record) { r.Warned = r.Deadline }); err != nil {
			h.log.Warn("the owner could not be warned of a session's end", "session", s.ID(), "error", err)
		}
	})
}

// unwatch takes all timers of a session back.
func (h *Host) unwatch(id string) {
	for _, timer := range []string{id, id + "/warn", id + "/save"} {
		h.deps.Schedule.Cancel(timer)
	}
}

// KeepUntil moves the deadline of a session to at least t, within what a
// session may last at all. It never comes nearer.
func (h *Host) KeepUntil(ctx context.Context, id string, t time.Time) error {
	if h.isParked(id) {
		return nil
	}
	s, err := h.Get(id)
	if err != nil {
		return err
	}
	began := s.Info().StartedAt
	if awake := s.record().AwakeSince; awake.After(began) {
		began = awake
	}
	if last := began.Add(maxTimeout); t.After(last) {
		t = last
	}
	if !t.After(s.Info().Deadline) {
		return nil
	}
	if err := h.records.change(ctx, s.rec, "", func(r *record) { r.Deadline = t.UTC() }); err != nil {
		return fault.Wrap(fault.Internal, "move the session's deadline", err)
	}
	s.mu.Lock()
	s.info.Deadline = t.UTC()
	s.mu.Unlock()
	h.arm(s)
	return s.view().inst.KeepUntil(ctx, t.Add(grace))
}
