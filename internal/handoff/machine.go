package handoff

import (
	"slices"
	"strings"
	"time"

	"tapin/internal/fault"
)

const (
	busyFor       = time.Minute      // a person who did something this recently is at the page
	holdFor       = 3 * time.Second  // conditions that held this long are believed
	countdown     = 5 * time.Second  // and then this long can be objected to
	quietAgain    = 15 * time.Second // of quiet, before somebody who objected is counted down again
	warnBefore    = 5 * time.Minute  // the last call
	warnParked    = time.Hour
	maxGrace      = 5 * time.Minute // a person at work at the deadline gets so much more
	parkFor       = 24 * time.Hour
	keepBeyond    = 10 * time.Minute // the browser outlives the hand-off by this
	endBefore     = 30 * time.Second // a browser that ends by itself is given back before
	shortestAsked = time.Second
	presenceStep  = 30 * time.Second // how exact the disk is about presence
	lookWhenSeen  = time.Second      // between looks at conditions while somebody is there
	lookWhenAlone = 3 * time.Second
)

// Effect is something to be done because of a change. Those that are kept are
// written with the change, done after it, and done again after a crash: all of
// them may be repeated.
type Effect string

// The effects that are kept.
const (
	keepBrowser   Effect = "keep"
	markStale     Effect = "stale" // the saved login: a person is asked for one
	returnWheel   Effect = "return"
	addEvidence   Effect = "evidence"
	closeSession  Effect = "close"
	leaveTodo     Effect = "todo"
	dropPhoto     Effect = "drop_photo"
	parkBrowser   Effect = "park"
	unparkBrowser Effect = "unpark"
)

// The effects that are not. What is told goes into the outbox.
const (
	save     Effect = "save"     // write, and nothing else
	complete Effect = "complete" // look at the page once more and finish by verification

	tellStarted   Effect = "tell:handoff.started"
	tellReasked   Effect = "tell:handoff.reasked"
	tellReminder  Effect = "tell:handoff.reminder"
	tellEnding    Effect = "tell:handoff.ending"
	tellExtended  Effect = "tell:handoff.extended"
	tellCountdown Effect = "tell:handoff.countdown"
	tellStayed    Effect = "tell:handoff.countdown_cancelled"
	tellParked    Effect = "tell:handoff.parked"
	tellResumed   Effect = "tell:handoff.resumed"
	tellFinished  Effect = "tell:handoff.finished"
	tellCancelled Effect = "tell:handoff.cancelled"
	tellTimedOut  Effect = "tell:handoff.timed_out"
)

// Event is what can happen to a hand-off, with everything there is to know
// about it: deciding needs neither a clock nor a page.
type Event interface {
	apply(r Record) (Record, []Effect, error)
}

// next decides what becomes of a hand-off. An error refuses and changes
// nothing; no effects mean that nothing is to be written.
func next(r Record, e Event) (Record, []Effect, error) {
	changed, effects, err := e.apply(r.clone())
	if err != nil {
		return r, nil, err
	}
	return changed, effects, nil
}

// started is the beginning of a hand-off.
type started struct{}

func (started) apply(r Record) (Record, []Effect, error) {
	effects := []Effect{tellStarted, keepBrowser}
	if r.asksForLogin() {
		effects = append(effects, markStale)
	}
	return r, effects, nil
}

// asksForLogin reports whether a person is needed because a login did not do.
func (r Record) asksForLogin() bool { return r.Reason == Login || r.Reason == SecondFactor }

// done is somebody's word, or the conditions', that the person has finished.
type done struct {
	by     By
	now    time.Time
	human  time.Time // when a person last did something in the page
	held   []bool    // of the conditions, in their order
	anyway bool      // hand it back although the conditions do not hold
	after  *Snapshot // nil if the page could not be looked at
	fitted bool      // the page was laid out for the person's screen meanwhile
}

func (e done) apply(r Record) (Record, []Effect, error) {
	if r.Status == Finished {
		return r, nil, nil // the first result stands
	}
	if err := r.mayEnd("finish", e.by, e.now, e.human); err != nil {
		return r, nil, err
	}
	if e.by == Owner {
		r = r.meet(e.now)
	}
	r = r.meet(e.human)
	if r.Parked {
		return r, nil, notRunning(r, "finish", "it is parked").WithHint("Resume it first: the browser comes back, and then it can be finished.")
	}
	held := len(r.Book.Verify) > 0 && allHeld(r.Book.Verify, e.held)
	if len(r.Book.Verify) > 0 {
		r.Verified = &Verified{Checked: phrases(r.Book.Verify), Held: held}
	}
	switch {
	case e.by == Verify && (!held || touched(r, e.human) || e.now.Sub(later(e.human, r.Book.HumanAt)) < holdFor):
		r.watch.heldSince = time.Time{}
		r.watch.unsure = r.watch.unsure || e.fitted && !held
		r, effects := r.stay()
		return r, effects, nil
	case held || len(r.Book.Verify) == 0 || e.by == Owner && e.anyway:
		return r.finish(e)
	case e.by == Agent:
		return r, nil, inControl(r, "finish", "the conditions do not hold yet, and the owner is still being asked")
	}
	// Back to the person, not to the agent.
	r.Attempts++
	r.FinishesAt = time.Time{}
	r = r.awake(e.now)
	return r, []Effect{tellReasked}, nil
}

// laidOut tells an agent why a page may have changed without anybody's hand.
const laidOut = "Meanwhile the page was laid out for the owner's phone; it has your layout again."

func (r Record) finish(e done) (Record, []Effect, error) {
	r = r.end(Finished, e.by, e.now)
	r.After = e.after
	if r.After != nil {
		r.Delta = delta(r.Before, *r.After)
		r.DeltaSummary = summarize(r.Delta)
	}
	if e.fitted {
		r.DeltaSummary = strings.TrimSpace(r.DeltaSummary + " " + laidOut)
	}
	r.ResumeHint = finishedHint(r)
	effects := []Effect{returnWheel}
	if r.RunID != "" {
		effects = append(effects, addEvidence)
	}
	return r, append(effects, dropPhoto, tellFinished), nil
}

// cancel is the owner's abort or the agent's change of mind.
type cancel struct {
	by         By
	now, human time.Time
}

func (e cancel) apply(r Record) (Record, []Effect, error) {
	if r.Status == Cancelled {
		return r, nil, nil
	}
	if err := r.mayEnd("cancel", e.by, e.now, e.human); err != nil {
		return r, nil, err
	}
	wasParked := r.Parked
	if e.by == Owner {
		r = r.meet(e.now)
	}
	r = r.end(Cancelled, e.by, e.now)
	r.ResumeHint = cancelledHint(r)
	if e.by == Owner {
		return r, []Effect{closeSession, dropPhoto, tellCancelled}, nil
	}
	effects := []Effect{returnWheel, dropPhoto, tellCancelled}
	if wasParked {
		effects = append([]Effect{unparkBrowser}, effects...)
	}
	return r, effects, nil
}

// gone is the end of the session under a hand-off.
type gone struct {
	now time.Time
	why string
}

func (e gone) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() {
		return r, nil, nil
	}
	r = r.end(Cancelled, "", e.now)
	r.ResumeHint = goneHint(e.why)
	return r, []Effect{dropPhoto, tellCancelled}, nil
}

// extend gives the person more time.
type extend struct {
	now  time.Time
	by   By
	more time.Duration
}

func (e extend) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() {
		return r, nil, notRunning(r, "extend", "it is %s", r.Status)
	}
	until := r.Deadline.Add(e.more)
	if until.After(r.Book.Latest) {
		until = r.Book.Latest
	}
	if !until.After(r.Deadline) {
		return r, nil, fault.New(fault.InvalidRequest, "extend "+r.ID, "it cannot last longer than until %s", r.Book.Latest.Format(time.RFC3339)).
			WithHint("Finish this one; the agent can ask again.")
	}
	r.Deadline, r.Book.Warned, r.Book.Graced = until, false, 0
	if e.by == Owner {
		r = r.awake(e.now)
	}
	return r, []Effect{keepBrowser, tellExtended}, nil
}

// present is a sign of life that did not come through the page: a reply in the
// chat, a relayed text, a touch on the countdown.
type present struct{ now time.Time }

func (e present) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() {
		return r, nil, nil
	}
	late := e.now.Sub(r.Book.HumanAt) >= presenceStep || r.Book.Reminded > 0
	r = r.awake(e.now)
	r, effects := r.stay()
	if late && len(effects) == 0 {
		effects = []Effect{save}
	}
	return r, effects, nil
}

// park frees the browser until the person has time.
type park struct {
	by         By
	now, human time.Time
}

func (e park) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() {
		return r, nil, notRunning(r, "park", "it is %s", r.Status)
	}
	if r.Parked {
		return r, nil, nil
	}
	if err := r.mayEnd("park", e.by, e.now, e.human); err != nil {
		return r, nil, err
	}
	r = r.meet(e.human)
	r.Parked, r.FinishesAt, r.watch = true, time.Time{}, watch{}
	r.Book.Latest = later(r.Book.Latest, e.now.Add(parkFor))
	r.Deadline, r.Book.Warned = later(r.Deadline, e.now.Add(parkFor)), false
	return r, []Effect{parkBrowser, tellParked}, nil
}

// resumed is a parked hand-off whose browser is back.
type resumed struct {
	now        time.Time
	generation int
}

func (e resumed) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() {
		return r, nil, notRunning(r, "resume", "it is %s", r.Status)
	}
	if !r.Parked {
		return r, nil, nil
	}
	r.Parked, r.Generation = false, e.generation
	r.Deadline, r.Book.Warned, r.Book.Graced = e.now.Add(r.Book.Timeout), false, 0
	r.Book.Latest = later(r.Book.Latest, r.Deadline)
	r = r.awake(e.now)
	return r, []Effect{keepBrowser, tellResumed}, nil
}

// replaced is another browser under a person whose own was lost.
type replaced struct{ generation int }

func (e replaced) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() || e.generation <= r.Generation {
		return r, nil, nil
	}
	r.Generation = e.generation
	return r, []Effect{save}, nil
}

// mayEnd refuses whoever may not end this turn now.
func (r Record) mayEnd(op string, by By, now, human time.Time) error {
	if r.IsOver() {
		return notRunning(r, op, "it is %s", r.Status)
	}
	if by == Agent && r.busy(now, human) {
		return inControl(r, op, "a person is at the page")
	}
	return nil
}

// busy reports whether a person did something just now.
func (r Record) busy(now, human time.Time) bool {
	at := later(human, r.Book.HumanAt)
	return !at.IsZero() && now.Sub(at) < busyFor
}

// awake takes note of a sign of life: idleness begins anew.
func (r Record) awake(at time.Time) Record {
	r.Book.HumanAt, r.Book.IdleSince = later(r.Book.HumanAt, at), later(r.Book.IdleSince, at)
	r.Book.Reminded = 0
	return r.meet(at)
}

// meet notes the first moment at which a person is known to be there. What was
// done in the browser before anybody was asked is no answer.
func (r Record) meet(at time.Time) Record {
	if r.Book.MetAt.IsZero() && !at.Before(r.CreatedAt) && !at.IsZero() {
		r.Book.MetAt = at
	}
	return r
}

func (r Record) end(s Status, by By, now time.Time) Record {
	r.Status, r.FinishedBy, r.FinishedAt, r.Parked, r.FinishesAt = s, by, now, false, time.Time{}
	r.watch = watch{}
	return r
}

func allHeld[C any](conditions []C, held []bool) bool {
	return len(held) == len(conditions) && !slices.Contains(held, false)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func notRunning(r Record, op, format string, args ...any) *fault.Error {
	return fault.New(fault.HandoffNotRunning, op+" "+r.ID, format, args...).With("handoff_id", r.ID).With("status", string(r.Status))
}

func inControl(r Record, op, why string) *fault.Error {
	return fault.New(fault.HumanInControl, op+" "+r.ID, "%s", why).With("handoff_id", r.ID).
		WithHint("Wait with GET /handoff/%s?wait_ms=55000; the owner ends it.", r.ID)
}
