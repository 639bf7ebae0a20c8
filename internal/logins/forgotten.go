package logins

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
)

// Forgotten says what of the logins was of a site.
type Forgotten struct {
	Deleted []string // logins of the site
	Cleaned []string // logins of other sites that had something of it
	Remains []string // what a provider still keeps, by its context id
}

// ForgetSite takes a site out of all logins, of a home that nobody serves. It may
// be done again after a kill.
func (r *Room) ForgetSite(ctx context.Context, at site.Site) (done Forgotten, err error) {
	if err := r.finishDeleted(ctx); err != nil { // one of the site's may be half gone
		return done, err
	}
	names, err := r.names()
	if err != nil {
		return done, err
	}
	recorded, err := r.recorded()
	if err != nil {
		return done, err
	}
	entries, err := r.book.entries()
	if err != nil {
		return done, err
	}
	names = append(slices.Clone(names), recorded...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		rec, err := r.record(name)
		if err != nil {
			return done, err
		}
		domains := []string{name, rec.Noticed}
		for _, e := range entries {
			if e.Name == name && e.Domain != "" {
				domains = []string{e.Domain}
			}
		}
		if slices.ContainsFunc(domains, func(d string) bool { return d != "" && site.Same(d, string(at)) }) {
			if rec.Use != nil { // by a session that is no more
				rec.Use = nil
				if err := r.keep(rec); err != nil {
					return done, err
				}
			}
			out, err := r.Delete(ctx, name, nil)
			if errors.Is(err, fault.NotFound) { // begun, and never saved
				err = r.drop(name)
			}
			if err != nil {
				return done, err
			}
			done.Deleted = append(done.Deleted, name)
			if out.Remains != "" {
				done.Remains = append(done.Remains, out.Remains)
			}
			continue
		}
		cleaned, err := r.clean(name, at)
		if err != nil {
			return done, err
		}
		if cleaned {
			done.Cleaned = append(done.Cleaned, name)
		}
	}
	return done, nil
}

// finishDeleted ends what a kill has cut off.
func (r *Room) finishDeleted(ctx context.Context) error {
	return r.exclusively(ctx, func() error {
		names, err := r.recorded()
		if err != nil {
			return err
		}
		for _, name := range names {
			rec, err := r.record(name)
			if err == nil && rec.Task == taskDelete {
				err = r.finish(ctx, rec)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// clean takes what is of a site out of a login of another one.
func (r *Room) clean(name string, at site.Site) (some bool, err error) {
	of := func(host string) bool { return host != "" && site.Same(host, string(at)) }
	for _, file := range []string{sealedFile(name), previousFile(name)} {
		v, _, err := r.open(name, file)
		if err != nil || v == nil {
			continue // damaged: nobody can look into it
		}
		before := len(v.State.Cookies) + len(v.State.Origins)
		v.State.Cookies = slices.DeleteFunc(v.State.Cookies, func(c browser.Cookie) bool {
			return of(strings.TrimPrefix(c.Domain, "."))
		})
		v.State.Origins = slices.DeleteFunc(v.State.Origins, func(o browser.OriginState) bool { return of(o.Origin) })
		if len(v.State.Cookies)+len(v.State.Origins) == before {
			continue
		}
		plain, err := encodeVersion(*v)
		if err != nil {
			return some, err
		}
		sealed, err := r.vault.Seal(sealName(name), "", plain)
		if err != nil {
			return some, err
		}
		if err := r.home.Write(file, sealed); err != nil {
			return some, err
		}
		some = true
	}
	return some, nil
}
