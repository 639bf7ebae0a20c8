package page

import (
	"context"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/guard"
)

// Frame is one picture of the tab in front, in the bytes that the browser made.
type Frame struct {
	Number  uint64 // counts on over the whole cast, whatever tab it shows
	Tab     string
	JPEG    []byte  // never changed once shown
	Width   float64 // of what the picture shows, in CSS pixels of the screen
	Height  float64
	Scale   float64 // of the page on the screen: a point of the screen ÷ scale is a point for input
	Top     float64 // where the page begins in the picture
	ScrollX float64
	ScrollY float64
	At      time.Time // when the browser painted it
}

// CastOptions say how large and how good the pictures are; zero leaves it to
// the browser.
type CastOptions struct {
	MaxWidth, MaxHeight int
	Quality             int
}

// FramesInFlight is how many pictures the browser sends before it waits for an
// acknowledgement. With two, a viewer who took a moment longer once cost pictures
// that were never painted.
const FramesInFlight = 3

// Cast is the moving picture of whatever tab is in front. There is one at a time
// for a browser: whoever has several to show it to hands the frames out. It is
// safe for concurrent use.
type Cast struct {
	tabs *Tabs
	show func(Frame)

	mu     sync.Mutex
	opts   CastOptions
	on     *Tab
	number uint64
	unseen []ticket // sent and not acknowledged yet, oldest first
	closed bool
	away   *window // that of the tab that is shown, if it was put away

	missed *time.Timer // ends the wait for the first frame after a start
	tries  int         // starts on this tab without one
}

const (
	// firstWithin is what a browser gets for the first frame after a start; it is
	// asked again with twice the patience each time, so often.
	firstWithin = 400 * time.Millisecond
	mostStarts  = 6
)

// ticket is what the browser wants to hear for a frame.
type ticket struct {
	number uint64
	tab    *Tab
	id     int64
}

// Cast begins to show the tab in front, and follows when another one comes to
// the front. A cast that was under way ends. show is called for one frame after
// the other and must be quick: no frame comes while it runs.
func (t *Tabs) Cast(o CastOptions, show func(Frame)) *Cast {
	c := &Cast{tabs: t, show: show, opts: o}
	t.mu.Lock()
	old := t.cast
	t.cast = c
	t.mu.Unlock()
	if old != nil {
		old.Close()
	}
	t.refocus()
	return c
}

// refocus lets the cast follow to the tab that is in front now.
func (t *Tabs) refocus() {
	t.changes.tell()
	t.nativeFollow()
	t.mu.Lock()
	cast := t.cast
	t.mu.Unlock()
	if cast == nil {
		return
	}
	t.start(func(ctx context.Context) {
		if tab, err := t.Front(ctx); err == nil {
			cast.follow(ctx, tab)
			cast.putAway(ctx, tab)
		}
	})
}

// follow shows another tab.
func (c *Cast) follow(ctx context.Context, tab *Tab) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.on == tab || c.tabs.front() != tab {
		return
	}
	c.leave(ctx)
	c.on, c.tries = tab, 0
	c.start(ctx)
}

// putAway puts the window of the tab that is shown away, once its page says that it may
// be. The cast begins anew with that: no picture is taken of a window that changes.
func (c *Cast) putAway(ctx context.Context, tab *Tab) {
	c.mu.Lock()
	needless := c.on != tab || c.away != nil
	c.mu.Unlock()
	if needless {
		return
	}
	w := c.tabs.idle(ctx, tab)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w == nil || c.closed || c.on != tab || c.away != nil {
		return
	}
	c.away = w
	_ = tab.session.Send(ctx, cdppage.StopScreencast.Method, proto.Empty{})
	w.putAway()
	c.start(ctx)
}

// leave ends the cast of the tab that is shown. Called with the lock held.
func (c *Cast) leave(ctx context.Context) {
	if c.away != nil {
		c.away.bringBack()
		c.away = nil
	}
	if c.on != nil {
		_ = c.on.session.Send(ctx, cdppage.StopScreencast.Method, proto.Empty{})
	}
}

// start begins on the tab that is shown, also again with other options: the
// browser then sends a frame at once. Called with the lock held.
func (c *Cast) start(ctx context.Context) {
	c.unseen = nil
	last := true
	p := cdppage.StartScreencastParams{
		Format: cdppage.StartScreencastFormatJpeg, MaxWidth: int64(c.opts.MaxWidth), MaxHeight: int64(c.opts.MaxHeight),
		MaxFramesInFlight: FramesInFlight, SendLastFrame: &last,
	}
	if c.opts.Quality > 0 {
		q := int64(c.opts.Quality)
		p.Quality = &q
	}
	_ = c.on.session.Send(ctx, cdppage.StartScreencast.Method, p)
	c.expect()
}

// expect begins anew when the browser sends nothing after a start, which it does
// to a tab that comes back from behind a popup while it is on its way to another
// page. Called with the lock held.
func (c *Cast) expect() {
	if c.missed != nil {
		c.missed.Stop()
		c.missed = nil
	}
	if c.tries++; c.tries >= mostStarts {
		return // a dialog, a crash: whoever ends it has it painted
	}
	var mine *time.Timer
	mine = time.AfterFunc(firstWithin<<(c.tries-1), func() {
		defer guard.Catch("page")
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed || c.missed != mine {
			return
		}
		ctx := c.tabs.ctx
		_ = c.on.session.Send(ctx, cdppage.BringToFront.Method, proto.Empty{})
		_ = c.on.session.Send(ctx, cdppage.StopScreencast.Method, proto.Empty{})
		c.start(ctx)
	})
	c.missed = mine
}

// Tune changes size and quality from the next frame on, which comes at once.
func (c *Cast) Tune(ctx context.Context, o CastOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || o == c.opts {
		return
	}
	c.opts = o
	if c.on != nil {
		_ = c.on.session.Send(ctx, cdppage.StopScreencast.Method, proto.Empty{})
		c.start(ctx)
	}
}

// Ack says that a frame, and with it all before it, has been seen: the browser
// may send further ones.
func (c *Cast) Ack(ctx context.Context, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unseen) > 0 && c.unseen[0].number <= number {
		c.unseen[0].ack(ctx)
		c.unseen = c.unseen[1:]
	}
}

func (t ticket) ack(ctx context.Context) {
	_ = t.tab.session.Send(ctx, cdppage.ScreencastFrameAck.Method, cdppage.ScreencastFrameAckParams{SessionID: t.id})
}

// Close ends the cast; the tabs go on.
func (c *Cast) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.missed != nil {
		c.missed.Stop()
	}
	c.leave(c.tabs.ctx)
	c.tabs.mu.Lock()
	defer c.tabs.mu.Unlock()
	if c.tabs.cast == c {
		c.tabs.cast = nil
	}
}

// framed takes a frame in. One that nobody waits for is of a cast before a
// restart, and ends it.
func (t *Tabs) framed(tab *Tab, e cdppage.EventScreencastFrame) {
	t.mu.Lock()
	cast := t.cast
	t.mu.Unlock()
	if cast == nil || !cast.take(tab, e) {
		_ = tab.session.Send(t.ctx, cdppage.StopScreencast.Method, proto.Empty{})
	}
}

// take reports whether the frame is of the tab that is shown.
func (c *Cast) take(tab *Tab, e cdppage.EventScreencastFrame) bool {
	c.mu.Lock()
	if c.closed || c.on != tab {
		// Before the first tab is followed, a frame of an earlier cast may come.
		wanted := !c.closed && c.on == nil
		c.mu.Unlock()
		return wanted
	}
	if c.missed != nil {
		c.missed.Stop()
		c.missed, c.tries = nil, 0
	}
	c.number++
	f := Frame{Number: c.number, Tab: tab.ID(), JPEG: e.Data}
	if m := e.Metadata; m != nil {
		f.Width, f.Height, f.Scale, f.Top = m.DeviceWidth, m.DeviceHeight, m.PageScaleFactor, m.OffsetTop
		f.ScrollX, f.ScrollY = m.ScrollOffsetX, m.ScrollOffsetY
		f.At = time.UnixMicro(int64(float64(m.Timestamp) * 1e6))
	}
	c.unseen = append(c.unseen, ticket{c.number, tab, e.SessionID})
	c.mu.Unlock()
	c.show(f)
	return true
}
