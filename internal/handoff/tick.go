package handoff

import (
	"slices"
	"time"
)

// tick is a look at the clock, and at what else there is to see at that moment.
type tick struct {
	now      time.Time
	human    time.Time // when a person last did something in the page
	watching bool      // somebody looks at it
	held     []bool    // of the conditions; nil when they were not looked at
	fitted   bool      // the page is laid out for a person's screen
	lost     bool      // there is no browser any more that could be returned
}

func (e tick) apply(r Record) (Record, []Effect, error) {
	if r.IsOver() {
		return r, nil, nil
	}
	r.watch.looked = e.watching
	r, effects := r.notice(e)
	if !e.now.Before(r.Deadline) {
		r, ends := r.timeOut(e)
		return r, append(effects, ends...), nil
	}
	if len(r.Book.Verify) > 0 && !r.Parked && e.held != nil {
		var more []Effect
		r, more = r.judge(e)
		effects = append(effects, more...)
	}
	if at, ok := r.reminderDue(); ok && !e.now.Before(at) {
		// A laptop that slept through two of them sends one.
		for ok && !e.now.Before(at) {
			r.Book.Reminded++
			at, ok = r.reminderDue()
		}
		effects = append(effects, tellReminder)
	}
	if at, ok := r.warningDue(); ok && !e.now.Before(at) {
		r.Book.Warned = true
		effects = append(effects, tellEnding)
	}
	return r, effects, nil
}

// notice takes presence over from the page. Who looks is not idle, though not at
// work either. The disk hears of it in steps, and whenever it decides something.
func (r Record) notice(e tick) (Record, []Effect) {
	alive := e.human
	if e.watching {
		alive = e.now
	}
	if !alive.After(r.Book.IdleSince) {
		return r, nil
	}
	r = r.meet(alive)
	due, ok := r.reminderDue()
	decides := r.Book.Reminded > 0 || ok && !e.now.Before(due) || !e.now.Before(r.Deadline)
	if alive.Sub(r.Book.IdleSince) < presenceStep && !decides {
		return r, nil
	}
	r = r.awake(e.human)
	r.Book.IdleSince = later(r.Book.IdleSince, alive)
	return r, []Effect{save}
}

// doubted is a record as the next process reads it. The disk may be behind by a
// step of what it knew of the person, and the doubt is theirs. Where the clock
// was put back meanwhile nobody has been there in the future.
func (r Record) doubted(now time.Time) Record {
	if r.Book.HumanAt.After(now) {
		r.Book.HumanAt = now
	}
	if r.Book.IdleSince.After(now) {
		r.Book.IdleSince = now
	}
	if at := r.Book.HumanAt; !at.IsZero() && at.Before(now) {
		r.Book.HumanAt = at.Add(min(presenceStep, now.Sub(at)))
	}
	return r
}

// timeOut is the end by the clock, unless a person is in the middle of it: a
// password is not cut off half typed.
func (r Record) timeOut(e tick) (Record, []Effect) {
	if !r.Parked && !e.lost && r.busy(e.now, e.human) && r.Book.Graced < maxGrace {
		until := later(e.human, r.Book.HumanAt).Add(busyFor)
		until = until.Add(min(0, maxGrace-r.Book.Graced-until.Sub(r.Deadline)))
		if until.After(e.now) {
			r.Book.Graced += until.Sub(r.Deadline)
			r.Deadline = until
			return r, []Effect{keepBrowser, tellExtended}
		}
	}
	wasParked := r.Parked
	r = r.end(TimedOut, Time, e.now)
	if r.OnTimeout == ReturnOnTimeout && !wasParked && !e.lost {
		r.ResumeHint = timedOutHint(r)
		return r, []Effect{returnWheel, dropPhoto, tellTimedOut}
	}
	r.OnTimeout, r.TodoID = CloseOnTimeout, todoID(r.ID)
	r.ResumeHint = timedOutHint(r)
	return r, []Effect{closeSession, leaveTodo, dropPhoto, tellTimedOut}
}

// judge follows the conditions: held for a while, counted down while somebody
// looks, then finished.
func (r Record) judge(e tick) (Record, []Effect) {
	if !e.fitted {
		r.watch.unsure = false
	}
	if !allHeld(r.Book.Verify, e.held) || r.watch.unsure {
		r.watch.heldSince = time.Time{}
		return r.stay()
	}
	if touched(r, e.human) {
		r.watch.heldSince = e.human
		return r.stay()
	}
	if r.watch.heldSince.IsZero() {
		r.watch.heldSince = e.now
	}
	// Whoever is at work is not hurried: the quiet counts from the last touch.
	quiet := e.now.Sub(later(r.watch.heldSince, e.human))
	if quiet < max(holdFor, r.watch.quietFor) {
		return r, nil
	}
	switch {
	case !e.watching:
		return r, []Effect{complete}
	case r.FinishesAt.IsZero():
		r.FinishesAt = e.now.Add(countdown)
		return r, []Effect{tellCountdown}
	case !e.now.Before(r.FinishesAt):
		return r, []Effect{complete}
	}
	return r, nil
}

// touched reports whether a person did something since the countdown began.
func touched(r Record, human time.Time) bool {
	return !r.FinishesAt.IsZero() && later(human, r.Book.HumanAt).After(r.FinishesAt.Add(-countdown))
}

// stay ends a countdown without finishing.
func (r Record) stay() (Record, []Effect) {
	if r.FinishesAt.IsZero() {
		return r, nil
	}
	r.FinishesAt, r.watch.quietFor = time.Time{}, quietAgain
	return r, []Effect{tellStayed}
}

// reminderDue is when the next reminder is due, if there is one.
func (r Record) reminderDue() (time.Time, bool) {
	if r.Parked || r.Book.Reminded >= len(r.Book.RemindAt) {
		return time.Time{}, false
	}
	at := r.Book.IdleSince.Add(r.Book.RemindAt[r.Book.Reminded])
	return at, at.Before(r.Deadline)
}

// warningDue is when the last call is due: not for what was short from the
// beginning.
func (r Record) warningDue() (time.Time, bool) {
	before := warnBefore
	if r.Parked {
		before = warnParked
	}
	return r.Deadline.Add(-before), !r.Book.Warned && (r.Parked || r.Book.Timeout >= 3*before)
}

// wake is when a hand-off wants to be looked at next.
func wake(r Record, now time.Time) time.Time {
	at := r.Deadline
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if t, ok := r.reminderDue(); ok {
		sooner(t)
	}
	if t, ok := r.warningDue(); ok {
		sooner(t)
	}
	if r.Parked {
		return at
	}
	if r.FinishesAt.After(now) {
		sooner(r.FinishesAt)
	}
	switch {
	case len(r.Book.Verify) == 0 && !r.Book.MetAt.IsZero():
		sooner(now.Add(presenceStep))
	case r.watch.looked || !r.watch.heldSince.IsZero():
		sooner(now.Add(lookWhenSeen))
	default:
		sooner(now.Add(lookWhenAlone))
	}
	return at
}

// reminders are the times of idleness at which a person is reminded: the first
// no later than a third of the whole.
func reminders(wanted []time.Duration, timeout time.Duration) []time.Duration {
	out := slices.Sorted(slices.Values(wanted))
	out = slices.DeleteFunc(out, func(d time.Duration) bool { return d <= 0 })
	if len(out) == 0 {
		return nil
	}
	out[0] = min(out[0], timeout/3)
	return slices.DeleteFunc(slices.Compact(out), func(d time.Duration) bool { return d >= timeout })
}
