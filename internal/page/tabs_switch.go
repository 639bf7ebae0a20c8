package page

import (
	"context"
	"errors"
	"fmt"
	"slices"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/fault"
)

// Switch puts a tab in front.
func (t *Tabs) Switch(ctx context.Context, id string) error {
	const op = "switch tabs"
	tab := t.byTarget(target.ID(id))
	if tab == nil {
		return noTab(op, id)
	}
	// The browser does that by itself, whatever state the page is in.
	if _, err := proto.Call(ctx, tab.session, cdppage.BringToFront, proto.Empty{}); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	t.mu.Lock()
	i := slices.Index(t.stack, tab)
	if i >= 0 {
		t.raise(i)
	}
	t.mu.Unlock()
	if i < 0 {
		return noTab(op, id)
	}
	t.refocus()
	return nil
}

// CloseTab closes a tab; an empty id means the one in front. A page that wants
// to ask first may, once: the answer is DIALOG_OPEN, and accepting the dialog
// closes the tab. Where a dialog is open already, or the page does not answer,
// it is closed without being asked.
func (t *Tabs) CloseTab(ctx context.Context, id string) error {
	const op = "close a tab"
	tab := t.front()
	if id != "" {
		tab = t.byTarget(target.ID(id))
	}
	if tab == nil {
		return noTab(op, id)
	}
	if err := t.close(ctx, tab); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return t.root.Conn().Settle(ctx)
}

func (t *Tabs) close(ctx context.Context, tab *Tab) error {
	if tab.Dialog() == nil && !tab.hasCrashed() {
		err := tab.unlessDialog(ctx, func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, closeWithin)
			defer cancel()
			if err := tab.session.Send(limited, cdppage.Close.Method, proto.Empty{}); err != nil {
				return err
			}
			return tab.gone(limited)
		})
		if err == nil || errors.Is(err, fault.DialogOpen) || ctx.Err() != nil {
			return err
		}
	}
	if _, err := proto.Call(ctx, t.root, target.CloseTarget, target.CloseTargetParams{TargetID: tab.id}); err != nil {
		return err
	}
	return tab.gone(ctx)
}

func noTab(op, id string) error {
	return fault.New(fault.NotFound, op, "there is no tab %q", id).WithHint("The status lists the tabs that are open.")
}
