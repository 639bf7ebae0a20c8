package page

import (
	"slices"
	"strings"
	"sync"

	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/cdp"
	"tapin/internal/site"
)

// maxOrigins bounds what is remembered; the ones seen longest ago give way.
const maxOrigins = 500

// origins remembers whose pages were shown: a browser can be asked what an
// origin has stored, but not which origins have stored something.
type origins struct {
	mu    sync.Mutex
	list  []string // the one seen last is the last
	onNew func(string)
}

// note remembers the origin of a page, if it is one of the web.
func (o *origins) note(address string) {
	origin, err := site.Origin(address)
	if err != nil || !strings.HasPrefix(origin, "http") {
		return
	}
	o.mu.Lock()
	at := slices.Index(o.list, origin)
	if at >= 0 {
		o.list = slices.Delete(o.list, at, at+1)
	} else if len(o.list) >= maxOrigins {
		o.list = slices.Delete(o.list, 0, 1)
	}
	o.list = append(o.list, origin)
	onNew := o.onNew
	o.mu.Unlock()
	if at < 0 && onNew != nil {
		onNew(origin)
	}
}

// know takes in what others have seen, and who is to hear of new ones.
func (o *origins) know(seen []string, onNew func(string)) {
	for _, origin := range seen {
		o.note(origin)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.onNew = onNew
}

func (o *origins) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.list))
}

// Origins are those that may have stored something: of every page shown, of the
// frames that share its storage, of what Restore put in, and Options.Origins.
func (t *Tabs) Origins() []string { return t.state.origins.seen() }

// listenForOrigins hears whose documents a tab shows. A frame counts where it is
// of the page's own site; one of another site has a storage for use under this
// page alone, which cannot be reached once the page is gone, and is not carried.
func (t *Tab) listenForOrigins(s *cdp.Session) {
	cdp.Listen(s, cdppage.FrameNavigated, func(e cdppage.EventFrameNavigated) {
		top := e.Frame.ID == t.life.frame
		t.mu.Lock()
		if top {
			t.shown = e.Frame.URL
		}
		shown := t.shown
		t.mu.Unlock()
		if top || sameSite(shown, e.Frame.SecurityOrigin) {
			t.tabs.state.origins.note(e.Frame.URL)
		}
	})
}

// sameSite reports whether two addresses are of one site, scheme included.
func sameSite(a, b string) bool {
	schemeA, _, _ := strings.Cut(a, "://")
	schemeB, _, _ := strings.Cut(b, "://")
	return schemeA == schemeB && site.Same(a, b)
}
