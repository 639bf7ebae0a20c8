package apiserver

import (
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/secret"
)

// Links are the personal links into live browsers. Safe for concurrent use;
// *link.Room is one.
type Links interface {
	Mint(ctx context.Context, session string, mode link.Mode, until time.Time) (link.Link, secret.Text, error)
	View(ctx context.Context, session string, until time.Time) (link.Link, error)
	Move(ctx context.Context, id string, number int) (link.Link, error)
	Revoke(ctx context.Context, id string) error
	List(ctx context.Context) ([]link.Link, error)
}

// Address is where links lead. Safe for concurrent use; *link.Address is one.
type Address interface {
	Of(link string) string
	Now() (address string, discovered bool)
	Local() string
	Set(ctx context.Context, address string) error
}

// The rooms fit the door.
var (
	_ Links   = (*link.Room)(nil)
	_ Address = (*link.Address)(nil)
)

// ProviderView is the provider's own live view of the tab in front of a session,
// empty where it has none. Whoever has its address can act in the browser.
type ProviderView func(ctx context.Context, session string) (secret.Text, error)

// views are the links and where they lead; both are there or none is.
type views struct {
	links   Links
	address Address
	theirs  ProviderView // nil: people are sent to ours
}

func (v views) ready() error {
	if v.links == nil || v.address == nil {
		return fault.New(fault.Disabled, "", "this server has no live view")
	}
	return nil
}
