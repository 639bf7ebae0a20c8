package handoff

import (
	"context"
	"errors"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

const (
	sweepEvery = time.Hour
	sweepPause = time.Second // between files of the list, so that nobody waits for a sweep
)

// Recover goes on with what an earlier process left: what was written and not
// done is done, what was not told is told, and every timer is set again. It is
// called once, when the sessions are back. It never fails for one hand-off's sake.
func (r *Room) Recover(ctx context.Context) {
	r.mu.Lock()
	all := make([]*live, 0, len(r.open))
	for _, l := range r.open {
		all = append(all, l)
	}
	r.mu.Unlock()
	for _, l := range all {
		if ctx.Err() != nil {
			return
		}
		l.turn.take()
		r.settle(ctx, l)
		lost := !l.rec.IsOver() && errors.Is(r.retake(ctx, l.rec), fault.NoSession)
		if late := lost && !wallClock().Before(l.rec.Deadline); late {
			// Its time was over before: the owner is told that, and finds a to-do. In the
			// same turn, as its timer is due as well and knows nothing of the loss.
			if _, _, err := r.applyLocked(ctx, l, tick{now: wallClock(), lost: true}); err != nil {
				r.log.Error("a hand-off that is out of time could not be ended yet", "handoff", l.id, "error", err)
			}
			lost = false
		}
		session := l.rec.SessionID
		l.turn.give()
		if generation, err := r.deps.Stage.Generation(session); err == nil {
			r.replace(ctx, l, generation)
		}
		if lost {
			r.lose(ctx, l, "it could not be picked up after a restart")
		}
	}
}

// retake brings the session in line with a record that is not over. A browser
// that was opened for a person who never heard of it is parked again.
func (r *Room) retake(ctx context.Context, rec Record) error {
	ctx, cancel := context.WithTimeout(ctx, effectWithin)
	defer cancel()
	if rec.Parked {
		return r.deps.Stage.Park(ctx, rec.SessionID, rec.ID)
	}
	return r.deps.Stage.KeepUntil(ctx, rec.SessionID, rec.Deadline.Add(keepBeyond))
}

// Run forgets what is past its time, in small steps, until ctx ends.
func (r *Room) Run(ctx context.Context) {
	if r.opts.Keep <= 0 {
		return
	}
	wait := time.NewTimer(sweepPause)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		more, err := r.archive.Expire(ctx, time.Now().Add(-r.opts.Keep), r.isOpen)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("old hand-offs could not be forgotten", "error", err)
		}
		if more && err == nil {
			wait.Reset(sweepPause)
		} else {
			wait.Reset(sweepEvery)
		}
	}
}

func (r *Room) isOpen(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[id] != nil
}

// ParkAll parks what runs, because tapin is told to stop: the browsers go, and
// whoever was asked can still help once it is back.
func (r *Room) ParkAll(ctx context.Context) {
	r.mu.Lock()
	var all []*live
	for _, l := range r.open {
		if l.running {
			all = append(all, l)
		}
	}
	r.mu.Unlock()
	var each sync.WaitGroup
	for _, l := range all {
		each.Go(func() {
			defer guard.Catch("hand-offs")
			if _, err := r.apply(ctx, l, park{by: Owner, now: wallClock()}); err != nil {
				r.log.Warn("a hand-off could not be parked", "handoff", l.id, "error", err)
			}
		})
	}
	each.Wait()
}
