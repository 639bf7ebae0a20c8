package page

import (
	"context"
	"slices"
	"strings"

	"tapin/internal/browser"
	"tapin/internal/guard"
)

// atOnce is how many origins are read at a time. Each may need a target of its
// own: more of them cost memory, and a machine has no more hands than that.
const atOnce = 6

// census reads origins, a few at a time: where they are loaded, else in helpers
// that are opened when they are first needed. What it finds is the same as if
// they were read one after the other.
type census struct {
	tabs   *Tabs
	loaded []spot
	clerks [atOnce]clerk
	budget int // bytes that may still be read
}

// originRead is what one origin has stored, or why it could not be read.
type originRead struct {
	origin string
	state  browser.OriginState
	left   []string
	err    error
}

// readSome reads up to as many origins as there are clerks.
func (r *census) readSome(ctx context.Context, origins []string) (out []originRead) {
	out, r.budget = together(origins, r.budget, func(i, budget int) originRead {
		return r.clerks[i].readInTime(ctx, r, origins[i], budget)
	}, func(err error) bool { return fatal(ctx, err) })
	return out
}

// together reads origins at the same time and returns what is left of the
// budget. Each is given all that may still be read. Where they took more than
// that together, those that come too late in the order are read again with what
// the earlier ones left, and alone; so is what could not be read in time among
// others. Read takes the origin's place and a budget.
func together(origins []string, budget int, read func(i, budget int) originRead, fatal func(error) bool) ([]originRead, int) {
	out := make([]originRead, len(origins))
	var reading guard.Group
	for i := range origins {
		reading.Run(func() { out[i] = read(i, budget) })
	}
	reading.Wait()
	for i := range out {
		if out[i].err != nil && fatal(out[i].err) {
			return out, budget
		}
		if out[i].err != nil || stateBytes(out[i].state) > budget || isSlow(out[i].left) {
			out[i] = read(i, budget)
		}
		if out[i].err == nil {
			budget -= stateBytes(out[i].state)
		}
	}
	return out, budget
}

// isSlow reports whether something was left out because it took too long.
func isSlow(left []string) bool {
	return slices.ContainsFunc(left, func(why string) bool { return strings.Contains(why, reason("slow")) })
}

func (r *census) close(ctx context.Context) {
	var closing guard.Group
	for i := range r.clerks {
		closing.Run(func() { r.clerks[i].close(ctx, r.tabs) })
	}
	closing.Wait()
}

// clerk reads one origin after the other.
type clerk struct{ helper *blanks }

// readInTime gives one origin its time and no more.
func (r *clerk) readInTime(ctx context.Context, of *census, origin string, budget int) originRead {
	ctx, cancel := context.WithTimeout(ctx, originWithin)
	defer cancel()
	got := originRead{origin: origin}
	got.state, got.left, got.err = r.read(ctx, of, origin, budget)
	return got
}

func (r *clerk) read(ctx context.Context, of *census, origin string, budget int) (browser.OriginState, []string, error) {
	for _, at := range of.loaded {
		if at.origin != origin {
			continue
		}
		st, left, err := readParts(ctx, at.ask, origin, parts{session: at.front, databases: true}, budget)
		if err == nil || fatal(ctx, err) {
			return st, left, err
		}
		// The page moved on, or is busy: the helper need not ask it.
	}
	if r.helper == nil {
		var err error
		if r.helper, err = of.tabs.helper(ctx); err != nil {
			return browser.OriginState{}, nil, err
		}
	}
	st, left, err := r.elsewhere(ctx, origin, budget)
	if err != nil {
		// It may hang with its page; the next origin gets a fresh one.
		r.close(ctx, of.tabs)
	}
	return st, left, err
}

func (r *clerk) elsewhere(ctx context.Context, origin string, budget int) (browser.OriginState, []string, error) {
	if err := r.helper.show(ctx, origin); err != nil {
		return browser.OriginState{}, nil, err
	}
	return readParts(ctx, r.helper.ask, origin, parts{databases: true}, budget)
}

func (r *clerk) close(ctx context.Context, tabs *Tabs) {
	if r.helper != nil {
		r.helper.close(ctx, tabs)
		r.helper = nil
	}
}
