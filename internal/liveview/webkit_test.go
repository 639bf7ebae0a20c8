package liveview_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/internal/testwait"
	"tapin/web"
)

// shop is a page with what a login has, which says itself what was done to it.
const shop = `<!doctype html><meta name=viewport content="width=device-width"><title>Shop</title>
<style>body{font:20px sans-serif;margin:20px} input,select,button{font:20px sans-serif;display:block;width:400px;height:48px;margin:0 0 16px}</style>
<form onsubmit="event.preventDefault(); document.title = 'sent'">
<label>Name <input id=name autocomplete=username></label>
<label>Password <input id=secret type=password></label>
<label>Country <select id=country><option value=a>Austria<option value=b>Belgium<option value=c>Chile</select></label>
<button>Log in</button></form>`

// TestThePhonePageWorksInWebKit goes the way of somebody with an iPhone as far as
// WebKit's driver can: it has no touch and no on-screen keyboard.
func TestThePhonePageWorksInWebKit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := openWebKit(t, 390, 844)
	pages, err := web.Pages()
	if err != nil {
		t.Fatal(err)
	}
	h := built(t, pages, &liveview.Options{})
	h.show(ctx, map[string]string{"/": shop})
	h.lend("hof_1")
	l, token := h.mint(link.Drive)

	began := time.Now()
	w.open("http://" + h.addr + "/live/" + l.ID + "#t=" + token.Reveal())
	w.until("the first picture", `document.querySelector("#curtain").hidden && document.querySelector("#picture").width > 1`)
	t.Logf("the first picture in WebKit after %v", time.Since(began).Round(time.Millisecond))
	if at := w.eval("location.href"); strings.Contains(at, token.Reveal()) || strings.Contains(at, "#") {
		t.Error("the token stays in the address")
	}
	w.until("a picture that is no blank", `(c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; return new Set(d).size > 8 })(document.querySelector("#picture"))`)
	w.until("controls over the fields", `document.querySelectorAll("#fields input, #fields select").length === 3`)
	if kinds := w.eval(`[...document.querySelectorAll("#fields [data-kind]")].map(c => c.dataset.kind + ":" + (c.type || "") ).join()`); kinds != "text:text,password:password,select:select-one" {
		t.Errorf("the controls are %s", kinds)
	}

	remote := func(what, script, want string) {
		t.Helper()
		got := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s is %q", what, got)
			}
		})
		testwait.For(t, what+" being "+want, func() bool {
			got = h.eval(ctx, script)
			var text string
			if json.Unmarshal([]byte(got), &text) == nil {
				got = text // what is beyond Go's quotes
			}
			return got == want
		})
	}
	// glass is where the middle of something in the page is on the phone.
	glass := func(selector string) (x, y int) {
		t.Helper()
		var px, py float64
		at := h.eval(ctx, fmt.Sprintf(`(r => (r.x + r.width/2) + " " + (r.y + r.height/2))(document.querySelector(%q).getBoundingClientRect())`, selector))
		if _, err := fmt.Sscan(at, &px, &py); err != nil {
			t.Fatal(at, err)
		}
		at = w.eval(fmt.Sprintf(`(r => Math.round(r.x + %f * r.width / 1280) + " " + Math.round(r.y + %f * r.height / 720))(document.querySelector("#picture").getBoundingClientRect())`, px, py))
		if _, err := fmt.Sscan(at, &x, &y); err != nil {
			t.Fatal(at, err)
		}
		return x, y
	}

	// A laptop: a click into the picture, and keys.
	x, y := glass("#name")
	w.tap(x, y, 20*time.Millisecond)
	remote("the focus in the page", `document.activeElement.id`, "name")
	w.strike("Zoe\uE003ë")
	remote("the name by mouse and keys", `document.querySelector("#name").value`, "Zoë")

	// A phone: the driver knows a mouse only, which the page now takes for a finger.
	w.eval(`Object.defineProperty(PointerEvent.prototype, "pointerType", { get: () => "touch" })`)
	w.eval(`document.documentElement.classList.remove("mouse")`)
	touch := func(kind string) {
		t.Helper()
		x, y := w.middle(`#fields [data-kind=` + kind + `]`)
		w.tap(x, y, 20*time.Millisecond)
		w.until("the focus on the control of "+kind, `document.activeElement?.dataset.kind === "`+kind+`"`)
	}
	touch("text")
	w.strike("\uE010") // End
	w.strike(" Ünal 👍🏽")
	remote("the name by touch", `document.querySelector("#name").value`, "Zoë Ünal 👍🏽")
	w.strike("\uE003\uE003x") // Backspace
	remote("the name after two erasures", `document.querySelector("#name").value`, "Zoë Ünalx")
	touch("password")
	w.strike("pa$$ wörd!")
	remote("the password", `document.querySelector("#secret").value`, "pa$$ wörd!")
	touch("text")
	// It is let go of when the page has answered the last key, which may be a moment after the focus went.
	w.until("the password gone from its control", `document.querySelector("#fields [data-kind=password]").value === ""`)
	option := w.find(`#fields select option[value=c]`)
	w.must("POST", "/element/"+option+"/click", nil, nil)
	remote("the country", `document.querySelector("#country").value`, "c")

	// The button has no control over it: a tap on the picture has to hit it.
	x, y = glass("button")
	w.tap(x, y, 20*time.Millisecond)
	remote("the form", `document.title`, "sent")
	x, y = w.middle("#done")
	w.tap(x, y, time.Second)
	testwait.For(t, "the hand-off being over", func() bool { return h.decisions() == "finish hof_1 false" })
}
