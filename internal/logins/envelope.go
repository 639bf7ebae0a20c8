package logins

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	envelopeVersion = 1

	// MaxEnvelope is the longest envelope that is read or made.
	MaxEnvelope = 10 << 20

	maxCookies     = 4096 // a browser keeps 180 for a site
	maxStorageKeys = 100_000
)

// Envelope is the login of one origin in a form that travels: it can be
// carried to another tapin, and read by whoever has it. Integrity finds
// accidents, not forgers; what must not be read or forged is sealed.
type Envelope struct {
	Origin     string
	CapturedAt time.Time // to the millisecond
	UserAgent  string    // empty when it was not asked for
	Viewport   *Viewport
	Cookies    []browser.Cookie
	Local      []browser.Item // nil when it is not carried
	Session    []browser.Item // nil when it is not carried
	HTTPAuth   *HTTPAuth
	Integrity  string // SHA-256 of everything above, in hexadecimal
}

// Viewport is the size of the page in CSS pixels.
type Viewport struct{ Width, Height int }

// HTTPAuth is what the browser answers a site that asks before any page.
type HTTPAuth struct {
	Username string
	Password secret.Text
}

// ExportOptions say what goes into an envelope.
type ExportOptions struct {
	Origin     string    // required
	CapturedAt time.Time // zero means now
	NoStorage  bool      // cookies alone
	UserAgent  string
	Viewport   *Viewport
	HTTPAuth   *HTTPAuth
}

// Exported is an envelope, and what of the state is not in it.
type Exported struct {
	Raw         []byte // canonical JSON
	Envelope    Envelope
	StorageKeys int
	// Skipped counts cookies that the origin can see but no browser would take
	// back, and so would make the whole envelope one that cannot be imported.
	Skipped int
	// NotCarried names what the origin has and an envelope has no place for.
	NotCarried []string
}

// Export puts what an origin can see of a state into an envelope. The same
// state gives the same bytes, but for the time and so the integrity.
func Export(state browser.State, o ExportOptions) (Exported, error) {
	const op = "export the login"
	host, err := readOrigin(o.Origin)
	if err != nil {
		return Exported{}, fault.Wrap(fault.InvalidRequest, op, err)
	}
	if o.CapturedAt.IsZero() {
		o.CapturedAt = time.Now()
	}
	e := Envelope{
		Origin: o.Origin, CapturedAt: o.CapturedAt.UTC().Truncate(time.Millisecond),
		UserAgent: o.UserAgent, Viewport: o.Viewport, HTTPAuth: o.HTTPAuth, Cookies: []browser.Cookie{},
	}
	var out Exported
	for _, c := range state.Cookies {
		if c.Expires > 0 && c.Expires <= float64(e.CapturedAt.Unix()) {
			continue
		}
		switch err := host.allows(toWire(c)); {
		case err == nil:
			e.Cookies = append(e.Cookies, c)
		case fault.Of(err).Code != fault.OriginMismatch:
			out.Skipped++
		}
	}
	sortCookies(e.Cookies)
	for _, s := range state.Origins {
		if s.Origin != o.Origin {
			continue
		}
		if len(s.Databases) > 0 {
			out.NotCarried = append(out.NotCarried, "indexedDB")
		}
		if !o.NoStorage {
			e.Local, e.Session = sortItems(s.Local), sortItems(s.Session)
		}
	}
	if out.Raw, err = e.Encode(); err != nil {
		return Exported{}, fault.Wrap(fault.InvalidRequest, op, err)
	}
	// Nothing leaves that would be refused where it arrives.
	if out.Envelope, err = Verify(out.Raw); err != nil {
		return Exported{}, fault.Wrap(fault.InvalidRequest, op, err)
	}
	out.StorageKeys = len(e.Local) + len(e.Session)
	return out, nil
}

// sortCookies puts cookies in the order of the contract: domain, path, name,
// partition key.
func sortCookies(cookies []browser.Cookie) {
	slices.SortStableFunc(cookies, func(a, b browser.Cookie) int {
		return cmp.Or(strings.Compare(a.Domain, b.Domain), strings.Compare(a.Path, b.Path), strings.Compare(a.Name, b.Name),
			strings.Compare(partition(a), partition(b)))
	})
}

func partition(c browser.Cookie) string {
	switch {
	case c.Partition == nil:
		return ""
	case c.Partition.CrossSiteAncestor:
		return c.Partition.TopLevelSite + " cross-site"
	}
	return c.Partition.TopLevelSite
}

// sortItems orders a storage by its keys, as RFC 8785 orders the members of an
// object. Nothing stays nothing.
func sortItems(items []browser.Item) []browser.Item {
	if items == nil {
		return nil
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b browser.Item) int { return compareUTF16(a.Key.Reveal(), b.Key.Reveal()) })
	return sorted
}

// State is the envelope as a browser takes it. What it does not carry is nil,
// and to be left alone.
func (e Envelope) State() browser.State {
	return browser.State{
		Cookies: slices.Clone(e.Cookies),
		Origins: []browser.OriginState{{Origin: e.Origin, Local: e.Local, Session: e.Session}},
	}
}
