package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"

	"tapin/internal/fault"
)

// The rungs of the ladder, from what a person does to asking one.
const (
	byMeaning  = "S1_AX"        // found by what it says or is, clicked with the mouse
	bySelector = "S2_CSS"       // found by its place in the document, clicked with the mouse
	byPoint    = "S3_CDP_COORD" // the mouse at a point
	byScript   = "S4_JS_INJECT" // the element's own click()
	byKeyboard = "S5_KEYBOARD"  // focus and a key
	byTouch    = "S6_CDP_RAW"   // a finger
	byPerson   = "S7_HITL"
)

// Suggestion is what a caller may do next when a machine cannot go on.
type Suggestion struct {
	Tool      string            `json:"tool"`
	Arguments map[string]string `json:"arguments"`
	Why       string            `json:"why"`
}

// strategy is the rung that a locator begins on.
func (l Locator) strategy() string {
	switch {
	case l.X != nil:
		return byPoint
	case l.CSS != "" || l.XPath != "" || l.TestID != "":
		return bySelector
	}
	return byMeaning
}

// Click clicks the element as a person would. A next rung of the ladder is only
// climbed when the last provably had no effect; what is covered or disabled
// stays so, and is said.
func (t *Tab) Click(ctx context.Context, l Locator, o ClickOptions) (Clicked, error) {
	const op = "click"
	if err := o.check(op); err != nil {
		return Clicked{}, err
	}
	if err := l.check(op); err != nil {
		return Clicked{}, err
	}
	deadline := time.Now().Add(o.Timeout)
	var tried []string
	for _, rung := range o.rungs(l) {
		tried = append(tried, rung)
		effect, paid, err := t.rung(ctx, rung, l, o, deadline)
		if err != nil {
			return Clicked{}, askPerson(err, op, t.wanted(ctx, l), tried)
		}
		if effect != None || paid {
			return Clicked{Strategy: rung, Effect: effect, Tried: tried}, nil
		}
	}
	err := fault.New(fault.ElementNotActionable, op, "%w", &obstacle{state: "no_effect", text: l.String() + " does not react to anything"})
	return Clicked{}, askPerson(err, op, t.wanted(ctx, l), tried)
}

// rungs are those that can do such a click: a script and the keyboard know one
// button, and neither knows a point.
func (o ClickOptions) rungs(l Locator) []string {
	first := l.strategy()
	switch {
	case o.Button != "left" || o.Count > 1:
		return slices.Compact([]string{first, byPoint})
	case first == byPoint:
		return []string{byPoint, byTouch}
	}
	return []string{first, byPoint, byScript, byKeyboard, byTouch}
}

// again bounds how often a click is sent that a new frame has lost.
const again = 3

// rung clicks in one way, and says with what effect. paid tells that a payment
// was permitted: that is one try, and no other may follow it.
func (t *Tab) rung(ctx context.Context, rung string, l Locator, o ClickOptions, deadline time.Time) (effect string, paid bool, err error) {
	if rung == byTouch {
		ctx = byFinger(ctx)
	}
	for tries := 0; ; tries++ {
		types := append(slices.Clone(clickEvents), "keydown", "touchstart")
		// A later rung finds the element where it was; it needs a moment at least,
		// but never more than there was for all.
		left := max(time.Until(deadline), min(time.Second, o.Timeout))
		got, err := t.search(ctx, hunt{op: "click", locator: l, want: toAct, within: left, types: types, coming: o.coming(rung), judge: judging(ctx)})
		if err != nil {
			return "", false, err
		}
		if err := t.listenAt(ctx, &got, l, clickEvents); err != nil {
			return "", false, err
		}
		gate, out, err := t.through(ctx, got, t.means(rung, got, o))
		if err != nil || gate.pays() {
			return out.effect, gate.pays(), err
		}
		if out.effect == Unknown && o.plain() && out.heard.Lost && out.heard.has("pointerdown", "mousedown") && t.restless(ctx, got, l) {
			return t.complete(ctx, got, l)
		}
		// A frame of another site that has just come is not yet known to those who
		// pass the mouse on: what they lost can be sent again.
		if out.effect != None || got.frame.id == t.frames.main || tries+1 >= again {
			return out.effect, false, nil
		}
	}
}

// through does what was judged, past the gate that stops everything else. What
// the gate stopped, and was permitted then, is done once more.
func (t *Tab) through(ctx context.Context, got found, by means) (*passage, outcome, error) {
	gate, err := t.passFound(ctx, "click", got)
	if err != nil {
		return nil, outcome{}, err
	}
	if err := gate.reaches(ctx, t, got.point); err != nil {
		return nil, outcome{}, err
	}
	if gate.pays() && got.frame.session != t.session {
		by.act = t.arriving(found{under: []frame{got.frame}, point: got.point}, by.act) // there is one try
	}
	by.act = gate.sending(by.act)
	out, err := t.observe(ctx, got, gate, by)
	again, stopped := gate.over(ctx, t)
	if stopped == nil && again {
		out, err = t.observe(ctx, found{frame: got.frame, point: got.point, info: got.info, id: got.id}, gate, by)
		if _, stopped = gate.over(ctx, t); stopped == nil && err == nil && out.effect == None {
			out.effect = Unknown // nobody listened any more
		}
	}
	switch {
	case stopped != nil:
		gate.settle(ctx, None)
		return gate, outcome{}, stopped
	case err != nil:
		gate.settle(ctx, Unknown)
	default:
		gate.settle(ctx, gate.concluded(ctx, t, out.effect))
	}
	return gate, out, err
}

// plain is the click that everything knows.
func (o ClickOptions) plain() bool { return o.Button == "left" && o.Count == 1 }

// complete makes the click of which only the press arrived: pressed on one
// drawing of an element and released on the next makes none. The press has been
// heard and must not come again, so it is the click alone, on whichever drawing
// is there now.
func (t *Tab) complete(ctx context.Context, got found, l Locator) (effect string, paid bool, err error) {
	args := map[string]Locator{"locator": l}
	clicked := false
	gate, out, err := t.through(ctx, found{frame: got.frame}, means{act: func(ctx context.Context) error {
		return t.call(ctx, got.frame, "complete", args, &clicked)
	}})
	switch f, coded := errors.AsType[*fault.Error](err); {
	case coded && (f.Code == fault.ApprovalRequired || f.Code == fault.ApprovalExpired):
		return "", gate.pays(), err // the new drawing pays, as the first did not
	case err == nil && (clicked || out.effect == Confirmed):
		return Confirmed, gate.pays(), nil
	}
	return Unknown, gate.pays(), nil
}

// restless tells whether the element is drawn anew all the time, and not by the
// press itself: that may have been the page's answer.
func (t *Tab) restless(ctx context.Context, got found, l Locator) bool {
	if got.churn > 0 {
		return true
	}
	args := struct {
		Locator Locator `json:"locator"`
		Within  int     `json:"within"`
	}{l, 300}
	var yes bool
	err := t.unlessDialog(ctx, func(ctx context.Context) error { return t.call(ctx, got.frame, "restless", args, &yes) })
	return err == nil && yes && l.X == nil && l.Ref == ""
}

// means are how a rung clicks.
func (t *Tab) means(rung string, got found, o ClickOptions) means {
	args := map[string]int{"id": got.id, "watch": got.watch}
	switch rung {
	case byScript:
		return means{done: []string{"click"}, act: func(ctx context.Context) error { return t.call(ctx, got.frame, "press", args, nil) }}
	case byKeyboard:
		return means{done: []string{"click", "keydown"}, act: func(ctx context.Context) error {
			var focused struct {
				OK bool `json:"ok"`
			}
			if err := t.call(ctx, got.frame, "focus", args, &focused); err != nil || !focused.OK {
				return err
			}
			return t.finish(ctx, chord{key: named[strings.ToLower(got.info.key())]}) // the gate has judged it
		}}
	case byTouch:
		return means{done: []string{"click", "touchstart"}, act: func(ctx context.Context) error { return t.tap(ctx, got.point) }}
	}
	return means{done: o.done(), act: t.arriving(got, func(ctx context.Context) error { return t.play(ctx, o.mouse(got.point)) })}
}

// key is the one that works such an element.
func (e elementInfo) key() string {
	if e.Tag == "input" && (e.Type == "checkbox" || e.Type == "radio") {
		return "Space"
	}
	return "Enter"
}

// tap is a finger's click.
func (t *Tab) tap(ctx context.Context, p Point) error {
	start := input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: p.X, Y: p.Y}}}
	if err := t.session.Send(ctx, input.DispatchTouchEvent.Method, start); err != nil {
		return err
	}
	end := input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}}
	return t.session.Call(ctx, input.DispatchTouchEvent.Method, end, nil)
}

// askPerson ends the ladder: the fault carries what a caller can do next. Other
// faults, such as an open dialog, have answers of their own.
func askPerson(err error, op, wanted string, tried []string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.ElementNotFound && f.Code != fault.ElementNotActionable {
		return err
	}
	why := f.Code.Sentence()
	outcome := string(f.Code)
	if o, ok := errors.AsType[*obstacle](err); ok {
		why, outcome = o.text, o.state
	}
	return f.With("success", false).With("outcome", outcome).
		With("strategies_tried", append(slices.Clone(tried), byPerson)).
		With("hitl_required", true).
		With("suggested_next", []Suggestion{{
			Tool:      "oc_handoff_start",
			Arguments: map[string]string{"reason": "manual_recovery", "instruction": "Please " + op + " " + wanted + " on this page; it could not be done automatically."},
			Why:       why,
		}})
}

// wanted names the element in an instruction to a person, which has its limit.
func (t *Tab) wanted(ctx context.Context, l Locator) string {
	switch {
	case l.X != nil:
		return l.String()
	case l.Ref != "":
		return t.called(ctx, l.Ref)
	}
	return "the element with " + shortTo(l.String(), 200)
}

// called is what a person would call the element of a ref, which only the
// reader of a snapshot knows by that name.
func (t *Tab) called(ctx context.Context, ref string) string {
	ctx, cancel := context.WithTimeout(ctx, frameWithin)
	defer cancel()
	var it struct {
		Is   string `json:"is"`
		Says string `json:"says"`
	}
	f, id, err := t.byRef(ctx, ref)
	if err == nil {
		err = t.call(ctx, f, "called", map[string]int{"id": id}, &it)
	}
	switch says := t.tabs.hidden().conceal(it.Says); {
	case err != nil || it.Is == "":
		return "the element that the agent tried"
	case says == "":
		return "the " + it.Is + " that has no name"
	default:
		return "the " + it.Is + " “" + shortTo(says, 100) + "”"
	}
}
