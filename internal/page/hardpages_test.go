package page_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// hitScript counts what arrives in the top document, from whatever frame.
const hitScript = `
window.hits = 0
window.hit = () => top === window ? hits++ : top.postMessage("hit", "*")
addEventListener("message", e => { if (e.data === "hit") hits++ })`

// hard is a page on which a careless click goes wrong.
type hard struct {
	name   string
	body   string
	css    string // with nothing here, only by text
	text   string // with nothing here, only by selector
	expect string // what must hold afterwards; unset means exactly one hit
}

// fill is enough to make a page scroll.
const filler = `<div style="height:1500px">filler</div>`

var hardPages = []hard{
	{name: "a button that moves", css: "#go", text: "Go",
		body: `<style>@keyframes m{from{left:0}to{left:600px}} #go{position:absolute;left:600px;top:50px;animation:m .7s linear}</style><button id=go onclick=hit()>Go</button>`},
	{name: "an overlay that vanishes after half a second", css: "#go", text: "Go",
		body: `<button id=go onclick=hit()>Go</button><div id=overlay style="position:fixed;inset:0;background:#0008" onclick="hits+=100"></div><script>setTimeout(() => overlay.remove(), 500)</script>`},
	{name: "a disabled button that becomes enabled", css: "#go", text: "Go",
		body: `<button id=go disabled onclick=hit()>Go</button><script>setTimeout(() => go.disabled = false, 400)</script>`},
	{name: "a button in a fieldset that becomes enabled", css: "#go", text: "Go",
		body: `<fieldset id=set disabled><button id=go onclick=hit()>Go</button></fieldset><script>setTimeout(() => set.disabled = false, 400)</script>`},
	{name: "a button that comes late", css: "#go", text: "Go",
		body: `<script>setTimeout(() => document.body.insertAdjacentHTML("beforeend", "<button id=go onclick=hit()>Go</button>"), 600)</script><body>`},
	{name: "nested scrollers", css: "#go", text: "Go",
		body: `<div style="height:200px;width:300px;overflow:auto"><div style="height:900px">a</div><div style="height:150px;overflow:auto"><div style="height:700px;width:900px">b</div>
			<button id=go style="margin-left:700px" onclick=hit()>Go</button><div style="height:300px">c</div></div><div style="height:500px">d</div></div>` + filler},
	{name: "an open shadow root", css: "#go", text: "Go",
		body: `<x-a></x-a><script>document.querySelector("x-a").attachShadow({mode:"open"}).innerHTML = "<div><x-b></x-b></div>"
			document.querySelector("x-a").shadowRoot.querySelector("x-b").attachShadow({mode:"open"}).innerHTML = "<button id=go onclick=hit()>Go</button>"</script>`},
	{name: "a selector across the border of a shadow root", css: "x-a .row #go",
		body: `<x-a></x-a><script>document.querySelector("x-a").attachShadow({mode:"open"}).innerHTML = "<div class=row><button id=go onclick=hit()>Go</button></div>"</script>`},
	{name: "a closed shadow root", css: "#go", text: "Go",
		body: `<x-a></x-a><script>document.querySelector("x-a").attachShadow({mode:"closed"}).innerHTML = "<p>in here</p><button id=go onclick=hit()>Go</button>"</script>`},
	{name: "a closed root in a closed root, with a slot", css: "#go", text: "Go now",
		body: `<x-a></x-a><script>const outer = document.querySelector("x-a").attachShadow({mode:"closed"}); outer.innerHTML = "<x-b><b>Go</b> now</x-b>"
			outer.querySelector("x-b").attachShadow({mode:"closed"}).innerHTML = "<button id=go onclick=hit()><slot></slot></button>"</script>`},
	{name: "a frame of the same site", css: "#inner", text: "Inner",
		body: `<div style="height:900px"></div><iframe src=/inner style="border:7px solid;padding:11px"></iframe>`},
	{name: "a frame of another site", css: "#inner", text: "Inner",
		body: `<div style="height:900px"></div><iframe src=OTHER/inner style="border:7px solid;padding:11px"></iframe>`},
	{name: "a frame in a frame", css: "#inner", text: "Inner",
		body: `<iframe src=OTHER/middle style="margin:40px;width:400px;height:300px"></iframe>`},
	{name: "a frame that comes late", css: "#inner", text: "Inner",
		body: `<script>setTimeout(() => document.body.insertAdjacentHTML("beforeend", "<iframe src=OTHER/inner></iframe>"), 500)</script><body>`},
	{name: "a frame drawn at half its size", css: "#inner", text: "Inner",
		body: `<div style="transform:scale(.5);transform-origin:0 0"><iframe src=OTHER/inner style="margin:60px;width:800px;height:500px"></iframe></div>`},
	{name: "text split across nodes", text: "Sign in now",
		body: `<p>Sign in</p><button onclick=hit()><b>Si</b><i>gn</i>
			<span>in</span>&nbsp;<span>n</span>ow</button>`},
	{name: "text in items of a flex box", text: "save draft",
		body: `<button style="display:flex" onclick=hit()><span>Save</span><span>Draft</span></button>`},
	{name: "a button that is replaced when the mouse comes", css: "#go", text: "Go",
		body: `<div id=box></div><script>const draw = () => { box.innerHTML = "<button id=go onclick=hit()>Go</button>"; go.onpointerover = () => { if (!window.once) { once = 1; draw() } } }; draw()</script>`},
	{name: "a button drawn anew by every press, and every 15 ms", css: "#go", text: "Go", expect: "hits === 1 && downs === 1",
		body: `<div id=box></div><script>downs = 0
			const draw = () => { box.innerHTML = "<button id=go onclick=hit()>Go</button>" }
			setInterval(draw, 15); addEventListener("mousedown", () => { downs++; draw() })</script>`},
	{name: "a button drawn anew every 15 ms", css: "#go", text: "Go",
		body: `<div id=box></div><script>setInterval(() => { box.innerHTML = "<button id=go onclick=hit()>Go</button>" }, 15)</script>`},
	{name: "a fixed header over the target", css: "#go", text: "Go",
		body: `<div style="position:fixed;top:0;left:0;right:0;height:45%;background:#ccc" onclick="hits+=100">header</div><div style="position:fixed;bottom:0;left:0;right:0;height:45%;background:#ccc" onclick="hits+=100">footer</div>` +
			filler + `<button id=go onclick=hit()>Go</button>` + filler},
	{name: "a fixed header over a target that need not be scrolled to", css: "#go", text: "Go",
		body: `<div style="position:fixed;top:0;left:0;right:0;height:60px;background:#ccc" onclick="hits+=100">header</div><div style="height:700px"></div><button id=go onclick=hit()>Go</button>` + filler +
			`<script>scrollTo(0, 680)</script>`},
	{name: "the label of a hidden checkbox", css: "#agree", text: "I agree", expect: "agree.checked",
		body: `<input type=checkbox id=agree style="display:none"><label for=agree>I agree</label>`},
	{name: "a checkbox that is there but transparent under its label", css: "#agree", text: "I agree", expect: "agree.checked",
		body: `<label style="position:relative;display:block;width:200px;height:30px"><input type=checkbox id=agree style="position:absolute;opacity:0"><span style="position:absolute;inset:0;background:#eee">I agree</span></label>`},
	{name: "a page of very many nodes", css: "#go", text: "Go there",
		body: fmt.Sprintf(`<script>let s = ""; for (let i = 0; i < %d; i++) s += "<div><span>item " + i + "</span></div>"; document.write(s)</script><button id=go onclick=hit()>Go there</button>`, testwait.Rounds(4_000, 16_666))},
	{name: "a page zoomed by CSS", css: "#go", text: "Go",
		body: `<body style="zoom:1.7"><div style="height:400px;width:300px">a</div><button id=go style="margin-left:123px" onclick=hit()>Go</button><button onclick="hits+=100">No</button>` + filler},
	{name: "a page scaled by a transform", css: "#go", text: "Go",
		body: `<div style="transform:scale(.4) rotate(8deg);transform-origin:0 0;width:2000px;padding-left:600px"><div style="height:900px">a</div><button onclick="hits+=100">No</button><button id=go onclick=hit()>Go</button></div>`},
	{name: "a page in a right-to-left language", css: "#go", text: "المتابعة",
		body: `<html dir=rtl lang=ar><div style="width:3000px;height:50px;background:#eee">…</div><div style="width:2400px;text-align:left"><button id=go onclick=hit()>المتابعة</button></div>`},
	{name: "a link over two lines", css: "#go", text: "a link that runs over the end of the line",
		body: `<p style="width:260px">some words to begin with and <a id=go href="javascript:hit()">a link that runs over the end of the line</a> and more</p>`},
	{name: "a button half covered", css: "#go", text: "Go",
		body: `<div style="position:relative;width:300px"><button id=go style="width:300px;height:60px" onclick=hit()>Go</button><div style="position:absolute;left:60px;top:0;width:180px;height:60px;background:#ccc" onclick="hits+=100"></div></div>`},
	{name: "a row with a button of its own in the middle", css: "#go", text: "The row",
		body: `<div id=go role=button style="width:400px;display:flex;justify-content:center" onclick=hit()><span style="position:absolute;left:10px">The row</span><button onclick="event.stopPropagation();hits+=100" style="width:200px">Delete</button></div>`},
	{name: "a twin that is hidden", css: ".go", text: "Go",
		body: `<button class=go style="display:none" onclick="hits+=100">Go</button><button class=go style="visibility:hidden" onclick="hits+=100">Go</button><button class=go onclick=hit()>Go</button>`},
	{name: "the word button", text: "button",
		body: `<button onclick="hits+=100">Press</button><a href="javascript:hit()">Button</a>`},
	{name: "exact before partial", text: "Pay",
		body: `<button onclick="hits+=100">Pay later</button><h1>Pay</h1><button onclick=hit()>  pay </button>`},
	{name: "what an input shows", text: "send it",
		body: `<input type=submit value="Send it" onclick=hit()>`},
	{name: "a page that stops every event", css: "#go", text: "Go", expect: "stopped === 1",
		body: `<button id=go>Go</button><script>window.stopped = 0; addEventListener("click", e => { e.stopImmediatePropagation(); stopped++ }, true); addEventListener("mousedown", e => e.stopImmediatePropagation(), true)</script>`},
}

// stage serves pages by their place in a list, and opens them one after the other.
type stage struct {
	*web
	tab  *page.Tab
	bare browsertest.Tab
}

func newStage(ctx context.Context, t *testing.T, pages map[string]string) *stage {
	t.Helper()
	all := map[string]string{
		"/hit.js": hitScript,
		"/inner":  `<script src=/hit.js></script><div style="height:900px"></div><button id=inner onclick=hit()>Inner</button>`,
		"/middle": `<div style="height:400px"></div><iframe src=/inner2 style="margin:20px"></iframe>`,
		"/inner2": `<script src=/hit.js></script><button id=inner style="margin:30px" onclick=hit()>Inner</button>`,
	}
	for path, body := range pages {
		all[path] = "<!doctype html><meta charset=utf-8><title>t</title><script src=/hit.js></script>" + body
	}
	s := &stage{web: visit(t, all, page.Look{})}
	s.tab = s.front(ctx, t)
	s.bare = browsertest.Attach(ctx, t, s.inst, target.ID(s.tab.ID()))
	return s
}

func (s *stage) open(ctx context.Context, t *testing.T, path string) {
	t.Helper()
	if _, err := s.tab.Navigate(ctx, s.URL+path, page.WaitDOM); err != nil {
		t.Fatal(err)
	}
}

// is waits until something holds in the page, and says what it is when it does not.
func (s *stage) is(ctx context.Context, t *testing.T, what string) {
	t.Helper()
	if !testwait.Comes(func() bool { return s.bare.Eval(ctx, t, "Boolean("+what+")") == "true" }) {
		t.Fatalf("%s does not hold; there were %s hits", what, s.bare.Eval(ctx, t, "window.hits"))
	}
}

func TestHardPages(t *testing.T) {
	t.Parallel()
	const groups = 4
	for g := range groups {
		t.Run(fmt.Sprintf("group %d", g+1), func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			pages := map[string]string{}
			for i, h := range hardPages {
				pages[fmt.Sprintf("/%d", i)] = h.body
			}
			s := newStage(ctx, t, pages)
			for i, h := range hardPages {
				if i%groups != g {
					continue
				}
				for way, l := range map[string]page.Locator{"selector": {CSS: h.css}, "text": {Text: h.text}} {
					if l == (page.Locator{}) {
						continue
					}
					t.Run(h.name+", by "+way, func(t *testing.T) { s.clickHard(ctx, t, fmt.Sprintf("/%d", i), h, l) })
				}
			}
		})
	}
}

func (s *stage) clickHard(ctx context.Context, t *testing.T, path string, h hard, l page.Locator) {
	t.Helper()
	s.open(ctx, t, path)
	got, err := s.tab.Click(ctx, l, page.ClickOptions{Timeout: testwait.Limit()})
	if err != nil {
		t.Fatal(err)
	}
	want := page.Confirmed
	if strings.Contains(h.expect, "stopped") {
		want = page.Unknown
	}
	if got.Effect != want || len(got.Tried) != 1 {
		t.Errorf("it was clicked with %+v", got)
	}
	expect := h.expect
	if expect == "" {
		expect = "hits === 1"
	}
	s.is(ctx, t, expect)
	// Nothing comes after: one click is one click.
	s.bare.Eval(ctx, t, "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
	s.is(ctx, t, expect)
}

func TestWhatCannotBeClickedIsSaidAndHandedOver(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/covered":  `<button id=go onclick=hit()>Go</button><div id=overlay style="position:fixed;inset:0" onclick="hits+=100">wait</div>`,
		"/frame":    `<iframe src=OTHER/inner2></iframe><div id=overlay style="position:fixed;inset:0" onclick="hits+=100">wait</div>`,
		"/disabled": `<button id=go disabled onclick=hit()>Go</button>`,
		"/aria":     `<div id=menu aria-disabled=true><div role=menuitem id=go onclick=hit()>Go</div></div>`,
		"/inert":    `<main inert><button id=go onclick=hit()>Go</button></main>`,
		"/hidden":   `<button id=go style="visibility:hidden" onclick=hit()>Go</button>`,
		"/moving":   `<style>@keyframes m{from{left:0}to{left:600px}} #go{position:absolute;animation:m 1s linear infinite alternate}</style><button id=go onclick=hit()>Go</button>`,
		// Two frames of it are alike, before it turns and after.
		"/swinging": `<button id=go style="position:absolute" onclick=hit()>Go</button><script>
let n = 0, swing = go.animate([{left: 0}, {left: '600px'}], 1000)
;(function f() { swing.currentTime = [0, 500, 500, 0][n++ % 4]; requestAnimationFrame(f) })()</script>`,
		// One that is about to begin stands still for some frames.
		"/lingering": `<button id=go style="position:absolute" onclick=hit()>Go</button><script>
let n = 0, late = go.animate([{left: 0}, {left: '600px'}], 1000)
;(function f() { late.currentTime = n++ % 12 ? 0 : 500; requestAnimationFrame(f) })()</script>`,
		"/empty": `<p>nothing here`,
	})
	for _, tt := range []struct {
		path, css, says, outcome string
		code                     fault.Code
	}{
		{"/covered", "#go", "button#go is covered by div#overlay", "covered", fault.ElementNotActionable},
		{"/frame", "#inner", "button#inner is covered by div#overlay", "covered", fault.ElementNotActionable},
		{"/disabled", "#go", "button#go is disabled", "disabled", fault.ElementNotActionable},
		{"/aria", "#go", "div#go is disabled by div#menu", "disabled", fault.ElementNotActionable},
		{"/inert", "#go", "button#go is disabled by main", "disabled", fault.ElementNotActionable},
		{"/hidden", "#go", "button#go is hidden", "hidden", fault.ElementNotActionable},
		{"/moving", "#go", "button#go is still moving", "moving", fault.ElementNotActionable},
		{"/swinging", "#go", "button#go is still moving", "moving", fault.ElementNotActionable},
		{"/lingering", "#go", "button#go is still moving", "moving", fault.ElementNotActionable},
		{"/empty", "#go", `no element matches selector "#go"`, "not_found", fault.ElementNotFound},
	} {
		s.open(ctx, t, tt.path)
		if tt.path == "/frame" {
			s.is(ctx, t, "document.readyState === 'complete'")
		}
		_, err := s.tab.Click(ctx, page.Locator{CSS: tt.css}, page.ClickOptions{Timeout: 700 * time.Millisecond})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v", tt.path, err)
			continue
		}
		next, _ := f.Data["suggested_next"].([]page.Suggestion)
		tried, _ := f.Data["strategies_tried"].([]string)
		if f.Data["success"] != false || f.Data["outcome"] != tt.outcome || f.Data["hitl_required"] != true || len(f.Data) != 5 ||
			!slices.Equal(tried, []string{"S2_CSS", "S7_HITL"}) || len(next) != 1 || next[0].Tool != "oc_handoff_start" ||
			next[0].Arguments["reason"] != "manual_recovery" || !strings.Contains(next[0].Arguments["instruction"], tt.css) || next[0].Why == "" {
			t.Errorf("%s: the answer carries %+v", tt.path, f.Data)
		}
		s.is(ctx, t, "hits === 0")
	}
}

// TestAPersonIsAskedForWhatTheySee: a ref is a name that only the reader of a
// snapshot knows.
func TestAPersonIsAskedForWhatTheySee(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/button": `<button disabled>Pay  <b>now</b></button>`,
		"/field":  `<label>Card number <input disabled value="4111 secret"></label>`,
		"/frame":  `<iframe src=OTHER/inner></iframe>`,
		"/inner":  `<a href=/x style="pointer-events:none" aria-disabled=true>More</a>`,
		"/bare":   `<button disabled style="width:40px;height:20px"></button>`,
	})
	for _, tt := range []struct{ path, end, want string }{
		{"/button", "button", "Please click the button “pay now” on this page;"},
		{"/field", "textbox", "Please click the field “card number” on this page;"},
		{"/frame", "link", "Please click the link “more” on this page;"},
		{"/bare", "button", "Please click the button that has no name on this page;"},
	} {
		s.open(ctx, t, tt.path)
		var ref string
		testwait.For(t, "a ref for the "+tt.end, func() bool {
			for line := range strings.Lines(snapshot(ctx, t, s.tab, page.SnapshotOptions{}).Text) {
				if at, rest, ok := strings.Cut(strings.TrimSpace(line), "] "); ok && strings.HasPrefix(rest, tt.end) {
					ref = strings.TrimPrefix(at, "[")
				}
			}
			return ref != ""
		})
		_, err := s.tab.Click(ctx, page.Locator{Ref: ref}, page.ClickOptions{Timeout: 500 * time.Millisecond})
		next, _ := fault.Of(err).Data["suggested_next"].([]page.Suggestion)
		if len(next) != 1 || !strings.HasPrefix(next[0].Arguments["instruction"], tt.want) {
			t.Errorf("%s: %v; the person is asked: %+v", tt.path, err, next)
		}
	}
}

func TestClicksThatOpenSomethingAreConfirmed(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/":      `<button onclick="window.open('/popup')">Open</button><a href=/popup target=_blank>Blank</a><a href=/popup>Leave</a><button onclick="alert('x');hit()">Ask</button><button onclick="setTimeout(() => location = '/popup')">Later</button>`,
		"/popup": `<script>document.title = "popup"</script>`,
	})
	for _, text := range []string{"Open", "Blank"} {
		s.open(ctx, t, "/")
		got, err := s.tab.Click(ctx, page.Locator{Text: text}, page.ClickOptions{})
		if err != nil || got.Effect != page.Confirmed {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}
		testwait.For(t, text+" in front", func() bool { return len(s.tabs.List()) == 2 && s.title(ctx, t) == "popup" })
		popup := s.front(ctx, t)
		if popup == s.tab {
			t.Fatalf("%s opened in the same tab", text)
		}
		if err := s.inst.Conn().Root().Call(ctx, "Target.closeTarget", map[string]string{"targetId": popup.ID()}, nil); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, "the opener in front", func() bool { return s.front(ctx, t) == s.tab })
	}
	for _, text := range []string{"Leave", "Later"} {
		s.open(ctx, t, "/")
		got, err := s.tab.Click(ctx, page.Locator{Text: text}, page.ClickOptions{})
		if err != nil || got.Effect != page.Confirmed {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}
		if err := s.tab.WaitFor(ctx, page.WaitOptions{URL: "/popup"}); err != nil {
			t.Fatal(err)
		}
	}
	s.open(ctx, t, "/")
	got, err := s.tab.Click(ctx, page.Locator{Text: "Ask"}, page.ClickOptions{})
	if err != nil || got.Effect != page.Confirmed || s.tab.Dialog() == nil {
		t.Fatalf("a click that asks: %+v, %v", got, err)
	}
	if _, err := s.tab.Click(ctx, page.Locator{Text: "Open"}, page.ClickOptions{}); !errors.Is(err, fault.DialogOpen) {
		t.Fatalf("a click under a dialog gave %v", err)
	}
	if err := s.tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	s.is(ctx, t, "hits === 1")
}

func TestACanvasIsPlayedByCoordinates(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<body style="margin:0"><canvas id=c width=600 height=400 style="position:sticky;top:0"></canvas>` + filler + `<script>
		window.at = []; c.onclick = e => at.push(e.offsetX + "," + e.offsetY); scrollTo(0, 300)</script>`,
		"/framed": `<body style="margin:0"><iframe src=OTHER/inner2 style="border:0"></iframe><script>window.seen = []; for (const type of ["mousedown", "click"]) addEventListener(type, e => seen.push(type + " " + e.target.localName), true)</script>`})
	s.open(ctx, t, "/")
	s.is(ctx, t, "scrollY === 300")
	for _, p := range [][2]float64{{100, 200}, {333, 44}} {
		got, err := s.tab.Click(ctx, page.Locator{X: &p[0], Y: &p[1]}, page.ClickOptions{})
		if err != nil || got.Effect != page.Confirmed || got.Strategy != "S3_CDP_COORD" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if at := s.bare.Eval(ctx, t, "at.join(' ')"); at != "100,200 333,44" {
		t.Errorf("the game was clicked at %s", at)
	}
	s.open(ctx, t, "/framed")
	if err := s.tab.WaitFor(ctx, page.WaitOptions{Locator: &page.Locator{CSS: "#inner"}}); err != nil {
		t.Fatal(err)
	}
	x, y := 55.0, 45.0
	if got, err := s.tab.Click(ctx, page.Locator{X: &x, Y: &y}, page.ClickOptions{}); err != nil || got.Effect != page.Confirmed || len(got.Tried) != 1 {
		t.Errorf("a point in a frame: %+v, %v; around it were seen %q", got, err, s.bare.Eval(ctx, t, "seen.join()"))
	}
	s.is(ctx, t, "hits === 1")
	far := 9000.0
	if _, err := s.tab.Click(ctx, page.Locator{X: &far, Y: &far}, page.ClickOptions{}); !errors.Is(err, fault.ElementNotFound) {
		t.Errorf("a point outside gave %v", err)
	}
}
