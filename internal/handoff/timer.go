package handoff

import (
	"context"
	"errors"
	"time"

	"tapin/internal/fault"
)

// lookWithin bounds a look at the page on behalf of a timer.
const lookWithin = 5 * time.Second

func timer(id string) string { return "handoff/" + id }

// arm has a hand-off looked at when it next wants to be. One timer a hand-off,
// always set from its record: there is none to forget.
func (r *Room) arm(l *live) {
	if l.rec.IsOver() {
		r.deps.Schedule.Cancel(timer(l.rec.ID))
		return
	}
	r.deps.Schedule.Set(timer(l.rec.ID), wake(l.rec, wallClock()), func(ctx context.Context) { r.tick(ctx, l) })
}

// tick looks at the clock, the page and the person, and lets the record decide.
func (r *Room) tick(ctx context.Context, l *live) {
	l.turn.take()
	session, id, conditions := l.rec.SessionID, l.rec.ID, l.rec.Book.Verify
	idle := l.rec.IsOver() || l.rec.Parked
	l.turn.give()

	e := tick{}
	if !idle {
		e.human, e.watching = r.presence(session)
		if len(conditions) > 0 {
			e.fitted = r.deps.Stage.Fitted(session)
			looking, cancel := context.WithTimeout(ctx, lookWithin)
			held, err := r.deps.Stage.Holds(looking, session, id, conditions)
			cancel()
			if err == nil {
				e.held = held
			} else if errors.Is(err, fault.NoSession) && ctx.Err() == nil {
				r.lose(ctx, l, "its browser is gone")
				return
			}
		}
	}
	if ctx.Err() != nil {
		return // the next process goes on
	}
	l.turn.take()
	e.now = wallClock()
	_, effects, err := r.applyLocked(ctx, l, e)
	switch {
	case err != nil:
		r.log.Error("a hand-off's timer could not be carried out yet", "handoff", id, "error", err)
		r.deps.Schedule.Set(timer(id), wallClock().Add(retryAfter), func(ctx context.Context) { r.tick(ctx, l) })
	case !written(effects):
		r.arm(l)
	}
	l.turn.give()
	for _, e := range effects {
		if e == complete {
			r.completeByVerify(ctx, l)
		}
	}
}

// completeByVerify finishes a hand-off whose conditions held long enough.
func (r *Room) completeByVerify(ctx context.Context, l *live) {
	if _, err := r.finish(ctx, l, Verify, false); err != nil && ctx.Err() == nil {
		r.log.Warn("a hand-off that looks finished could not be", "handoff", l.id, "error", err)
	}
}

func (r *Room) lose(ctx context.Context, l *live, why string) {
	if _, err := r.apply(ctx, l, gone{now: wallClock(), why: why}); err != nil {
		r.log.Error("the end of a session could not be noted", "handoff", l.id, "error", err)
	}
}

// presence is the page's view of the person, by the wall clock alone.
func (r *Room) presence(session string) (human time.Time, watching bool) {
	human, watching = r.deps.Stage.Presence(session)
	if human.IsZero() {
		return human, watching
	}
	return human.UTC().Round(0), watching
}
