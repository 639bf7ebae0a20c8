package oneshot

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/site"
)

// Call is what every one-shot takes. Only the address is required.
type Call struct {
	URL    string
	Width  int // of the viewport; 0 means the kind's own
	Height int
	Scale  float64       // device pixels to a CSS pixel; 0 means 1
	Mobile *bool         // behave as a phone does; nil means the kind's own
	Within time.Duration // for everything; 0 means 90 s, and more is less
}

// Seen is what every one-shot tells beside its result.
type Seen struct {
	Title      string
	FinalURL   string
	StatusCode int
	Retries    int
	Blocked    []Blocked // what else the page asked for and did not get
}

// Blocked is a part of a page that the network guard refused. The page itself
// came; had the page been refused, the call would have failed.
type Blocked struct {
	Code fault.Code `json:"error"`
	Rule string     `json:"rule"`
	Host string     `json:"host"`
}

// visit opens the page and has it read, as often as it makes sense.
func (r *Room) visit(ctx context.Context, what string, c Call, look page.Look, read func(context.Context, *page.Tab) error) (Seen, error) {
	if r.disabled {
		return Seen{}, fault.New(fault.Disabled, what, "the browser tools are switched off").
			WithHint("The owner can switch them on with browser_tools.enabled in config.yaml.")
	}
	if !r.pool.admit() {
		return Seen{}, fault.New(fault.Busy, what, "tapin is ending")
	}
	defer r.tasks.Done()
	began := time.Now()
	var seen Seen
	err := egress.CheckURL(c.URL, r.rules)
	retries := 0
	if err == nil {
		within := c.Within
		if within <= 0 || within > callWithin {
			within = callWithin
		}
		ctx, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(r.ctx, cancel)() // the room's end is everybody's
		seen, retries, err = persist(ctx, within, func(ctx context.Context) (Seen, error) {
			return r.attempt(ctx, c.URL, look, read)
		})
		cancel()
	} else {
		r.figures.refused(err)
	}
	seen.Retries = retries
	if err != nil {
		err = told(what, seen, err)
	}
	took := time.Since(began)
	r.figures.observe(what, took, retries, err)
	r.log.Debug(line(what, took, retries, err))
	r.journalled("oneshot."+what, origin(c.URL, seen.FinalURL), took, retries, err)
	return seen, err
}

// told is a failure as the caller gets it: what was done, how often, and what
// the guard refused on the way.
func told(what string, seen Seen, err error) error {
	f := fault.Of(fmt.Errorf("%s: %w", what, err))
	data := map[string]any{"retries": seen.Retries}
	if len(seen.Blocked) > 0 && f.Code != fault.BlockedTarget {
		data["blocked"] = seen.Blocked
	}
	for name, value := range f.Data {
		data[name] = value
	}
	return &fault.Error{Code: f.Code, Err: f.Err, Hint: f.Hint, Data: data}
}

// origin is whose page it was, in the journal: no path, no query.
func origin(asked, final string) string {
	if final != "" {
		asked = final
	}
	from, err := site.Origin(asked)
	if err != nil {
		return ""
	}
	return from
}

// attempt is one visit in a context of its own, which is gone afterwards
// whatever happens.
func (r *Room) attempt(ctx context.Context, address string, look page.Look, read func(context.Context, *page.Tab) error) (seen Seen, err error) {
	at, err := r.pool.take(ctx, look)
	if err != nil {
		return Seen{}, err
	}
	defer func() {
		refused := at.refusals()
		seen.Blocked = named(refused)
		r.figures.blocked(refused)
		r.pool.give(at)
	}()
	if err := at.tabs.Dress(ctx, look); err != nil {
		return Seen{}, fault.Wrap(fault.SessionCreateFailed, "set up a tab", err)
	}
	began := time.Now()
	if err := r.open(ctx, at.tab, address); err != nil {
		return Seen{}, err
	}
	reading, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	if len(at.tabs.List()) > 1 {
		// A window that the page opened hides it, and what is hidden is not painted.
		if err := at.tabs.Switch(reading, at.tab.ID()); err != nil {
			return Seen{}, err
		}
	}
	unread := read(reading, at.tab)
	if unread != nil && reading.Err() != nil {
		return Seen{}, unread // it answers nothing, so there is nothing to ask it
	}
	// Only now, as a page may have gone on by itself until it was read. Where it
	// is tells why it could not be, too.
	nav, err := r.arrive(ctx, at.tab, began)
	if err = cmp.Or(err, unread); err != nil {
		return Seen{}, err
	}
	return Seen{Title: nav.Title, FinalURL: nav.URL, StatusCode: nav.Status}, nil
}

// open goes to the address and lets the page settle. A network that does not
// fall quiet is no failure: many never do.
func (r *Room) open(ctx context.Context, tab *page.Tab, address string) error {
	opening, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	nav, err := tab.Navigate(opening, address, page.WaitDOM)
	if err != nil {
		return err
	}
	if nav.URL == "about:blank" {
		return fault.New(fault.NavigationFailed, "open the page", "the address is a file, not a page").
			WithHint("One-shots show pages. Download files in a session: POST /session/navigate, then GET /session/downloads.")
	}
	err = tab.WaitFor(ctx, page.WaitOptions{State: "networkidle", Timeout: quietWithin})
	if fault.Of(err) != nil && fault.Of(err).Code == fault.WaitTimeout {
		return nil
	}
	return err
}

// arrive tells where the page has come to, and holds that against the rules as
// the address was held against them at the door.
func (r *Room) arrive(ctx context.Context, tab *page.Tab, since time.Time) (page.Navigation, error) {
	nav, err := tab.Arrived(ctx, since)
	if err != nil {
		return nav, err
	}
	if err := egress.CheckURL(strings.TrimPrefix(nav.URL, "blob:"), r.rules); err != nil {
		return nav, err
	}
	return nav, nil
}

// named are the refusals as the caller gets them, each once.
func named(blocks []egress.Block) []Blocked {
	var out []Blocked
	known := map[Blocked]bool{}
	for _, b := range blocks {
		each := Blocked{Code: fault.BlockedTarget, Rule: b.Rule, Host: b.Host}
		if !known[each] {
			known[each] = true
			out = append(out, each)
		}
	}
	return out
}

// lookOf is the kind's viewport, or what the call says.
func (r *Room) lookOf(c Call, standard page.Look) (page.Look, error) {
	look := standard
	look.Locale, look.Timezone = r.look.Locale, r.look.Timezone
	if c.Width < 0 || c.Height < 0 || (c.Width == 0) != (c.Height == 0) {
		return look, fault.New(fault.InvalidRequest, "", "a viewport has a width and a height")
	}
	if c.Width > 0 {
		look.Width, look.Height = c.Width, c.Height
	}
	if c.Scale > 0 {
		look.Scale = c.Scale
	}
	if c.Mobile != nil {
		look.Mobile = *c.Mobile
	}
	return look, nil
}

// line is the line of the log for one call: screenshot ok 1823ms retries=0.
func line(what string, took time.Duration, retries int, err error) string {
	outcome := "ok"
	if err != nil {
		outcome = string(fault.Of(err).Code)
	}
	return fmt.Sprintf("%s %s %dms retries=%d", what, outcome, took.Milliseconds(), retries)
}
