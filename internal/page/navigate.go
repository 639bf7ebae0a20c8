package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/egress"
	"tapin/internal/fault"
)

// navigateWithin bounds a navigation whose caller set no limit.
const navigateWithin = 30 * time.Second

// Wait is how far a page must have come before a navigation counts as done.
type Wait string

// The states a caller may wait for; the empty one means DOMContentLoaded.
const (
	WaitCommit  Wait = "commit"
	WaitDOM     Wait = "domcontentloaded"
	WaitLoad    Wait = "load"
	WaitNetwork Wait = "networkidle"
)

// lifecycleName is the browser's word for it; false when there is none.
func (w Wait) lifecycleName() (string, bool) {
	switch w {
	case "", WaitDOM:
		return "DOMContentLoaded", true
	case WaitCommit:
		return "commit", true
	case WaitLoad:
		return "load", true
	case WaitNetwork:
		return "networkIdle", true
	}
	return "", false
}

// Navigate opens an address. The caller has checked that it is one a page may have.
func (t *Tab) Navigate(ctx context.Context, url string, wait Wait) (Navigation, error) {
	return t.navigate(ctx, "navigate", wait, t.to(url))
}

// to is the way to an address.
func (t *Tab) to(url string) func(context.Context, string) error {
	return func(ctx context.Context, state string) error {
		before := t.life.now()
		got, err := proto.Call(ctx, t.session, cdppage.Navigate, cdppage.NavigateParams{URL: url})
		if err == nil && got.ErrorText == aborted && t.overtaken(ctx, before) {
			got, err = proto.Call(ctx, t.session, cdppage.Navigate, cdppage.NavigateParams{URL: url})
		}
		switch {
		case err != nil:
			return err
		case got.IsDownload:
			return nil
		case got.ErrorText == authMissing:
			return t.life.await(ctx, got.LoaderID, "commit")
		case got.ErrorText != "":
			return &failure{url: url, reason: got.ErrorText}
		case got.LoaderID == "":
			return nil // moved within the document
		}
		return t.life.await(ctx, got.LoaderID, state)
	}
}

// aborted is what the browser says of a navigation that did not come to a page:
// there was nothing to show, or the page went elsewhere by itself meanwhile.
const aborted = "net::ERR_ABORTED"

// overtakenWithin is how long a page that went elsewhere gets to arrive there.
const overtakenWithin = time.Second

// overtaken reports whether the page went elsewhere by itself since the mark, as
// one does whose form was sent just before: the last word is the caller's.
func (t *Tab) overtaken(ctx context.Context, since mark) bool {
	ctx, cancel := context.WithTimeout(ctx, overtakenWithin)
	defer cancel()
	return t.life.awaitChange(ctx, since, "commit") == nil
}

// Reload loads the page again.
func (t *Tab) Reload(ctx context.Context, wait Wait) (Navigation, error) {
	return t.navigate(ctx, "reload", wait, func(ctx context.Context, state string) error {
		before := t.life.now()
		if _, err := proto.Call(ctx, t.session, cdppage.Reload, cdppage.ReloadParams{}); err != nil {
			return err
		}
		return t.life.awaitChange(ctx, before, state)
	})
}

// Travel goes back (-1) or forward (+1) in the tab's history.
func (t *Tab) Travel(ctx context.Context, by int64, wait Wait) (Navigation, error) {
	op, way := "go back", "back"
	if by > 0 {
		op, way = "go forward", "forward"
	}
	return t.navigate(ctx, op, wait, func(ctx context.Context, state string) error {
		history, err := proto.Call(ctx, t.session, cdppage.GetNavigationHistory, proto.Empty{})
		if err != nil {
			return err
		}
		at := history.CurrentIndex + by
		if at < 0 || at >= int64(len(history.Entries)) || at == 0 && history.Entries[0].URL == "about:blank" {
			// What every tab begins with is no page that anybody has been to.
			return &failure{reason: "there is no page to go " + way + " to"}
		}
		before := t.life.now()
		if _, err := proto.Call(ctx, t.session, cdppage.NavigateToHistoryEntry, cdppage.NavigateToHistoryEntryParams{EntryID: history.Entries[at].ID}); err != nil {
			return err
		}
		return t.life.awaitChange(ctx, before, state)
	})
}

// failure is the browser's own reason why a page did not open.
type failure struct{ url, reason string }

func (f *failure) Error() string { return f.reason }

// navigate is what all ways to another page have in common: the limit, the
// dialog that may come between, the guard that may have refused, and the
// account of where we are now.
func (t *Tab) navigate(ctx context.Context, op string, wait Wait, move func(context.Context, string) error) (Navigation, error) {
	coming := t.expect(ctx)
	defer coming.end()
	return t.come(ctx, op, wait, coming, move)
}

func (t *Tab) come(ctx context.Context, op string, wait Wait, coming *arrival, move func(context.Context, string) error) (Navigation, error) {
	state, ok := wait.lifecycleName()
	if !ok {
		return Navigation{}, fault.New(fault.InvalidRequest, op, "%q is no state to wait for", wait).
			WithHint("Use commit, domcontentloaded, load or networkidle.")
	}
	began := time.Now()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, navigateWithin)
		defer cancel()
	}
	defer t.life.leave()()
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		t.free(ctx)
		coming.ready(ctx)
		defer t.nudge(ctx, state)()
		return move(ctx, state)
	})
	// The guard spoke before the browser did, but what it said may still be on
	// its way to the handlers.
	_ = t.session.Conn().Settle(ctx)
	if err != nil {
		return Navigation{}, t.explain(op, began, err)
	}
	if nav, known := coming.account(state); known {
		return t.arrivedAt(ctx, op, began, nav, nil)
	}
	return t.arrived(ctx, op, began)
}

// Arrived says where the tab is, for a caller who has let it go on by itself
// since then: a page that led to an address that cannot be opened is that fault.
func (t *Tab) Arrived(ctx context.Context, since time.Time) (Navigation, error) {
	_ = t.session.Conn().Settle(ctx)
	return t.arrived(ctx, "open the page", since)
}

// arrived tells a page from what stands in its place.
func (t *Tab) arrived(ctx context.Context, op string, began time.Time) (Navigation, error) {
	nav, err := t.Here(ctx)
	return t.arrivedAt(ctx, op, began, nav, err)
}

func (t *Tab) arrivedAt(ctx context.Context, op string, began time.Time, nav Navigation, err error) (Navigation, error) {
	nav.Took = time.Since(began)
	switch {
	case err != nil:
		return Navigation{}, t.explain(op, began, err)
	case strings.HasPrefix(nav.URL, "chrome-error:") && nav.Status == http.StatusUnauthorized && t.tabs.judge != nil:
		// Requests have one gate, and it is not for passwords here.
		return Navigation{}, fault.New(fault.NavigationFailed, op, "the site asks for a user name and a password")
	case strings.HasPrefix(nav.URL, "chrome-error:") && nav.Status == http.StatusUnauthorized:
		return t.challenged(ctx, op)
	case strings.HasPrefix(nav.URL, "chrome-error:"):
		return Navigation{}, t.explain(op, began, &failure{url: t.intended(ctx), reason: tunnelFailed})
	case nav.Title == egress.PageTitle && nav.Status >= http.StatusForbidden:
		// The guard's own page, not the site's: it has told us why.
		if told := t.tabs.guard.verdict(op, nav.URL, began, false); told != nil {
			return Navigation{}, told
		}
	}
	t.tabs.entitle(t, cmp.Or(nav.Title, calledByAddress(nav.URL)))
	return nav, nil
}

// calledByAddress is what the browser calls a page without a title.
func calledByAddress(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		return rest
	}
	return url
}

// tunnelFailed is what the browser says of everything that goes wrong behind its proxy.
const tunnelFailed = "net::ERR_TUNNEL_CONNECTION_FAILED"

// intended is the address that an error page stands for.
func (t *Tab) intended(ctx context.Context) string {
	history, err := proto.Call(ctx, t.session, cdppage.GetNavigationHistory, proto.Empty{})
	if err != nil || history.CurrentIndex < 0 || history.CurrentIndex >= int64(len(history.Entries)) {
		return ""
	}
	return history.Entries[history.CurrentIndex].URL
}

// explain gives a failed navigation its code.
func (t *Tab) explain(op string, began time.Time, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		if told := t.tabs.guard.verdict(op, f.url, began, f.reason == tunnelFailed || f.reason == blockedByClient); told != nil {
			return told
		}
		return fault.New(fault.NavigationFailed, op, "%s", f.reason).With("reason", f.reason)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.NavigationTimeout, op, "the page was not usable after %s", time.Since(began).Round(100*time.Millisecond))
	}
	return fmt.Errorf("%s: %w", op, err)
}

// Here says where the tab is: address, title and the document's HTTP status.
func (t *Tab) Here(ctx context.Context) (Navigation, error) {
	var nav Navigation
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		var at here
		err := t.callMain(ctx, "here", nil, &at)
		nav = t.navigation(at)
		return err
	})
	if err != nil {
		return Navigation{}, fmt.Errorf("read the address: %w", silent("", err))
	}
	return nav, nil
}

// here is what a document says of where it is.
type here struct {
	URL    string `json:"url"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

// navigation is that, as anybody may know it.
func (t *Tab) navigation(at here) Navigation {
	return Navigation{URL: t.tabs.hidden().conceal(at.URL), Title: t.tabs.hidden().conceal(at.Title), Status: at.Status}
}
