package logins

import (
	"context"
	"errors"
	"slices"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
)

// Checkout gives a login to a session, and to no other until Release. A name
// that is not known yet begins a new login: found is false, and it is the
// session's from now on. So is one whose files are all damaged.
func (r *Room) Checkout(ctx context.Context, name, session string) (state browser.State, found bool, err error) {
	if err := checkUser(name, session); err != nil {
		return browser.State{}, false, err
	}
	err = r.exclusively(ctx, func() error {
		rec, err := r.record(name)
		if err != nil {
			return err
		}
		if rec.Use != nil && rec.Use.Session != session {
			return locked(name, rec.Use.Session)
		}
		if rec.Task != "" {
			return unfinished(name)
		}
		if err := r.nameable(name); err != nil {
			return err
		}
		v, err := r.load(name)
		if err != nil {
			return err
		}
		if rec.Use == nil {
			rec.Use = &use{Session: session, Since: time.Now().UTC()}
		}
		if v != nil {
			state, found = v.State, true
			rec.Use.Generation = v.Generation
			rec.UsedAt = time.Now().UTC()
		}
		return r.keep(rec)
	})
	if err == nil && found {
		// The date is for people; a manifest that cannot be written now is theirs
		// to mend, and no reason to refuse the login.
		_ = r.tellManifest(ctx, name, r.dated(name, keyLastUsed, time.Now()))
	}
	return state, found, err
}

// Release gives a login back. Releasing what the session does not have is fine.
func (r *Room) Release(ctx context.Context, name, session string) error {
	if err := checkUser(name, session); err != nil {
		return err
	}
	return r.exclusively(ctx, func() error {
		rec, err := r.record(name)
		if err != nil || rec.Use == nil || rec.Use.Session != session {
			return err
		}
		return r.free(rec)
	})
}

// free ends the use of a login. Of a new one that was never saved nothing stays.
func (r *Room) free(rec *record) error {
	rec.Use = nil
	sealed, previous, _, err := r.files(rec.Name)
	if err != nil {
		return err
	}
	if !sealed && !previous && rec.UsedAt.IsZero() && rec.VerifiedAt.IsZero() && rec.StaleSince.IsZero() && rec.Task == "" {
		return r.drop(rec.Name)
	}
	return r.keep(rec)
}

// InUse tells which session has a login; "" when none has.
func (r *Room) InUse(name string) (session string, err error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	rec, err := r.record(name)
	if err != nil || rec.Use == nil {
		return "", err
	}
	return rec.Use.Session, nil
}

// Reconciled is what was put in order.
type Reconciled struct {
	Freed    []string // logins of sessions that are gone
	Finished []string // deleting and renaming that a kill had interrupted
	Adopted  []string // logins that the manifest did not name
}

// Reconcile puts in order what an earlier process left: the uses of sessions
// that are not among the live end, what was begun is finished, and logins that
// the manifest does not name get their entry.
func (r *Room) Reconcile(ctx context.Context, live []string) (Reconciled, error) {
	var out Reconciled
	err := r.exclusively(ctx, func() error {
		names, err := r.recorded()
		if err != nil {
			return err
		}
		var failed error
		for _, name := range names {
			rec, err := r.record(name)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			if rec.Use != nil && !slices.Contains(live, rec.Use.Session) && !r.checking(rec.Use.Session) {
				if err := r.free(rec); err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				out.Freed = append(out.Freed, name)
			}
			if rec.Task != "" {
				if err := r.finish(ctx, rec); err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				out.Finished = append(out.Finished, name)
			}
		}
		adopted, err := r.adopt(ctx)
		out.Adopted = adopted
		return errors.Join(failed, err)
	})
	return out, err
}

// adopt gives every sealed login its entry.
func (r *Room) adopt(ctx context.Context) (adopted []string, err error) {
	names, err := r.onDisk()
	if err != nil {
		return nil, err
	}
	err = r.book.update(ctx, func(d *document) (*document, error) {
		adopted = nil
		for _, name := range names {
			if d.has(key(keyContexts, name)) {
				continue
			}
			v, _, err := r.peek(name)
			if v == nil || err != nil {
				continue // it is damaged: there is nothing to name
			}
			if d, err = d.set(text(v.SavedAt.UTC().Format(time.DateOnly)), keyContexts, name, keyLastUsed); err != nil {
				return nil, err
			}
			adopted = append(adopted, name)
		}
		return d, nil
	})
	return adopted, err
}

// nameable refuses a name whose entry cannot be used, and one that a file
// system could take for another's.
func (r *Room) nameable(name string) error {
	entries, err := r.book.entries()
	if err != nil {
		return err
	}
	taken, err := r.onDisk()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name == name && e.Problem != nil {
			return e.Problem
		}
		taken = append(taken, e.Name)
	}
	recorded, err := r.recorded()
	if err != nil {
		return err
	}
	if other := clashing(name, append(taken, recorded...)); other != "" && !slices.Contains(taken, name) {
		return clash(name, other)
	}
	return nil
}

func checkUser(name, session string) error {
	if session == "" {
		return fault.New(fault.InvalidRequest, "", "a login is used by a session, and none is named")
	}
	return CheckName(name)
}

func locked(name, session string) error {
	return fault.New(fault.ContextLocked, "", "the login %q is in use by session %s", name, session).
		WithHint("Stop that session, or use another login.").With("session_id", session)
}

func unfinished(name string) error {
	return fault.New(fault.ContextLocked, "", "the login %q is being deleted or renamed", name).
		WithHint("Try again; tapin finishes it at its next start at the latest.")
}
