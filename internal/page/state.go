package page

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/site"
)

// Restored is what became of a state that was put into a browser.
type Restored struct {
	Cookies   int
	Refused   int // cookies that the browser did not take
	Keys      int // of localStorage and sessionStorage
	Databases int
	Skipped   []string // what was left out and why, by kind; never a value
}

// stateDesk is what reading and writing state needs to know of a browser.
type stateDesk struct {
	origins   origins
	turn      chan struct{}           // holds one token: who reads or writes
	helperURL string                  // of targets that are no tabs; no page can know it
	faultAt   func(step string) error // nil but in tests
}

func (d *stateDesk) open() {
	d.turn, d.helperURL = make(chan struct{}, 1), "about:blank#"+rand.Text()
}

// take lets one at a time read or write state.
func (d *stateDesk) take(ctx context.Context) (release func(), err error) {
	select {
	case d.turn <- struct{}{}:
		return func() { <-d.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ReadState reads what makes the browser logged in: its cookies, in the order in
// which it sends them, and by origin, sorted, what every origin seen has stored.
// Origins that have stored nothing are not in it. The same state reads the same,
// byte for byte.
//
// sessionStorage is that of the documents loaded in the tab in front: nothing
// else of it can be read without leaving the page. What could not be read is
// named in skipped and costs only itself; the error is for a browser that does
// not answer.
func (t *Tabs) ReadState(ctx context.Context) (st browser.State, skipped []string, err error) {
	const op = "read the browser's state"
	release, err := t.state.take(ctx)
	if err != nil {
		return browser.State{}, nil, fmt.Errorf("%s: %w", op, err)
	}
	defer release()
	st.Cookies, err = browser.Cookies(ctx, t.root.Conn(), t.inst.Ref().Context)
	if err != nil {
		return browser.State{}, nil, fmt.Errorf("%s: %w", op, err)
	}
	loaded := t.survey(ctx)
	for _, at := range loaded {
		t.state.origins.note(at.origin)
	}
	list := t.Origins()
	if t.inst.Ref().Context == "" && !t.whole() {
		// The jar is somebody's whose browser we share: only what our pages see.
		st.Cookies = slices.DeleteFunc(st.Cookies, func(c browser.Cookie) bool { return !slices.ContainsFunc(list, c.VisibleTo) })
	}
	r := census{tabs: t, loaded: loaded, budget: maxStateBytes - cookieBytes(st.Cookies)}
	defer r.close(ctx)
	for some := range slices.Chunk(list, atOnce) {
		for _, got := range r.readSome(ctx, some) {
			if got.err != nil {
				if fatal(ctx, got.err) {
					return browser.State{}, nil, fmt.Errorf("%s: %w", op, got.err)
				}
				skipped = append(skipped, fmt.Sprintf("%s: it was left out: %s", got.origin, plain(got.err)))
				continue
			}
			skipped = append(skipped, got.left...)
			if len(got.state.Local)+len(got.state.Session)+len(got.state.Databases) > 0 {
				st.Origins = append(st.Origins, got.state)
			}
		}
	}
	return st, skipped, nil
}

// Restore puts a state into a fresh browser before anything is opened in it: no
// request of a site leaves before its cookies and its storage are there. One
// bad origin or cookie costs only itself and is named; the error is for a
// browser that does not answer, or that has a page open already.
func (t *Tabs) Restore(ctx context.Context, st browser.State) (Restored, error) {
	const op = "restore the browser's state"
	release, err := t.state.take(ctx)
	if err != nil {
		return Restored{}, fmt.Errorf("%s: %w", op, err)
	}
	defer release()
	if n := cookieBytes(st.Cookies) + originBytes(st.Origins); n > maxStateBytes {
		return Restored{}, fault.New(fault.PayloadTooLarge, op, "the state has %d bytes, more than %d", n, maxStateBytes)
	}
	front, err := t.Front(ctx)
	if err != nil {
		return Restored{}, fmt.Errorf("%s: %w", op, err)
	}
	tab, err := front.borrow(ctx)
	if err != nil {
		return Restored{}, fault.Wrap(fault.Of(err).Code, op, err)
	}
	defer tab.close(ctx, t)
	out := Restored{}
	if err := t.restoreCookies(ctx, st.Cookies, &out); err != nil {
		return out, fmt.Errorf("%s: %w", op, err)
	}
	for _, each := range st.Origins {
		did, err := restoreOrigin(ctx, tab, each)
		out.Keys += did.Keys
		out.Databases += did.Databases
		out.Skipped = append(out.Skipped, explainSkipped(each.Origin, did.Skipped)...)
		if err != nil {
			if fatal(ctx, err) {
				return out, fmt.Errorf("%s: %w", op, err)
			}
			out.Skipped = append(out.Skipped, fmt.Sprintf("%s: not all of it was restored: %s", each.Origin, plain(err)))
		}
		t.state.origins.note(each.Origin)
	}
	return out, nil
}

func (t *Tabs) restoreCookies(ctx context.Context, cookies []browser.Cookie, out *Restored) error {
	now := time.Now()
	fresh := slices.DeleteFunc(slices.Clone(cookies), func(c browser.Cookie) bool { return c.HasExpired(now) })
	refused, err := browser.SetCookies(ctx, t.root.Conn(), t.inst.Ref().Context, fresh)
	if err != nil {
		return err
	}
	out.Cookies, out.Refused = len(fresh)-len(refused), len(refused)
	if n := len(cookies) - len(fresh); n > 0 {
		out.Skipped = append(out.Skipped, fmt.Sprintf("%d cookies have expired", n))
	}
	if len(refused) > 0 {
		out.Skipped = append(out.Skipped, fmt.Sprintf("%d cookies were refused by the browser", len(refused)))
	}
	return nil
}

func restoreOrigin(ctx context.Context, tab *blanks, st browser.OriginState) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, originWithin)
	defer cancel()
	if canonical, err := site.Origin(st.Origin); err != nil || canonical != st.Origin {
		return stored{}, errors.New("it is no origin of the web")
	}
	if len(st.Local)+len(st.Session)+len(st.Databases) == 0 {
		return stored{}, nil
	}
	if err := tab.show(ctx, st.Origin); err != nil {
		return stored{}, err
	}
	return writeParts(ctx, tab.ask, st, false)
}

// fatal tells what ends everything from what one origin suffers.
func fatal(ctx context.Context, err error) bool {
	_, lost := cdp.IsLost(err)
	return lost || ctx.Err() != nil
}

// plain is why an origin could not be asked, without the way it was tried.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return reason("slow")
	}
	return err.Error()
}

func cookieBytes(cookies []browser.Cookie) int {
	n := 0
	for _, c := range cookies {
		n += len(c.Name) + len(c.Value.Reveal()) + len(c.Domain) + len(c.Path)
	}
	return n
}

func originBytes(list []browser.OriginState) int {
	n := 0
	for _, st := range list {
		n += stateBytes(st)
	}
	return n
}

func stateBytes(st browser.OriginState) int {
	n := len(st.Databases)
	for _, items := range [][]browser.Item{st.Local, st.Session} {
		for _, each := range items {
			n += len(each.Key.Reveal()) + len(each.Value.Reveal())
		}
	}
	return n
}
