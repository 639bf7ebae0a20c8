package page_test

import (
	"bytes"
	"context"
	"image/jpeg"
	"net/http"
	"path/filepath"
	"testing"

	proto "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// lively is a page that notes what it could notice of its window, and never rests.
const lively = `<title>lively</title><body><button onclick="document.body.requestFullscreen()">grow</button><script>
const heard = []
for (const type of ['resize', 'blur', 'focus', 'visibilitychange', 'pagehide', 'freeze', 'fullscreenchange'])
	for (const on of [window, document]) on.addEventListener(type, () => heard.push(type))
let n = 0; (function tick() { n++; document.body.style.background = n % 2 ? '#fff' : '#eee'; requestAnimationFrame(tick) })()</script>`

// window is the state of a tab's.
func (s *scene) window(ctx context.Context, t *testing.T, tab *page.Tab) proto.WindowState {
	t.Helper()
	got, err := cdp.Call(ctx, s.inst.Conn().Root(), proto.GetWindowForTarget, proto.GetWindowForTargetParams{TargetID: target.ID(tab.ID())})
	if err != nil {
		t.Fatal(err)
	}
	return got.Bounds.WindowState
}

func (s *scene) windowBecomes(ctx context.Context, t *testing.T, tab *page.Tab, want proto.WindowState) {
	t.Helper()
	testwait.For(t, "the window is "+string(want), func() bool { return s.window(ctx, t, tab) == want })
}

// pictured takes one within the time after which somebody would think that none comes.
func pictured(ctx context.Context, t *testing.T, tab *page.Tab, when string) {
	t.Helper()
	ctx, cancel := testwait.Within(ctx)
	defer cancel()
	for _, o := range []page.ShotOptions{{}, {FullPage: true}} {
		if _, err := tab.Screenshot(ctx, o); err != nil {
			t.Errorf("a picture %s: %v", when, err)
		}
	}
}

func TestAWindowIsPutAwayAsLongAsItIsCast(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(lively)})
	tab := s.open(ctx, t, "/")
	if now := s.window(ctx, t, tab); now != proto.WindowStateFullscreen {
		t.Fatalf("without a cast the window is %s", now)
	}
	const seen = `JSON.stringify([heard.splice(0), document.visibilityState, document.hasFocus(), innerWidth, innerHeight, outerWidth, outerHeight, screenX, screenY])`
	before := s.eval(ctx, t, tab, seen)
	noticesNothing := func(when string) {
		t.Helper()
		if got := s.eval(ctx, t, tab, seen); got != before {
			t.Errorf("%s the page notices: %s instead of %s", when, got, before)
		}
	}
	for range 2 {
		var a audience
		cast := s.tabs.Cast(page.CastOptions{MaxWidth: 640}, a.show)
		s.windowBecomes(ctx, t, tab, proto.WindowStateMinimized)
		testwait.For(t, "pictures", func() bool {
			cast.Ack(ctx, a.last().Number)
			return len(a.seen()) > 10
		})
		noticesNothing("during a cast")
		pictured(ctx, t, tab, "during a cast")
		s.eval(ctx, t, tab, `new Promise(done => setTimeout(() => done(''), 200))`) // nothing is acknowledged meanwhile
		pictured(ctx, t, tab, "during a cast that nobody takes")
		s.eval(ctx, t, tab, `heard.splice(0).length`) // of pictures of the whole page
		cast.Close()
		s.windowBecomes(ctx, t, tab, proto.WindowStateFullscreen)
		noticesNothing("after a cast")
		pictured(ctx, t, tab, "after a cast")
		s.eval(ctx, t, tab, `heard.splice(0).length`)
	}
}

// TestACastIsWholeWhereverItLeads: a window that was put away has less room for a page
// than one that fills the screen.
func TestACastIsWholeWhereverItLeads(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(lively), "/far": document(lively), "/tab": document(lively), "/popup": document(lively)})
	tab := s.open(ctx, t, "/")
	var a audience
	cast := s.tabs.Cast(page.CastOptions{MaxWidth: 640}, a.show)
	defer cast.Close()
	s.windowBecomes(ctx, t, tab, proto.WindowStateMinimized)
	whole := func(what string) {
		t.Helper()
		front, from := s.front(ctx, t).ID(), len(a.seen())
		var last page.Frame
		testwait.For(t, "pictures "+what, func() bool {
			last = a.last()
			cast.Ack(ctx, last.Number)
			return len(a.seen()) > from+10 && last.Tab == front
		})
		cfg, err := jpeg.DecodeConfig(bytes.NewReader(last.JPEG))
		if err != nil || last.Width != 1280 || last.Height != 720 || cfg.Width != 640 || cfg.Height != 360 {
			t.Errorf("%s a picture of %gx%g is %dx%d, %v", what, last.Width, last.Height, cfg.Width, cfg.Height, err)
		}
	}
	whole("at first")
	if _, err := tab.Navigate(ctx, s.localhost()+"/far", ""); err != nil {
		t.Fatal(err)
	}
	whole("of another site")
	_ = s.attach(ctx, t, tab).Session.Send(ctx, "Page.crash", nil)
	testwait.For(t, "a page again", func() bool {
		_, err := tab.Navigate(ctx, s.URL+"/", "")
		return err == nil
	})
	whole("after a crash")
	s.begin(ctx, t, tab, `void open("/tab")`)
	s.eventually(ctx, t, "lively lively")
	whole("of another tab")
	if err := s.tabs.CloseTab(ctx, ""); err != nil {
		t.Fatal(err)
	}
	whole("of the first tab")
	s.begin(ctx, t, tab, `void open("/popup", "", "popup,width=400,height=300")`)
	s.eventually(ctx, t, "lively lively")
	whole("of a popup")
	if err := s.tabs.CloseTab(ctx, ""); err != nil {
		t.Fatal(err)
	}
	whole("after the popup")
}

func TestAWindowThatWasPutAwayIsThereAfterAReconnect(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(lively)})
	tab := s.open(ctx, t, "/")
	s.tabs.Cast(page.CastOptions{MaxWidth: 640}, func(page.Frame) {})
	s.windowBecomes(ctx, t, tab, proto.WindowStateMinimized)

	// Nobody had the time to end the cast.
	if err := s.inst.Release(); err != nil {
		t.Fatal(err)
	}
	s.provider = local.New(filepath.Dir(s.folder), 2, nil)
	var err error
	if s.inst, err = s.provider.Reconnect(ctx, s.inst.Ref()); err != nil {
		t.Fatal(err)
	}
	if s.tabs, err = page.Open(ctx, s.inst, nil); err != nil {
		t.Fatal(err)
	}
	tab = s.front(ctx, t)
	s.windowBecomes(ctx, t, tab, proto.WindowStateFullscreen)
	pictured(ctx, t, tab, "for the next sidecar")
}

func TestAPageThatFillsTheScreenDoesSoUnderACast(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(lively)})
	tab := s.open(ctx, t, "/")
	fills := func(want string) {
		t.Helper()
		testwait.For(t, "whether it fills the screen is "+want, func() bool {
			return s.eval(ctx, t, tab, `document.fullscreenElement !== null`) == want
		})
	}
	grow := func() {
		t.Helper()
		if _, err := tab.Click(ctx, css("button"), page.ClickOptions{}); err != nil {
			t.Fatal(err)
		}
		fills("true")
	}
	grow()
	var a audience
	cast := s.tabs.Cast(page.CastOptions{MaxWidth: 640}, a.show)
	testwait.For(t, "pictures", func() bool {
		cast.Ack(ctx, a.last().Number)
		return len(a.seen()) > 10
	})
	fills("true")
	cast.Close()
	fills("true")
	s.eval(ctx, t, tab, `document.exitFullscreen()`)
	fills("false")

	cast = s.tabs.Cast(page.CastOptions{MaxWidth: 640}, a.show)
	defer cast.Close()
	s.windowBecomes(ctx, t, tab, proto.WindowStateMinimized)
	grow()
	s.eval(ctx, t, tab, `document.exitFullscreen()`)
	fills("false")
	pictured(ctx, t, tab, "after the page filled the screen")
}

func TestTheWindowOfAnOpenerIsBackWhenItsPopupIsCast(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(lively), "/popup": document(`<title>popup</title>`)})
	opener := s.open(ctx, t, "/")
	cast := s.tabs.Cast(page.CastOptions{MaxWidth: 640}, func(page.Frame) {})
	s.windowBecomes(ctx, t, opener, proto.WindowStateMinimized)
	s.begin(ctx, t, opener, `void open("/popup", "", "popup,width=400,height=300")`)
	s.eventually(ctx, t, "lively popup")
	popup := s.front(ctx, t)
	s.windowBecomes(ctx, t, popup, proto.WindowStateMinimized)
	s.windowBecomes(ctx, t, opener, proto.WindowStateFullscreen)
	pictured(ctx, t, popup, "of a popup")
	cast.Close()
	s.windowBecomes(ctx, t, popup, proto.WindowStateNormal)
	pictured(ctx, t, popup, "of a popup after the cast")
	s.begin(ctx, t, popup, `window.close()`)
	s.eventually(ctx, t, "lively")
	pictured(ctx, t, opener, "of the opener")
}
