package liveview

import (
	"cmp"
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/page"
	"tapin/internal/site"
)

const (
	// fitAfter lets several reasons to lay out a page become one: a keyboard that
	// comes up, a phone that is turned, a page that has just come.
	fitAfter = 150 * time.Millisecond
	// fitWithin bounds one.
	fitWithin = 10 * time.Second
	// The sides of a glass that a page can be laid out for.
	leastSide, mostSide = 200, 4000
)

// wish is the layout that a viewer would have.
type wish struct {
	glass page.Glass
	want  page.Fitting
}

// wishOf reads it from what a page says of its glass; ok is false where that makes
// no sense, as from a page of an older tapin.
func wishOf(w view) (wish, bool) {
	sane := func(side int) bool { return side >= leastSide && side <= mostSide }
	o := wish{
		glass: page.Glass{Width: w.Rest[0], Height: w.Rest[1], ScreenWidth: w.Screen[0], ScreenHeight: w.Screen[1], Scale: min(max(w.DPR, 1), 4)},
		want:  page.Fitting(w.Fit),
	}
	switch o.want {
	case page.FitAutomatic, page.FitPhone, page.FitDesktop:
	default:
		return wish{}, false
	}
	return o, o.want == page.FitDesktop || sane(o.glass.Width) && sane(o.glass.Height) && sane(o.glass.ScreenWidth) && sane(o.glass.ScreenHeight)
}

// refit has the page laid out, soon. Called with the lock held.
func (h *hub) refit() {
	select {
	case h.unfit <- struct{}{}:
	default: // it is going to be
	}
}

// choose remembers how the site that is shown is to be laid out on phones.
func (h *hub) choose(choice page.Fitting) error {
	if choice != page.FitPhone && choice != page.FitDesktop {
		return fault.New(fault.InvalidRequest, "", "a page is laid out for a phone or for a desktop")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if of := h.site(); of != "" {
		h.door.layouts.put(of, choice)
		h.refit()
	}
	return nil
}

// site is whose page is shown. Called with the lock held.
func (h *hub) site() string {
	for _, g := range h.glances {
		if g.Front {
			if of, err := site.Of(g.URL); err == nil {
				return site.Display(of)
			}
			return originOf(g.URL)
		}
	}
	return ""
}

// fitter is who decides about the layout: whoever drives; before that, who came
// first of those who may. Called with the lock held.
func (h *hub) fitter() *viewer {
	if h.driver != nil && h.driver.wish != nil {
		return h.driver
	}
	var first *viewer
	for v := range h.viewers {
		if v.mode == link.Drive && !v.hidden && v.wish != nil && (first == nil || cmp.Less(v.came, first.came)) {
			first = v
		}
	}
	return first
}

// fitPages lays the page out for whoever drives, whenever that may be another one,
// or another page.
func (h *hub) fitPages() {
	for {
		select {
		case <-h.unfit:
		case <-h.ctx.Done():
			return
		}
		select {
		case <-time.After(fitAfter):
		case <-h.ctx.Done():
			return
		}
		h.fitPage()
	}
}

func (h *hub) fitPage() {
	h.mu.Lock()
	v, running := h.fitter(), h.status.running()
	if v == nil || !running {
		h.mu.Unlock()
		return
	}
	o, handoff, tabs := *v.wish, h.status.Handoff.ID, h.tabs
	if choice, ok := h.door.layouts.of(h.site()); ok && o.want == page.FitAutomatic {
		o.want = choice
	}
	asks := h.occasion(o)
	if tabs == nil || asks == h.fitted {
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(h.ctx, fitWithin)
	defer cancel()
	if err := h.screen.Fit(ctx, handoff, o.glass, o.want); err != nil && ctx.Err() == nil {
		h.door.log.Debug("the page could not be laid out for who drives", "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	asks.phone = tabs.Fitted().Phone
	h.fitted = asks
	if v := h.fitter(); v != nil {
		h.tune(v)
	}
}

// occasion is everything that a layout depends on: as long as all of it is as it was
// there is nothing to do.
type occasion struct {
	wish
	tab, url string
	loading  bool
	phone    bool
	handoff  string
	version  int
}

// occasion is that of now. Called with the lock held.
func (h *hub) occasion(o wish) occasion {
	now := occasion{wish: o, handoff: h.status.Handoff.ID, version: h.status.Handoff.Version}
	for _, g := range h.glances {
		if g.Front {
			now.tab, now.url, now.loading = g.ID, g.URL, g.Loading
		}
	}
	if h.tabs != nil {
		now.phone = h.tabs.Fitted().Phone
	}
	return now
}

// look is the layout that the page has now. Called with the lock held.
func (h *hub) look() page.Look {
	if h.tabs != nil {
		if g, ok := h.tabs.Glass(); ok {
			return page.Look{Width: g.Width, Height: g.Height, Scale: g.Scale}
		}
	}
	return h.status.Look
}
