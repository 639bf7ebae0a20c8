package browser

import (
	"context"
	"time"
)

// Sharer is a provider that can put many private contexts into one browser,
// each with a guarded way to the network of its own. Safe for concurrent use.
type Sharer interface {
	// Share starts a browser for contexts of others. Its spec's state and
	// downloads mean nothing: every context begins empty, and keeps no file.
	Share(ctx context.Context, spec Spec) (Shared, error)
}

// Shared is one browser of ours in which contexts come and go. Safe for
// concurrent use.
type Shared interface {
	// Ref finds the browser again, to end it.
	Ref() Ref
	// Context makes an empty context. Its End takes the context away with
	// everything in it and its connections; the browser stays.
	Context(ctx context.Context) (Roommate, error)
	// Done is closed when the browser is gone or no longer ours.
	Done() <-chan struct{}
	// KeepUntil moves the time past which the browser ends without us.
	KeepUntil(ctx context.Context, t time.Time) error
	// End ends the browser and returns when nothing of it is left.
	End(ctx context.Context) error
}

// Roommate is an instance that is one of several contexts of a browser: it
// hears of everybody's pages, and only those of its own context are its.
type Roommate interface {
	Instance
	// Lane is the mark on what the network guard says of this context.
	Lane() string
	// Agent is what the browser calls itself.
	Agent() string
}
