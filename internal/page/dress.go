package page

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/cdp"
	"tapin/internal/guard"
)

// clothes are what the pages show themselves as.
type clothes struct {
	look  Look
	agent []cdp.Step // what a headless browser elsewhere needs to look like one
}

// Dress gives the tabs another look, before they are used: what was made ready
// in advance serves whoever comes. Pages that are open keep what they have read.
func (t *Tabs) Dress(ctx context.Context, look Look) error {
	look = look.orDefaults()
	if look == t.Look() {
		return nil
	}
	if err := t.dress(ctx, look); err != nil {
		return err
	}
	tabs := t.List()
	errs := make([]error, len(tabs))
	var wg guard.Group
	for i, tab := range tabs {
		wg.Run(func() {
			if err := tab.usable(ctx); err != nil {
				errs[i] = err
				return
			}
			errs[i] = tab.session.Setup(ctx, t.garments()...)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set up a tab: %w", err)
	}
	return nil
}

// garments are the steps that differ from look to look.
func (t *Tabs) garments() []cdp.Step {
	worn := t.worn.Load()
	return append(append(slices.Clone(worn.agent), worn.look.size()), worn.look.place()...)
}

// dress finds out what the browser must call itself. One of our own on a desk
// does so rightly by itself.
func (t *Tabs) dress(ctx context.Context, look Look) error {
	worn := &clothes{look: look}
	if !t.inst.Exclusive() || look.Mobile {
		if t.called == "" {
			version, err := proto.Call(ctx, t.root, cdpbrowser.GetVersion, proto.Empty{})
			if err != nil {
				return fmt.Errorf("ask the browser for its version: %w", err)
			}
			t.called = version.UserAgent
		}
		worn.agent = look.agent(t.called)
	}
	t.worn.Store(worn)
	return nil
}
