package approval

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"
)

const (
	sweepEvery = time.Hour
	sweepMost  = 200 // records a sweep, so that nobody waits for one
)

// sweep forgets what is over and past its time, the oldest first, and comes
// back for more.
func (r *Room) sweep(ctx context.Context) {
	if r.opts.Keep <= 0 {
		return
	}
	defer r.deps.Schedule.Set("approvals/sweep", wallClock().Add(sweepEvery), r.sweep)
	names, err := r.deps.Home.List(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("old approvals could not be listed", "error", err)
		return
	}
	slices.Sort(names) // ids sort by when they were made
	before, done := wallClock().Add(-r.opts.Keep), 0
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok {
			continue
		}
		rec, err := r.Get(id)
		if ctx.Err() != nil || done >= sweepMost || err == nil && !rec.CreatedAt.Before(before) {
			return
		}
		if err != nil || !rec.IsOver() || r.isCounted(id) {
			continue // what cannot be read is left for a person, what a budget counts for the budget
		}
		if err := r.deps.Home.Remove(file(id)); err != nil {
			r.log.Warn("an old approval could not be forgotten", "approval", id, "error", err)
			return
		}
		done++
	}
}

// isCounted reports whether a budget still counts an approval: without its
// record the next start would take the payment for one that never was.
func (r *Room) isCounted(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.book.Spendings, func(s Spending) bool { return s.Approval == id })
}
