package endpoint

import (
	"context"
	"errors"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

var (
	_ browser.Instance = (*instance)(nil)
	_ browser.Distant  = (*instance)(nil)
)

type instance struct {
	conn *cdp.Conn
	ref  browser.Ref
	here bool // the endpoint is on this machine
}

func (i *instance) Ref() browser.Ref { return i.ref }
func (i *instance) Conn() *cdp.Conn  { return i.conn }
func (i *instance) Exclusive() bool  { return false }

// LiveViewURL is empty: an endpoint has none that we know of.
func (i *instance) LiveViewURL(context.Context, string) (secret.Text, error) {
	return secret.Text{}, nil
}

// KeepUntil has no effect: the life of the browser there is not ours to bound.
func (i *instance) KeepUntil(context.Context, time.Time) error { return nil }

// SetPolicy has no effect on the connections of a browser elsewhere; what can
// be checked from here is checked at the door.
func (i *instance) SetPolicy(context.Context, egress.Policy) error { return nil }

// Distant is true unless the endpoint is on this machine: then a file of ours
// has the same name there.
func (i *instance) Distant() bool { return !i.here }

func (i *instance) Release() error { return i.conn.Close() }

// End closes what is ours and nothing else.
func (i *instance) End(ctx context.Context) error {
	defer func() { _ = i.conn.Close() }()
	var err error
	switch {
	case i.ref.Context != "":
		_, err = proto.Call(ctx, i.conn.Root(), target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: proto.BrowserContextID(i.ref.Context)})
	case i.ref.Target != "":
		_, err = proto.Call(ctx, i.conn.Root(), target.CloseTarget, target.CloseTargetParams{TargetID: target.ID(i.ref.Target)})
	}
	if _, gone := errors.AsType[*cdp.Error](err); gone {
		return nil // the browser does not know it any more
	}
	return fault.Wrap(fault.ProviderError, "close our context at the endpoint", err)
}
