package session

import (
	"context"
	"time"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/site"
)

// CaptureOptions say what of a session's login to read.
type CaptureOptions struct {
	TabID  string // whose origin is meant; none means the tab in front
	Origin string // none means the tab's
}

// Captured is the login of a live session for one origin.
type Captured struct {
	Origin   string
	At       time.Time
	State    browser.State
	Agent    string // what the browser calls itself
	Look     page.Look
	HTTP     *page.HTTPLogin // what the site was told before any page
	Pristine bool            // neither a saved login nor a person was ever in it
}

// Capture reads what an origin has in this browser.
func (s *Session) Capture(ctx context.Context, o CaptureOptions) (Captured, error) {
	return turn(ctx, s, "session.capture", func(ctx context.Context) (Captured, note, error) {
		tabs := s.view().tabs
		tab, err := tabs.Pick(ctx, o.TabID)
		if err != nil {
			return Captured{}, note{}, err
		}
		out := Captured{Origin: o.Origin, At: time.Now().UTC(), Look: tabs.Look(), Pristine: !s.record().Private}
		if out.Origin == "" {
			here, err := tab.Here(ctx)
			if err != nil {
				return Captured{}, note{}, err
			}
			if out.Origin, err = site.Origin(here.URL); err != nil {
				return Captured{}, note{}, fault.New(fault.InvalidRequest, "read a login", "the page has no origin").
					WithHint("Name one with origin, or open the site first.")
			}
		}
		cookies, stored, err := tabs.ReadOrigin(ctx, out.Origin)
		if err != nil {
			return Captured{}, note{address: out.Origin}, err
		}
		out.State = browser.State{Cookies: cookies, Origins: []browser.OriginState{stored}}
		if known, ok := tabs.HTTPLogin(out.Origin); ok {
			out.HTTP = &known
		}
		out.Agent, err = tab.Agent(ctx)
		return out, note{address: out.Origin, counts: counts{"cookies": len(cookies), "keys": len(stored.Local) + len(stored.Session)}}, err
	})
}

// orNowhere names an origin for people.
func orNowhere(origin string) string {
	if origin == "" {
		return "a page without an origin"
	}
	return origin
}

// nowhere is where a tab is before it is anywhere.
const nowhere = "about:blank"

// ApplyOptions say where a login goes.
type ApplyOptions struct {
	TabID  string
	Strict bool // ORIGIN_MISMATCH unless the tab is at the login's origin
	HTTP   *page.HTTPLogin
	// Private says that the login is not the agent's own: it came sealed.
	Private bool
}

// Apply puts a login in the place of what its origin has in this browser, and
// brings the tab there. When it fails the old state is back, and the tab where
// it was.
func (s *Session) Apply(ctx context.Context, origin string, cookies []browser.Cookie, stored browser.OriginState, o ApplyOptions) (page.Replaced, error) {
	const op = "apply a login"
	if err := egress.CheckURL(origin, s.host.rules); err != nil {
		return page.Replaced{}, err
	}
	return turn(ctx, s, "session.apply", func(ctx context.Context) (page.Replaced, note, error) {
		noted := note{address: origin}
		tabs := s.view().tabs
		tab, err := tabs.Pick(ctx, o.TabID)
		if err != nil {
			return page.Replaced{}, noted, err
		}
		here, err := tab.Here(ctx)
		if err != nil {
			return page.Replaced{}, noted, err
		}
		at, _ := site.Origin(here.URL)
		if o.Strict && at != origin {
			return page.Replaced{}, noted, fault.New(fault.OriginMismatch, op, "the tab is at %s, and the login is for %s", orNowhere(at), origin).
				WithHint("Open the login's site first, or leave strictOrigin out.")
		}
		if o.Private {
			// Before it is so: from here on this browser is not the agent's alone.
			if err := s.host.records.change(ctx, s.rec, "", func(r *record) { r.Private = true }); err != nil {
				return page.Replaced{}, noted, err
			}
		}
		if at != origin && stored.Session != nil && here.URL != nowhere {
			// sessionStorage is a tab's, and can be put where nothing is. Not to the
			// site itself: it would see a request without the login.
			if _, err := tab.Navigate(ctx, nowhere, ""); err != nil {
				return page.Replaced{}, noted, err
			}
		}
		done, err := s.replaceOrigin(ctx, origin, cookies, stored)
		if err != nil {
			if now, lost := tab.Here(ctx); lost == nil && now.URL == nowhere && here.URL != nowhere {
				_, _ = tab.Navigate(ctx, here.URL, "") // back where it was; that it does not open changes nothing
			}
			return page.Replaced{}, noted, err
		}
		if o.HTTP != nil {
			tabs.KnowLogin(origin, *o.HTTP)
		}
		noted.counts = counts{"cookies": done.Cookies, "keys": done.StorageKeys}
		if at != origin {
			// After, not before: so the site sees no request without the login.
			if _, err := tab.Navigate(ctx, origin, ""); err != nil {
				s.host.log.Info("the page of an applied login did not open", "session", s.ID(), "error", err)
			}
		}
		return done, noted, nil
	})
}
