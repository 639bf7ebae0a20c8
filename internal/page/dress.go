package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/emulation"

	"tapin/internal/cdp"
)

// Dress gives the tabs another look, before they are used: what was made ready
// in advance serves whoever comes. Pages that are open keep what they have read.
func (t *Tabs) Dress(ctx context.Context, look Look) error {
	t.mu.Lock()
	was := t.look
	t.look = look.orDefaults()
	t.mu.Unlock()
	if t.look == was {
		return nil
	}
	if err := t.dress(ctx); err != nil {
		return err
	}
	tabs := t.List()
	errs := make([]error, len(tabs))
	var wg sync.WaitGroup
	for i, tab := range tabs {
		wg.Go(func() {
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
	size := cdp.Step{Method: emulation.SetDeviceMetricsOverride.Method, Params: t.look.metrics()}
	return append(append(slices.Clone(t.agent), size), t.look.place()...)
}
