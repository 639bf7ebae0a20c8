package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tapin/internal/fault"
)

// ScrollOptions say what to scroll and how far. With a locator and no direction
// the element is brought into view; with both, it or what it lies in is scrolled.
type ScrollOptions struct {
	Direction string // up, down, left, right, top or bottom
	Amount    int    // CSS px; 0 means a page
	Locator   *Locator
	Timeout   time.Duration
}

// Scroll moves the page, or a part of it that scrolls by itself.
func (t *Tab) Scroll(ctx context.Context, o ScrollOptions) error {
	const op = "scroll"
	switch {
	case o.Direction == "" && o.Locator == nil:
		o.Direction = "down"
	case o.Direction != "" && !slices.Contains([]string{"up", "down", "left", "right", "top", "bottom"}, o.Direction):
		return fault.New(fault.InvalidRequest, op, "%q is no direction", o.Direction).WithHint("Use up, down, left, right, top or bottom.")
	case o.Amount < 0:
		return fault.New(fault.InvalidRequest, op, "the amount is negative").WithHint("Turn the direction around.")
	}
	args := struct {
		ID        int    `json:"id,omitempty"`
		Direction string `json:"direction,omitempty"`
		Amount    int    `json:"amount,omitempty"`
	}{Direction: o.Direction, Amount: o.Amount}
	in, ok := t.frames.get(t.frames.main)
	if !ok {
		return fault.New(fault.BrowserLost, op, "the page has no document")
	}
	if o.Locator != nil {
		got, err := t.search(ctx, hunt{op: op, locator: *o.Locator, want: wanted{Visible: true}, within: o.Timeout})
		if err != nil {
			return err
		}
		in, args.ID = got.frame, got.id
	}
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, settleWithin)
		defer cancel()
		return t.call(ctx, in, "scroll", args, nil)
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.WaitTimeout, op, "the page did not answer in time")
	case errors.Is(err, errWorldGone):
		return fault.New(fault.ElementNotFound, op, "the page moved on meanwhile")
	case err != nil:
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}
