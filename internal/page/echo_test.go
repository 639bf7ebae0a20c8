package page_test

import (
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// Whoever hears a click, or keeps it to itself: it is told of once, with
// what the page calls itself by then.
func TestAClickIsToldOfInWhateverWayThePageTakesIt(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const start = `<title>Before</title><script>n = 0; went = () => { n++; document.title = "After " + n }</script>`
	pages := map[string]string{
		"/plain":    start + `<button type=button id=p onclick="went()">Go</button>`,
		"/stopped":  start + `<button type=button id=p onclick="went(); event.stopImmediatePropagation()">Go</button>`,
		"/link":     start + `<a id=p href="#there" onclick="went()">Go</a>`,
		"/handled":  start + `<a id=p href="/plain" onclick="went(); event.preventDefault()">Go</a>`,
		"/form":     start + `<form onsubmit="went(); return false"><button id=p>Go</button></form>`,
		"/checkbox": start + `<input type=checkbox id=p onchange="went()">`,
		"/removed":  start + `<button type=button id=p onclick="went(); this.remove()">Go</button>`,
		"/slow":     start + `<button type=button id=p onclick="went(); const until = performance.now() + 120; while (performance.now() < until);">Go</button>`,
		"/framed":   start + `<button type=button id=p onclick="went()">Go</button><iframe srcdoc="beside"></iframe>`,
	}
	d := sitAt(ctx, t, pages)
	for path := range pages {
		d.open(ctx, t, path)
		clicked, err := d.tab.Click(ctx, css("#p"), page.ClickOptions{Timeout: testwait.Limit()})
		if err != nil || clicked.Effect != page.Confirmed {
			t.Errorf("%s: %+v, %v", path, clicked, err)
		}
		if err := d.tabs.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if _, title := d.tab.Address(); title != "After 1" {
			t.Errorf("%s is called %q after the click", path, title)
		}
		d.says(ctx, t, "String(n)", "1")
	}
	d.open(ctx, t, "/plain")
	if clicked, err := d.tab.Click(ctx, css("#p"), page.ClickOptions{Count: 2}); err != nil || clicked.Effect != page.Confirmed {
		t.Errorf("a double click: %+v, %v", clicked, err)
	}
	d.says(ctx, t, "String(n)", "2")
}

func TestAClickThatLeadsElsewhereSaysWhere(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/link":   `<a id=p href="/there">Go</a>`,
		"/script": `<button type=button id=p onclick="location.href = '/there'">Go</button>`,
		"/form":   `<form action="/there"><input type=hidden name=target><button id=p>Go</button></form>`,
		"/there":  `<title>There</title>`,
	})
	for _, path := range []string{"/link", "/script", "/form"} {
		d.open(ctx, t, path)
		clicked, err := d.tab.Click(ctx, css("#p"), page.ClickOptions{})
		if err != nil || clicked.Effect != page.Confirmed {
			t.Errorf("%s: %+v, %v", path, clicked, err)
		}
		if err := d.tabs.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if url, _ := d.tab.Address(); !strings.HasPrefix(url, d.URL+"/there") {
			t.Errorf("%s: the click led to %q", path, url)
		}
	}
}
