package page_test

import (
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// Until a page has been drawn with a frame of another site where it is now, the mouse
// does not get into that: what is pressed there is lost, and nothing tells of it.
func TestAPressReachesAFrameThatHasJustCome(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":    `<title>t</title><body style="margin:0"><iframe src="OTHER/pay" style="position:absolute;left:300px;top:200px;display:none"></iframe><script>onmessage = e => document.title = e.data</script>`,
		"/pay": `<body><button style="width:200px;height:80px" onclick="top.postMessage('pressed', '*')">Pay</button>`,
	})
	for i := range 15 {
		d.open(ctx, t, "/")
		d.eval(ctx, t, d.tab, `(document.querySelector('iframe').style.display = 'block', 0)`)
		if err := d.tab.PressAt(ctx, 380, 240); err != nil {
			t.Fatalf("press %d: %v", i, err)
		}
		testwait.For(t, "the press in the frame", func() bool { return d.title(ctx, t) == "pressed" })
	}
}

// Who is at the point when the press comes need not be who was there before.
func TestAPressThatAnotherFrameTakes(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":       `<title>0</title><body style="margin:0"><p style="height:300px">Nothing here</p><iframe src="/slides" style="position:absolute;left:-900px;top:0"></iframe><script>onpointermove = () => document.querySelector('iframe').style.left = 0</script>`,
		"/slides": `<body><button style="width:280px;height:100px" onclick="top.document.title++">Go</button>`,
	})
	d.open(ctx, t, "/")
	x, y := 100.0, 60.0
	got, err := d.tab.Click(ctx, page.Locator{X: &x, Y: &y}, page.ClickOptions{})
	if err != nil || got.Effect == page.None { // a busy machine may tell too late of what was heard
		t.Errorf("the click was %+v, %v", got, err)
	}
	testwait.For(t, "the press in the frame", func() bool { return d.title(ctx, t) != "0" })
	if title := d.title(ctx, t); title != "1" {
		t.Errorf("pressed %s times", title)
	}
}
