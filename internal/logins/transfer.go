package logins

import (
	"context"
	"slices"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
	"tapin/internal/store"
)

// Imported tells what an envelope changed.
type Imported struct {
	New         bool // there was no such login before
	Cookies     int
	StorageKeys int
	// LeftAlone names the parts that the envelope does not carry, which are as
	// they were.
	LeftAlone []string
}

// Export puts a saved login into an envelope. Without an origin it is that of
// the login's domain, if there is one only.
func (r *Room) Export(ctx context.Context, name string, o ExportOptions) (Exported, error) {
	info, err := r.Get(ctx, name)
	if err != nil {
		return Exported{}, err
	}
	v, _, err := r.peek(name)
	if v == nil {
		if err == nil {
			err = fault.New(fault.NotFound, "export the login "+name, "no state of it is saved here").
				WithHint("Log in once with tapin open URL --context %s.", name)
		}
		return Exported{}, err
	}
	if o.Origin == "" {
		if o.Origin, err = soleOrigin(info, v.State); err != nil {
			return Exported{}, err
		}
	}
	if o.CapturedAt.IsZero() {
		o.CapturedAt = v.TakenAt // so that the same state gives the same bytes
	}
	return Export(v.State, o)
}

// soleOrigin is the one origin that a login can mean.
func soleOrigin(info Info, state browser.State) (string, error) {
	var own []string
	for _, o := range state.Origins {
		if info.Domain == "" || site.Same(o.Origin, info.Domain) {
			own = append(own, o.Origin)
		}
	}
	if len(own) == 0 && info.Domain != "" {
		own = []string{"https://" + info.Domain}
	}
	if len(own) != 1 {
		return "", fault.New(fault.InvalidRequest, "export the login "+info.Name, "it has %d origins, and an envelope holds one", len(own)).
			WithHint("Say which one as origin; tapin context show %s lists them.", info.Name)
	}
	return own[0], nil
}

// ImportOptions limit an import; nil means no limit.
type ImportOptions struct {
	OnlyNew bool // refuse a name that is somebody's login already
}

// Import puts an envelope into a saved login, in the place of all that its
// origin had there, and makes the login if there is none. What belongs to
// other origins stays.
func (r *Room) Import(ctx context.Context, name string, e Envelope, opts *ImportOptions) (Imported, error) {
	if err := CheckName(name); err != nil {
		return Imported{}, err
	}
	host, err := readOrigin(e.Origin)
	if err == nil {
		err = host.allowsAll(e.Cookies)
	}
	if err != nil {
		return Imported{}, err
	}
	user := store.NewID("imp")
	r.running(user, true)
	defer r.running(user, false)
	state, found, err := r.Checkout(ctx, name, user)
	if err != nil {
		return Imported{}, err
	}
	defer func() { _ = r.Release(context.WithoutCancel(ctx), name, user) }()
	if opts != nil && opts.OnlyNew {
		names, err := r.names()
		if err != nil {
			return Imported{}, err
		}
		if found || slices.Contains(names, name) {
			return Imported{}, fault.New(fault.Forbidden, "import the login "+name, "only the owner may put another in the place of a login").
				WithHint("Import it under a name of its own.")
		}
	}
	next, left := Replace(state, e)
	saved, err := r.Save(ctx, name, user, next, SaveOptions{URL: e.Origin})
	if err != nil {
		return Imported{}, err
	}
	out := Imported{New: !found, Cookies: len(e.Cookies), StorageKeys: len(e.Local) + len(e.Session), LeftAlone: left}
	return out, saved.Manifest
}

// Replace returns a state in which an envelope stands in the place of all that
// its origin had, and which parts it does not carry.
func Replace(state browser.State, e Envelope) (next browser.State, leftAlone []string) {
	host, err := readOrigin(e.Origin)
	if err != nil {
		return state, nil // Verify lets none through
	}
	next.Cookies = slices.DeleteFunc(slices.Clone(state.Cookies), func(c browser.Cookie) bool {
		w := toWire(c)
		return host.sees(w) == nil && host.partitioned(w) == nil
	})
	next.Cookies = append(next.Cookies, e.Cookies...)
	next.Origins = slices.Clone(state.Origins)
	i := slices.IndexFunc(next.Origins, func(o browser.OriginState) bool { return o.Origin == e.Origin })
	if i < 0 {
		i = len(next.Origins)
		next.Origins = append(next.Origins, browser.OriginState{Origin: e.Origin})
	}
	own := &next.Origins[i]
	for _, part := range []struct {
		name    string
		carried []browser.Item
		into    *[]browser.Item
	}{{"localStorage", e.Local, &own.Local}, {"sessionStorage", e.Session, &own.Session}} {
		if part.carried == nil {
			leftAlone = append(leftAlone, part.name)
			continue
		}
		*part.into = part.carried
	}
	return next, append(leftAlone, "indexedDB")
}

// Check is CheckNow with the room's own checker.
func (r *Room) Check(ctx context.Context, name string) (Checked, error) {
	if r.checker == nil {
		return Checked{}, fault.New(fault.ProviderNotConfigured, "check the login "+name, "there is no browser to check it with")
	}
	return r.CheckNow(ctx, name, r.checker)
}
