package approval

import (
	"context"
	"path"
	"slices"
	"strings"
)

// Recover goes on with what an earlier process left. A grant that was used and
// of whose click nobody heard is reported as unknown, and stays used; one whose
// click is known to have been done is looked after on its page.
func (r *Room) Recover(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.open {
		if rec.Status == Used && rec.Outcome == "" {
			outcome := OutcomeUnknown
			if r.opts.WentOn != nil && rec.Book.Sent != nil && r.opts.WentOn(ctx, rec.SessionID, rec.Generation, *rec.Book.Sent) {
				outcome = OutcomeConfirmed
			}
			if _, err := r.apply(ctx, rec, settled{outcome}); err != nil {
				r.log.Error("the outcome of a payment could not be noted", "approval", rec.ID, "error", err)
			}
			continue
		}
		r.settle(ctx, rec)
	}
	// A part of a budget whose approval never came to be is given back. One whose
	// record is lost may have been paid.
	unborn := r.neverBegun()
	book := r.book.clone()
	kept := book.Spendings[:0]
	for _, s := range book.Spendings {
		rec, err := r.read(s.Approval)
		if slices.Contains(unborn, s.Approval) || err == nil && (rec.Status == Expired || rec.Status == Denied || rec.Status == Pending) {
			continue
		}
		kept = append(kept, s)
	}
	if book.Spendings = kept; len(kept) != len(r.book.Spendings) || len(book.Outbox) > 0 {
		if err := r.keep(ctx, book); err != nil {
			r.log.Error("the budgets could not be brought in order", "error", err)
			unborn = nil
		}
	}
	for _, id := range unborn {
		_ = r.index.Remove(id)
	}
	r.notice(ctx)
	r.deps.Schedule.Set("approvals/sweep", wallClock(), r.sweep)
}

// neverBegun lists the approvals whose process was killed before their first
// write. It leaves out those whose record was put aside.
func (r *Room) neverBegun() []string {
	if len(r.unborn) == 0 {
		return nil
	}
	names, err := r.deps.Home.List(folder)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(r.unborn, func(id string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, path.Base(file(id))) })
	})
}
