package session

import (
	"context"
	"time"

	"tapin/internal/event"
)

const (
	// warnBefore is how long before its deadline a session's owner is told.
	warnBefore = 5 * time.Minute
	// saveEvery is how often the login of a session in use is saved.
	saveEvery = time.Minute
)

// timers are those of one session: its end, the warning before that, and the
// saving of its login. They are set from its record and taken back together, so
// that none outlives it. What they do is for others to say.
type timers struct {
	schedule *event.Schedule
	session  string
	end      func(context.Context)
	warn     func(context.Context)
	save     func(context.Context)
}

// set sets the end and the warning by what is on record.
func (t timers) set(rec record, now time.Time) {
	t.schedule.Set(t.session, rec.Deadline, t.end)
	if at, ok := rec.warnAt(now); ok {
		t.schedule.Set(t.session+"/warn", at, t.warn)
	} else {
		t.schedule.Cancel(t.session + "/warn")
	}
}

// keepSaving saves every now and then.
func (t timers) keepSaving() {
	t.schedule.Set(t.session+"/save", time.Now().Add(saveEvery), func(ctx context.Context) {
		t.keepSaving() // first: whoever ends the session meanwhile takes it back
		t.save(ctx)
	})
}

// cancel takes all of them back.
func (t timers) cancel() {
	for _, timer := range []string{t.session, t.session + "/warn", t.session + "/save"} {
		t.schedule.Cancel(timer)
	}
}

// warnAt is when the owner is to be told of the end: not if the session was
// short from the beginning, and once a deadline.
func (r *record) warnAt(now time.Time) (time.Time, bool) {
	at := r.Deadline.Add(-warnBefore)
	return at, !r.Warned.Equal(r.Deadline) && at.After(r.begun()) && now.Before(r.Deadline)
}

// begun is when the session got its browser: it sleeps while it is parked.
func (r *record) begun() time.Time {
	if r.AwakeSince.After(r.StartedAt) {
		return r.AwakeSince
	}
	return r.StartedAt
}

// raised is the deadline moved to at least t, within what a session may last at
// all and its provider allows. It never comes nearer.
func (r *record) raised(t time.Time) time.Time {
	if last := r.begun().Add(maxTimeout); t.After(last) {
		t = last
	}
	if last := r.last(); !last.IsZero() && t.After(last) {
		t = last
	}
	if !t.After(r.Deadline) {
		return r.Deadline
	}
	return t.UTC().Round(0)
}

// warned tells the owner that a session is about to end, once a deadline. One
// that was raised meanwhile is not about to.
func (r *records) warned(ctx context.Context, rec *record, now time.Time) error {
	known := r.copy(rec)
	if at, ok := known.warnAt(now); !ok || now.Before(at) {
		return nil
	}
	return r.change(ctx, rec, "session.expiring", func(r *record) { r.Warned = r.Deadline })
}
