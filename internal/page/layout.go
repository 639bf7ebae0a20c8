package page

import (
	"context"
	"errors"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"

	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// A person who drives from a phone gets the page as a phone would show it, where
// the page was made for phones too. The agent gets its own layout back before it
// has the wheel, before anything about the page is decided, and before anything is
// read for it. A layout must cost nobody anything: what was typed or open is noted
// before, and a page that throws it away is put back and left alone from then on.

// Glass is the screen that a person holds: what of it shows the page, and all of
// it, in CSS pixels.
type Glass struct {
	Width, Height             int
	ScreenWidth, ScreenHeight int
	Scale                     float64 // device pixels of a CSS pixel
}

// Fitting is what a person wants of the layout.
type Fitting string

// Automatic is for their phone where the page has a layout for phones.
const (
	FitAutomatic Fitting = "auto"
	FitPhone     Fitting = "phone"
	FitDesktop   Fitting = "desktop"
)

// Fitted is how the page in front is laid out.
type Fitted struct {
	Phone    bool // for a person's screen
	Mobile   bool // it was made for phones too
	Stubborn bool // it starts over when it is laid out anew
}

const (
	// fitWithin bounds a change of the layout. A page that hangs keeps the one it has.
	fitWithin = 5 * time.Second
	// drawnWithin is how long a page may take to draw itself anew.
	drawnWithin = time.Second
	// startsOver is how long a page may take to react to a new size by loading anew.
	startsOver = 400 * time.Millisecond
	// mendWithin is how long such a page gets to be there again.
	mendWithin = 3 * time.Second
)

// layout is one for a person's screen. It is never changed.
type layout struct {
	glass  Glass
	mobile bool // as a phone lays it out, and not only as wide
	phone  bool // it is a phone's, and touched; else the agent's, as wide as the page
}

// size is what the browser is told of it.
func (l *layout) size() cdp.Step {
	look := Look{Width: l.glass.Width, Height: l.glass.Height, Scale: l.glass.Scale, Mobile: l.mobile}
	step := look.size()
	p, ok := step.Params.(emulation.SetDeviceMetricsOverrideParams)
	if ok && l.glass.ScreenWidth > 0 && l.glass.ScreenHeight > 0 {
		p.ScreenWidth, p.ScreenHeight = int64(l.glass.ScreenWidth), int64(l.glass.ScreenHeight)
		step.Params = p
	}
	return step
}

// size is that of the tab's window now: a person's, or the agent's.
func (t *Tab) size() cdp.Step {
	if l := t.laid.Load(); l != nil {
		return l.size()
	}
	return t.tabs.Look().size()
}

// fingers says whether the tab has a screen that is touched.
func (t *Tab) fingers() cdp.Step {
	l := t.laid.Load()
	touched := l != nil && l.phone || t.tabs.Look().Mobile
	p := emulation.SetTouchEmulationEnabledParams{Enabled: touched}
	if touched {
		p.MaxTouchPoints = 5
	}
	return cdp.Step{Method: emulation.SetTouchEmulationEnabled.Method, Params: p}
}

// noted is what a document must not lose.
type noted struct {
	Ready  bool    `json:"ready"`
	Mobile bool    `json:"mobile"`
	Wide   int     `json:"wide"` // all of it, also what has to be scrolled to
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Open   int     `json:"open"`
	Typed  []struct {
		Key   string      `json:"key"`
		Value secret.Text `json:"value"`
	} `json:"typed"`
}

// args is how the engine gets a note back: a secret does not print itself.
func (n noted) args() map[string]any {
	typed := make([]map[string]string, len(n.Typed))
	for i, field := range n.Typed {
		typed[i] = map[string]string{"key": field.Key, "value": field.Value.Reveal()}
	}
	return map[string]any{"open": n.Open, "typed": typed}
}

// IsFitted reports whether the tab is laid out for a person's screen.
func (t *Tab) IsFitted() bool { return t.laid.Load() != nil }

// Fitted tells how the page in front is laid out, as far as that is known.
func (t *Tabs) Fitted() Fitted {
	tab := t.front()
	if tab == nil {
		return Fitted{}
	}
	seen, l := tab.fitted.Load(), tab.laid.Load()
	now := Fitted{Phone: l != nil && l.phone}
	if seen != nil {
		now.Mobile, now.Stubborn = seen.Mobile, seen.Stubborn
	}
	return now
}

// Glass is the screen that the tab in front is laid out for; ok is false where that
// is the agent's.
func (t *Tabs) Glass() (Glass, bool) {
	if tab := t.front(); tab != nil {
		if l := tab.laid.Load(); l != nil {
			return l.glass, true
		}
	}
	return Glass{}, false
}

// Fit lays the tab in front out for a person's screen, or as the agent has it. A
// page that is not there yet is left as it is: whoever hears that it has come asks
// again. Others who fit, and who holds the agent's layout, are waited for.
func (t *Tabs) Fit(ctx context.Context, g Glass, want Fitting) error {
	free, err := t.layingOut(ctx)
	if err != nil {
		return err
	}
	defer free()
	tab, err := t.Front(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fitWithin)
	defer cancel()
	if tab.Dialog() != nil || tab.hasCrashed() {
		return nil
	}
	notes, err := tab.note(ctx)
	if err != nil {
		return err
	}
	main := notes[0].noted
	if !main.Ready {
		return nil
	}
	seen := &Fitted{Mobile: main.Mobile, Stubborn: t.stubborn[originOf(tab.whereNow())]}
	if old := tab.fitted.Swap(seen); old == nil || *old != *seen {
		defer t.changes.tell()
	}
	var wanted *layout
	misfit := tab.misfit != "" && tab.misfit == tab.life.now().loader
	if !seen.Stubborn && (want == FitPhone || want == FitAutomatic && main.Mobile && !misfit) {
		wanted = &layout{glass: g, mobile: main.Mobile, phone: true}
	} else if look := t.Look(); !seen.Stubborn && want == FitAutomatic && main.Wide > look.Width {
		wanted = whole(look, main.Wide)
	}
	is := tab.laid.Load()
	if is == wanted || is != nil && wanted != nil && *is == *wanted {
		return nil
	}
	if is == nil {
		tab.agents = &scrolled{tab.life.now().loader, main.X, main.Y}
	}
	defer t.changes.tell()
	if tab.layOut(ctx, wanted, notes) {
		if want == FitAutomatic && wanted != nil && wanted.phone && tab.isAside(ctx) {
			tab.misfit = tab.life.now().loader
			tab.layOut(ctx, nil, notes)
		}
		return nil
	}
	// It threw away what was in it: back, and never again.
	t.log.Info("a page starts over when it is laid out for a phone, and keeps the layout that it had")
	if t.stubborn == nil {
		t.stubborn = map[string]bool{}
	}
	t.stubborn[originOf(tab.whereNow())] = true
	seen = &Fitted{Mobile: main.Mobile, Stubborn: true}
	tab.fitted.Store(seen)
	// It may have cost all the time that there was.
	back, cancelBack := context.WithTimeout(context.WithoutCancel(ctx), fitWithin)
	defer cancelBack()
	tab.layOut(back, nil, notes)
	tab.mend(back, notes)
	return nil
}

// mostWide is how wide a page is laid out at most to be seen at once.
const mostWide = 2560

// whole is the agent's layout, as wide as the page turned out to be: on a small screen
// nobody finds what has to be scrolled to sideways.
func whole(look Look, wide int) *layout {
	wide = min(wide, mostWide)
	g := Glass{Width: wide, Height: look.Height * wide / look.Width, Scale: look.Scale}
	g.ScreenWidth, g.ScreenHeight = g.Width, g.Height
	return &layout{glass: g, mobile: look.Mobile}
}

// Unfit gives every tab the agent's layout, waits until it is drawn, and keeps it so
// until it is let go of. It reports whether there was ever another since ForgetFit.
func (t *Tabs) Unfit(ctx context.Context) (free func(), had bool, err error) {
	free, err = t.layingOut(ctx)
	if err != nil {
		return nil, false, err
	}
	changed := false
	ctx, cancel := context.WithTimeout(ctx, fitWithin)
	defer cancel()
	for _, tab := range t.List() {
		if tab.laid.Load() == nil {
			continue
		}
		changed = true
		notes, _ := tab.note(ctx) // one that does not answer has nothing to keep
		if !tab.layOut(ctx, nil, notes) {
			tab.mend(ctx, notes)
		}
	}
	if changed {
		t.changes.tell()
	}
	return free, t.everFitted.Load(), nil
}

// ForgetFit begins anew with whoever drives next.
func (t *Tabs) ForgetFit() { t.everFitted.Store(false) }

// scrolled is where the agent had scrolled a document to.
type scrolled struct {
	loader proto.LoaderID
	x, y   float64
}

// layingOut is the turn of whoever changes layouts.
func (t *Tabs) layingOut(ctx context.Context) (free func(), err error) {
	select {
	case t.layouts <- struct{}{}:
		return func() { <-t.layouts; t.changes.tell() }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.ctx.Done():
		return nil, fault.New(fault.BrowserLost, "lay out the page", "the browser is gone")
	}
}

// frameNote is what one document of a tab must not lose.
type frameNote struct {
	frame
	noted
}

// note asks all documents; the main one comes first. A frame that does not answer
// has nothing that could be kept.
func (t *Tab) note(ctx context.Context) ([]frameNote, error) {
	all := t.frames.list()
	notes := make([]frameNote, len(all))
	failed := make([]error, len(all))
	var busy guard.Group
	for i, f := range all {
		busy.Run(func() {
			ctx, cancel := context.WithTimeout(ctx, frameWithin)
			defer cancel()
			notes[i].frame = f
			failed[i] = t.call(ctx, f, "layout", nil, &notes[i].noted)
		})
	}
	busy.Wait()
	for i, f := range all {
		if f.id == t.frames.main {
			notes[0], notes[i] = notes[i], notes[0]
			return notes, failed[i]
		}
	}
	return nil, errWorldGone
}

// layOut gives a tab a layout, and reports whether it kept what was in it.
func (t *Tab) layOut(ctx context.Context, wanted *layout, notes []frameNote) bool {
	before, where := t.life.now().loader, t.whereNow()
	if wanted != nil {
		t.tabs.everFitted.Store(true)
	}
	t.laid.Store(wanted) // first: whoever makes it undone must know of it
	size, fingers := t.size(), t.fingers()
	if err := t.session.Call(ctx, size.Method, size.Params, nil); err != nil {
		return wanted == nil // it is gone, or it hangs: it gets what it had, when it can
	}
	told := map[*cdp.Session]bool{}
	for _, f := range t.frames.list() {
		if !told[f.session] {
			told[f.session] = true
			_ = f.session.Send(ctx, fingers.Method, fingers.Params)
		}
	}
	drawn, cancel := context.WithTimeout(ctx, drawnWithin)
	_ = t.callMain(drawn, "layoutDrawn", nil, nil)
	cancel()
	stayed := rest(ctx, startsOver) == nil && (t.life.now().loader == before || t.whereNow() != where)
	if was := t.agents; wanted == nil && was != nil {
		if was.loader == t.life.now().loader {
			_ = t.callMain(ctx, "layoutScroll", map[string]float64{"x": was.x, "y": was.y}, nil)
		}
		t.agents = nil
	}
	return stayed && t.keeps(ctx, notes)
}

// isAside reports whether a page that was laid out for a phone has put aside most of
// what was to be filled in: it says that it was made for phones, and was not.
func (t *Tab) isAside(ctx context.Context) bool {
	var got struct {
		Of  int `json:"of"`
		Out int `json:"out"`
	}
	return t.callMain(ctx, "layoutAside", nil, &got) == nil && 2*got.Out > got.Of
}

// keeps reports whether everything that was noted is there.
func (t *Tab) keeps(ctx context.Context, notes []frameNote) bool {
	for _, n := range notes {
		if len(n.Typed) == 0 && n.Open == 0 {
			continue
		}
		var lost struct {
			Typed int `json:"typed"`
			Open  int `json:"open"`
		}
		err := t.call(ctx, n.frame, "layoutLost", n.args(), &lost)
		if errors.Is(err, errWorldGone) || err == nil && lost.Typed+lost.Open > 0 {
			return false
		}
	}
	return true
}

// mend writes back what a page threw away, once it is there again.
func (t *Tab) mend(ctx context.Context, notes []frameNote) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mendWithin)
	defer cancel()
	if state, ok := WaitDOM.lifecycleName(); ok {
		_ = t.life.await(ctx, t.life.now().loader, state)
	}
	for _, n := range notes {
		if len(n.Typed) == 0 {
			continue
		}
		f, ok := t.frames.get(n.id)
		if !ok {
			continue
		}
		_ = t.call(ctx, f, "layoutMend", n.args(), nil)
	}
}

// whereNow is the address of the document, without what a page changes by itself.
func (t *Tab) whereNow() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, _, _ := strings.Cut(t.url, "#")
	return at
}
