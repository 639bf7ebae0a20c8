package page

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// Point is a place in the top viewport, in CSS pixels.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// elementInfo is what an element is, without anything typed into it. The box is
// in its own frame's viewport.
type elementInfo struct {
	Tag  string `json:"tag"`
	Type string `json:"type"`
	What string `json:"what"` // as a developer would name it: button#pay
	Box  struct {
		X      float64 `json:"x"`
		Y      float64 `json:"y"`
		Width  float64 `json:"width"`
		Height float64 `json:"height"`
	} `json:"box"`
}

// found is an element that can be used as wanted.
type found struct {
	frame frame
	id    int   // by which the frame's engine keeps it
	point Point // where a person would click, in the top viewport's CSS px
	info  elementInfo

	watch int         // who listens there, if that was asked for
	tells bool        // … and tells unasked what was to come
	pay   *payVerdict // what clicking it would mean, if that was asked for
	churn int         // how often it was drawn anew while we looked
	field *field      // what it is as a field, if that was asked for
	under []frame     // the documents in frames that lie at the point, when only that is known
	inner []found     // who listens in frames, the innermost last
	deaf  bool        // a frame did not answer when it was to listen
}

// wanted is what must hold before an element counts as found.
type wanted struct {
	Visible  bool `json:"visible"`
	Stable   bool `json:"stable"`
	Enabled  bool `json:"enabled"`
	Hit      bool `json:"hit"`
	Editable bool `json:"editable"`
}

// toAct is what must hold before anybody would click.
var toAct = wanted{Visible: true, Stable: true, Enabled: true, Hit: true}

// Patience of a search: how long one frame is waited for before the others and
// the closed shadow roots are looked into again, and what an engine that is
// busy gets beyond the time it was given.
const (
	firstLook   = 150 * time.Millisecond
	longestLook = 2 * time.Second
	engineGrace = 3 * time.Second
)

// locate waits until the element is there as wanted, in whatever frame.
func (t *Tab) locate(ctx context.Context, l Locator, want wanted, within time.Duration) (found, error) {
	return t.search(ctx, hunt{op: "find the element", locator: l, want: want, within: within})
}

// hunt is one search, and what it has come to so far.
type hunt struct {
	op      string
	locator Locator
	want    wanted
	within  time.Duration
	types   []string // events to listen for from the moment it is found
	coming  *coming  // those that are told of unasked
	field   bool     // it is a field, and its kind says what is wanted
	judge   *payAsk  // what is asked about it at once, where no other document has a say

	last   sighting      // how it stood when last seen
	patch  time.Duration // how long the next look may take
	scroll int           // how often it was out of sight in the frames around its own
}

// sighting is the engine's answer.
type sighting struct {
	State string      `json:"state"`
	By    string      `json:"by"`
	Bad   string      `json:"bad"`
	ID    int         `json:"id"`
	Rank  int         `json:"rank"`
	Info  elementInfo `json:"info"`
	Watch int         `json:"watch"`
	Tells bool        `json:"tells"`
	Churn int         `json:"churn"`
	Under *under      `json:"under"`
	Point *Point      `json:"point"`
	View  view        `json:"view"`
	Want  *wanted     `json:"want"`
	Field *field      `json:"field"`
	Pay   *payVerdict `json:"pay"`
}

type view struct {
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

func (t *Tab) search(ctx context.Context, h hunt) (found, error) {
	if err := h.locator.check(h.op); err != nil {
		return found{}, err
	}
	if err := t.tabs.hidden().allow(h.op, h.locator); err != nil {
		return found{}, err
	}
	if h.within <= 0 {
		h.within = actWithin
	}
	if end, bounded := ctx.Deadline(); bounded {
		// The engine is done before the caller gives up: it knows what is in the way.
		h.within = min(h.within, time.Until(end)*9/10)
	}
	h.patch = firstLook
	limited, cancel := context.WithTimeout(ctx, h.within+engineGrace)
	defer cancel()
	var got found
	err := t.unlessDialog(limited, func(ctx context.Context) error {
		var err error
		if h.locator.X != nil {
			got, err = t.at(ctx, &h)
		} else {
			got, err = t.pursue(ctx, &h, time.Now().Add(h.within))
		}
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return found{}, fault.New(fault.WaitTimeout, h.op, "the page did not answer within %s", h.within)
	}
	if err != nil {
		if _, coded := errors.AsType[*fault.Error](err); !coded {
			return found{}, fmt.Errorf("%s: %w", h.op, err)
		}
	}
	return got, err
}

// pursue looks until the element is as wanted or the time is over. The waiting
// itself is the engine's; here it is only decided in which document.
func (t *Tab) pursue(ctx context.Context, h *hunt, deadline time.Time) (found, error) {
	for {
		f, id, err := t.choose(ctx, h)
		if err == nil {
			var got found
			if got, err = t.examine(ctx, h, f, id, time.Until(deadline)); err == nil && h.last.State == "ok" {
				return got, nil
			}
		}
		switch {
		case errors.Is(err, errWorldGone):
			// The document went away: the next one may have it.
			h.last = sighting{State: "missing"}
			if err := rest(ctx, 20*time.Millisecond); err != nil {
				return found{}, err
			}
		case err != nil:
			return found{}, err
		case h.locator.Ref != "" && h.last.State == "missing":
			return found{}, fault.New(fault.StaleRef, h.op, "%s is no longer on the page", h.locator)
		}
		if !time.Now().Before(deadline) {
			return found{}, h.fault()
		}
		if h.last.State == "missing" || h.last.State == "hidden" {
			if err := t.adoptClosed(ctx); err != nil && !errors.Is(err, errWorldGone) {
				return found{}, err
			}
		}
	}
}

// choose says which document to wait in: the one with the best match, else the
// main one. The id is set for elements that are known by it.
func (t *Tab) choose(ctx context.Context, h *hunt) (frame, int, error) {
	if h.locator.Ref != "" {
		return t.byRef(ctx, h.locator.Ref)
	}
	all := t.frames.list()
	if len(all) == 0 {
		return frame{}, 0, errWorldGone
	}
	if len(all) == 1 {
		return all[0], 0, nil
	}
	type match struct {
		Rank int    `json:"rank"`
		Bad  string `json:"bad"`
	}
	args := struct {
		Locator Locator `json:"locator"`
	}{h.locator}
	matches := make([]match, len(all))
	ask := func(ctx context.Context, i int) error {
		matches[i].Rank = -1
		return t.call(ctx, all[i], "find", args, &matches[i])
	}
	if err := ask(ctx, 0); err != nil {
		return frame{}, 0, err
	}
	if matches[0].Rank == 0 || matches[0].Bad != "" {
		return all[0], 0, nil
	}
	var wg guard.Group
	for i := 1; i < len(all); i++ {
		// A frame that is going away, or hangs, has nothing for us.
		wg.Run(func() {
			limited, cancel := context.WithTimeout(ctx, frameWithin)
			defer cancel()
			_ = ask(limited, i)
		})
	}
	wg.Wait()
	best := 0
	for i, m := range matches {
		if m.Rank >= 0 && (matches[best].Rank < 0 || m.Rank < matches[best].Rank) {
			best = i
		}
	}
	return all[best], 0, ctx.Err()
}

// examine has the engine wait in one document, and carries the point outwards.
func (t *Tab) examine(ctx context.Context, h *hunt, f frame, id int, left time.Duration) (found, error) {
	patch := h.patch
	h.patch = min(2*h.patch, longestLook)
	args := struct {
		Locator *Locator `json:"locator,omitempty"`
		ID      int      `json:"id,omitempty"`
		Want    wanted   `json:"want"`
		Within  int64    `json:"within"`
		Seek    int64    `json:"seek"`
		Scroll  int      `json:"scroll,omitempty"`
		Types   []string `json:"types,omitempty"`
		Coming  *coming  `json:"coming,omitempty"`
		Field   bool     `json:"field,omitempty"`
		Alone   bool     `json:"alone,omitempty"`
		Judge   *payAsk  `json:"judge,omitempty"`
	}{&h.locator, id, h.want, max(0, left.Milliseconds()), patch.Milliseconds(), h.scroll, h.types, nil, h.field, t.frames.alone(f), nil}
	if args.Alone {
		args.Coming, args.Judge = h.coming, h.judge
	}
	if id != 0 {
		args.Locator = nil
	}
	h.last = sighting{}
	if err := t.call(ctx, f, "ready", args, &h.last); err != nil {
		return found{}, err
	}
	if h.last.Bad != "" {
		return found{}, fault.New(fault.InvalidRequest, h.op, "%s cannot be understood", h.locator)
	}
	if h.last.Want != nil {
		h.want = *h.last.Want
	}
	got := found{frame: f, id: h.last.ID, info: h.last.Info, watch: h.last.Watch, tells: h.last.Tells, churn: h.last.Churn, field: h.last.Field, pay: h.last.Pay}
	if h.last.State != "ok" || h.last.Point == nil {
		return got, nil
	}
	if !h.want.Hit && !h.want.Stable && !h.want.Visible {
		got.point = *h.last.Point
		return got, nil
	}
	out, err := t.outwards(ctx, f, h.last)
	if err != nil {
		return found{}, err
	}
	if out.State != "ok" && h.want.Hit {
		// Inside its frame all is well, but the frame itself is covered or out of sight.
		_, _ = t.received(ctx, got, nil, 0)
		h.last.State, h.last.By = out.State, out.By
		h.scroll++
		return got, rest(ctx, min(50*time.Millisecond*time.Duration(h.scroll), 500*time.Millisecond))
	}
	got.point = *out.Point
	return got, nil
}

// at is the element at a point of the viewport.
func (t *Tab) at(ctx context.Context, h *hunt) (found, error) {
	p := Point{*h.locator.X, *h.locator.Y}
	main, ok := t.frames.get(t.frames.main)
	if !ok {
		return found{}, errWorldGone
	}
	if err := t.callMain(ctx, "at", p, &h.last); err != nil {
		return found{}, err
	}
	if h.last.State != "ok" {
		return found{}, fault.New(fault.ElementNotFound, h.op, "%w", &obstacle{state: "outside",
			text: fmt.Sprintf("%s is outside of the page's %.0f by %.0f pixels", h.locator, h.last.View.Width, h.last.View.Height)})
	}
	got := found{frame: main, id: h.last.ID, point: p, info: h.last.Info}
	var err error
	if h.last.Under != nil && h.want.Hit {
		got.under, err = t.beneath(ctx, p)
	}
	return got, err
}

// fault says why the element could not be used, as it was last seen.
func (h *hunt) fault() error {
	s := h.last
	what := s.Info.What
	if what == "" {
		what = "the element"
	}
	var why string
	switch s.State {
	case "hidden":
		why = "is hidden"
	case "moving":
		why = "is still moving"
	case "disabled":
		why = "is disabled"
		if s.By != s.Info.What {
			why += " by " + s.By
		}
	case "readonly":
		why = "cannot be typed into"
	case "covered":
		why = "is covered by " + s.By
	case "outside":
		why = "cannot be brought into view"
	default:
		return fault.New(fault.ElementNotFound, h.op, "%w", &obstacle{state: "not_found", text: fmt.Sprintf("no element matches %s", h.locator)})
	}
	return fault.New(fault.ElementNotActionable, h.op, "%w", &obstacle{state: s.State, text: what + " " + why})
}

// obstacle is what keeps an element from being used.
type obstacle struct{ state, text string }

func (o *obstacle) Error() string { return o.text }

// check refuses locators that say nothing, or two things.
func (l Locator) check(op string) error {
	ways := 0
	for _, said := range []bool{l.CSS != "", l.Text != "", l.Label != "", l.Role != "", l.TestID != "", l.XPath != "", l.Ref != "", l.X != nil || l.Y != nil} {
		if said {
			ways++
		}
	}
	const hint = "Say it in one way: css, text, label, role with name, test_id, xpath, ref, or x and y."
	switch {
	case ways == 0:
		return fault.New(fault.InvalidRequest, op, "it is not said which element is meant").WithHint(hint)
	case ways > 1:
		return fault.New(fault.InvalidRequest, op, "the element is described in %d ways at once", ways).WithHint(hint)
	case l.Name != "" && l.Role == "":
		return fault.New(fault.InvalidRequest, op, "a name needs its role").WithHint(hint)
	case (l.X == nil) != (l.Y == nil):
		return fault.New(fault.InvalidRequest, op, "a point needs both x and y").WithHint(hint)
	case l.X == nil && strings.TrimSpace(l.CSS+l.Text+l.Label+l.Role+l.TestID+l.XPath+l.Ref) == "":
		return fault.New(fault.InvalidRequest, op, "the description is blank").WithHint(hint)
	}
	return nil
}

// String names what is looked for, for people.
func (l Locator) String() string {
	switch {
	case l.CSS != "":
		return fmt.Sprintf("selector %q", l.CSS)
	case l.Text != "":
		return fmt.Sprintf("text %q", l.Text)
	case l.Label != "":
		return fmt.Sprintf("label %q", l.Label)
	case l.Role != "" && l.Name != "":
		return fmt.Sprintf("role %s named %q", l.Role, l.Name)
	case l.Role != "":
		return "role " + l.Role
	case l.TestID != "":
		return fmt.Sprintf("test id %q", l.TestID)
	case l.XPath != "":
		return fmt.Sprintf("xpath %q", l.XPath)
	case l.Ref != "":
		return fmt.Sprintf("ref %q", l.Ref)
	case l.X != nil && l.Y != nil:
		return fmt.Sprintf("the point %.0f, %.0f", *l.X, *l.Y)
	}
	return "nothing"
}

// rest waits a little, unless the caller gives up.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
