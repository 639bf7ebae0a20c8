package page_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// A frame that hangs, as an advertisement may, keeps nobody from the rest of the
// page. What would go into it is refused: it takes that in when nobody looks any more.
func TestAFrameThatHangs(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/": `<title>t</title><body style="margin:0"><button style="width:200px;height:100px" onclick="document.title='pressed'">Go</button>
			<input id=text style="position:absolute;left:0;top:100px;width:200px;height:40px">
			<iframe src="OTHER/hangs" style="position:absolute;left:300px;top:200px"></iframe>
			<iframe src="/beside" style="position:absolute;left:300px;top:400px"></iframe>`,
		"/beside": `<body><button style="width:200px;height:80px" onclick="top.document.title = 'beside'">Go</button>`,
		"/hangs":  `<body><button style="width:200px;height:80px">Pay</button><script>onmessage = () => { const ask = new XMLHttpRequest(); ask.open('GET', '/never', false); ask.send() }</script>`,
	})
	at := func(x, y float64) page.Locator { return page.Locator{X: &x, Y: &y} }
	onPage, field, hangs, beside := at(50, 50), at(50, 120), at(380, 240), at(380, 440)
	click := func(l page.Locator, within time.Duration) (page.Clicked, error) {
		return d.tab.Click(ctx, l, page.ClickOptions{Timeout: within})
	}
	d.open(ctx, t, "/")
	if _, err := click(hangs, testwait.Limit()); err != nil { // it has the focus now
		t.Fatal(err)
	}
	d.eval(ctx, t, d.tab, `(frames[0].postMessage('hang', '*'), 0)`)
	time.Sleep(300 * time.Millisecond)
	ctx = page.Guarded(ctx, page.Guarding{Permit: func(context.Context, page.Intent) error { return errors.New("nothing here pays") }})
	ends(t, "a key for a frame that hangs", func() {
		if err := d.tab.Press(ctx, "Enter"); !errors.Is(err, fault.WaitTimeout) {
			t.Errorf("a key for a frame that hangs gave %v", err)
		}
	})
	ends(t, "a click into a frame that hangs", func() {
		if got, err := click(hangs, time.Second); !errors.Is(err, fault.WaitTimeout) {
			t.Errorf("a click into a frame that hangs gave %+v, %v", got, err)
		}
	})
	ends(t, "a click on what holds a frame that hangs", func() {
		if got, err := click(css("iframe"), time.Second); !errors.Is(err, fault.WaitTimeout) {
			t.Errorf("a click on what holds a frame that hangs gave %+v, %v", got, err)
		}
	})
	for _, c := range []struct {
		spot page.Locator
		want string
	}{{onPage, "pressed"}, {beside, "beside"}} {
		ends(t, "a click beside a frame that hangs", func() {
			if got, err := click(c.spot, testwait.Limit()); err != nil || got.Effect != page.Confirmed || d.title(ctx, t) != c.want {
				t.Errorf("a click beside a frame that hangs gave %+v, %v and %q", got, err, d.title(ctx, t))
			}
		})
	}
	ends(t, "typing beside a frame that hangs", func() {
		if got, err := d.tab.Type(ctx, secret.New("42"), page.TypeOptions{Locator: &field}); err != nil || got.Characters != 2 {
			t.Errorf("typing beside a frame that hangs gave %+v, %v", got, err)
		}
	})
	d.says(ctx, t, "text.value", "42")
	ends(t, "a key beside a frame that hangs", func() {
		if err := d.tab.Press(ctx, "Backspace"); err != nil {
			t.Error(err)
		}
	})
	d.says(ctx, t, "text.value", "4")
}

// What is not found while a frame hangs may be in that.
func TestNothingIsFoundWhereAFrameHangs(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":      `<title>t</title><iframe src="OTHER/hangs"></iframe>`,
		"/hangs": `<body><p class=price>12</p><script>onmessage = () => { const ask = new XMLHttpRequest(); ask.open('GET', '/never', false); ask.send() }</script>`,
	})
	for _, what := range []string{"text", "css: .price"} {
		d.open(ctx, t, "/")
		if got, err := d.tab.Extract(ctx, page.ExtractOptions{Instruction: what}); err != nil || got.Content != "12" {
			t.Errorf("%s gave %+v, %v", what, got, err)
		}
		d.eval(ctx, t, d.tab, `(frames[0].postMessage('hang', '*'), 0)`)
		time.Sleep(300 * time.Millisecond)
		if got, err := d.tab.Extract(ctx, page.ExtractOptions{Instruction: what}); !errors.Is(err, fault.WaitTimeout) {
			t.Errorf("%s where a frame hangs gave %+v, %v", what, got, err)
		}
	}
}
