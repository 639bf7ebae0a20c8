package logins

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
)

// Forgotten says what of the logins was of a site.
type Forgotten struct {
	Deleted []string // logins of the site
	Cleaned []string // logins of other sites that had something of it
	Remains []string // what a provider still keeps, by its context id
	Left    []string // files that nobody could look into
}

// whose is what is known of a login before it is looked into.
type whose struct {
	name    string
	rec     *record
	bad     error // why there is no record
	domains []string
}

func (w whose) of(at site.Site) bool {
	return slices.ContainsFunc(w.domains, func(d string) bool { return d != "" && site.Same(d, string(at)) })
}

// whoseAll lists all logins with the sites that they are of.
func (r *Room) whoseAll() ([]whose, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	recorded, err := r.recorded()
	if err != nil {
		return nil, err
	}
	entries, err := r.book.entries()
	if err != nil {
		return nil, err
	}
	names = append(slices.Clone(names), recorded...)
	slices.Sort(names)
	var all []whose
	for _, name := range slices.Compact(names) {
		w := whose{name: name, domains: []string{name}}
		if w.rec, w.bad = r.record(name); w.bad == nil {
			w.domains = append(w.domains, w.rec.Noticed)
		}
		for _, e := range entries {
			if e.Name == name && e.Domain != "" {
				w.domains = []string{e.Domain}
			}
		}
		all = append(all, w)
	}
	return all, nil
}

// MayForget is the reason for which ForgetSite would stop half-way, if there is
// one. It changes nothing.
func (r *Room) MayForget(at site.Site) error {
	all, err := r.whoseAll()
	if err != nil {
		return err
	}
	d, err := r.book.read()
	if err != nil {
		return err
	}
	for _, w := range all {
		if !w.of(at) {
			continue
		}
		if w.bad != nil {
			return w.bad
		}
		if _, err := d.remove(keyContexts, w.name); err != nil {
			return err
		}
	}
	return nil
}

// ForgetSite takes a site out of all logins, of a home that nobody serves. It may
// be done again after a kill. With since, what was saved later stays.
func (r *Room) ForgetSite(ctx context.Context, at site.Site, since time.Time) (done Forgotten, err error) {
	if err := r.finishTasks(ctx, &done); err != nil { // one of the site's may be half gone
		return done, err
	}
	all, err := r.whoseAll()
	if err != nil {
		return done, err
	}
	for _, w := range all {
		switch {
		case w.bad != nil:
			done.Left = append(done.Left, recordFile(w.name))
			if !w.of(at) {
				err = r.clean(w.name, at, since, &done)
			}
		case !w.of(at):
			err = r.clean(w.name, at, since, &done)
			if err == nil && w.rec.Noticed != "" && site.Same(w.rec.Noticed, string(at)) {
				w.rec.Noticed = ""
				err = r.keep(w.rec)
			}
		default:
			err = r.forgetLogin(ctx, w, since, &done)
		}
		if err != nil {
			return done, err
		}
	}
	slices.Sort(done.Left)
	done.Left = slices.Compact(done.Left)
	return done, nil
}

// forgetLogin deletes a login of the site, but for what was saved since.
func (r *Room) forgetLogin(ctx context.Context, w whose, since time.Time, done *Forgotten) error {
	if !since.IsZero() {
		v, _, err := r.open(w.name, sealedFile(w.name))
		if err == nil && v != nil && v.SavedAt.After(since) {
			before, _, err := r.open(w.name, previousFile(w.name))
			if err != nil || before == nil || before.SavedAt.After(since) {
				return nil //nolint:nilerr // it is of the login that was made anew
			}
			done.Cleaned = append(done.Cleaned, w.name)
			return r.removeAll(previousFile(w.name))
		}
	}
	if w.rec.Use != nil { // by a session that is no more
		w.rec.Use = nil
		if err := r.keep(w.rec); err != nil {
			return err
		}
	}
	out, err := r.Delete(ctx, w.name, nil)
	switch {
	case errors.Is(err, fault.NotFound): // begun, and never saved
		err = r.drop(w.name)
	case errors.Is(err, fault.Unreadable):
		done.Left = append(done.Left, recordFile(w.name))
		return nil
	}
	if err != nil {
		return err
	}
	done.Deleted = append(done.Deleted, w.name)
	if out.Remains != "" {
		done.Remains = append(done.Remains, out.Remains)
	}
	return nil
}

// finishTasks ends what a kill has cut off.
func (r *Room) finishTasks(ctx context.Context, done *Forgotten) error {
	return r.exclusively(ctx, func() error {
		names, err := r.recorded()
		if err != nil {
			return err
		}
		for _, name := range names {
			rec, err := r.record(name)
			if err == nil && rec.Task != "" {
				err = r.finish(ctx, rec)
			}
			if errors.Is(err, fault.Unreadable) {
				done.Left = append(done.Left, recordFile(name))
				continue
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// clean takes what is of a site out of a login of another one.
func (r *Room) clean(name string, at site.Site, since time.Time, done *Forgotten) error {
	of := func(host string) bool { return host != "" && site.Same(host, string(at)) }
	some := false
	for _, file := range []string{sealedFile(name), previousFile(name)} {
		v, _, err := r.open(name, file)
		if err != nil {
			done.Left = append(done.Left, file)
			continue
		}
		if v == nil || !since.IsZero() && v.SavedAt.After(since) {
			continue
		}
		before := len(v.State.Cookies) + len(v.State.Origins)
		v.State.Cookies = slices.DeleteFunc(v.State.Cookies, func(c browser.Cookie) bool {
			return of(strings.TrimPrefix(c.Domain, ".")) || c.Partition != nil && of(c.Partition.TopLevelSite)
		})
		v.State.Origins = slices.DeleteFunc(v.State.Origins, func(o browser.OriginState) bool { return of(o.Origin) })
		if len(v.State.Cookies)+len(v.State.Origins) == before {
			continue
		}
		plain, err := encodeVersion(*v)
		if err != nil {
			return err
		}
		sealed, err := r.vault.Seal(sealName(name), "", plain)
		if err != nil {
			return err
		}
		if err := r.home.Write(file, sealed); err != nil {
			return err
		}
		some = true
	}
	if some {
		done.Cleaned = append(done.Cleaned, name)
	}
	return nil
}
