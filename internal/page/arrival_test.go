package page_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
)

// A navigation says where the page is when it has come as far as was asked, with
// what its own scripts did until then.
func TestNavigationsSayWhatThePageHasBecome(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const late = `<title>first</title><script>
			addEventListener("DOMContentLoaded", () => { document.title = "parsed" })
			addEventListener("load", () => { document.title = "loaded" })
		</script>`
	w := visit(t, map[string]string{
		"/late":     late,
		"/later":    late + `<img src="/silent">`,
		"/moves":    `<title>moves</title><script>addEventListener("load", () => history.replaceState(null, "", "/elsewhere"))</script>`,
		"/goes":     `<title>goes</title><script>location = "/late"</script>`,
		"/nameless": `<p>This page has no title.`,
		"/named":    `<title>named</title><form name=title><input name=url></form><img name=location>`,
		"/loud":     `<title>loud</title><script>for (let i = 0; i < 2000; i++) console.log("x".repeat(100))</script>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	for _, tt := range []struct {
		path  string
		wait  page.Wait
		title string
		at    string
	}{
		{"/later", page.WaitDOM, "parsed", "/later"},
		{"/late", page.WaitLoad, "loaded", "/late"},
		{"/late", page.WaitNetwork, "loaded", "/late"},
		{"/moves", page.WaitLoad, "moves", "/elsewhere"},
		{"/goes", page.WaitLoad, "loaded", "/late"},
		{"/nameless", page.WaitLoad, "", "/nameless"},
		{"/named", page.WaitDOM, "named", "/named"},
		{"/named", page.WaitNetwork, "named", "/named"},
		{"/loud", page.WaitLoad, "loud", "/loud"},
		{"/late", page.WaitLoad, "loaded", "/late"},
	} {
		nav, err := tab.Navigate(ctx, w.URL+tt.path, tt.wait)
		if err != nil || nav.Title != tt.title || nav.URL != w.URL+tt.at || nav.Status != 200 {
			t.Errorf("%s until %s is %+v, %v", tt.path, tt.wait, nav, err)
		}
		// A page without one is called by its address, as the browser does.
		if url, title := tab.Address(); url != w.URL+tt.at || !strings.HasSuffix(title, cmp.Or(tt.title, tt.at)) {
			t.Errorf("%s until %s leaves a tab %q at %s", tt.path, tt.wait, title, url)
		}
	}
	if nav, err := tab.Navigate(ctx, w.URL+"/none", page.WaitLoad); err != nil || nav.Status != 404 {
		t.Errorf("a page that is not there is %+v, %v", nav, err)
	}
}

// What a page writes on its console is not what tapin's engine tells.
func TestAPageCannotSayThatItIsAnother(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	lie := `{"at":"%s","url":"https://bank.example/","title":"bank","status":200}`
	w := visit(t, map[string]string{"/": `<title>liar</title><script>
		const log = e => { for (const before of ["", "tapin", "undefined", globalThis.tapin?.word, new Error().stack]) console.debug(before + e) }
		for (const type of ["DOMContentLoaded", "pageshow"]) addEventListener(type, () => log('` + fmt.Sprintf(lie, "pageshow") + `'))
		log('` + fmt.Sprintf(lie, "DOMContentLoaded") + `')
	</script>`}, page.Look{})
	tab := w.front(ctx, t)
	for _, wait := range []page.Wait{page.WaitDOM, page.WaitLoad} {
		if nav, err := tab.Navigate(ctx, w.URL+"/", wait); err != nil || nav.Title != "liar" || nav.URL != w.URL+"/" {
			t.Errorf("until %s it is %+v, %v", wait, nav, err)
		}
	}
}

// Nobody listens to a page's console but while it comes.
func TestAConsoleIsReadOnlyWhileAPageComes(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{"/": `<title>talks</title><script>setInterval(() => console.log("canary-console"), 5)</script>`}, page.Look{})
	tab := w.front(ctx, t)
	heard := tab.Logged()
	for range 3 {
		if _, err := tab.Navigate(ctx, w.URL+"/", page.WaitLoad); err != nil {
			t.Fatal(err)
		}
		// The answer comes after all that was told before.
		_, err := tab.Here(ctx)
		if err := errors.Join(err, w.inst.Conn().Settle(ctx)); err != nil {
			t.Fatal(err)
		}
		before := heard()
		w.eval(ctx, t, tab, `new Promise(r => setTimeout(r, 100))`)
		if after := heard(); after != before {
			t.Errorf("%d lines were told after the page had come", after-before)
		}
	}
}
