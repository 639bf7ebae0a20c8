package page

import (
	"context"
	"strings"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"

	"tapin/internal/cdp"
)

// arrival follows the next document while it comes. What the browser itself knows
// of it need not be asked of the page, which is busy being drawn when it has loaded.
type arrival struct {
	tab  *Tab
	ctx  context.Context //nolint:containedctx // of the one navigation that this belongs to
	deaf func()

	mu     sync.Mutex
	loader proto.LoaderID
	status int
	quiet  bool // the browser tells of requests no more
}

// answer is the little that is read of an answer to a request.
type answer struct {
	LoaderID proto.LoaderID `json:"loaderId"`
	FrameID  proto.FrameID  `json:"frameId"`
	Type     string         `json:"type"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

var answered = proto.Event[answer]{Method: network.ResponseReceived.Method}

// expect has the browser tell of requests until the first document has an answer,
// or end is called: a page makes many more.
func (t *Tab) expect(ctx context.Context) *arrival {
	a := &arrival{tab: t, ctx: ctx}
	a.deaf = cdp.Listen(t.session, answered, func(e answer) {
		if e.FrameID == t.frames.main && e.Type == string(network.ResourceTypeDocument) {
			a.came(e.LoaderID, e.Response.Status)
		}
	})
	nothing := int64(0)
	_ = t.session.Send(ctx, network.Enable.Method, network.EnableParams{MaxTotalBufferSize: &nothing, MaxResourceBufferSize: &nothing})
	return a
}

func (a *arrival) came(loader proto.LoaderID, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loader, a.status = loader, status
	a.hush()
}

// hush is called with the lock held.
func (a *arrival) hush() {
	if !a.quiet {
		a.quiet = true
		_ = a.tab.session.Send(context.WithoutCancel(a.ctx), network.Disable.Method, proto.Empty{})
	}
}

func (a *arrival) end() {
	a.deaf()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hush()
}

// account says where the tab is, if the document that was followed is still the
// one that is there and has a title: of one without, and of an error, only the
// page itself can tell.
func (a *arrival) account(ctx context.Context) (Navigation, bool) {
	a.mu.Lock()
	loader, status := a.loader, a.status
	a.mu.Unlock()
	if loader == "" || loader != a.tab.life.now().loader || a.tab.Dialog() != nil || a.tab.tabs.readAddresses(ctx) != nil {
		return Navigation{}, false
	}
	url, title := a.tab.Address()
	if title == "" || strings.HasSuffix(strings.TrimSuffix(url, "/"), strings.TrimSuffix(title, "/")) || status >= 400 {
		return Navigation{}, false
	}
	return Navigation{URL: url, Title: title, Status: status}, true
}
