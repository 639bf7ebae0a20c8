package page

import (
	"maps"
	"slices"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/cdp"
)

// Glance is what can be said of a tab without asking its page.
type Glance struct {
	ID        string
	URL       string
	Title     string
	Front     bool
	Loading   bool
	Crashed   bool
	Dialog    *Dialog
	Questions []Question     // dialogs aside
	Turns     map[string]int // by their kinds: how often the tab has asked
}

// Glances are those of all tabs, in the order in which they were opened, and a
// channel that is closed as soon as one of them may be different.
func (t *Tabs) Glances() ([]Glance, <-chan struct{}) {
	changed := t.changes.next()
	front := t.front()
	tabs := t.List()
	slices.SortFunc(tabs, func(a, b *Tab) int { return a.number - b.number })
	out := make([]Glance, len(tabs))
	for i, tab := range tabs {
		out[i] = tab.glance()
		out[i].Front = tab == front
	}
	return out, changed
}

func (t *Tab) glance() Glance {
	t.mu.Lock()
	g := Glance{ID: t.ID(), URL: t.url, Title: t.title, Loading: t.loading, Crashed: t.crashed, Dialog: t.dialog, Turns: maps.Clone(t.turns)}
	t.mu.Unlock()
	g.Questions = slices.DeleteFunc(t.Pending(), func(q Question) bool { return q.Kind == AskDialog })
	return g
}

// entitle notes the title that a watch over the fields has seen: the browser
// tells of none.
func (t *Tabs) entitle(tab *Tab, title string) {
	tab.mu.Lock()
	same := tab.title == title || title == "" // the browser calls those by their address
	if !same {
		tab.title = title
	}
	tab.mu.Unlock()
	if !same {
		t.changes.tell()
	}
}

// listenForMoves notes where a tab is and whether it is on its way.
func (t *Tab) listenForMoves(s *cdp.Session) {
	loading := func(id proto.FrameID, now bool) {
		if id != t.life.frame {
			return
		}
		t.mu.Lock()
		same := t.loading == now
		t.loading = now
		t.mu.Unlock()
		if !same {
			t.tabs.changes.tell()
		}
	}
	cdp.Listen(s, cdppage.FrameStartedLoading, func(e cdppage.EventFrameStartedLoading) { loading(e.FrameID, true) })
	cdp.Listen(s, cdppage.FrameStoppedLoading, func(e cdppage.EventFrameStoppedLoading) { loading(e.FrameID, false) })
	moved := func(url string) {
		t.mu.Lock()
		t.url = url
		t.mu.Unlock()
		t.tabs.changes.tell()
	}
	cdp.Listen(s, cdppage.FrameNavigated, func(e cdppage.EventFrameNavigated) {
		if e.Frame.ID == t.life.frame {
			moved(e.Frame.URL + e.Frame.URLFragment)
		}
	})
	cdp.Listen(s, cdppage.NavigatedWithinDocument, func(e cdppage.EventNavigatedWithinDocument) {
		if e.FrameID == t.life.frame {
			moved(e.URL)
		}
	})
	cdp.Listen(s, cdppage.JavascriptDialogClosed, func(cdppage.EventJavascriptDialogClosed) { t.tabs.changes.tell() })
}
