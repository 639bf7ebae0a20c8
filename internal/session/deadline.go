package session

import (
	"context"
	"time"

	"tapin/internal/fault"
)

// timers are what a session's timers do.
func (h *Host) timers(s *Session) timers {
	return timers{
		schedule: h.deps.Schedule, session: s.ID(),
		end: func(ctx context.Context) {
			if _, err := h.end(ctx, s, "its time was over"); err != nil {
				h.log.Warn("a session could not be ended at its deadline", "session", s.ID(), "error", err)
			}
		},
		warn: func(ctx context.Context) {
			if err := h.records.warned(ctx, s.rec, time.Now()); err != nil {
				h.log.Warn("the owner could not be warned of a session's end", "session", s.ID(), "error", err)
			}
		},
		save: func(ctx context.Context) { h.saveUsed(ctx, s) },
	}
}

// arm sets the timers of a session by its record.
func (h *Host) arm(s *Session) { h.timers(s).set(s.record(), time.Now()) }

// unwatch takes all timers of a session back.
func (h *Host) unwatch(id string) { timers{schedule: h.deps.Schedule, session: id}.cancel() }

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
	now := s.record()
	until := now.raised(t)
	if until.Equal(now.Deadline) {
		return nil
	}
	if err := h.records.change(ctx, s.rec, "", func(r *record) { r.Deadline = r.raised(until) }); err != nil {
		return fault.Wrap(fault.Internal, "move the session's deadline", err)
	}
	until = s.record().Deadline
	s.mu.Lock()
	s.info.Deadline = until
	s.mu.Unlock()
	h.arm(s)
	return s.view().inst.KeepUntil(ctx, until.Add(grace))
}
