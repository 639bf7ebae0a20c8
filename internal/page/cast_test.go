package page_test

import (
	"bytes"
	"image/jpeg"
	"strconv"
	"sync"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// audience keeps what a cast shows.
type audience struct {
	mu     sync.Mutex
	frames []page.Frame
}

func (a *audience) show(f page.Frame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frames = append(a.frames, f)
}

func (a *audience) seen() []page.Frame {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]page.Frame(nil), a.frames...)
}

func (a *audience) last() page.Frame {
	seen := a.seen()
	if len(seen) == 0 {
		return page.Frame{}
	}
	return seen[len(seen)-1]
}

// colour is the colour in the middle of a frame: r, g or b.
func colour(t *testing.T, f page.Frame) string {
	t.Helper()
	if f.JPEG == nil {
		return ""
	}
	img, err := jpeg.Decode(bytes.NewReader(f.JPEG))
	if err != nil {
		t.Fatal(err)
	}
	r, g, b, _ := img.At(img.Bounds().Dx()/2, img.Bounds().Dy()/2).RGBA()
	switch {
	case r > g && r > b:
		return "r"
	case g > r && g > b:
		return "g"
	}
	return "b"
}

// painted is a page of one colour that a click makes blue, and that writes its
// keys into its title.
func painted(c string) string {
	return `<!doctype html><title>t</title><body style="margin:0;height:3000px;background:` + c + `">
<script>onclick = () => document.body.style.background = 'rgb(0,0,255)'; onkeydown = e => document.title += e.key</script>`
}

func TestACastShowsWhatIsInFront(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": painted("red"), "/popup": painted("lime")}, "/")
	tabs := w.tabs
	var a audience
	cast := tabs.Cast(page.CastOptions{MaxWidth: 640, MaxHeight: 360, Quality: 50}, a.show)
	defer cast.Close()
	settled := func(want string) {
		t.Helper()
		testwait.For(t, "the picture is "+want, func() bool {
			f := a.last()
			cast.Ack(ctx, f.Number)
			return colour(t, f) == want
		})
	}
	settled("r")
	if f := a.last(); f.Width != 1280 || f.Height != 720 || f.Scale != 1 || f.Tab != tab.ID() || f.At.IsZero() {
		t.Errorf("the frame says %+v", f)
	}
	if err := tab.Point(ctx, page.Pointer{Kind: "down", X: 50, Y: 50, Finger: -1, Button: "left", Clicks: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := tab.Point(ctx, page.Pointer{Kind: "up", X: 50, Y: 50, Finger: -1, Button: "left", Clicks: 1}, nil); err != nil {
		t.Fatal(err)
	}
	settled("b")
	if err := tab.Wheel(ctx, page.Wheel{X: 50, Y: 50, DY: 400}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the frame tells of the scrolling", func() bool {
		f := a.last()
		cast.Ack(ctx, f.Number)
		return f.ScrollY == 400
	})

	w.eval(ctx, t, tab, `void window.open("/popup")`)
	settled("g")
	if f := a.last(); f.Tab == tab.ID() {
		t.Error("the frame says that it is of the first tab")
	}
	if err := tabs.CloseTab(ctx, ""); err != nil {
		t.Fatal(err)
	}
	settled("b")

	cast.Tune(ctx, page.CastOptions{MaxWidth: 320, MaxHeight: 180, Quality: 30})
	testwait.For(t, "the pictures are smaller", func() bool {
		f := a.last()
		cast.Ack(ctx, f.Number)
		cfg, err := jpeg.DecodeConfig(bytes.NewReader(f.JPEG))
		return err == nil && cfg.Width <= 320
	})
	for i, f := range a.seen() {
		if f.Number != uint64(i+1) {
			t.Fatalf("frame %d has the number %d", i+1, f.Number)
		}
	}
}

func TestWithoutAcknowledgementsNoMoreFramesCome(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": `<!doctype html><body><script>
let n = 0; (function f() { n++; document.body.style.background = 'hsl(' + performance.now() % 360 + ' 100% 50%)'; requestAnimationFrame(f) })()</script>`}, "/")
	var a audience
	cast := w.tabs.Cast(page.CastOptions{MaxWidth: 320}, a.show)
	defer cast.Close()
	testwait.For(t, "frames come", func() bool { return len(a.seen()) >= 2 })
	// A cast that begins anew, as it does when the window is put away, has as many once more.
	frames, since := -1, 0
	testwait.For(t, "the page paints on and on and nothing more comes", func() bool {
		painted, _ := strconv.Atoi(w.eval(ctx, t, tab, `n`))
		if n := len(a.seen()); n != frames {
			frames, since = n, painted
		}
		return painted > since+30
	})
	cast.Ack(ctx, a.last().Number)
	before := len(a.seen())
	testwait.For(t, "further frames come", func() bool { return len(a.seen()) > before })
}

func TestKeysOfAPerson(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	_, tab := open(ctx, t, page.Look{}, map[string]string{"/": painted("red")}, "/")
	for _, s := range []page.Stroke{{Key: "a", Code: "KeyA"}, {Key: "Enter", Code: "Enter"}, {Key: "ß", Code: "Minus"}} {
		for _, s.Kind = range []string{"down", "up"} {
			if err := tab.Strike(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	testwait.For(t, "the page hears the keys", func() bool {
		now, err := tab.Here(ctx)
		return err == nil && now.Title == "taEnterß"
	})
}
