package page

import (
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
)

// listen installs what must be in place before the first event is handled.
func (t *Tabs) listen(onBlock func(egress.Block)) {
	t.off = append(t.off,
		cdp.Listen(t.root, target.AttachedToTarget, t.attached),
		cdp.Listen(t.root, target.DetachedFromTarget, func(e target.EventDetachedFromTarget) { t.detached(e.SessionID) }),
		cdp.Listen(t.root, target.TargetCreated, func(e target.EventTargetCreated) { t.created(e.TargetInfo) }),
		t.root.On(browser.EventGap, func(jsonv2.Value) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.gap = true
		}),
		cdp.Listen(t.root, proto.Event[egress.Block]{Method: browser.EventBlocked}, func(b egress.Block) {
			if t.lane != nil && *t.lane != b.Lane {
				return
			}
			t.guard.blocked(b)
			if onBlock != nil {
				onBlock(b)
			}
		}),
		cdp.Listen(t.root, proto.Event[egress.Failure]{Method: browser.EventFailed}, func(f egress.Failure) {
			if t.lane == nil || *t.lane == f.Lane {
				t.guard.failed(f)
			}
		}))
	if t.lane == nil {
		t.listenForDownloads() // a roommate's are refused
	}
}
