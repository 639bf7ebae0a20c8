package handoff

import (
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// Finish says that the person is done. Conditions that do not hold send it
// back to the person, and the answer is the hand-off still running; anyway is
// the owner's word that it is to be handed back all the same. Finishing twice
// gives the first result.
func (r *Room) Finish(ctx context.Context, by By, id string, anyway bool) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, by, "handoff.finish", rec, err) }()
	l, rec, err := r.find(id)
	if err != nil {
		return Record{}, err
	}
	if l == nil && rec.heard(ctx) {
		return rec, nil
	}
	if l == nil {
		return again(rec, done{by: by})
	}
	return r.finish(context.WithoutCancel(ctx), l, by, anyway)
}

func (r *Room) finish(ctx context.Context, l *live, by By, anyway bool) (Record, error) {
	l.turn.take()
	rec := l.rec
	l.turn.give()
	if rec.heard(ctx) {
		return rec, nil
	}
	if rec.IsOver() {
		return again(rec, done{by: by})
	}
	e := done{by: by, anyway: anyway && by == Owner}
	e.human, _ = r.presence(rec.SessionID)
	// Asked first without a page, so that who may not is not made to wait for one.
	if err := rec.mayEnd("finish", by, wallClock(), e.human); err != nil {
		return rec, err
	}
	if !rec.Parked {
		if err := r.examine(ctx, rec, &e); err != nil {
			return rec, err
		}
		e.human, _ = r.presence(rec.SessionID)
	}
	e.now = wallClock()
	return r.apply(ctx, l, e)
}

// examine looks at the page on behalf of an end, in the layout that the agent will
// find it in.
func (r *Room) examine(ctx context.Context, rec Record, e *done) (err error) {
	free, fitted := r.plain(ctx, rec)
	defer free()
	e.fitted = fitted
	if e.held, err = r.holds(ctx, rec); err != nil && !e.anyway {
		return err
	}
	if len(rec.Book.Verify) == 0 || e.anyway || allHeld(rec.Book.Verify, e.held) {
		e.after = r.look(ctx, rec)
	}
	return nil
}

// plain gives the page the agent's layout for as long as it is judged. A page that
// cannot be laid out is judged as it is.
func (r *Room) plain(ctx context.Context, rec Record) (free func(), fitted bool) {
	ctx, cancel := context.WithTimeout(ctx, effectWithin)
	defer cancel()
	free, fitted, err := r.deps.Stage.Plain(ctx, rec.SessionID, rec.ID)
	if err != nil {
		return func() {}, false
	}
	return free, fitted
}

func (r *Room) holds(ctx context.Context, rec Record) ([]bool, error) {
	if len(rec.Book.Verify) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, effectWithin)
	defer cancel()
	held, err := r.deps.Stage.Holds(ctx, rec.SessionID, rec.ID, rec.Book.Verify)
	return held, fault.Wrap(fault.BrowserLost, "verify "+rec.ID, err)
}

// look takes the snapshot after. A page that cannot be read does not keep a
// person from being done; the record then has none, and says so.
func (r *Room) look(ctx context.Context, rec Record) *Snapshot {
	ctx, cancel := context.WithTimeout(ctx, effectWithin)
	defer cancel()
	seen, err := r.deps.Stage.Observe(ctx, rec.SessionID, rec.ID, page.ObserveOptions{Key: r.key})
	if err != nil {
		r.log.Warn("the page could not be read after a hand-off", "handoff", rec.ID, "error", err)
		return nil
	}
	after := snapshot(seen, wallClock())
	if rec.Book.Capture {
		if shot, err := r.deps.Stage.Screenshot(ctx, rec.SessionID, rec.ID); err == nil {
			after.ScreenshotRef = r.keepPicture(rec.ID, "after", &shot)
		}
	}
	return &after
}

// Cancel ends a hand-off without a result. The owner's closes the session, the
// agent's gives the wheel back.
func (r *Room) Cancel(ctx context.Context, by By, id string) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, by, "handoff.cancel", rec, err) }()
	return r.change(ctx, id, func(rec Record) Event {
		human, _ := r.presence(rec.SessionID)
		return cancel{by: by, now: wallClock(), human: human}
	})
}

// Extend gives the person more time; 0 means a quarter of an hour.
func (r *Room) Extend(ctx context.Context, by By, id string, more time.Duration) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, by, "handoff.extend", rec, err) }()
	if more == 0 {
		more = 15 * time.Minute
	}
	if more < 0 {
		return Record{}, fault.New(fault.InvalidRequest, "extend "+id, "an extension is longer than nothing")
	}
	return r.change(ctx, id, func(Record) Event { return extend{now: wallClock(), by: by, more: more} })
}

// Park frees the browser until the person has time; Resume brings it back.
func (r *Room) Park(ctx context.Context, by By, id string) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, by, "handoff.park", rec, err) }()
	return r.change(ctx, id, func(rec Record) Event {
		human, _ := r.presence(rec.SessionID)
		if by == Owner {
			human = wallClock() // whoever says "later" has been reached
		}
		return park{by: by, now: wallClock(), human: human}
	})
}

// Resume opens the browser of a parked hand-off again. It is for the person
// who is there now.
func (r *Room) Resume(ctx context.Context, id string) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, Owner, "handoff.resume", rec, err) }()
	l, rec, err := r.find(id)
	if err != nil {
		return Record{}, err
	}
	if l == nil {
		return again(rec, resumed{})
	}
	l.turn.take() // two taps open one browser
	defer l.turn.give()
	e := resumed{now: wallClock()}
	if l.rec.Parked && !l.rec.IsOver() {
		if e.generation, err = r.deps.Stage.Unpark(ctx, l.rec.SessionID, id); err != nil {
			return l.rec, err
		}
	}
	rec, _, err = r.applyLocked(context.WithoutCancel(ctx), l, e)
	return rec, err
}

// Type types what the owner sent into the field that has the focus. With the
// same key it types once. A text that comes too late goes nowhere.
func (r *Room) Type(ctx context.Context, id string, text secret.Text, key string) (typed page.Typed, err error) {
	began := time.Now()
	l, rec, err := r.running(id, "type")
	defer func() { r.journal(began, Owner, "handoff.type", rec, err) }()
	if err != nil {
		return page.Typed{}, err
	}
	typed, err = r.deps.Stage.Type(ctx, rec.SessionID, id, text, key)
	r.awaken(ctx, l)
	return typed, err
}

// Screenshot is the picture that the owner asked for. Nothing of it is kept.
func (r *Room) Screenshot(ctx context.Context, id string) (shot page.Image, err error) {
	began := time.Now()
	l, rec, err := r.running(id, "screenshot")
	defer func() { r.journal(began, Owner, "handoff.screenshot", rec, err) }()
	if err != nil {
		return page.Image{}, err
	}
	shot, err = r.deps.Stage.Screenshot(ctx, rec.SessionID, id)
	r.awaken(ctx, l)
	return shot, err
}

// Present takes note of a sign of life: a reply in the chat, a touch on the
// countdown. A hand-off that is over needs none.
func (r *Room) Present(ctx context.Context, id string) error {
	l, _, err := r.find(id)
	if err == nil && l != nil {
		r.awaken(ctx, l)
	}
	return err
}

// SessionEnded ends the hand-off of a session that is no more. It must be
// called without a lock that a Stage method takes.
func (r *Room) SessionEnded(ctx context.Context, session, why string) {
	r.mu.Lock()
	l := r.bySession[session]
	ends := l != nil && l.running
	r.mu.Unlock()
	if ends {
		r.lose(ctx, l, why)
	}
}

// BrowserReplaced notes that another browser took the place of one that was
// lost under a person. It must be called without a lock that a Stage method takes.
func (r *Room) BrowserReplaced(ctx context.Context, session string, generation int) {
	r.mu.Lock()
	l := r.bySession[session]
	r.mu.Unlock()
	if l != nil {
		r.replace(ctx, l, generation)
	}
}

func (r *Room) replace(ctx context.Context, l *live, generation int) {
	if _, err := r.apply(ctx, l, replaced{generation}); err != nil {
		r.log.Warn("that a browser was replaced could not be noted", "handoff", l.id, "error", err)
	}
}

func (r *Room) awaken(ctx context.Context, l *live) {
	if _, err := r.apply(context.WithoutCancel(ctx), l, present{now: wallClock()}); err != nil {
		r.log.Warn("a sign of life could not be noted", "handoff", l.id, "error", err)
	}
}

// change applies an event that needs no look at the page.
func (r *Room) change(ctx context.Context, id string, event func(Record) Event) (Record, error) {
	l, rec, err := r.find(id)
	if err != nil {
		return Record{}, err
	}
	if rec.heard(ctx) {
		return rec, nil
	}
	if l == nil {
		return again(rec, event(rec))
	}
	return r.apply(context.WithoutCancel(ctx), l, event(rec))
}

// again is what an event makes of a hand-off that is over: its first result,
// or a refusal.
func again(rec Record, e Event) (Record, error) {
	rec, _, err := next(rec, e)
	return rec, err
}

// running finds a hand-off that runs and has a browser.
func (r *Room) running(id, op string) (*live, Record, error) {
	l, rec, err := r.find(id)
	switch {
	case err != nil:
		return nil, rec, err
	case l == nil || rec.IsOver():
		return nil, rec, notRunning(rec, op, "it is %s", rec.Status)
	case rec.Parked:
		return nil, rec, notRunning(rec, op, "it is parked").WithHint("Resume it first; the browser comes back then.")
	}
	return l, rec, nil
}
