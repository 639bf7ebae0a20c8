package page_test

import (
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func TestGlancesTellOfEveryChange(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": `<!doctype html><title>one</title>`, "/two": `<!doctype html><title>two</title>`}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	defer watch.Close()
	// until waits by the glances' own word alone.
	until := func(what string, is func([]page.Glance) bool) {
		t.Helper()
		late := testwait.Over()
		for {
			now, changed := w.tabs.Glances()
			if is(now) {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("%s: not told; %+v", what, now)
			}
		}
	}
	until("the first page", func(g []page.Glance) bool {
		return g[0].Title == "one" && g[0].URL == w.URL+"/" && g[0].Front && !g[0].Loading
	})
	w.eval(ctx, t, tab, `document.title = 'renamed'`)
	until("a title that a script gave", func(g []page.Glance) bool { return g[0].Title == "renamed" })
	w.eval(ctx, t, tab, `history.pushState(0, '', '/elsewhere')`)
	until("a move within the document", func(g []page.Glance) bool { return g[0].URL == w.URL+"/elsewhere" })
	w.eval(ctx, t, tab, `void setTimeout(() => confirm('sure?'))`)
	until("a dialog", func(g []page.Glance) bool { return g[0].Dialog != nil && g[0].Dialog.Message == "sure?" })
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	until("the dialog's end", func(g []page.Glance) bool { return g[0].Dialog == nil })
	w.eval(ctx, t, tab, `void window.open('/two')`)
	until("a window of its own", func(g []page.Glance) bool {
		return len(g) == 2 && g[0].ID == tab.ID() && !g[0].Front && g[1].Front && g[1].Title == "two"
	})
	if err := w.tabs.Switch(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	until("the other tab in front", func(g []page.Glance) bool { return g[0].Front && !g[1].Front })
}
