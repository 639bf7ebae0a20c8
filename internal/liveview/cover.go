package liveview

import (
	"context"
	"time"

	"tapin/internal/link"
	"tapin/internal/page"
)

// The moving picture shows what stands in every field, and is for whoever may
// type there. Those who only watch get pictures with the secret fields blacked
// out, by the same hand as those for the agent: one for all of them, as often as
// the page changes and no oftener than this.
const coverEvery = 250 * time.Millisecond

// cover has a picture taken for those who only watch, if there are any. Called
// with the lock held.
func (h *hub) cover() {
	if !h.seenBy(link.Watch) {
		return
	}
	select {
	case h.uncovered <- struct{}{}:
	default: // one is due already
	}
}

// outdate drops a picture that was not followed up while nobody looked, before
// somebody does. Called with the lock held.
func (h *hub) outdate() {
	if !h.seenBy(link.Watch) {
		h.covered = nil
	}
}

// takeCovers takes them one after the other.
func (h *hub) takeCovers() {
	for {
		select {
		case <-h.uncovered:
			h.takeCover()
		case <-h.ctx.Done():
			return
		}
		select {
		case <-time.After(coverEvery):
		case <-h.ctx.Done():
			return
		}
	}
}

// takeCover shows the page as it is now, under the number of the moving picture
// that it stands for. Where no picture is to be had, because a dialog is open or a
// frame does not say where its secrets are, the one before stands.
func (h *hub) takeCover() {
	h.mu.Lock()
	at, tabs, looked := h.last, h.tabs, h.seenBy(link.Watch)
	h.mu.Unlock()
	if !looked || tabs == nil || at == nil {
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, stillWithin)
	defer cancel()
	tab, err := tabs.Front(ctx)
	if err != nil || tab.ID() != at.Tab {
		return
	}
	jpeg := photograph(ctx, tab, page.ShotOptions{Quality: 70, MaskSecrets: true})
	h.mu.Lock()
	defer h.mu.Unlock()
	if jpeg == nil || h.tabs != tabs {
		return
	}
	p := &picture{Frame: at.Frame, number: at.number, tab: at.tab, flags: at.flags}
	p.Frame.JPEG = jpeg
	h.covered = p
	for v := range h.viewers {
		if v.mode == link.Watch {
			v.rouse()
		}
	}
}
