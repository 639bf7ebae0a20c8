package logins

import (
	"context"
	"slices"
	"time"
)

// maxLives bounds the history of a login.
const maxLives = 50

// How a login was found to work. There is no other way: a page that merely
// looks as if somebody were logged in proves nothing.
type How string

// The ways.
const (
	ByCheck   How = "check"   // its check was made and held
	ByHandoff How = "handoff" // a person logged in, and the hand-off's conditions held
	ByOwner   How = "owner"   // the owner says so
	ByAgent   How = "agent"   // the agent saw a page that needs the login, without logging in
)

// Why a login no longer works.
type Why string

// The two reasons.
const (
	NeededLogin Why = "login" // a session that used it had to have somebody log in, or give a code
	FailedCheck Why = "check" // its check was made and failed
)

// Life is how long a login lasted: from when somebody logged in, or it was
// first found to work, until it was found not to.
type Life struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Why  Why       `json:"why"`
}

// Lifetime sums up how long a login lasts.
type Lifetime struct {
	Count  int
	Median time.Duration
	Last   time.Duration
	Since  time.Time // when the present life began; zero if there is none
}

// Lived is what is known of how long a login works. It is read without opening
// what is sealed.
type Lived struct {
	Name       string
	Domain     string
	Lives      []Life
	AliveSince time.Time // of the life that has not ended
	Stale      bool
}

// Lived tells of all logins.
func (r *Room) Lived(ctx context.Context) ([]Lived, error) {
	entries, err := r.all()
	if err != nil {
		return nil, err
	}
	out := make([]Lived, 0, len(entries))
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if CheckName(e.Name) != nil {
			continue
		}
		rec, err := r.record(e.Name)
		if err != nil {
			r.log.Warn("how a login has lasted cannot be read", "login", e.Name, "error", err)
			continue
		}
		out = append(out, Lived{e.Name, e.Domain, rec.Lives, rec.AliveSince, !rec.StaleSince.IsZero()})
	}
	return out, nil
}

// Used notes that a login was used just now.
func (r *Room) Used(ctx context.Context, name string) error {
	return r.fresh(ctx, name, keyLastUsed, func(rec *record, now time.Time) { rec.UsedAt = now })
}

// Verified notes that a login was found to work just now.
func (r *Room) Verified(ctx context.Context, name string, how How) error {
	return r.fresh(ctx, name, keyLastVerified, func(rec *record, now time.Time) { rec.verified(how, now) })
}

// Stale notes that a login no longer works. Its state stays: much of it may
// still save the person a step.
func (r *Room) Stale(ctx context.Context, name string, why Why) error {
	return r.fresh(ctx, name, "", func(rec *record, now time.Time) { rec.stale(why, now) })
}

// fresh changes the record first and then the date in the manifest. A kill in
// between leaves a date that is too old, which claims less than is true.
func (r *Room) fresh(ctx context.Context, name, field string, change func(*record, time.Time)) error {
	if err := CheckName(name); err != nil {
		return err
	}
	now := time.Now().UTC()
	err := r.exclusively(ctx, func() error {
		rec, err := r.record(name)
		if err != nil {
			return err
		}
		names, err := r.names()
		if err != nil {
			return err
		}
		if rec.Use == nil && !slices.Contains(names, name) {
			return unknown(name)
		}
		change(rec, now)
		return r.keep(rec)
	})
	if err != nil || field == "" {
		return err
	}
	return r.tellManifest(ctx, name, r.dated(name, field, now))
}

func (rec *record) verified(how How, now time.Time) {
	rec.VerifiedAt, rec.VerifiedHow = now, how
	if rec.AliveSince.IsZero() {
		rec.AliveSince = now
	}
	rec.StaleSince, rec.StaleWhy = time.Time{}, ""
}

func (rec *record) stale(why Why, now time.Time) {
	if rec.StaleSince.IsZero() {
		rec.StaleSince, rec.StaleWhy = now, why
	}
	if rec.AliveSince.IsZero() {
		return // it is stale already, or nobody knows since when it was not
	}
	rec.Lives = append(rec.Lives, Life{rec.AliveSince, now, why})
	rec.Lives = rec.Lives[max(0, len(rec.Lives)-maxLives):]
	rec.AliveSince = time.Time{}
}

// lifetime sums up a history.
func (rec *record) lifetime() Lifetime {
	out := Lifetime{Count: len(rec.Lives), Since: rec.AliveSince}
	if out.Count == 0 {
		return out
	}
	spans := make([]time.Duration, out.Count)
	for i, l := range rec.Lives {
		spans[i] = max(0, l.To.Sub(l.From))
	}
	out.Last = spans[out.Count-1]
	slices.Sort(spans)
	out.Median = (spans[(out.Count-1)/2] + spans[out.Count/2]) / 2
	return out
}
