package page

import (
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
)

// blockedByClient is what the browser says of a request that we have refused.
const blockedByClient = "net::ERR_BLOCKED_BY_CLIENT"

// judging pauses every request of a page or frame until we have judged it. It
// is for browsers elsewhere, where no guard of ours stands at the network: it
// sees addresses as they are written, not what names resolve to, and neither
// workers nor WebSockets pass by here.
func (t *Tabs) judging() []cdp.Step {
	if t.judge == nil {
		return nil
	}
	return []cdp.Step{{Method: fetch.Enable.Method, Params: fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*"}}}}}
}

// listenForRequests judges what a page or frame asks for. Handlers must not
// wait, so nothing here does.
func (t *Tabs) listenForRequests(s *cdp.Session) {
	if t.judge == nil {
		return
	}
	cdp.Listen(s, fetch.RequestPaused, func(e fetch.EventRequestPaused) {
		err := t.judged(e)
		if err == nil {
			_ = s.Send(t.ctx, fetch.ContinueRequest.Method, fetch.ContinueRequestParams{RequestID: e.RequestID})
			return
		}
		t.refusedByUs(e.Request.URL, err)
		_ = s.Send(t.ctx, fetch.FailRequest.Method, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
	})
}

func (t *Tabs) judged(e fetch.EventRequestPaused) error {
	if e.Request == nil || !strings.HasPrefix(strings.ToLower(e.Request.URL), "http") {
		return nil // what needs no network
	}
	return t.judge(e.Request.URL)
}

// refusedByUs tells of a refusal as the guard tells of its own.
func (t *Tabs) refusedByUs(address string, err error) {
	f := fault.Of(err)
	host, port := hostPort(address)
	b := egress.Block{Host: host, Port: portNumber(port), Hint: f.Hint, At: time.Now()}
	if b.Rule, _ = f.Data["rule"].(string); b.Rule == "" {
		b.Rule = "address"
	}
	t.guard.blocked(b)
	if t.onBlock != nil {
		t.onBlock(b)
	}
}
