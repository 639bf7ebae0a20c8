package local

import (
	"context"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/local/holder"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

var _ browser.Instance = (*instance)(nil)

// endWithin bounds the end of a browser, its tree and its folder.
const endWithin = 5 * time.Second

type instance struct {
	provider *Provider
	dir      string
	client   *holder.Client
	conn     *cdp.Conn
	ref      browser.Ref
	unused   bool // it was not found again
}

func (i *instance) Ref() browser.Ref { return i.ref }
func (i *instance) Conn() *cdp.Conn  { return i.conn }
func (i *instance) Exclusive() bool  { return true }
func (i *instance) Unused() bool     { return i.unused }
func (i *instance) Unseen() bool     { return !i.provider.opts.Headful }

// LiveViewURL is empty: tapin's own live view serves local browsers.
func (i *instance) LiveViewURL(context.Context, string) (secret.Text, error) {
	return secret.Text{}, nil
}

func (i *instance) KeepUntil(ctx context.Context, t time.Time) error {
	return fault.Wrap(fault.BrowserLost, "keep the browser", i.client.KeepUntil(ctx, t))
}

func (i *instance) SetPolicy(ctx context.Context, p egress.Policy) error {
	return fault.Wrap(fault.BrowserLost, "set the network policy", i.client.SetPolicy(ctx, p))
}

func (i *instance) Release() error { return i.conn.Close() }

// End ends the browser. One that was lost meanwhile is ended too: what counts
// is that nothing is left.
func (i *instance) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	holder := takePulse(i.dir)
	asked := i.client.End(ctx)
	_ = i.conn.Close()
	if holder.awaitEnd(ctx) && i.provider.sweep(ctx, i.dir) {
		i.provider.spares.ended(i.ref.ID)
		return nil
	}
	if _, lost := cdp.IsLost(asked); lost {
		// Another client holds the browser now, or the holder is stuck.
		return fault.New(fault.BrowserLost, "end the browser", "the browser's holder did not end in time")
	}
	return fault.Wrap(fault.BrowserLost, "end the browser", asked)
}
