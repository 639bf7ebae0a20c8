package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

const (
	// effectWithin bounds one effect: a browser that does not answer must not
	// keep the news of an end from those who wait for it.
	effectWithin = 15 * time.Second
	unparkWithin = time.Minute // a new browser, and the page in it
	retryAfter   = 5 * time.Second
)

// apply lets something happen to a hand-off: decided, written, done, told. What
// ctx does not leave time for is on the disk, for the next process.
func (r *Room) apply(ctx context.Context, l *live, e Event) (Record, error) {
	l.turn.take()
	defer l.turn.give()
	rec, _, err := r.applyLocked(ctx, l, e)
	return rec, err
}

func (r *Room) applyLocked(ctx context.Context, l *live, e Event) (Record, []Effect, error) {
	effects, changed, err := r.decide(ctx, l, e)
	if changed {
		r.settle(ctx, l)
	}
	return l.rec, effects, err
}

// decide lets the record go on, on the disk first. When it panics nobody knows
// which of the two is so, and only the disk can say.
func (r *Room) decide(ctx context.Context, l *live, e Event) (effects []Effect, changed bool, err error) {
	defer guard.Vital("hand-off record")
	if l.rec.heard(ctx) {
		return nil, false, nil
	}
	rec, effects, err := next(l.rec, e)
	if err != nil {
		return nil, false, err
	}
	if !written(effects) {
		l.rec = rec // presence may run a little ahead of the disk
		return effects, false, nil
	}
	rec = prepare(rec, effects).hear(ctx)
	if err := r.archive.Write(rec.ID, rec); err != nil {
		return nil, false, err
	}
	l.rec = rec
	if rec.IsOver() {
		r.deps.Schedule.Cancel(timer(rec.ID))
		r.mu.Lock()
		l.running = false
		r.mu.Unlock()
	}
	return effects, true, nil
}

// written reports whether effects are worth a write.
func written(effects []Effect) bool {
	for _, e := range effects {
		if e != complete {
			return true
		}
	}
	return false
}

// prepare puts effects into a record, to be written with it. Each news is a
// version of its own.
func prepare(rec Record, effects []Effect) Record {
	rec = rec.clone()
	for _, e := range effects {
		news, told := strings.CutPrefix(string(e), "tell:")
		switch {
		case told:
			rec.Version++
			rec.Book.Outbox = append(rec.Book.Outbox, event.Event{
				ID: rec.ID, Version: rec.Version, Type: news, At: wallClock(), Data: newsOf(rec),
			})
		case e != save && e != complete:
			rec.Book.Pending = append(rec.Book.Pending, e)
		}
	}
	return rec
}

// News is what the feed tells of a hand-off: enough to write to a person and
// to wake an agent, and nothing that a page says beyond the hand-off's own record.
type News struct {
	HandoffID    string    `json:"handoff_id"`
	SessionID    string    `json:"session_id"`
	RunID        string    `json:"run_id,omitempty"`
	Status       Status    `json:"status"`
	Reason       Reason    `json:"reason"`
	Instruction  string    `json:"instruction,omitempty"`
	Task         string    `json:"task,omitempty"`
	Origin       string    `json:"origin"`
	StartedBy    By        `json:"started_by"`
	FinishedBy   By        `json:"finished_by,omitempty"`
	Attempts     int       `json:"attempts"`
	Follows      string    `json:"follows,omitempty"`
	Notify       bool      `json:"notify"`
	Photo        bool      `json:"photo"` // one waits at GET /handoff/{id}/photo
	Deadline     time.Time `json:"deadline"`
	FinishesAt   time.Time `json:"finishes_at,omitzero"`
	Reminder     int       `json:"reminder,omitempty"` // the how manieth
	OnTimeout    string    `json:"on_timeout"`
	Parked       bool      `json:"parked"`
	DeltaSummary string    `json:"delta_summary,omitempty"`
	ResumeHint   string    `json:"resume_hint,omitempty"`
	TodoID       string    `json:"todo_id,omitempty"`
}

func newsOf(r Record) json.RawMessage {
	data, err := json.Marshal(News{
		HandoffID: r.ID, SessionID: r.SessionID, RunID: r.RunID, Status: r.Status, Reason: r.Reason, Instruction: r.Instruction, Task: r.Task,
		Origin: r.Before.Origin, StartedBy: r.StartedBy, FinishedBy: r.FinishedBy, Attempts: r.Attempts, Follows: r.Follows,
		Notify: r.Notify, Photo: r.Book.HasPhoto && !r.IsOver(), Deadline: r.Deadline, FinishesAt: r.FinishesAt,
		Reminder: r.Book.Reminded, OnTimeout: r.OnTimeout, Parked: r.Parked,
		DeltaSummary: r.DeltaSummary, ResumeHint: r.ResumeHint, TodoID: r.TodoID,
	})
	if err != nil {
		return nil // texts, numbers and times always encode
	}
	return data
}

// settle does what is pending and tells what is in the outbox. What fails is
// tried again; the news are not kept back for it.
func (r *Room) settle(ctx context.Context, l *live) {
	dirty := len(l.rec.Book.Pending)+len(l.rec.Book.Outbox) > 0
	var left []Effect
	for _, e := range l.rec.Book.Pending {
		if err := r.carryOut(ctx, l, e); err != nil {
			r.log.Warn("a hand-off has something left to do", "handoff", l.rec.ID, "effect", e, "error", err)
			left = append(left, e)
		}
	}
	l.rec.Book.Pending = left
	err := r.archive.Tell(ctx, l.rec.ID, l.rec.Book.Outbox)
	if err == nil {
		l.rec.Book.Outbox = nil
	}
	if dirty && err == nil {
		err = r.archive.Write(l.rec.ID, l.rec)
	}
	settled := err == nil && len(left) == 0
	if settled && l.rec.IsOver() {
		if err := r.archive.Settle(l.rec.ID); err != nil {
			settled = false
		}
	}
	r.show(l, settled)
	if !settled {
		if err != nil {
			r.log.Warn("a hand-off is told later", "handoff", l.rec.ID, "error", err)
		}
		r.deps.Schedule.Set(timer(l.rec.ID)+"/settle", wallClock().Add(retryAfter), func(ctx context.Context) {
			l.turn.take()
			defer l.turn.give()
			r.settle(ctx, l)
		})
	}
	r.arm(l)
}

// show lets doors see the record, and forgets it once nothing is left to do.
func (r *Room) show(l *live, settled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.shown = l.rec
	close(l.changed)
	l.changed = make(chan struct{})
	if settled && l.rec.IsOver() {
		delete(r.open, l.rec.ID)
		if r.bySession[l.rec.SessionID] == l {
			delete(r.bySession, l.rec.SessionID)
		}
	}
	r.showed(l)
}

// carryOut does one thing, which may have been done before.
func (r *Room) carryOut(ctx context.Context, l *live, e Effect) error {
	within := effectWithin
	if e == unparkBrowser {
		within = unparkWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rec, stage := &l.rec, r.deps.Stage
	var err error
	switch e {
	case keepBrowser:
		if !rec.IsOver() {
			err = stage.KeepUntil(ctx, rec.SessionID, rec.Deadline.Add(keepBeyond))
		}
	case markStale:
		if !rec.IsOver() { // by now it may have been found to work
			err = stage.Stale(ctx, rec.SessionID)
		}
	case returnWheel:
		err = stage.Return(ctx, rec.SessionID, rec.ID, loggedIn(*rec))
	case closeSession:
		var saved bool
		saved, err = stage.Close(ctx, rec.SessionID, "hand-off "+rec.ID+" "+strings.ToLower(string(rec.Status)))
		if err == nil {
			rec.ContextSaved = &saved
		}
	case parkBrowser:
		if rec.Parked {
			err = stage.Park(ctx, rec.SessionID, rec.ID)
		}
	case unparkBrowser:
		var generation int
		generation, err = stage.Unpark(ctx, rec.SessionID, rec.ID)
		if err == nil {
			rec.Generation = generation
		} else if errors.Is(err, fault.SessionActive) {
			// The agent has gone on elsewhere, and there is no room for a browser
			// that it did not wait for.
			_, err = stage.Close(ctx, rec.SessionID, "hand-off "+rec.ID+" was cancelled while it was parked")
		}
	case addEvidence:
		err = r.deps.Evidence.AppendOnce(ctx, rec.RunID, "handoff", rec.ID, evidenceOf(*rec))
		if errors.Is(err, fault.NotFound) {
			err = nil // the run is forgotten, and its evidence with it
		}
	case leaveTodo:
		err = r.todos.leave(*rec)
	case dropPhoto:
		if err = r.deps.Home.Remove(r.photoFile(rec.ID)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if errors.Is(err, fault.NoSession) || errors.Is(err, fault.HandoffNotRunning) {
		return nil // the session is over, or not ours any more: there is nothing left to do to it
	}
	return err
}

// loggedIn reports whether a person was seen to have logged in: that is what
// was asked for, and the conditions say that it is so.
func loggedIn(r Record) bool {
	return r.Status == Finished && r.asksForLogin() && r.Verified != nil && r.Verified.Held
}

func evidenceOf(r Record) string {
	if r.DeltaSummary == "" {
		return "A person finished a " + string(r.Reason) + " hand-off; the page could not be read afterwards."
	}
	return r.DeltaSummary
}

func (r *Room) journal(began time.Time, by By, what string, rec Record, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(fault.Of(err).Code)
	}
	if err := r.deps.Journal.Write(event.Entry{
		At: began, Who: string(by), What: what, Session: rec.SessionID, Origin: rec.Before.Origin,
		Took: time.Since(began), Outcome: outcome,
	}); err != nil {
		r.log.Warn("the journal could not be written", "error", err)
	}
}
