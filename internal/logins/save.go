package logins

import (
	"context"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
)

// SaveOptions say more about a state that is saved.
type SaveOptions struct {
	Domain   string    // the site it is for; empty means that of URL
	URL      string    // where the browser was
	Provider string    // local, browserbase or cdp
	TakenAt  time.Time // when it was read from the browser; zero means now

	BrowserbaseContextID string // where the provider keeps the state itself
}

// Saved is what became of a state.
type Saved struct {
	Generation uint64
	Bytes      int64
	// Manifest is why the manifest could not be brought up to date, if so. The
	// login itself is safe, and Reconcile makes up for it.
	Manifest error
}

// Save keeps the state of a login that the session has checked out. A login is
// only ever overwritten by the session that has it, and never by a state older
// than the one it holds: whoever lost it, or comes late, is refused with
// CONTEXT_LOCKED and nothing changes. States are not merged: half of one login
// and half of another is neither. A name that nobody has is taken.
func (r *Room) Save(ctx context.Context, name, session string, state browser.State, o SaveOptions) (Saved, error) {
	if err := checkUser(name, session); err != nil {
		return Saved{}, err
	}
	var saved Saved
	var added bool
	err := r.exclusively(ctx, func() error {
		rec, err := r.record(name)
		if err != nil {
			return err
		}
		if err := r.owned(rec, session); err != nil {
			return err
		}
		before, err := r.load(name)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		next := version{Generation: 1, SavedAt: now, SavedBy: session, TakenAt: o.TakenAt.UTC(), State: state}
		if o.TakenAt.IsZero() {
			next.TakenAt = now
		}
		if before != nil {
			if before.SavedBy != session && before.Generation != rec.Use.Generation || next.TakenAt.Before(before.TakenAt) {
				return late(name)
			}
			next.Generation = before.Generation + 1
		}
		saved.Generation = next.Generation
		if saved.Bytes, err = r.store(name, next, before); err != nil {
			return err
		}
		added = before == nil
		if added && rec.StaleSince.IsZero() {
			rec.AliveSince = now
		}
		rec.UsedAt = now
		r.notice(rec, o)
		return r.keep(rec)
	})
	if err != nil {
		return Saved{}, err
	}
	saved.Manifest = r.tellManifest(ctx, name, r.dated(name, keyLastUsed, time.Now()), r.described(name, o, added))
	return saved, nil
}

// notice remembers a domain that is about to be written where the owner has
// written none. It is on record before it is in the manifest, so that it never
// passes for the owner's word.
func (r *Room) notice(rec *record, o SaveOptions) {
	d, err := r.book.read()
	if err == nil && d.has(key(keyContexts, rec.Name, keyDomain)) {
		return
	}
	if domain := o.domain(); domain != "" {
		rec.Noticed = domain
	}
}

// domain is the site that a state is for.
func (o SaveOptions) domain() string {
	if found, err := site.Of(o.URL); o.Domain == "" && err == nil {
		return string(found)
	}
	return o.Domain
}

// owned makes sure that the session has the login. One that nobody has and
// that does not exist becomes the session's.
func (r *Room) owned(rec *record, session string) error {
	switch {
	case rec.Use != nil && rec.Use.Session == session:
		return nil
	case rec.Use != nil:
		return locked(rec.Name, rec.Use.Session)
	case rec.Task != "":
		return unfinished(rec.Name)
	}
	if err := r.nameable(rec.Name); err != nil {
		return err
	}
	sealed, previous, _, err := r.files(rec.Name)
	if err != nil {
		return err
	}
	if sealed || previous {
		return fault.New(fault.ContextLocked, "", "session %s does not have the login %q", session, rec.Name).
			WithHint("Start a session with that login, or save under another name.")
	}
	rec.Use = &use{Session: session, Since: time.Now().UTC()}
	return r.keep(rec)
}

func late(name string) error {
	return fault.New(fault.ContextLocked, "", "a newer state of the login %q was saved meanwhile; it stays", name).
		WithHint("Start a session with that login to go on from it.")
}

// Bind notes where the provider keeps the state of a login itself.
func (r *Room) Bind(ctx context.Context, name, session, provider, contextID string) error {
	if err := checkUser(name, session); err != nil {
		return err
	}
	err := r.exclusively(ctx, func() error {
		rec, err := r.record(name)
		if err != nil {
			return err
		}
		return r.owned(rec, session)
	})
	if err != nil {
		return err
	}
	return r.tellManifest(ctx, name, r.dated(name, keyLastUsed, time.Now()),
		r.described(name, SaveOptions{Provider: provider, BrowserbaseContextID: contextID}, true))
}

// entryChange is a change of one login's entry.
type entryChange func(*document) (*document, error)

// tellManifest brings the manifest up to date. What it says there is for
// people: those who can go on without it log what it returns.
func (r *Room) tellManifest(ctx context.Context, name string, changes ...entryChange) error {
	err := r.book.update(ctx, func(d *document) (_ *document, err error) {
		for _, change := range changes {
			if d, err = change(d); err != nil {
				return nil, err
			}
		}
		return d, nil
	})
	if err != nil {
		r.log.Warn("the manifest of the saved logins could not be brought up to date", "login", name, "error", err)
	}
	return err
}

// dated sets a date in the form that is there: a day, or the exact time.
func (r *Room) dated(name, field string, at time.Time) entryChange {
	return func(d *document) (*document, error) {
		er := &entryReader{document: d, path: []string{keyContexts, name}}
		found := er.moment(field)
		m := Moment{At: at.UTC().Truncate(time.Second), Day: found.Day || found.IsZero()}
		if !found.IsZero() && found.String() == m.String() {
			return d, nil
		}
		return d.set(text(m.String()), keyContexts, name, field)
	}
}

// described adds what is known and not written yet. What a person has written
// stays, but for an id that the provider gives.
func (r *Room) described(name string, o SaveOptions, added bool) entryChange {
	return func(d *document) (_ *document, err error) {
		for _, field := range []struct {
			key, value string
			write      bool
		}{
			{keyDomain, o.domain(), !d.has(key(keyContexts, name, keyDomain))},
			{keyProvider, o.Provider, added && !d.has(key(keyContexts, name, keyProvider))},
			{keyBrowserbase, o.BrowserbaseContextID, true},
		} {
			if field.value == "" || !field.write {
				continue
			}
			if d, err = d.set(text(field.value), keyContexts, name, field.key); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
}
