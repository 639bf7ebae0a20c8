package session

import (
	"context"
	"sync"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/page"
)

// ahead are the tabs of browsers that were started before anybody asked for one:
// each is attached to and set up, and waits for a session.
type ahead struct {
	mu   sync.Mutex
	tabs map[browser.Instance]*page.Tabs
}

// OpenAhead takes the tabs of a browser that is nobody's yet. Whichever session
// comes by the browser has them; they are let go of when the browser ends before.
func (h *Host) OpenAhead(ctx context.Context, inst browser.Instance) error {
	tabs, err := page.Open(ctx, inst, &page.Options{Look: h.opts.Look, OnBlock: h.opts.OnBlock, Logger: h.log})
	if err != nil {
		return err
	}
	if !h.keepAhead(inst, tabs) {
		tabs.Close()
		return fault.New(fault.Busy, "open tabs ahead", "tapin is ending")
	}
	return nil
}

// keepAhead keeps tabs for as long as their browser and the host live; false means
// that the host is ending.
func (h *Host) keepAhead(inst browser.Instance, tabs *page.Tabs) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.ahead.put(inst, tabs)
	h.starts.Go(func() {
		defer guard.Catch("sessions")
		select {
		case <-inst.Conn().Done():
		case <-h.life.Done():
		}
		if left := h.ahead.take(inst); left != nil {
			left.Close()
		}
	})
	return true
}

func (a *ahead) put(inst browser.Instance, tabs *page.Tabs) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tabs == nil {
		a.tabs = map[browser.Instance]*page.Tabs{}
	}
	a.tabs[inst] = tabs
}

// take gives the tabs of a browser away, once; nil means that there are none.
func (a *ahead) take(inst browser.Instance) *page.Tabs {
	a.mu.Lock()
	defer a.mu.Unlock()
	tabs := a.tabs[inst]
	delete(a.tabs, inst)
	return tabs
}
