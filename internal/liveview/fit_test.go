package liveview_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/link"
	"tapin/internal/testwait"
)

// secrets is a page of which everything is white but what is written into its fields.
const secrets = `<!doctype html><title>secrets</title><meta name=viewport content="width=device-width"><style>
	body { margin: 0 } input { position: absolute; left: 0; width: 300px; height: 60px; border: 0; padding: 0; background: rgb(255, 0, 0); font: 40px monospace; color: white }</style>
	<input id=p type=password aria-label=Password style="top: 0"><input id=o autocomplete=one-time-code aria-label=Code style="top: 100px">
	<input id=c autocomplete=cc-number aria-label=Card style="top: 200px"><input id=n aria-label=Name style="top: 300px">`

// inHand is what the page of a phone says of its glass.
func inHand(fit string) map[string]any {
	return map[string]any{"t": "view", "w": 390, "h": 640, "dpr": 2, "zoom": 1, "rest": []int{390, 640}, "screen": []int{390, 844}, "fit": fit}
}

// ink is the colour in a frame at a point of the page.
func (f frame) ink(t *testing.T, x, y int) string {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(f.jpeg))
	if err != nil {
		t.Fatal(err)
	}
	k := float64(img.Bounds().Dx()) / float64(f.width)
	return nameOf(img, int(float64(x)*k), int(float64(y)*k))
}

func nameOf(img image.Image, x, y int) string {
	r, g, b, _ := img.At(x, y).RGBA()
	switch {
	case r < 0x3000 && g < 0x3000 && b < 0x3000:
		return "black"
	case r > 0xc000 && g < 0x5000 && b < 0x5000:
		return "red"
	case r > 0xc000 && g > 0xc000 && b > 0xc000:
		return "white"
	}
	return "another"
}

// Who drives sees what stands in every field, in the moving picture and in the sharp
// one; who only watches sees nothing of what is secret, and all of the rest.
func TestADriverSeesWhatTheyTypeAndAWatcherDoesNot(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": secrets}, nil)
	h.lend("hof_1")
	p, watcher := h.enter(ctx, link.Drive), h.enter(ctx, link.Watch)
	h.eval(ctx, `(p.value = o.value = c.value = n.value = "x", "")`)
	fields := map[string]int{"the password": 30, "the code": 130, "the card": 230, "the name": 330}
	shows := func(who *phone, what string, is func(frame) bool) {
		t.Helper()
		seen, ok := -1, false
		who.until(what, func() bool {
			if n := len(who.frames); n > 0 && n != seen {
				seen, ok = n, is(who.frames[n-1])
			}
			return ok
		})
	}
	shows(p, "a sharp picture", func(f frame) bool { return f.flags&1 != 0 && f.ink(t, 250, 330) == "red" })
	for name, y := range fields {
		for _, f := range p.seen() {
			if got := f.ink(t, 250, y); got == "black" {
				t.Fatalf("%s is %s for who drives, sharp %v", name, got, f.flags&1 != 0)
			}
		}
	}
	shows(watcher, "the masks", func(f frame) bool { return f.ink(t, 250, 330) == "red" && f.ink(t, 250, 30) == "black" })
	for _, f := range watcher.seen() {
		for name, y := range fields {
			if got := f.ink(t, 250, y); name != "the name" && got != "black" && got != "white" {
				t.Errorf("%s is %s for who only watches", name, got)
			}
		}
	}
	// Also while it moves.
	h.eval(ctx, `(setInterval(() => document.body.style.background = document.body.style.background ? "" : "rgb(250, 250, 250)", 50), "")`)
	begun := len(watcher.seen())
	watcher.until("more masked pictures", func() bool { return len(watcher.frames) > begun+4 })
	for _, f := range watcher.seen()[begun:] {
		if got := f.ink(t, 250, 30); got != "black" {
			t.Errorf("while the page moves the password is %s for who only watches", got)
		}
	}
}

func TestThePageIsLaidOutForWhoeverDrives(t *testing.T) {
	t.Parallel()
	browsertest.Long(t) // no phone asks for it yet
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": secrets}, nil)
	p := h.enter(ctx, link.Drive)
	p.send(ctx, inHand("auto"))
	h.eval(ctx, `new Promise(r => setTimeout(r, 500))`)
	if got := h.eval(ctx, `String(innerWidth)`); got != "1280" {
		t.Errorf("it is %s wide while the agent drives", got)
	}
	h.lend("hof_1")
	wide := func(what, want string) {
		t.Helper()
		testwait.For(t, what, func() bool { return h.eval(ctx, `String(innerWidth)`) == want })
	}
	layout := func(s map[string]any) map[string]any { return s["layout"].(map[string]any) }
	wide("the phone's layout", "390")
	p.state("it is told", func(s map[string]any) bool {
		return layout(s)["phone"] == true && layout(s)["mobile"] == true && layout(s)["touch"] == true
	})
	p.until("its picture", func() bool { return p.frames[len(p.frames)-1].width == 390 })
	p.tap(ctx, "hof_1", 100, 330)
	testwait.For(t, "a tap arrives where it was meant", func() bool { return h.eval(ctx, `document.activeElement.id`) == "n" })

	// A keyboard that comes up changes nothing.
	covered := inHand("auto")
	covered["h"] = 300
	p.send(ctx, covered)
	// Whoever else looks on changes nothing either.
	other := h.enter(ctx, link.Drive)
	other.send(ctx, inHand("desktop"))
	h.eval(ctx, `new Promise(r => setTimeout(r, 500))`)
	wide("it stays so", "390")

	// What the person chooses holds for the site.
	p.send(ctx, map[string]any{"t": "do", "h": "hof_1", "a": "layout", "choice": "desktop"})
	wide("the desktop's layout", "1280")
	p.state("it is told", func(s map[string]any) bool { return layout(s)["phone"] == false && layout(s)["touch"] == false })
	p.send(ctx, map[string]any{"t": "do", "h": "hof_1", "a": "layout", "choice": "phone"})
	wide("the phone's again", "390")

	// Turned.
	turned := inHand("auto")
	turned["rest"], turned["screen"] = []int{844, 270}, []int{844, 390}
	p.send(ctx, turned)
	wide("the turned phone's", "844")

	// Another device takes over: it decides now.
	testwait.For(t, "the other drives", func() bool {
		other.tap(ctx, "hof_1", 10, 500)
		return h.eval(ctx, `String(innerWidth)`) == "1280"
	})
	if now := h.tabs.Fitted(); now.Phone {
		t.Errorf("%+v", now)
	}
}
