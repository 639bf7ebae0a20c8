package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
)

// Replaced is what ReplaceOrigin put in.
type Replaced struct {
	Cookies     int
	StorageKeys int
}

// putBackWithin bounds the way back of a replacement that failed, whatever
// became of its caller.
const putBackWithin = 10 * time.Second

// ReadOrigin reads what one origin has: the cookies that a page of its own can
// see, in the order in which they are sent, and what it has stored. A part that
// could not be read is nil; sessionStorage is, unless the tab in front shows
// the origin.
func (t *Tabs) ReadOrigin(ctx context.Context, origin string) ([]browser.Cookie, browser.OriginState, error) {
	const op = "read what an origin has"
	if err := checkOrigin(op, origin); err != nil {
		return nil, browser.OriginState{}, err
	}
	release, err := t.state.take(ctx)
	if err != nil {
		return nil, browser.OriginState{}, fmt.Errorf("%s: %w", op, err)
	}
	defer release()
	cookies, err := t.cookiesOf(ctx, origin)
	if err != nil {
		return nil, browser.OriginState{}, fmt.Errorf("%s: %w", op, err)
	}
	r := census{tabs: t, loaded: t.survey(ctx), budget: maxStateBytes}
	defer r.close(ctx)
	got := r.clerks[0].readInTime(ctx, &r, origin, r.budget)
	st, err := got.state, got.err
	if err != nil {
		return nil, browser.OriginState{}, unanswered(op, err)
	}
	return cookies, st, nil
}

// unanswered says of which operation a page or the browser did not do its part.
func unanswered(op string, err error) error { return fmt.Errorf("%s: %w", op, silent("", err)) }

func checkOrigin(op, origin string) error {
	if canonical, err := site.Origin(origin); err != nil || canonical != origin {
		return fault.New(fault.InvalidRequest, op, "it is no origin").WithHint("An origin is scheme, host and port, such as https://example.com.")
	}
	return nil
}

func (t *Tabs) cookiesOf(ctx context.Context, origin string) ([]browser.Cookie, error) {
	jar, err := browser.Cookies(ctx, t.root.Conn(), t.inst.Ref().Context)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(jar, func(c browser.Cookie) bool { return !c.VisibleTo(origin) }), nil
}

// ReplaceOrigin puts cookies and storage in the place of all that the origin
// has; other origins are left alone, and so is a part that is nil. Everything is
// checked first, and read back afterwards. On any failure what was there before
// is put back, and the error says so (restored: true) or that it could not be.
//
// sessionStorage belongs to a tab: it needs the origin in the one in front, or
// nothing there at all.
func (t *Tabs) ReplaceOrigin(ctx context.Context, origin string, cookies []browser.Cookie, st browser.OriginState) (Replaced, error) {
	const op = "replace what an origin has"
	fresh, err := checkReplacement(op, origin, cookies, st)
	if err != nil {
		return Replaced{}, err
	}
	release, err := t.state.take(ctx)
	if err != nil {
		return Replaced{}, fmt.Errorf("%s: %w", op, err)
	}
	defer release()
	ask, leave, err := t.standIn(ctx, op, origin, st)
	if err != nil {
		return Replaced{}, err
	}
	defer leave()
	r := replacement{tabs: t, origin: origin, ask: ask}
	if err := r.remember(ctx, op, fresh != nil, st); err != nil {
		return Replaced{}, err
	}
	if err := r.apply(ctx, fresh, st); err != nil {
		return Replaced{}, r.putBack(ctx, op, err)
	}
	t.state.origins.note(origin)
	return Replaced{Cookies: len(fresh), StorageKeys: len(st.Local) + len(st.Session)}, nil
}

// checkReplacement finds out before anything changes what could not work, and
// leaves out what has expired.
func checkReplacement(op, origin string, cookies []browser.Cookie, st browser.OriginState) ([]browser.Cookie, error) {
	if err := checkOrigin(op, origin); err != nil {
		return nil, err
	}
	if st.Origin != "" && st.Origin != origin {
		return nil, fault.New(fault.OriginMismatch, op, "the storage is that of another origin")
	}
	if cookieBytes(cookies)+stateBytes(st) > maxStateBytes {
		return nil, fault.New(fault.PayloadTooLarge, op, "it has more than %d bytes", maxStateBytes)
	}
	if len(st.Databases) > 0 && !json.Valid(st.Databases) {
		return nil, fault.New(fault.InvalidRequest, op, "the databases are not in the form they are kept in; nothing was changed").With("restored", true)
	}
	if cookies == nil {
		return nil, nil
	}
	now := time.Now()
	fresh := make([]browser.Cookie, 0, len(cookies))
	for _, c := range cookies {
		if !c.VisibleTo(origin) {
			return nil, fault.New(fault.OriginMismatch, op, "the cookie %q is none that the origin can see", c.Name)
		}
		if !c.HasExpired(now) {
			fresh = append(fresh, c)
		}
	}
	return fresh, nil
}

// standIn finds a document that sees the origin's storage: the page itself where
// it is loaded, so that its own view never differs from ours, else a blank one.
func (t *Tabs) standIn(ctx context.Context, op, origin string, st browser.OriginState) (asker, func(), error) {
	for _, at := range t.survey(ctx) {
		if at.origin == origin && (at.front || st.Session == nil) {
			return at.ask, func() {}, nil
		}
	}
	var b *blanks
	var err error
	if st.Session != nil {
		if b, err = t.borrowFront(ctx); errors.Is(err, fault.InvalidRequest) {
			return nil, nil, fault.New(fault.OriginMismatch, op, "the tab in front shows another origin, and sessionStorage belongs to a tab").
				WithHint("Open the origin first.")
		}
	} else {
		b, err = t.helper(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := b.show(ctx, origin); err != nil {
		b.close(ctx, t)
		return nil, nil, unanswered(op, err)
	}
	return b.ask, func() { b.close(ctx, t) }, nil
}

func (t *Tabs) borrowFront(ctx context.Context) (*blanks, error) {
	front, err := t.Front(ctx)
	if err != nil {
		return nil, err
	}
	return front.borrow(ctx)
}

// replacement is one ReplaceOrigin, from what was there before on.
type replacement struct {
	tabs    *Tabs
	origin  string
	ask     asker
	cookies []browser.Cookie // nil where they are left alone
	before  browser.OriginState
}

// step is where a test may make it fail.
func (r *replacement) step(name string) error {
	if r.tabs.state.faultAt == nil {
		return nil
	}
	return r.tabs.state.faultAt(name)
}

// remember reads what is about to be replaced, and refuses where it could not
// be put back.
func (r *replacement) remember(ctx context.Context, op string, cookies bool, st browser.OriginState) error {
	var err error
	if cookies {
		if r.cookies, err = r.tabs.cookiesOf(ctx, r.origin); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	if st.Local == nil && st.Session == nil && st.Databases == nil {
		return nil
	}
	got, left, err := readParts(ctx, r.ask, r.origin, parts{session: st.Session != nil, databases: st.Databases != nil}, maxStateBytes)
	if err != nil {
		return unanswered(op, err)
	}
	if st.Local == nil {
		got.Local = nil
	}
	missing := st.Local != nil && got.Local == nil || st.Session != nil && got.Session == nil || st.Databases != nil && got.Databases == nil
	if missing || st.Databases != nil && len(left) > 0 {
		return fault.New(fault.InvalidRequest, op, "what is there now could not be put back if this failed; nothing was changed").With("restored", true)
	}
	r.before = got
	return r.step("remembered")
}

func (r *replacement) apply(ctx context.Context, cookies []browser.Cookie, st browser.OriginState) error {
	if err := r.store(ctx, st); err != nil {
		return err
	}
	if err := r.step("stored"); err != nil {
		return err
	}
	if cookies != nil {
		if err := r.tabs.swapCookies(ctx, r.cookies, cookies); err != nil {
			return err
		}
		if err := r.step("cookies set"); err != nil {
			return err
		}
	}
	if err := r.compare(ctx, cookies, st); err != nil {
		return err
	}
	if err := r.step("compared"); err != nil {
		return err
	}
	return ctx.Err()
}

// store writes the parts that are given.
func (r *replacement) store(ctx context.Context, st browser.OriginState) error {
	if st.Local != nil || st.Session != nil {
		if _, err := writeParts(ctx, r.ask, browser.OriginState{Local: st.Local, Session: st.Session}, true); err != nil {
			return err
		}
	}
	if st.Databases == nil {
		return nil
	}
	apart, err := r.tabs.helper(ctx)
	if err != nil {
		return err
	}
	defer apart.close(ctx, r.tabs)
	if err := apart.show(ctx, r.origin); err != nil {
		return err
	}
	if err := apart.dropDatabases(ctx); err != nil {
		return err
	}
	_, err = writeParts(ctx, apart.ask, browser.OriginState{Databases: st.Databases}, true)
	return err
}

func (t *Tabs) swapCookies(ctx context.Context, old, cookies []browser.Cookie) error {
	return browser.ReplaceCookies(ctx, t.root.Conn(), t.inst.Ref().Context, old, cookies)
}

// compare reads back what a write does not compare by itself.
func (r *replacement) compare(ctx context.Context, cookies []browser.Cookie, st browser.OriginState) error {
	if cookies != nil {
		got, err := r.tabs.cookiesOf(ctx, r.origin)
		if err != nil {
			return err
		}
		if err := sameCookies(got, cookies); err != nil {
			return err
		}
	}
	if st.Databases == nil {
		return nil
	}
	got, _, err := readParts(ctx, r.ask, r.origin, parts{databases: true}, maxStateBytes)
	if err != nil {
		return err
	}
	if !bytes.Equal(got.Databases, st.Databases) {
		return errors.New("the databases do not read as they were written")
	}
	return nil
}

// sameCookies compares a jar with what was wanted. What was left to the browser
// may be anything; an expiry may be sooner, as browsers cap it.
func sameCookies(got, want []browser.Cookie) error {
	left := slices.Clone(got)
	for _, w := range want {
		at := slices.IndexFunc(left, func(g browser.Cookie) bool { return browser.CompareCookies(g, w) == 0 && g.Value.Equal(w.Value) })
		if at < 0 {
			return fmt.Errorf("the browser did not take the cookie %q", w.Name)
		}
		if !alike(left[at], w) {
			return fmt.Errorf("the browser changed the cookie %q", w.Name)
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(left) > 0 {
		return fmt.Errorf("%d other cookies appeared meanwhile", len(left))
	}
	return nil
}

func alike(got, want browser.Cookie) bool {
	return got.HTTPOnly == want.HTTPOnly && got.Secure == want.Secure && got.SameSite == want.SameSite &&
		(want.Priority == "" || got.Priority == want.Priority) &&
		(want.SourceScheme == "" || got.SourceScheme == want.SourceScheme) &&
		(want.SourcePort == 0 || got.SourcePort == want.SourcePort) &&
		(got.Expires == 0) == (want.Expires == 0) && (got.Expires < want.Expires || math.Abs(got.Expires-want.Expires) < 1)
}

// putBack undoes what was done so far, also for a caller who has gone, and adds
// to the error whether that worked.
func (r *replacement) putBack(ctx context.Context, op string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackWithin)
	defer cancel()
	err := r.undo(ctx)
	cause = silent("", cause)
	code := fault.Of(cause).Code
	if code == fault.Internal {
		code = fault.InvalidRequest
	}
	if err != nil {
		return fault.New(code, op, "%w; what was there before could not be put back: %w", cause, err).With("restored", false).
			WithHint("The site may have to be logged in to again.")
	}
	return fault.New(code, op, "%w; what was there before is back", cause).With("restored", true)
}

func (r *replacement) undo(ctx context.Context) error {
	var failed error
	if r.before.Origin != "" {
		if failed = r.unstore(ctx, r.before); errors.Is(failed, errWorldGone) {
			failed = r.unstoreElsewhere(ctx)
		}
	}
	if r.cookies != nil {
		now, err := r.tabs.cookiesOf(ctx, r.origin)
		if err == nil {
			err = r.tabs.swapCookies(ctx, now, r.cookies)
		}
		if err == nil {
			err = r.compare(ctx, r.cookies, browser.OriginState{})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// unstore puts the storage back. Databases that have not changed are left
// alone: a page that holds on to one was perhaps the cause.
func (r *replacement) unstore(ctx context.Context, before browser.OriginState) error {
	if before.Databases != nil && r.compare(ctx, nil, before) == nil {
		before.Databases = nil
	}
	if err := r.store(ctx, before); err != nil {
		return err
	}
	return r.compare(ctx, nil, before)
}

// unstoreElsewhere is for a page that went away in the middle.
func (r *replacement) unstoreElsewhere(ctx context.Context) error {
	ask, leave, err := r.tabs.standIn(ctx, "", r.origin, r.before)
	if err != nil {
		return err
	}
	defer leave()
	r.ask = ask
	return r.unstore(ctx, r.before)
}
