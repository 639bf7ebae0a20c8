package page

import (
	"context"

	"github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	ours "tapin/internal/browser"
)

// A browser draws the page that is cast twice: once for whoever gets it, and once more
// into its window, before the picture sets off. Nobody looks at the window of a headless
// one, so it is put away for as long as there is a cast; a third of the time from a tap to
// its picture goes with it. Without a cast a window that is put away draws nothing, and who
// asks for a picture then waits for ever: it is there again before the cast ends.

// window is that of a tab, and the state that it is in without a cast.
type window struct {
	id  browser.WindowID
	is  browser.WindowState
	tab *Tab
}

// windowOf is where a tab is, if nobody looks at it.
func (t *Tabs) windowOf(ctx context.Context, tab *Tab) *window {
	if t.lane != nil || !ours.IsUnseen(t.inst) {
		return nil
	}
	got, err := proto.Call(ctx, t.root, browser.GetWindowForTarget, browser.GetWindowForTargetParams{TargetID: target.ID(tab.ID())})
	if err != nil || got.Bounds == nil {
		return nil
	}
	return &window{got.WindowID, got.Bounds.WindowState, tab}
}

// idle is the window of a tab, if it can be put away: a page that fills the screen would
// not do so any more.
func (t *Tabs) idle(ctx context.Context, tab *Tab) *window {
	w := t.windowOf(ctx, tab)
	if w == nil || w.is == browser.WindowStateMinimized || tab.fillsScreen(ctx) {
		return nil
	}
	return w
}

// fillsScreen reports whether the page asked for the whole screen, or does not say.
func (t *Tab) fillsScreen(ctx context.Context) bool {
	got, err := proto.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "document.fullscreenElement === null"})
	return err != nil || got.Result == nil || string(got.Result.Value) != "true"
}

// putAway makes a window one that draws nothing by itself. In a corner it is where it is
// when it fills the screen.
func (w *window) putAway() {
	corner := int64(0)
	w.become(browser.Bounds{WindowState: browser.WindowStateNormal}, browser.Bounds{Left: &corner, Top: &corner}, browser.Bounds{WindowState: browser.WindowStateMinimized})
}

// bringBack makes it what it was.
func (w *window) bringBack() {
	if w.is == browser.WindowStateNormal {
		w.become(browser.Bounds{WindowState: w.is})
		return
	}
	w.become(browser.Bounds{WindowState: browser.WindowStateNormal}, browser.Bounds{WindowState: w.is})
}

// become changes a window; one that is gone needs no change. Its tab keeps its size.
func (w *window) become(steps ...browser.Bounds) {
	t := w.tab.tabs
	for _, b := range steps {
		_ = t.root.Send(t.ctx, browser.SetWindowBounds.Method, browser.SetWindowBoundsParams{WindowID: w.id, Bounds: &b})
	}
	size := w.tab.size()
	_ = w.tab.session.Send(t.ctx, size.Method, size.Params)
}

// bringAllBack brings back what an earlier process had no time to.
func (t *Tabs) bringAllBack(ctx context.Context) {
	for _, tab := range t.List() {
		if w := t.windowOf(ctx, tab); w != nil && w.is == browser.WindowStateMinimized {
			w.is = browser.WindowStateFullscreen
			w.bringBack()
		}
	}
}
