package page

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// WaitOptions say what to wait for. Several at once are waited for one after the
// other: the page's state, then its address, then the element or text.
type WaitOptions struct {
	Locator *Locator
	Text    string
	URL     string // a glob with * and **, or a part of the address
	State   string // visible, hidden or attached for an element; networkidle, load or domcontentloaded for the page
	Timeout time.Duration
}

// WaitFor waits until the page has come that far.
func (t *Tab) WaitFor(ctx context.Context, o WaitOptions) error {
	const op = "wait"
	if err := o.check(op); err != nil {
		return err
	}
	if o.Timeout <= 0 {
		o.Timeout = actWithin
	}
	deadline := time.Now().Add(o.Timeout)
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if state, ok := o.pageState(); ok {
		if err := t.awaitState(limited, op, state, o.Timeout); err != nil {
			return err
		}
	}
	if o.URL != "" {
		if err := t.awaitURL(limited, op, o.URL, o.Timeout); err != nil {
			return err
		}
	}
	l := o.Locator
	if o.Text != "" {
		l = &Locator{Text: o.Text}
	}
	if l == nil {
		return nil
	}
	if err := t.tabs.hidden().allow(op, *l); err != nil {
		return err
	}
	if o.State == "hidden" {
		return t.awaitGone(ctx, op, *l, deadline, o.Timeout)
	}
	_, err := t.search(ctx, hunt{op: op, locator: *l, want: wanted{Visible: o.State != "attached"}, within: max(time.Until(deadline), time.Millisecond)})
	f, ok := errors.AsType[*fault.Error](err)
	if ok && (f.Code == fault.ElementNotFound || f.Code == fault.ElementNotActionable || f.Code == fault.WaitTimeout) {
		return fault.New(fault.WaitTimeout, op, "after %s: %w%s", o.Timeout, f.Err, t.whereabouts())
	}
	return err
}

func (o WaitOptions) check(op string) error {
	states := []string{"", "visible", "hidden", "attached", "networkidle", "load", "domcontentloaded"}
	_, ofPage := o.pageState()
	switch {
	case !slices.Contains(states, o.State):
		return fault.New(fault.InvalidRequest, op, "%q is no state to wait for", o.State).
			WithHint("Use visible, hidden, attached, networkidle, load or domcontentloaded.")
	case o.Locator == nil && o.Text == "" && o.URL == "" && !ofPage:
		return fault.New(fault.InvalidRequest, op, "it is not said what to wait for").WithHint("Give an element, a text, an address or a state.")
	case o.Locator != nil && o.Text != "":
		return fault.New(fault.InvalidRequest, op, "wait for an element or for a text, not both")
	case o.Locator != nil && o.Locator.X != nil:
		return fault.New(fault.InvalidRequest, op, "a point is always there").WithHint("Give an element, a text, an address or a state.")
	case o.Locator != nil:
		return o.Locator.check(op)
	}
	return nil
}

// pageState is the browser's word for a state of the whole page.
func (o WaitOptions) pageState() (string, bool) {
	switch o.State {
	case "networkidle", "load", "domcontentloaded":
		return Wait(o.State).lifecycleName()
	}
	return "", false
}

func (t *Tab) awaitState(ctx context.Context, op, state string, within time.Duration) error {
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		defer t.nudge(ctx, state)()
		return t.life.await(ctx, t.life.now().loader, state)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.WaitTimeout, op, "the page had not reached %s after %s%s", state, within, t.whereabouts())
	}
	return err
}

// awaitURL waits for the browser to tell of another document, or of a move
// within one, and looks at the address then.
func (t *Tab) awaitURL(ctx context.Context, op, pattern string, within time.Duration) error {
	is := addressMatcher(pattern)
	last := ""
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		for {
			t.life.mu.Lock()
			changed := t.life.changed
			t.life.mu.Unlock()
			var here struct {
				URL string `json:"url"`
			}
			if err := t.callMain(ctx, "here", nil, &here); err != nil {
				return err
			}
			if last = here.URL; is(last) {
				return nil
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.WaitTimeout, op, "after %s the address is %s, not %s", within, withoutQuery(last), pattern)
	}
	return err
}

// addressMatcher reads a pattern: with stars it is a glob for the whole address,
// where * stays within a path segment and ** does not; else it is a part of it.
func addressMatcher(pattern string) func(string) bool {
	if !strings.Contains(pattern, "*") {
		return func(url string) bool { return strings.Contains(url, pattern) }
	}
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.ReplaceAll(quoted, `\*\*`, `.*`)
	quoted = strings.ReplaceAll(quoted, `\*`, `[^/]*`)
	return regexp.MustCompile("^(?s:" + quoted + ")$").MatchString
}

// awaitGone waits until no frame shows what matches.
func (t *Tab) awaitGone(ctx context.Context, op string, l Locator, deadline time.Time, within time.Duration) error {
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(engineGrace))
	defer cancel()
	var last sighting
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		// Not to be seen by scripts is not to be gone.
		if err := t.adoptClosed(ctx); err != nil && !errors.Is(err, errWorldGone) {
			return err
		}
		for {
			var err error
			last, err = t.stillThere(ctx, l, time.Until(deadline))
			if err != nil || last.State == "ok" {
				return err
			}
			if !time.Now().Before(deadline) {
				return context.DeadlineExceeded
			}
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		what := last.Info.What
		if what == "" {
			what = "it"
		}
		return fault.New(fault.WaitTimeout, op, "after %s: %s is still visible%s", within, what, t.whereabouts())
	}
	if _, coded := errors.AsType[*fault.Error](err); err != nil && !coded {
		return fmt.Errorf("%s: %w", op, err)
	}
	return err
}

// stillThere has every frame wait for a while, and answers with one that still
// shows it. A frame that goes away shows nothing.
func (t *Tab) stillThere(ctx context.Context, l Locator, left time.Duration) (sighting, error) {
	within := max(0, min(left, longestLook)).Milliseconds()
	if l.Ref != "" {
		return t.refStillThere(ctx, l, within)
	}
	args := struct {
		Locator Locator `json:"locator"`
		Within  int64   `json:"within"`
	}{l, within}
	all := t.frames.list()
	seen, errs := make([]sighting, len(all)), make([]error, len(all))
	var wg guard.Group
	for i, f := range all {
		wg.Run(func() { errs[i] = t.call(ctx, f, "gone", args, &seen[i]) })
	}
	wg.Wait()
	for i := range all {
		switch {
		case errors.Is(errs[i], errWorldGone):
			continue
		case errs[i] != nil:
			return sighting{}, errs[i]
		case seen[i].Bad != "":
			return sighting{}, fault.New(fault.InvalidRequest, "wait", "%s cannot be understood", l)
		case seen[i].State != "ok":
			return seen[i], nil
		}
	}
	return sighting{State: "ok"}, nil
}

// refStillThere is the same for an element known by its ref: stale means gone.
func (t *Tab) refStillThere(ctx context.Context, l Locator, within int64) (sighting, error) {
	f, id, err := t.byRef(ctx, l.Ref)
	switch {
	case errors.Is(err, fault.StaleRef):
		return sighting{State: "ok"}, nil
	case err != nil:
		return sighting{}, err
	}
	var seen sighting
	args := struct {
		ID     int   `json:"id"`
		Within int64 `json:"within"`
	}{id, within}
	err = t.call(ctx, f, "gone", args, &seen)
	if errors.Is(err, errWorldGone) {
		return sighting{State: "ok"}, nil
	}
	return seen, err
}

// whereabouts says which page it was, without what an address may carry.
func (t *Tab) whereabouts() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	here, err := t.Here(ctx)
	if err != nil {
		return ""
	}
	return "; the page is at " + withoutQuery(here.URL)
}

func withoutQuery(url string) string {
	if at := strings.IndexAny(url, "?#"); at >= 0 {
		return url[:at]
	}
	return url
}
