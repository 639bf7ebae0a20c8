package page

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/cdp"
)

// arrival hears what the next document says of itself while it comes. Whoever
// asked when it has loaded would wait for a browser that is busy drawing it: some
// milliseconds here, and the whole way to a browser that is elsewhere.
type arrival struct {
	tab   *Tab
	ctx   context.Context //nolint:containedctx // of the one navigation that this belongs to
	deaf  func()
	asked chan bool // whether the next document will tell its outline, once that is known; nil if it will not

	mu   sync.Mutex
	told map[string]account // by the event that it was told at
	news chan struct{}      // closed when there is more, then replaced
}

// account is what a document said of itself, and when in the tab's life.
type account struct {
	At string `json:"at"`
	here
	Outline *outlined `json:"outline"`
	when    mark
}

// arrivalWord begins what is ours on a document's console. No page knows it.
var arrivalWord = sync.OnceValue(func() string { return rand.Text() })

// The console's own domain. It hands texts on and nothing else: nothing of the page
// is called for it, and what was logged is not taken apart.
var (
	consoleOn  = proto.Command[proto.Empty, proto.Empty]{Method: "Console.enable"}
	consoleOff = proto.Command[proto.Empty, proto.Empty]{Method: "Console.disable"}
	logged     = proto.Event[line]{Method: "Console.messageAdded"}
)

type line struct {
	Message struct {
		Text string `json:"text"`
	} `json:"message"`
}

// expect listens until end is called. The browser is told to tell when it is made
// sure that the page can be left: see free.
func (t *Tab) expect(ctx context.Context) *arrival {
	a := &arrival{tab: t, ctx: ctx, told: map[string]account{}, news: make(chan struct{})}
	a.deaf = cdp.Listen(t.session, logged, func(l line) {
		if said, ours := strings.CutPrefix(l.Message.Text, arrivalWord()); ours {
			a.hear(said)
		}
	})
	// What the page before has logged would be told again.
	_ = t.session.Send(ctx, runtime.DiscardConsoleEntries.Method, proto.Empty{})
	return a
}

func (a *arrival) hear(said string) {
	got := account{when: a.tab.life.now()}
	if jsonv2.Unmarshal([]byte(said), &got, jsonv2.AllowInvalidUTF8(true)) != nil {
		return // who asks finds out
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told[got.At] = got
	close(a.news)
	a.news = make(chan struct{})
}

func (a *arrival) end() {
	a.deaf()
	ctx := context.WithoutCancel(a.ctx)
	if a.asked != nil {
		// What was told is kept for whoever listens next, which is nobody.
		_ = a.tab.session.Send(ctx, runtime.DiscardConsoleEntries.Method, proto.Empty{})
	}
	_ = a.tab.session.Send(ctx, consoleOff.Method, proto.Empty{})
}

// toldAt is the event with which a document tells that it has come so far. That
// of one that has loaded comes after what the page does at its load event.
var toldAt = map[string]string{"DOMContentLoaded": "DOMContentLoaded", "load": "pageshow"}

// toldWithin is how long that may take once the browser has told of the state. It
// is on its way then, or does not come.
const toldWithin = 20 * time.Millisecond

// account says where the tab is, if the document that has reached the state has
// told so and is still there.
func (a *arrival) account(state string) (Navigation, bool) {
	at, tells := toldAt[state]
	late := time.NewTimer(toldWithin)
	defer late.Stop()
	for tells && a.tab.Dialog() == nil {
		a.mu.Lock()
		got, told := a.told[at]
		news := a.news
		tells = len(a.told) > 0
		a.mu.Unlock()
		if now := a.tab.life.now(); told && got.when.loader == now.loader {
			return a.tab.navigation(got.here), got.when == now // or it has moved since
		}
		select {
		case <-news:
		case <-late.C:
			return Navigation{}, false
		}
	}
	return Navigation{}, false
}
