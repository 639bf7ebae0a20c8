package browserbase

import (
	"context"
	"fmt"
	"time"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/secret"
)

var (
	_ browser.Instance = (*instance)(nil)
	_ browser.Bounded  = (*instance)(nil)
	_ browser.Courier  = (*instance)(nil)
)

type instance struct {
	provider *Provider
	conn     *cdp.Conn
	ref      browser.Ref
	session  remote
}

func (i *instance) Ref() browser.Ref { return i.ref }
func (i *instance) Conn() *cdp.Conn  { return i.conn }

// Exclusive is true: the whole browser was made for us, and its default context
// is the one that Browserbase keeps and shows.
func (i *instance) Exclusive() bool { return true }

// LiveViewURL is Browserbase's own, which has no sign-in.
func (i *instance) LiveViewURL(ctx context.Context, tab string) (secret.Text, error) {
	return i.provider.liveView(ctx, i.ref.Remote, tab)
}

// KeepUntil has no effect: a session's end is set when it is made. Bounds tells
// when that is, and it was made with some time to spare.
func (i *instance) KeepUntil(context.Context, time.Time) error { return nil }

// SetPolicy has no effect on the connections of a browser elsewhere; what can
// be checked from here is checked at the door.
func (i *instance) SetPolicy(context.Context, egress.Policy) error { return nil }

// Bounds tell when the session ends, and what the plan does not allow.
func (i *instance) Bounds() browser.Bounds {
	b := browser.Bounds{EndsAt: i.session.ExpiresAt, Fragile: !i.session.KeepAlive}
	if b.Fragile {
		b.Notes = append(b.Notes, "This Browserbase plan does not keep browsers alive: if the connection is lost, the page is lost with it, and only the saved login comes back.")
	}
	if life := i.session.ExpiresAt.Sub(i.session.CreatedAt); !i.session.ExpiresAt.IsZero() && life <= freeTimeout {
		b.Notes = append(b.Notes, fmt.Sprintf("Browserbase ends this browser after %s, at %s.", life.Round(time.Second), i.session.ExpiresAt.UTC().Format("15:04 UTC")))
	}
	return b
}

func (i *instance) Release() error {
	i.provider.let(i.ref.ID)
	return i.conn.Close()
}

// End releases the session before the connection: without one it may be ended
// by itself, and would not be seen to be.
func (i *instance) End(ctx context.Context) error {
	err := i.provider.End(ctx, i.ref)
	_ = i.conn.Close()
	return err
}
