package sidecar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
)

// glass is a phone that shows a live view.
type glass struct {
	*browsertest.Phone
	t *testing.T
	// wide and high are the window of the remote page, in CSS pixels.
	wide, high float64
}

// tapIn opens a link into the session that runs on a phone, as its owner.
func (r *running) tapIn(ctx context.Context, net browsertest.Network) (*glass, string) {
	r.t.Helper()
	g := &glass{Phone: browsertest.NewPhone(ctx, r.t, net), t: r.t, wide: 1280, high: 720}
	minted := r.as("owner").must("POST", "/links", `{}`)
	r.t.Cleanup(func() {
		if r.t.Failed() {
			path := filepath.Join(os.TempDir(), strings.ReplaceAll(r.t.Name(), "/", "_")+".png")
			g.Photograph(path)
			r.t.Logf("the phone's screen is in %s", path)
		}
	})
	open := minted["open_url"].(string)
	g.Open(open)
	return g, open
}

// seen waits until there is a picture, and the person may act.
func (g *glass) seen() {
	g.t.Helper()
	g.Until("a picture, with the tools to drive", `document.documentElement.dataset.bar === "you" && document.querySelector("#picture").width > 1 && document.querySelector("#curtain").checkVisibility() === false`)
}

// field is the control that stands over a field of the remote page.
func field(label string) string { return fmt.Sprintf(`#fields [aria-label="%s"]`, label) }

// at is where a point of the remote page lies on the glass. What is out of sight
// is brought there with two fingers, as a person does.
func (g *glass) at(x, y float64) browsertest.Point {
	g.t.Helper()
	for range 6 {
		g.rests()
		var v struct{ X, Y, W, H, Left, Top, Right, Bottom float64 }
		if err := json.Unmarshal([]byte(g.See(`JSON.stringify((() => {
			const r = document.querySelector("#picture").getBoundingClientRect(), s = document.querySelector("#stage").getBoundingClientRect()
			return {X: r.x, Y: r.y, W: r.width, H: r.height, Left: s.left, Top: s.top, Right: s.right, Bottom: s.bottom}
		})())`)), &v); err != nil {
			g.t.Fatal(err)
		}
		p := browsertest.Point{X: v.X + x/g.wide*v.W, Y: v.Y + y/g.high*v.H}
		const margin = 12
		if p.X > v.Left+margin && p.X < v.Right-margin && p.Y > v.Top+margin && p.Y < v.Bottom-margin {
			return p
		}
		mid := browsertest.Point{X: (v.Left + v.Right) / 2, Y: (v.Top + v.Bottom) / 2}
		bounded := func(d, most float64) float64 { return min(max(d, -most), most) }
		dx, dy := bounded(mid.X-p.X, 140), bounded(mid.Y-p.Y, 140)
		g.Drag(dx, dy, browsertest.Point{X: mid.X - 30 - dx/2, Y: mid.Y - dy/2}, browsertest.Point{X: mid.X + 30 - dx/2, Y: mid.Y - dy/2})
	}
	g.t.Fatalf("%v, %v of the page cannot be brought onto the glass", x, y)
	return browsertest.Point{}
}

// rests waits until the view stands still: it follows a field that has the
// focus once more when the keyboard has come up.
func (g *glass) rests() {
	g.t.Helper()
	g.Until("a view that rests", `(() => {
		const r = document.querySelector("#picture").getBoundingClientRect(), place = [r.x, r.y, r.width, r.height].join(), now = performance.now()
		if (window.placed?.place !== place) window.placed = { place, since: now }
		return now - window.placed.since > 450
	})()`)
}

// into taps a field, as soon as the view stands still, and waits until the
// phone's own control has the focus.
func (g *glass) into(selector string) {
	g.t.Helper()
	g.Where(selector)
	g.rests()
	g.Tap(selector)
	g.Until("the focus in "+selector, fmt.Sprintf(`document.activeElement?.matches(%q)`, selector))
}

// press taps a point of the remote page.
func (g *glass) press(x, y float64) {
	g.t.Helper()
	g.TapAt(g.at(x, y))
}

// sits waits until the remote page says where it is.
func (g *glass) sits(host, field string) {
	g.t.Helper()
	g.Until(host+" with "+field, fmt.Sprintf(`document.querySelector("#site .host").textContent.includes(%q) && document.querySelector(%q)`, host, field))
}
