package page_test

import (
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

func TestElementsAreFoundAsPeopleNameThem(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `
		<script>addEventListener("click", e => window.last = e.target.closest("[id]").id)</script>
		<form onsubmit="return false"><label>Your  e-mail: * <input id=mail></label> <label for=zip>Postal code</label><input id=zip>
		<span id=l1>Card</span> <span id=l2>number</span><input id=card aria-labelledby="l1 l2"><input id=find placeholder="Search the shop">
		<input type=checkbox id=news aria-label="Newsletter"></form>
		<nav id=nav><a id=home href="#">Home</a></nav><h2 id=h>Home</h2><button id=close aria-label=Close>×</button><div role=switch tabindex=0 id=dark>Dark mode</div>
		<button id=icon><img alt="Print page" width=20 height=20></button><select id=country><option>Chile</option></select>
		<p id=t1 data-testid=one>a</p><p id=t2 data-qa=two>b</p><div id=tab role=tab>Prices</div><p id=para>read the <a id=terms href="#">Terms &amp; conditions</a> first</p>`})
	s.open(ctx, t, "/")
	for _, tt := range []struct {
		l    page.Locator
		want string
	}{
		{page.Locator{Label: "your e-mail"}, "mail"},
		{page.Locator{Label: "Postal code"}, "zip"},
		{page.Locator{Label: "card number"}, "card"},
		{page.Locator{Label: "search"}, "find"},
		{page.Locator{Label: "newsletter"}, "news"},
		{page.Locator{Role: "link", Name: "home"}, "home"},
		{page.Locator{Role: "heading", Name: "Home"}, "h"},
		{page.Locator{Role: "button", Name: "close"}, "close"},
		{page.Locator{Role: "button", Name: "print page"}, "icon"},
		{page.Locator{Role: "switch"}, "dark"},
		{page.Locator{Role: "textbox", Name: "Postal code"}, "zip"},
		{page.Locator{Role: "checkbox"}, "news"},
		{page.Locator{Text: "close"}, "close"},
		{page.Locator{Text: "PRINT PAGE"}, "icon"},
		{page.Locator{Text: "terms & conditions"}, "terms"},
		{page.Locator{Text: "search the shop"}, "find"},
		{page.Locator{Text: "prices"}, "tab"},
		{page.Locator{TestID: "one"}, "t1"},
		{page.Locator{TestID: "two"}, "t2"},
		{page.Locator{XPath: "//a[contains(., 'Terms')]"}, "terms"},
		{page.Locator{CSS: "nav > a"}, "home"},
	} {
		s.bare.Eval(ctx, t, "window.last = ''")
		got, err := s.tab.Click(ctx, tt.l, page.ClickOptions{Timeout: testwait.Limit()})
		if err != nil || got.Effect != page.Confirmed {
			t.Errorf("%s: %+v, %v", tt.l, got, err)
			continue
		}
		want := "S1_AX"
		if tt.l.CSS+tt.l.XPath+tt.l.TestID != "" {
			want = "S2_CSS"
		}
		if last := s.bare.Eval(ctx, t, "last"); last != tt.want || got.Strategy != want {
			t.Errorf("%s clicked %q by %s", tt.l, last, got.Strategy)
		}
	}
}

func TestLocatorsThatSayNothingOrTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<button>Go</button>`})
	s.open(ctx, t, "/")
	x := 1.0
	for name, l := range map[string]page.Locator{
		"nothing": {}, "two ways": {CSS: "a", Text: "b"}, "a name alone": {Name: "x"}, "half a point": {X: &x}, "blanks": {Text: "  "},
		"no selector": {CSS: "a[["}, "no xpath": {XPath: "//["}, "a role and a point": {Role: "button", X: &x, Y: &x},
	} {
		if _, err := s.tab.Click(ctx, l, page.ClickOptions{}); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, o := range map[string]page.ClickOptions{"a fourth button": {Button: "fourth"}, "ten clicks": {Count: 10}} {
		if _, err := s.tab.Click(ctx, page.Locator{CSS: "button"}, o); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := s.tab.Click(ctx, page.Locator{Ref: "e99999"}, page.ClickOptions{}); !errors.Is(err, fault.StaleRef) && !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a ref that was never given: %v", err)
	}
}

func TestTheMouseDoesMoreThanClick(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<button id=go>Go</button><script>
		window.log = []
		for (const type of ["click", "dblclick", "contextmenu", "auxclick", "mouseenter"]) go.addEventListener(type, e => { log.push(type + e.button); e.preventDefault() })</script>`})
	for _, tt := range []struct {
		name, want string
		act        func(page.Locator) (page.Clicked, error)
	}{
		{"a double click", "mouseenter0 click0 click0 dblclick0", func(l page.Locator) (page.Clicked, error) {
			return s.tab.Click(ctx, l, page.ClickOptions{Count: 2})
		}},
		{"a right click", "mouseenter0 contextmenu2 auxclick2", func(l page.Locator) (page.Clicked, error) {
			return s.tab.Click(ctx, l, page.ClickOptions{Button: "right"})
		}},
		{"a middle click", "mouseenter0 auxclick1", func(l page.Locator) (page.Clicked, error) {
			return s.tab.Click(ctx, l, page.ClickOptions{Button: "middle"})
		}},
		{"hovering", "mouseenter0", func(l page.Locator) (page.Clicked, error) { return s.tab.Hover(ctx, l, 0) }},
	} {
		s.open(ctx, t, "/")
		// Away from where the last one left it.
		far := 600.0
		if _, err := s.tab.Hover(ctx, page.Locator{X: &far, Y: &far}, 0); err != nil {
			t.Fatal(err)
		}
		s.bare.Eval(ctx, t, "void (log.length = 0)")
		got, err := tt.act(page.Locator{CSS: "#go"})
		if err != nil || got.Effect != page.Confirmed {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
		if log := s.bare.Eval(ctx, t, "log.join(' ')"); log != tt.want {
			t.Errorf("%s was seen as %q", tt.name, log)
		}
	}
}

func TestThingsAreDraggedBothWays(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const boxes = `<style>div{width:120px;height:60px;margin:40px;background:#ddd;user-select:none}</style><div id=a draggable=true>A</div><div id=b>B</div>`
	s := newStage(ctx, t, map[string]string{
		"/native": boxes + `<script>
			a.ondragstart = e => e.dataTransfer.setData("text/plain", "cargo"); b.ondragover = e => e.preventDefault()
			b.ondrop = e => { e.preventDefault(); window.got = e.dataTransfer.getData("text/plain") }</script>`,
		"/link": strings.Replace(boxes, "<div id=a draggable=true>A</div>", "<a id=a href=/x>A</a>", 1) + `<script>
			b.ondragover = e => e.preventDefault(); b.ondrop = e => { e.preventDefault(); window.got = e.dataTransfer.getData("text/uri-list").endsWith("/x") && "cargo" }</script>`,
		"/pointer": strings.Replace(boxes, " draggable=true", "", 1) + `<script>
			a.onpointerdown = e => { a.setPointerCapture(e.pointerId); window.path = 0; a.onpointermove = e => { path++; a.style.transform = "translate(" + (e.clientX - 100) + "px," + (e.clientY - 70) + "px)" } }
			a.onpointerup = e => { a.style.visibility = "hidden"; window.got = path > 3 && document.elementFromPoint(e.clientX, e.clientY) === b && "cargo" }</script>`,
		"/refused": boxes + `<script>a.ondragstart = e => e.preventDefault(); a.onmousedown = () => window.down = 1; onmouseup = e => window.got = e.target === b && "cargo"</script>`,
	})
	for _, path := range []string{"/native", "/link", "/pointer", "/refused"} {
		s.open(ctx, t, path)
		got, err := s.tab.Drag(ctx, page.Locator{CSS: "#a"}, page.Locator{Text: "B"}, testwait.Limit())
		if err != nil || got.Effect != page.Confirmed {
			t.Errorf("%s: %+v, %v", path, got, err)
			continue
		}
		t.Run(path, func(t *testing.T) { s.is(ctx, t, `window.got === "cargo"`) })
	}
	if _, err := s.tab.Drag(ctx, page.Locator{CSS: "#a"}, page.Locator{CSS: "#nowhere"}, 300*time.Millisecond); !errors.Is(err, fault.ElementNotFound) {
		t.Errorf("a drag to nowhere gave %v", err)
	}
}

func TestPagesAndPartsOfThemScroll(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/":      `<body style="margin:0"><div id=list style="height:200px;overflow:auto"><div style="height:2000px">a<p id=item style="margin-top:900px">x</p></div></div><div style="height:5000px;width:4000px"></div><p id=end>end</p>`,
		"/shell": `<style>html,body{height:100%;margin:0;overflow:hidden}</style><main id=main style="height:100%;overflow:auto"><div style="height:4000px"></div></main>`,
	})
	s.open(ctx, t, "/")
	for _, tt := range []struct {
		o    page.ScrollOptions
		want string
	}{
		{page.ScrollOptions{}, "scrollY > 500 && scrollY < 720"},
		{page.ScrollOptions{Direction: "top"}, "scrollY === 0"},
		{page.ScrollOptions{Direction: "down", Amount: 300}, "scrollY === 300"},
		{page.ScrollOptions{Direction: "up", Amount: 100}, "scrollY === 200"},
		{page.ScrollOptions{Direction: "right", Amount: 50}, "scrollX === 50"},
		{page.ScrollOptions{Direction: "bottom"}, "scrollY + innerHeight >= document.documentElement.scrollHeight - 1"},
		{page.ScrollOptions{Locator: &page.Locator{CSS: "#item"}, Direction: "down", Amount: 70}, "list.scrollTop === 70"},
		{page.ScrollOptions{Locator: &page.Locator{CSS: "#list"}, Direction: "bottom"}, "list.scrollTop === list.scrollHeight - list.clientHeight"},
		{page.ScrollOptions{Locator: &page.Locator{CSS: "#end"}}, "end.getBoundingClientRect().bottom <= innerHeight"},
	} {
		if err := s.tab.Scroll(ctx, tt.o); err != nil {
			t.Fatal(err)
		}
		s.is(ctx, t, tt.want)
	}
	s.open(ctx, t, "/shell")
	if err := s.tab.Scroll(ctx, page.ScrollOptions{Direction: "down", Amount: 400}); err != nil {
		t.Fatal(err)
	}
	s.is(ctx, t, "main.scrollTop === 400")
	for name, o := range map[string]page.ScrollOptions{"sideways": {Direction: "sideways"}, "less than nothing": {Direction: "up", Amount: -1}} {
		if err := s.tab.Scroll(ctx, o); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWaitingEndsWithWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/": `<p id=busy>working</p><iframe src=OTHER/inner2></iframe><script>
			setTimeout(() => { busy.hidden = true; document.body.insertAdjacentHTML("beforeend", "<p>All <b>done</b></p><i id=ghost hidden>x</i>") }, 400)
			setTimeout(() => history.pushState(0, "", "/orders/17?token=secret"), 500)</script>`,
		"/closed": `<x-a></x-a><script>document.querySelector("x-a").attachShadow({mode: "closed"}).innerHTML = "<p id=secret>still here</p>"</script>`,
	})
	s.open(ctx, t, "/")
	for _, o := range []page.WaitOptions{
		{Text: "all done"}, {Locator: &page.Locator{CSS: "#busy"}, State: "hidden"}, {Locator: &page.Locator{CSS: "#ghost"}, State: "attached"},
		{URL: "/orders/"}, {URL: "**/orders/*"}, {State: "load"}, {State: "domcontentloaded"}, {State: "networkidle"},
		{Locator: &page.Locator{CSS: "#inner"}}, {Text: "nowhere at all", State: "hidden"}, {URL: "/orders/", Text: "All done", State: "visible"},
	} {
		if err := s.tab.WaitFor(ctx, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	const short = 300 * time.Millisecond
	for _, tt := range []struct {
		o    page.WaitOptions
		says string
	}{
		{page.WaitOptions{Text: "never", Timeout: short}, `no element matches text "never"; the page is at`},
		{page.WaitOptions{Locator: &page.Locator{CSS: "#ghost"}, Timeout: short}, "i#ghost is hidden"},
		{page.WaitOptions{URL: "/paid", Timeout: 2 * time.Second}, "/orders/17, not /paid"},
		{page.WaitOptions{Locator: &page.Locator{CSS: "#inner"}, State: "hidden", Timeout: short}, "button#inner is still visible"},
	} {
		err := s.tab.WaitFor(ctx, tt.o)
		if !errors.Is(err, fault.WaitTimeout) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v", tt.o, err)
		}
	}
	s.open(ctx, t, "/closed")
	for _, l := range []page.Locator{{CSS: "#secret"}, {Text: "still here"}} {
		err := s.tab.WaitFor(ctx, page.WaitOptions{Locator: &l, State: "hidden", Timeout: short})
		if !errors.Is(err, fault.WaitTimeout) || !strings.Contains(err.Error(), "p#secret is still visible") {
			t.Errorf("%s in a closed root: got %v", l, err)
		}
	}
	for name, o := range map[string]page.WaitOptions{
		"nothing": {}, "no state": {State: "ready"}, "a bare element state": {State: "visible"}, "two things": {Text: "a", Locator: &page.Locator{CSS: "b"}},
		"no locator": {Locator: &page.Locator{}}, "no selector": {Locator: &page.Locator{CSS: "[["}}, "no selector, hidden": {Locator: &page.Locator{CSS: "[["}, State: "hidden"},
	} {
		if err := s.tab.WaitFor(ctx, o); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The mouse is switched off, as on a page that is being driven from elsewhere:
// what it sends provably arrives nowhere.
func TestTheLadderIsClimbedOnlyWhenNothingHappened(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/":     `<button id=go onclick=hit()>Go</button>`,
		"/dead": `<svg id=go width=100 height=100><rect width=100 height=100 /></svg><script>window.svg = 0; addEventListener("click", () => svg++)</script>`,
	})
	ignore := func(yes bool) {
		t.Helper()
		if err := s.bare.Session.Call(ctx, "Input.setIgnoreInputEvents", map[string]bool{"ignore": yes}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.open(ctx, t, "/")
	ignore(true)
	got, err := s.tab.Click(ctx, page.Locator{Text: "Go"}, page.ClickOptions{})
	if err != nil || got.Strategy != "S4_JS_INJECT" || got.Effect != page.Confirmed || !slices.Equal(got.Tried, []string{"S1_AX", "S3_CDP_COORD", "S4_JS_INJECT"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	s.is(ctx, t, "hits === 1")
	_, err = s.tab.Click(ctx, page.Locator{Text: "Go"}, page.ClickOptions{Button: "right"})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.ElementNotActionable || f.Data["outcome"] != "no_effect" || !slices.Equal(f.Data["strategies_tried"].([]string), []string{"S1_AX", "S3_CDP_COORD", "S7_HITL"}) {
		t.Fatalf("a right click that arrives nowhere gave %v with %+v", err, f.Data)
	}
	ignore(false)
	got, err = s.tab.Click(ctx, page.Locator{Text: "Go"}, page.ClickOptions{})
	if err != nil || got.Strategy != "S1_AX" {
		t.Fatalf("%+v, %v", got, err)
	}
	s.is(ctx, t, "hits === 2")
	s.open(ctx, t, "/dead")
	if got, err = s.tab.Click(ctx, page.Locator{CSS: "#go"}, page.ClickOptions{}); err != nil || got.Effect != page.Confirmed {
		t.Fatalf("%+v, %v", got, err)
	}
	s.is(ctx, t, "svg === 1")
}

func TestEachRungClicksOnce(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/":        `<button id=go onclick=hit()>Go</button>`,
		"/check":   `<input type=checkbox id=go onclick=hit()>`,
		"/frame":   `<iframe src=OTHER/inner2></iframe>`,
		"/deaf":    `<div id=go style="width:50px;height:50px">no focus</div>`,
		"/stopped": `<button id=go>Go</button><script>for (const type of ["click", "mousedown", "pointerdown", "keydown", "touchstart"]) addEventListener(type, e => { e.stopImmediatePropagation(); if (type === "click") hit() }, true)</script>`,
	})
	for _, rung := range []string{"S2_CSS", "S3_CDP_COORD", "S4_JS_INJECT", "S5_KEYBOARD", "S6_CDP_RAW"} {
		for path, want := range map[string]string{"/": page.Confirmed, "/check": page.Confirmed, "/frame": page.Confirmed, "/stopped": page.Unknown} {
			s.open(ctx, t, path)
			l := page.Locator{CSS: "#go, #inner"}
			if path == "/frame" {
				if err := s.tab.WaitFor(ctx, page.WaitOptions{Locator: &l}); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := s.tab.ClickBy(ctx, rung, l); err != nil || got != want {
				t.Errorf("%s on %s: %q, %v", rung, path, got, err)
			}
			t.Run(rung+" on "+path, func(t *testing.T) { s.is(ctx, t, "hits === 1") })
		}
	}
	s.open(ctx, t, "/deaf")
	if got, err := s.tab.ClickBy(ctx, "S5_KEYBOARD", page.Locator{CSS: "#go"}); err != nil || got != page.None {
		t.Errorf("a key for what takes none: %q, %v", got, err)
	}
}

// The page looks for everything that driving it could leave behind.
func TestThePageSeesNothingOfOurs(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<div id=host></div><button id=go onclick=hit()>Go</button><input id=field aria-label=Field><script>
		window.before = new Set(Object.getOwnPropertyNames(window))
		window.spied = []
		for (const proto of [EventTarget.prototype, Element.prototype, Document.prototype, HTMLElement.prototype, MutationObserver.prototype, ShadowRoot.prototype]) {
			for (const name of Object.getOwnPropertyNames(proto)) {
				const d = Object.getOwnPropertyDescriptor(proto, name)
				if (typeof d.value !== "function" || name === "constructor") continue
				proto[name] = function(...args) { spied.push(name); return d.value.apply(this, args) }
			}
		}
		for (const name of ["getComputedStyle", "requestAnimationFrame", "setTimeout"]) { const real = window[name]; window[name] = (...args) => { spied.push(name); return real.call(window, ...args) } }
		window.changes = []; new window.MutationObserver(list => changes.push(...list.map(m => m.type + " " + m.attributeName))).observe(document, {subtree: true, attributes: true, childList: true, characterData: true})
		window.events = []; for (const type of ["mousemove", "pointerdown", "mousedown", "pointerup", "mouseup", "click"]) addEventListener(type, e => events.push(e.type + " " + e.isTrusted + " " + (e.screenX >= e.clientX)), true)
		document.getElementById("host").attachShadow({mode: "closed"}).innerHTML = "<button>Closed</button>"
		window.spied.length = 0</script>`})
	s.open(ctx, t, "/")
	s.bare.Eval(ctx, t, "void (changes.length = spied.length = 0)")
	for _, l := range []page.Locator{{CSS: "#go"}, {Text: "Go"}, {Text: "Closed"}, {Role: "button", Name: "Go"}, {Label: "Field"}} {
		if _, err := s.tab.Click(ctx, l, page.ClickOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for script, want := range map[string]string{
		`spied.join()`:   "",
		`changes.join()`: "",
		`Object.getOwnPropertyNames(window).filter(n => !before.has(n) && !["before", "spied", "changes", "events"].includes(n)).join()`: "",
		`"tapin" in window`: "false",
		`document.documentElement.outerHTML.includes("tapin")`:              "false",
		`[...new Set(events)].filter(e => !e.includes("true true")).join()`: "",
		`events.filter(e => e.startsWith("click")).length`:                  "5",
		`String(host.shadowRoot)`:                                           "null",
	} {
		if got := s.bare.Eval(ctx, t, script); got != want {
			t.Errorf("%s is %q, not %q", script, got, want)
		}
	}
}

func TestPhonesAndZoomedPagesAreClickedInTheRightPlace(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	const body = `<div style="height:900px;width:600px">a</div><button onclick="hits+=100">No</button><button id=go style="margin-left:300px" onclick=hit()>Go</button><div style="height:2000px"></div>`
	w := visit(t, map[string]string{"/hit.js": hitScript, "/": `<!doctype html><script src=/hit.js></script>` + body + `<iframe src=OTHER/inner></iframe>`,
		"/inner": `<script src=/hit.js></script><button id=inner onclick=hit()>Inner</button>`}, page.Look{Mobile: true, Width: 390, Height: 844})
	s := &stage{web: w, tab: w.front(ctx, t)}
	s.bare = browsertest.Attach(ctx, t, w.inst, target.ID(s.tab.ID()))
	for _, scale := range []float64{0, 3} {
		s.open(ctx, t, "/")
		if scale > 0 {
			if err := s.bare.Session.Call(ctx, "Emulation.setPageScaleFactor", map[string]float64{"pageScaleFactor": scale}, nil); err != nil {
				t.Fatal(err)
			}
			s.is(ctx, t, "visualViewport.scale > 2.5")
		}
		for i, l := range []page.Locator{{CSS: "#go"}, {Text: "Inner"}} {
			got, err := s.tab.Click(ctx, l, page.ClickOptions{Timeout: testwait.Limit()})
			if err != nil || got.Effect != page.Confirmed || len(got.Tried) != 1 {
				t.Errorf("%s at scale %v: %+v, %v", l, scale, got, err)
			}
			s.is(ctx, t, fmt.Sprintf("hits === %d", i+1))
		}
	}
}

func TestAClickCostsLittleMoreThanARawOne(t *testing.T) {
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<button id=go onclick=hit()>Go</button>`})
	s.open(ctx, t, "/")
	const times = 20
	measure := func(click func()) time.Duration {
		var took []time.Duration
		for range times {
			began := time.Now()
			click()
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[times/2]
	}
	raw := measure(func() {
		for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
			if err := s.bare.Session.Call(ctx, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": 20, "y": 18, "button": "left", "clickCount": 1}, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
	by := func(l page.Locator) time.Duration {
		return measure(func() {
			if _, err := s.tab.Click(ctx, l, page.ClickOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	css, text := by(page.Locator{CSS: "#go"}), by(page.Locator{Text: "Go"})
	t.Logf("median of a click: raw %s, by selector %s, by text %s", raw, css, text)
	s.is(ctx, t, "hits === 60")
}
