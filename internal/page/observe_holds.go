package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// Condition is something that is so or not so of a page; exactly one field is set.
type Condition struct {
	URL     string // the address contains it; * stands for anything
	Text    string // visible text
	Visible string // a selector of something that is visible
	Absent  string // a selector of which nothing is visible
}

// holdsWithin is how long a page may take to answer; then it holds nothing.
const holdsWithin = 2 * time.Second

// Holds says of each condition whether it holds now. What cannot be seen to
// hold does not: behind a dialog, in a crashed page, or in one that does not
// answer. It is an error only when there is no page to judge, or a condition
// makes no sense. It changes nothing, and takes no turn.
func (t *Tab) Holds(ctx context.Context, conditions []Condition) ([]bool, error) {
	const op = "check the page"
	held := make([]bool, len(conditions))
	var things []Locator
	var at []int
	for i, c := range conditions {
		if err := c.check(op); err != nil {
			return nil, err
		}
		if valueInCSS.MatchString(c.Visible) || valueInCSS.MatchString(c.Absent) {
			// Frameworks mirror what is typed into that attribute, and a condition is
			// watched while a person types.
			return nil, fault.New(fault.Forbidden, op, "a condition cannot ask for the value of a field").
				WithHint("Name what appears or goes away when it is done.")
		}
		if c.URL == "" {
			things, at = append(things, c.thing()), append(at, i)
		}
	}
	limited, cancel := context.WithTimeout(ctx, holdsWithin)
	defer cancel()
	if t.hasCrashed() {
		return held, t.judgeable(ctx, op, nil)
	}
	if len(things) < len(conditions) {
		// The browser answers for the address, also behind a dialog.
		address, _, err := t.address(limited)
		if err != nil {
			return held, t.judgeable(ctx, op, err)
		}
		for i, c := range conditions {
			held[i] = c.URL != "" && addressHas(address, c.URL)
		}
	}
	if len(things) == 0 {
		return held, nil
	}
	var seen sightings
	err := t.unlessDialog(limited, func(ctx context.Context) error {
		var err error
		seen, err = t.sees(ctx, op, things)
		return err
	})
	if err != nil {
		return held, t.judgeable(ctx, op, err)
	}
	for i, n := range at {
		held[n] = seen.seen[i]
		if conditions[n].Absent != "" {
			held[n] = !seen.seen[i] && !seen.unsure
		}
	}
	return held, nil
}

// judgeable tells a page that does not answer from there being none.
func (t *Tab) judgeable(ctx context.Context, op string, err error) error {
	_, lost := cdp.IsLost(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", op, ctx.Err())
	case err == nil, errors.Is(err, fault.DialogOpen), errors.Is(err, context.DeadlineExceeded), t.hasCrashed():
		return nil
	case lost, t.isClosed(), errors.Is(err, fault.InvalidRequest):
		return fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, errWorldGone):
		return nil // it moves on just now
	}
	return fmt.Errorf("%s: %w", op, err)
}

func (c Condition) check(op string) error {
	said := 0
	for _, s := range []string{c.URL, c.Text, c.Visible, c.Absent} {
		if s != "" {
			said++
		}
	}
	switch {
	case said != 1:
		return fault.New(fault.InvalidRequest, op, "a condition says one thing, not %d", said).
			WithHint("Give a url, a text, a visible selector or an absent selector.")
	case strings.TrimSpace(c.URL+c.Text+c.Visible+c.Absent) == "":
		return fault.New(fault.InvalidRequest, op, "a condition is blank")
	}
	return nil
}

func (c Condition) thing() Locator {
	if c.Text != "" {
		return Locator{Text: c.Text}
	}
	return Locator{CSS: c.Visible + c.Absent}
}

// sightings are which things can be seen; unsure means that a document did not
// say what it shows.
type sightings struct {
	seen   []bool
	unsure bool
}

// sees tells of each thing whether any document shows it. What was not found is
// looked for behind closed shadow roots too.
func (t *Tab) sees(ctx context.Context, op string, things []Locator) (sightings, error) {
	seen, err := t.seesNow(ctx, op, things)
	if err != nil || !slices.Contains(seen.seen, false) || !t.mayHide(ctx) {
		return seen, err
	}
	if err := t.adoptClosed(ctx); err != nil {
		return sightings{}, err
	}
	return t.seesNow(ctx, op, things)
}

// mayHide tells whether a document has something new that no script can look into.
func (t *Tab) mayHide(ctx context.Context) bool {
	frames := t.frames.list()
	may := make([]bool, len(frames))
	t.askEach(ctx, frames, func(ctx context.Context, i int) error { return t.call(ctx, frames[i], "mayHide", nil, &may[i]) })
	return slices.Contains(may, true)
}

// askEach asks all documents at once; a frame has less time than the page itself.
func (t *Tab) askEach(ctx context.Context, frames []frame, ask func(context.Context, int) error) []error {
	errs := make([]error, len(frames))
	var busy guard.Group
	for i, f := range frames {
		busy.Run(func() {
			if f.id != t.frames.main {
				limited, cancel := context.WithTimeout(ctx, hungFrame)
				defer cancel()
				errs[i] = ask(limited, i)
				return
			}
			errs[i] = ask(ctx, i)
		})
	}
	busy.Wait()
	return errs
}

func (t *Tab) seesNow(ctx context.Context, op string, things []Locator) (sightings, error) {
	args := map[string][]Locator{"things": things}
	frames := t.frames.list()
	answers := make([][]int, len(frames))
	errs := t.askEach(ctx, frames, func(ctx context.Context, i int) error {
		err := t.call(ctx, frames[i], "shows", args, &answers[i])
		if err == nil && slices.Contains(answers[i], 1) && !t.showsFrame(ctx, frames[i]) {
			answers[i] = nil
		}
		return err
	})
	out := sightings{seen: make([]bool, len(things))}
	for i, f := range frames {
		switch {
		case errs[i] == nil:
		case f.id == t.frames.main:
			return out, errs[i]
		case !errors.Is(errs[i], errWorldGone): // a frame that goes away shows nothing
			out.unsure = true
		}
		for n, answer := range answers[i] {
			if answer < 0 {
				return out, fault.New(fault.InvalidRequest, op, "%s cannot be understood", things[n])
			}
			out.seen[n] = out.seen[n] || answer == 1
		}
	}
	return out, nil
}

// showsFrame tells whether a frame can be seen, all the way out.
func (t *Tab) showsFrame(ctx context.Context, f frame) bool {
	for f.id != t.frames.main {
		parent, ok := t.frames.get(f.parent)
		if !ok || t.seat(ctx, f) != nil {
			return false
		}
		var shown bool
		if t.call(ctx, parent, "showsFrame", f.order, &shown) != nil || !shown {
			return false
		}
		f = parent
	}
	return true
}

// addressHas reports whether the parts of a pattern stand in an address, one
// after the other.
func addressHas(address, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "*") {
		at := strings.Index(address, part)
		if at < 0 {
			return false
		}
		address = address[at+len(part):]
	}
	return true
}
