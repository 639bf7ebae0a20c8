package page_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// A page that is opened to be read tells what it shows by itself, as it would if
// it was asked then; where it cannot, it is asked.
func TestAPageThatComesTellsWhatItShows(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/plain":  `<meta charset=utf-8><title>plain</title><h1>Hello</h1><button>Buy</button><input aria-label=Name value=Zoë><input type=password value=hunter2>`,
		"/script": `<title>script</title><h1>Hello</h1><script>addEventListener("load", () => setTimeout(() => { document.body.append("later") }, 10))</script>`,
		"/late":   `<title>late</title><h1>Hello</h1><img src="/plain"><script>addEventListener("load", () => { document.body.append("loaded") })</script>`,
		"/frame":  `<title>frame</title><h1>Outside</h1><iframe src="/plain" title=Inside></iframe>`,
		"/shadow": `<title>shadow</title><x-box></x-box><script>document.querySelector("x-box").attachShadow({mode: "open"}).innerHTML = "<iframe src=/plain title=Inside></iframe>"</script>`,
		"/closed": `<title>closed</title><x-box></x-box><script>document.querySelector("x-box").attachShadow({mode: "closed"}).innerHTML = "<button>Buy</button>"</script>`,
		"/goes":   `<title>goes</title><script>location = "/plain"</script>`,
		"/styled": `<!doctype html><title>styled</title><link rel=stylesheet href="/never"><h1>Hello</h1>`,
		"/early":  `<title>early</title><script>for (const type of ["DOMContentLoaded", "pageshow"]) { document.dispatchEvent(new Event(type, {bubbles: true})); dispatchEvent(new Event(type)) }</script><h1>Hello</h1>`,
		"/named":  `<title>named</title><h1>Hello</h1><form name=tapin id=tapin></form><script>console.debug = () => { throw 1 }; JSON.stringify = () => { throw 1 }</script>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	for _, tt := range []struct {
		path    string
		wait    page.Wait
		shows   string
		unasked bool
	}{
		{"/plain", page.WaitDOM, "button: Buy", true},
		{"/plain", page.WaitLoad, "textbox: Name = Zoë", true},
		{"/script", page.WaitLoad, "> later", true},
		{"/late", page.WaitLoad, "> loaded", true},
		{"/frame", page.WaitLoad, "button: Buy", false},
		{"/shadow", page.WaitLoad, "button: Buy", false},
		{"/closed", page.WaitLoad, "button: Buy", false},
		{"/goes", page.WaitLoad, "button: Buy", true},
		{"/named", page.WaitDOM, "h1: Hello", true},
		{"/styled", page.WaitDOM, "h1: Hello", false},
		{"/early", page.WaitDOM, "h1: Hello", true},
		{"/early", page.WaitLoad, "h1: Hello", true},
		{"/plain", page.WaitNetwork, "button: Buy", false},
		{"/plain", page.WaitLoad, "button: Buy", true},
	} {
		nav, shot, err := tab.Visit(ctx, w.URL+tt.path, tt.wait, page.SnapshotOptions{Still: 200 * time.Millisecond})
		if err != nil || nav.Status != 200 || shot == nil {
			t.Fatalf("%s until %s: %+v, %v, %v", tt.path, tt.wait, nav, shot, err)
		}
		if shot.Unasked() != tt.unasked {
			t.Errorf("%s until %s: unasked is %v", tt.path, tt.wait, shot.Unasked())
		}
		if !strings.Contains(shot.Text, tt.shows) || strings.Contains(shot.Text, "hunter2") || shot.Title == "" {
			t.Errorf("%s until %s shows %q", tt.path, tt.wait, shot.Text)
		}
		again, err := tab.Snapshot(ctx, page.SnapshotOptions{})
		if err != nil || again.Text != shot.Text || again.URL != shot.URL || again.Title != shot.Title {
			t.Errorf("%s until %s told\n%+v\nand asked\n%+v, %v", tt.path, tt.wait, *shot, again, err)
		}
	}
	// What was told is of the page that was asked for, and of no later one.
	if _, err := tab.Navigate(ctx, w.URL+"/frame", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	if shot, err := tab.Snapshot(ctx, page.SnapshotOptions{}); err != nil || !strings.Contains(shot.Text, "Outside") {
		t.Errorf("the next page shows %q, %v", shot.Text, err)
	}
}

// A page that never rests, holds everybody up or is none keeps nobody from hearing
// that it was opened.
func TestAPageThatCannotTellIsOpenAllTheSame(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/unquiet": `<title>unquiet</title><h1>Unquiet</h1><p id=n>0</p><script>setInterval(() => { n.textContent++ }, 5)</script>`,
		"/asks":    `<title>asks</title><h1>Asks</h1><p id=n>0</p><script>setInterval(() => { n.textContent++ }, 5); addEventListener("pageshow", () => setTimeout(() => alert("?"), 1500))</script>`,
		"/moves":   `<title>moves</title><h1>Moves</h1><p id=n>0</p><script>setInterval(() => { n.textContent++ }, 5); addEventListener("pageshow", () => setTimeout(() => history.replaceState(null, "", "/elsewhere"), 500))</script>`,
		"/hangs":   `<title>hangs</title><h1>Hangs</h1><script>addEventListener("load", () => setTimeout(() => { const said = new XMLHttpRequest(); said.open("GET", "/hanging", false); said.send(); for (;;); }, 5))</script>`,
		"/plain":   `<title>plain</title><h1>Hello</h1>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	still := page.SnapshotOptions{Still: 200 * time.Millisecond}
	if nav, shot, err := tab.Visit(ctx, w.URL+"/unquiet", page.WaitLoad, still); err != nil || nav.Title != "unquiet" || shot == nil || !strings.Contains(shot.Text, "Unquiet") {
		t.Errorf("a page that never rests is %+v, %v, %v", nav, shot, err)
	}
	busy := page.SnapshotOptions{Still: 2 * time.Second}
	if nav, shot, err := tab.Visit(ctx, w.URL+"/moves", page.WaitLoad, busy); err != nil || nav.Title != "moves" || shot == nil || shot.URL != w.URL+"/elsewhere" {
		t.Errorf("a page that moves is %+v, %+v, %v", nav, shot, err)
	}
	nav, shot, err := tab.Visit(ctx, w.URL+"/asks", page.WaitLoad, busy)
	if err != nil || nav.Title != "asks" || shot != nil {
		t.Errorf("a page with a dialog is %+v, %+v, %v", nav, shot, err)
	}
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	short := page.SnapshotOptions{Still: time.Millisecond}
	if nav, _, err := tab.Visit(ctx, w.URL+"/hangs", page.WaitLoad, short); err != nil || nav.Title != "hangs" {
		t.Errorf("a page that hangs is %+v, %v", nav, err)
	}
	testwait.For(t, "it hangs", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.agents["/hanging"] != ""
	})
	if nav, shot, err := tab.Visit(ctx, w.URL+"/plain", page.WaitLoad, still); err != nil || nav.Title != "plain" || shot == nil || !strings.Contains(shot.Text, "Hello") {
		t.Errorf("after it comes %+v, %v, %v", nav, shot, err)
	}
	if _, _, err := tab.Visit(ctx, w.URL+"/plain", "later", still); err == nil {
		t.Error("a state that there is not was waited for")
	}
	if _, _, err := tab.Visit(ctx, w.URL+"/plain", page.WaitLoad, page.SnapshotOptions{MaxChars: 5}); err == nil {
		t.Error("an outline of 5 characters was promised")
	}
}

// A number that a document gave to itself, and that nobody heard of, is no name of
// anything: another document may have given the same.
func TestRefsOfAnotherDocumentAreStale(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/one": `<title>one</title><button onclick="document.title = 'clicked'">First</button>`,
		"/two": `<title>two</title><button onclick="document.title = 'clicked'">Second</button>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	still := page.SnapshotOptions{Still: 200 * time.Millisecond}
	unask := tab.AskAll(ctx, t, still)
	defer unask()
	_, first, err := tab.Visit(ctx, w.URL+"/one", page.WaitLoad, still)
	if err != nil || first == nil || !strings.Contains(first.Text, "[e1] button: First") {
		t.Fatalf("the first page is %+v, %v", first, err)
	}
	if _, err := tab.Click(ctx, page.Locator{Ref: "e1"}, page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	// It tells its outline too, with the same numbers, but nobody asked for it.
	if _, err := tab.Navigate(ctx, w.URL+"/two", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Click(ctx, page.Locator{Ref: "e1"}, page.ClickOptions{}); !errors.Is(err, fault.StaleRef) {
		t.Errorf("the first page's button was found on the second: %v", err)
	}
	second, err := tab.Snapshot(ctx, page.SnapshotOptions{})
	if err != nil || !strings.Contains(second.Text, "[e2] button: Second") {
		t.Fatalf("the second page is %+v, %v", second, err)
	}
	if _, err := tab.Click(ctx, page.Locator{Ref: "e2"}, page.ClickOptions{}); err != nil {
		t.Errorf("the second page's button: %v", err)
	}
	if nav, err := tab.Travel(ctx, -1, page.WaitLoad); err != nil || !strings.HasSuffix(nav.URL, "/one") {
		t.Fatalf("back is %+v, %v", nav, err)
	}
	if _, err := tab.Click(ctx, page.Locator{Ref: "e2"}, page.ClickOptions{}); !errors.Is(err, fault.StaleRef) {
		t.Errorf("the second page's button was found on the first: %v", err)
	}
}
