package page

import (
	"context"
	"errors"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"tapin/internal/cdp"
	"tapin/internal/fault"
)

// dragSteps is how many moves a drag makes on its way: pages that follow the
// pointer themselves need to see it travel.
const dragSteps = 8

// Drag takes one element and drops it on another, by the browser's own drag and
// drop where the page uses it, else by moving the pressed mouse.
func (t *Tab) Drag(ctx context.Context, from, to Locator, timeout time.Duration) (Clicked, error) {
	const op = "drag"
	if timeout <= 0 {
		timeout = actWithin
	}
	if err := to.check(op); err != nil {
		return Clicked{}, err
	}
	strategy := from.strategy()
	result := Clicked{Strategy: strategy, Tried: []string{strategy}}
	types := []string{"pointerdown", "mousedown", "dragstart"}
	// Whether the second one is there is asked before the first is taken up.
	if _, err := t.search(ctx, hunt{op: op, locator: to, want: wanted{Visible: true}, within: timeout}); err != nil {
		return Clicked{}, err
	}
	got, err := t.search(ctx, hunt{op: op, locator: from, want: toAct, within: timeout, types: types})
	if err != nil {
		return Clicked{}, err
	}
	if err := t.listenAt(ctx, &got, from, types); err != nil {
		return Clicked{}, err
	}
	gate, err := t.pass(ctx, op, []frame{got.frame}, payAsk{ID: got.id}) // some pages have a slider for it
	if err != nil {
		return Clicked{}, err
	}
	if err := gate.reaches(ctx, t, got.point); err != nil {
		return Clicked{}, err
	}
	out, err := t.observe(ctx, found{frame: got.frame}, nil, means{act: func(ctx context.Context) error {
		result.Effect, err = t.drag(ctx, got, to)
		return err
	}})
	again, stopped := gate.over(ctx, t)
	if stopped == nil && again {
		stopped = fault.New(fault.ApprovalRequired, op, "the page changed while it was dragged; nothing was paid")
	}
	if stopped != nil {
		gate.settle(ctx, None)
		return Clicked{}, stopped
	}
	gate.settle(ctx, Unknown)
	switch {
	case err != nil:
		return Clicked{}, err
	case result.Effect == "":
		result.Effect = out.effect // a dialog, another page, or no answer
	}
	return result, nil
}

// drag presses, travels and lets go, and says with what effect.
func (t *Tab) drag(ctx context.Context, got found, to Locator) (effect string, err error) {
	native := make(chan *input.DragData, 1)
	off := cdp.Listen(t.session, input.DragIntercepted, func(e input.EventDragIntercepted) {
		select {
		case native <- e.Data:
		default:
		}
	})
	defer off()
	if _, err := proto.Call(ctx, t.session, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: true}); err != nil {
		return "", err
	}
	defer func() {
		_ = t.session.Send(context.WithoutCancel(ctx), input.SetInterceptDrags.Method, input.SetInterceptDragsParams{Enabled: false})
	}()
	at := got.point
	press := t.arriving(got, func(ctx context.Context) error {
		return t.play(ctx, []input.DispatchMouseEventParams{
			{Type: input.DispatchMouseEventTypeMouseMoved, X: at.X, Y: at.Y},
			{Type: input.DispatchMouseEventTypeMousePressed, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1},
		})
	})
	if err := press(ctx); err != nil {
		return "", err
	}
	pressed := true
	defer func() {
		// Whatever happened, no button stays pressed behind us.
		if pressed {
			_ = t.session.Send(context.WithoutCancel(ctx), input.DispatchMouseEvent.Method, letGo(at))
		}
	}()
	// What is dragged may lie over where it is going, so nobody asks what is on top.
	goal, err := t.search(ctx, hunt{op: "drag", locator: to, want: wanted{Visible: true, Stable: true}, within: actWithin})
	if err != nil {
		return "", err
	}
	moves := travel(at, goal.point)
	at = goal.point
	carried := false
	for i := 0; i < len(moves) && !carried; i++ {
		// One at a time: moves in one go would be one move to the page.
		if err := t.play(ctx, moves[i:i+1]); err != nil {
			return "", err
		}
		if err := t.call(ctx, got.frame, "dragging", map[string]int{"watch": got.watch}, &carried); err != nil {
			return "", err
		}
	}
	if carried {
		select {
		case data := <-native:
			if err := t.drop(ctx, at, data); err != nil {
				return "", err
			}
		case <-time.After(2 * time.Second):
			return Unknown, nil // the page began a drag that the browser did not follow
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	h, err := t.received(ctx, got, nil, 0)
	if err != nil {
		return "", err
	}
	pressed = false
	if err := t.play(ctx, []input.DispatchMouseEventParams{letGo(at)}); err != nil {
		return "", err
	}
	switch {
	case h.has("pointerdown", "mousedown"):
		return Confirmed, nil
	case !h.Any:
		return None, nil
	}
	return Unknown, nil
}

// drop ends a drag that the browser carries itself.
func (t *Tab) drop(ctx context.Context, at Point, data *input.DragData) error {
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		_, err := proto.Call(ctx, t.session, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at.X, Y: at.Y, Data: data})
		if err != nil {
			if refused, ok := errors.AsType[*cdp.Error](err); ok {
				return fault.New(fault.ElementNotActionable, "drag", "the browser refused the drop: %s", refused.Message)
			}
			return err
		}
	}
	return nil
}

func held(p Point) input.DispatchMouseEventParams {
	return input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: p.X, Y: p.Y, Button: input.MouseButtonLeft, Buttons: 1}
}

func letGo(p Point) input.DispatchMouseEventParams {
	return input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseReleased, X: p.X, Y: p.Y, Button: input.MouseButtonLeft, ClickCount: 1}
}

func travel(a, b Point) []input.DispatchMouseEventParams {
	var moves []input.DispatchMouseEventParams
	for i := 1; i <= dragSteps; i++ {
		part := float64(i) / dragSteps
		moves = append(moves, held(Point{a.X + (b.X-a.X)*part, a.Y + (b.Y-a.Y)*part}))
	}
	return moves
}
