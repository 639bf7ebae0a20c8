package logins

import (
	"context"
	"path/filepath"
	"slices"
	"time"
)

// Info is all there is to know of a login without using it. It holds no value
// of a cookie or of a storage.
type Info struct {
	Entry

	Saved      bool // a state of it is here
	SavedAt    time.Time
	Generation uint64
	Bytes      int64
	Cookies    int
	Origins    []string

	// DomainNoticed says that the domain is where the browser was, and not what
	// the owner has written: the agent decides where that is.
	DomainNoticed bool

	VerifiedHow How
	StaleSince  time.Time
	StaleWhy    Why
	LastCheck   *Checked
	Lifetime    Lifetime
	InUseBy     string
	SetAside    []string // damaged files, under the home
	Unreadable  error    // why the newest state cannot be read, if so
}

// List returns all logins: those of the manifest in its order, and behind them
// those it does not name.
func (r *Room) List(ctx context.Context) ([]Info, error) {
	entries, err := r.all()
	if err != nil {
		return nil, err
	}
	out := make([]Info, 0, len(entries))
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		info, err := r.describe(e)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// Get returns one login.
func (r *Room) Get(_ context.Context, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	entries, err := r.all()
	if err != nil {
		return Info{}, err
	}
	for _, e := range entries {
		if e.Name == name {
			return r.describe(e)
		}
	}
	return Info{}, unknown(name)
}

// all returns the entries of the manifest, and one for each login without.
func (r *Room) all() ([]Entry, error) {
	entries, err := r.book.entries()
	if err != nil {
		return nil, err
	}
	sealed, err := r.onDisk()
	if err != nil {
		return nil, err
	}
	for _, name := range sealed {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name }) {
			entries = append(entries, Entry{Name: name})
		}
	}
	return entries, nil
}

func (r *Room) names() ([]string, error) {
	entries, err := r.all()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, err
}

func (r *Room) describe(e Entry) (Info, error) {
	info := Info{Entry: e}
	if CheckName(e.Name) != nil {
		return info, nil // it can have no files
	}
	rec, err := r.record(e.Name)
	if err != nil { // that of this one: the others are known
		info.Unreadable = err
		return info, nil
	}
	info.DomainNoticed = e.Domain != "" && (e.Domain == rec.Noticed || !r.ownBook())
	if _, _, info.SetAside, err = r.files(e.Name); err != nil {
		return info, err
	}
	v, size, err := r.peek(e.Name)
	info.Bytes, info.Unreadable = size, err
	if v != nil {
		info.Saved, info.SavedAt, info.Generation, info.Cookies = true, v.SavedAt, v.Generation, len(v.State.Cookies)
		for _, o := range v.State.Origins {
			info.Origins = append(info.Origins, o.Origin)
		}
	}
	// The manifest is what people see and may correct; where it has only the
	// day, the record knows the hour.
	info.LastUsed = exact(e.LastUsed, rec.UsedAt)
	info.LastVerified = exact(e.LastVerified, rec.VerifiedAt)
	info.VerifiedHow, info.StaleSince, info.StaleWhy = rec.VerifiedHow, rec.StaleSince, rec.StaleWhy
	info.LastCheck, info.Lifetime = rec.LastCheck, rec.lifetime()
	if rec.Use != nil {
		info.InUseBy = rec.Use.Session
	}
	return info, nil
}

// ownBook reports whether the manifest is in the home. One that is elsewhere
// may have been written by another tapin, whose notices are not known here.
func (r *Room) ownBook() bool {
	rel, err := filepath.Rel(r.home.Path(), r.book.path)
	return err == nil && filepath.IsLocal(rel)
}

func exact(written Moment, known time.Time) Moment {
	if known.IsZero() {
		return written
	}
	same := Moment{known, written.Day || written.IsZero()}
	if written.IsZero() || written.String() == same.String() {
		return Moment{At: known}
	}
	return written
}
