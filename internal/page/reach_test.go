package page_test

import (
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// A tap is a whole click of a mouse that has come to the place, whichever button. One
// that has come there before, and did nothing else, does not move again.
func TestATapIsAllOfAClick(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{"/": `<title>t</title><body style="margin:0;height:400px"><script>
		window.said = []
		for (const type of ['mousemove', 'mousedown', 'mouseup', 'click', 'contextmenu'])
			addEventListener(type, e => said.push([e.type, e.clientX, e.clientY, e.button, e.buttons, e.shiftKey].join(' ')))
	</script>`}, page.Look{})
	tab := w.front(ctx, t)
	if _, err := tab.Navigate(ctx, w.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	const clicked = "mousedown 30 40 0 1 false,mouseup 30 40 0 0 false,click 30 40 0 0 false"
	for _, c := range []struct {
		tap  page.Pointer
		want string
	}{
		{page.Pointer{X: 30, Y: 40, Button: "left", Clicks: 1}, "mousemove 30 40 0 0 false," + clicked},
		{page.Pointer{X: 50, Y: 60, Button: "right", Clicks: 1, Held: 8}, "mousemove 50 60 0 0 true,mousedown 50 60 2 2 true,contextmenu 50 60 2 2 true,mouseup 50 60 2 0 true"},
	} {
		c.tap.Kind, c.tap.Finger = "tap", -1
		if err := tab.Point(ctx, c.tap, nil); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, "the page heard "+c.want, func() bool {
			return strings.HasSuffix(w.eval(ctx, t, tab, `said.join()`), c.want) // the browser may have moved the mouse itself before
		})
		w.eval(ctx, t, tab, `void (said.length = 0)`)
	}
	come := page.Pointer{Kind: "move", X: 30, Y: 40, Finger: -1}
	tap := page.Pointer{Kind: "tap", X: 30, Y: 40, Finger: -1, Button: "left", Clicks: 1}
	for _, p := range []page.Pointer{come, tap, tap} {
		if err := tab.Point(ctx, p, nil); err != nil {
			t.Fatal(err)
		}
	}
	const move = "mousemove 30 40 0 0 false,"
	testwait.For(t, "one move before each of two clicks", func() bool {
		return w.eval(ctx, t, tab, `said.filter(s => !s.startsWith("mousemove 50 60 ")).join()`) == move+clicked+","+move+clicked // nor those it moves late
	})
	if err := tab.Point(ctx, page.Pointer{Kind: "tap", Finger: 0}, []page.Pointer{{}}); err == nil {
		t.Error("a finger taps at once")
	}
	if err := tab.Point(ctx, page.Pointer{Kind: "tap", Finger: -1, Button: "nose"}, nil); err == nil {
		t.Error("a nose taps")
	}
}
