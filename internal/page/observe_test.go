package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

var observeKey = []byte("of this house")

func TestAnObservationHoldsNothingThatWasTyped(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{
		"/in/3f9a8b7c6d5e4f3a2b1c0d9e;jsessionid=A1B2C3": `<input id=name><input id=pw type=password><iframe src="OTHER/frame"></iframe><iframe srcdoc="<textarea>frame words</textarea>"></iframe>
			<input type=hidden value=hiddenvalue><input type=submit value="Sign in"><input id=few value=ab><div contenteditable id=rich></div><x-box></x-box>`,
		"/frame": `<input value="other-site">`,
	})
	if _, err := s.tab.Navigate(ctx, s.URL+"/in/3f9a8b7c6d5e4f3a2b1c0d9e;jsessionid=A1B2C3?token=q#frag", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	s.bare.Eval(ctx, t, `(() => {
		document.getElementById("name").value = "marigold"; pw.value = "open sesame"; rich.textContent = "rich words"
		document.querySelector("x-box").attachShadow({mode: "closed"}).innerHTML = "<input value='closed words'>"
		document.title = "marigold: open sesame, hiddenvalue, Sign in, ab, marigolds, A1b2C3d4E5f6G7h8I9j0"
		localStorage.b = "v1"; localStorage.marigold = "v2"; localStorage["session-0123456789abcdefABCDEF"] = "v3"; sessionStorage.z = "v4"; sessionStorage.a = "v5"
		document.cookie = "a=1"; document.cookie = "b=2; path=/elsewhere" })()`)
	got, err := s.tab.Observe(ctx, page.ObserveOptions{Key: observeKey, Conceal: []string{"give open sesame to other-site", "closed words, rich words, frame words", "plain"}})
	if err != nil {
		t.Fatal(err)
	}
	want := page.Observation{
		URL: s.URL + "/in/‹hidden:24›", Origin: s.URL, Title: "‹hidden:8›: ‹hidden:11›, hiddenvalue, Sign in, ab, marigolds, ‹hidden:20›",
		Cookies: 1, LocalKeys: []string{"b", "‹hidden:30›", "‹hidden:8›"}, SessionKeys: []string{"a", "z"},
		Concealed: []string{"give ‹hidden:11› to ‹hidden:10›", "‹hidden:12›, ‹hidden:10›, ‹hidden:11›", "plain"}, Fingerprint: got.Fingerprint,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	other, err := s.tab.Observe(ctx, page.ObserveOptions{Key: []byte("of another house")})
	if err != nil || other.Fingerprint == got.Fingerprint {
		t.Errorf("two houses have the same fingerprint: %v", err)
	}
	if _, err := s.tab.Observe(ctx, page.ObserveOptions{}); err == nil {
		t.Error("a fingerprint without a key can be guessed, and was made")
	}
}

func TestCookiesAreCountedAsTheBrowserWouldSendThem(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/deep/in" {
			for _, c := range []string{"plain=1", "script=2; HttpOnly; Path=/", "strict=3; SameSite=Strict", "root=4; Path=/", "other=5; Path=/else", "old=6; Max-Age=0"} {
				w.Header().Add("Set-Cookie", c)
			}
		}
		_, _ = fmt.Fprint(w, "<p>hello</p>")
	}))
	t.Cleanup(site.Close)
	s := newStage(ctx, t, nil)
	for path, want := range map[string]int{"/deep/in": 4, "/": 2, "/else/where": 3} {
		if _, err := s.tab.Navigate(ctx, site.URL+"/deep/in", page.WaitLoad); err != nil {
			t.Fatal(err)
		}
		if _, err := s.tab.Navigate(ctx, site.URL+path, page.WaitLoad); err != nil {
			t.Fatal(err)
		}
		got, err := s.tab.Observe(ctx, page.ObserveOptions{Key: observeKey})
		if err != nil || got.Cookies != want {
			t.Errorf("%s: %d cookies, not %d, %v", path, got.Cookies, want, err)
		}
	}
}

func TestAPageThatCannotAnswerIsObservedFromOutside(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<button onclick="alert('x')">Ask</button>`})
	s.open(ctx, t, "/?token=1")
	if _, err := s.tab.Click(ctx, page.Locator{CSS: "button"}, page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	options := page.ObserveOptions{Key: observeKey, Conceal: []string{"look at A1b2C3d4E5f6G7h8I9j0"}}
	want := page.Observation{URL: s.URL + "/", Origin: s.URL, Partial: true, Concealed: []string{"look at ‹hidden:20›"}}
	got, err := s.tab.Observe(ctx, options)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("behind a dialog: %v\n%s", err, diff)
	}
	if err := s.tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	s.crash(ctx, t)
	got, err = s.tab.Observe(ctx, options)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("after a crash: %v\n%s", err, diff)
	}
	blank := page.Observation{URL: "about:blank", LocalKeys: []string{}, SessionKeys: []string{}, Concealed: []string{}}
	if _, err := s.tab.Navigate(ctx, "about:blank", ""); err != nil {
		t.Fatal(err)
	}
	got, err = s.tab.Observe(ctx, page.ObserveOptions{Key: observeKey})
	blank.Fingerprint = got.Fingerprint
	if diff := cmp.Diff(blank, got); err != nil || diff != "" {
		t.Errorf("a blank page: %v\n%s", err, diff)
	}
}

func TestConditionsHoldOrNot(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/shop/cart": `<h1>Your  cart</h1><button id=pay>Pay <b>now</b></button><p hidden id=gone>Sold out</p>
		<iframe src="OTHER/far" id=far></iframe><iframe srcdoc="<p id=unseen>Unseen words</p>" style="visibility:hidden"></iframe>
		<div id=open></div><x-box></x-box><label><input type=checkbox id=news hidden>News</label>
		<script>document.getElementById("open").attachShadow({mode: "open"}).innerHTML = "<i class=in>Inside</i>"
		document.querySelector("x-box").attachShadow({mode: "closed"}).innerHTML = "<i class=deep>Deep inside</i>"</script>`,
		"/far": `<p class=far>Far away</p>`})
	if _, err := s.tab.Navigate(ctx, s.URL+"/shop/cart?step=2#x", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	s.bare.Eval(ctx, t, `(() => {
		window.noticed = []
		for (const type of ["scroll", "focus", "blur", "resize", "mousemove", "keydown", "visibilitychange"]) addEventListener(type, () => noticed.push(type), true)
		new MutationObserver(all => noticed.push(...all.map(m => m.type))).observe(document, {subtree: true, attributes: true, childList: true, characterData: true}) })()`)
	for _, tt := range []struct {
		c    page.Condition
		want bool
	}{
		{page.Condition{URL: "/shop/"}, true},
		{page.Condition{URL: "127.0.0.1*cart?step=*#x"}, true},
		{page.Condition{URL: "cart*shop"}, false},
		{page.Condition{URL: "/SHOP/"}, false},
		{page.Condition{Text: "your cart"}, true},
		{page.Condition{Text: "Pay now"}, true},
		{page.Condition{Text: "sold out"}, false},
		{page.Condition{Text: "far away"}, true},
		{page.Condition{Text: "unseen words"}, false},
		{page.Condition{Text: "deep inside"}, true},
		{page.Condition{Visible: "#pay"}, true},
		{page.Condition{Visible: ".far"}, true},
		{page.Condition{Visible: ".in"}, true},
		{page.Condition{Visible: ".deep"}, true},
		{page.Condition{Visible: "#news"}, true}, // by its label
		{page.Condition{Visible: "#unseen"}, false},
		{page.Condition{Visible: "#gone"}, false},
		{page.Condition{Absent: "#gone"}, true},
		{page.Condition{Absent: "#never"}, true},
		{page.Condition{Absent: "#unseen"}, true},
		{page.Condition{Absent: ".far"}, false},
		{page.Condition{Absent: ".deep"}, false},
	} {
		got, err := s.tab.Holds(ctx, []page.Condition{tt.c})
		if err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("%+v: %v, %v", tt.c, got, err)
		}
	}
	got, err := s.tab.Holds(ctx, []page.Condition{{Text: "your cart"}, {URL: "nowhere"}, {Absent: "#pay"}, {URL: "cart"}})
	if diff := cmp.Diff([]bool{true, false, false, true}, got); err != nil || diff != "" {
		t.Errorf("several at once: %v %s", err, diff)
	}
	if _, err := s.tab.Observe(ctx, page.ObserveOptions{Key: observeKey}); err != nil {
		t.Error(err)
	}
	if noticed := s.bare.Eval(ctx, t, `new Promise(r => setTimeout(r)).then(() => noticed.join())`); noticed != "" {
		t.Errorf("the page noticed that it was looked at: %s", noticed)
	}
	for _, c := range []page.Condition{{}, {URL: "a", Text: "b"}, {Text: "  "}, {Visible: "a[["}, {Absent: "::nothing("}} {
		if _, err := s.tab.Holds(ctx, []page.Condition{c}); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestWhatCannotBeSeenToHoldDoesNot(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<button onclick="alert('x')">Ask</button>`})
	conditions := []page.Condition{{URL: s.URL}, {Text: "ask"}, {Visible: "button"}, {Absent: "#never"}}
	check := func(when string, want ...bool) {
		t.Helper()
		got, err := s.tab.Holds(ctx, conditions)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", when, err, diff)
		}
	}
	s.open(ctx, t, "/")
	check("a page", true, true, true, true)
	if _, err := s.tab.Click(ctx, page.Locator{CSS: "button"}, page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	check("behind a dialog", true, false, false, false)
	if err := s.tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.bare.Session.Send(ctx, "Runtime.evaluate", map[string]string{"expression": "for (;;);"}); err != nil {
		t.Fatal(err)
	}
	check("a page that is busy", true, false, false, false)
	if err := s.bare.Session.Send(ctx, "Runtime.terminateExecution", struct{}{}); err != nil {
		t.Fatal(err)
	}
	s.crash(ctx, t)
	check("a crashed page", false, false, false, false)
}

func TestAFrameThatHangsKeepsNobodyFromLooking(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<h1>Here</h1><button onclick=hit()>Pay now please</button><x-box></x-box><iframe src="OTHER/hangs"></iframe>`,
		"/hangs": `<p>Hangs</p><script>onmessage = () => { for (;;); }</script>`})
	if _, err := s.tab.Navigate(ctx, s.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	before, err := s.tab.Observe(ctx, page.ObserveOptions{Key: observeKey})
	if err != nil {
		t.Fatal(err)
	}
	s.bare.Eval(ctx, t, `frames[0].postMessage("", "*")`)
	testwait.For(t, "the frame to hang", func() bool {
		got, err := s.tab.Holds(ctx, []page.Condition{{Text: "hangs"}})
		return err == nil && !got[0]
	})
	got, err := s.tab.Holds(ctx, []page.Condition{{Text: "here"}, {Absent: "#never"}, {Absent: "h1"}})
	if diff := cmp.Diff([]bool{true, false, false}, got); err != nil || diff != "" { // the frame may show #never
		t.Errorf("%v %s", err, diff)
	}
	after, err := s.tab.Observe(ctx, page.ObserveOptions{Key: observeKey})
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := s.tab.Click(ctx, page.Locator{Text: "pay now"}, page.ClickOptions{}); err != nil || got.Effect != page.Confirmed {
		t.Errorf("%+v, %v", got, err)
	}
}

// crash ends the renderer of the page.
func (s *stage) crash(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := s.bare.Session.Send(ctx, "Page.crash", struct{}{}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the crash", s.tab.HasCrashed)
}

func TestAPatternIsFoundWhereverItsPartsStandInOrder(t *testing.T) {
	t.Parallel()
	part := rapid.StringMatching(`[a-z/:.?=#]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		parts, between := rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), rapid.SliceOfN(part, 6, 6).Draw(t, "between")
		address := between[0]
		for i, p := range parts {
			address += p + between[i+1]
		}
		pattern := strings.Join(parts, "*")
		if !page.AddressHas(address, pattern) {
			t.Fatalf("%q is not found in %q", pattern, address)
		}
		if page.AddressHas(address, pattern+"*Z") || page.AddressHas(address, "Z*"+pattern) {
			t.Fatalf("more than %q is found in %q", pattern, address)
		}
	})
}

func FuzzKeptAddress(f *testing.F) {
	for _, seed := range []string{"https://u:p@host:8/a/b;c=d?q#f", "data:text/html,<p>", "blob:https://x/1", "about:blank", "https://x/%2F?%23", "http://[::1]/a", "//x@y/z", "javascript:alert(1)", "https://x/‹hidden:3›"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		got := page.KeptAddress(address)
		_, rest, _ := strings.Cut(got, "://")
		host, _, _ := strings.Cut(rest, "/")
		if strings.ContainsAny(got, "?#;") || strings.Contains(host, "@") {
			t.Errorf("%q was kept as %q", address, got)
		}
		if again := page.KeptAddress(got); strings.HasPrefix(got, "http") && again != got && !strings.Contains(got, "‹") {
			t.Errorf("%q became %q, then %q", address, got, again)
		}
	})
}
