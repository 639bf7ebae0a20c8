// Package browser is where browsers come from: what a provider offers, and what
// one running browser of ours is. It owns the vocabulary that local, endpoint
// and cloud providers share. It must never touch a browser or tab that tapin
// did not create.
package browser

import (
	"context"
	"errors"
	"time"

	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/secret"
)

// Provider makes browsers and finds them again. Implementations are safe for
// concurrent use; browsertest.Run proves them.
type Provider interface {
	// Name is the provider's name in config and records.
	Name() string
	// Create makes a browser with a private, empty profile and connects to it.
	// When it fails, nothing is left behind.
	Create(ctx context.Context, spec Spec) (Instance, error)
	// Reconnect connects to a browser that Create made, in this process or an
	// earlier one. An older connection of ours to it is cut.
	Reconnect(ctx context.Context, ref Ref) (Instance, error)
	// Own returns which browsers of ours still run: those of known that can be
	// found, and, where the provider can list by our mark, all others too.
	Own(ctx context.Context, known []Ref) ([]Ref, error)
	// End ends a browser of ours without connecting to it first. Ending one
	// that is gone is no error.
	End(ctx context.Context, ref Ref) error
}

// ErrTakenOver says that a later process has the browser now: it is not ours to
// touch any more.
var ErrTakenOver = errors.New("another sidecar has taken over")

// HasEnded reports whether a lost connection means a browser that is gone, so
// that there is nothing to connect to again.
func HasEnded(err error) bool {
	lost, ok := cdp.IsLost(err)
	return ok && lost.Ended
}

// Instance is one running browser we are connected to.
type Instance interface {
	// Ref finds the browser again after a restart.
	Ref() Ref
	// Conn is the connection. Its events wait until somebody calls Dispatch.
	Conn() *cdp.Conn
	// Exclusive reports whether every page of this browser is ours.
	Exclusive() bool
	// LiveViewURL is the provider's own live view of a tab, empty where it has
	// none. Whoever has it can act in the tab.
	LiveViewURL(ctx context.Context, tab string) (secret.Text, error)
	// KeepUntil moves the time past which the browser ends without us.
	KeepUntil(ctx context.Context, t time.Time) error
	// SetPolicy replaces the network policy where the provider enforces one.
	SetPolicy(ctx context.Context, p egress.Policy) error
	// Release lets go of the browser; it lives on.
	Release() error
	// End ends the browser and returns when nothing of it is left.
	End(ctx context.Context) error
}

// Spec is what a new browser should be like.
type Spec struct {
	ID        string        // our name for it, and the mark of ownership
	State     *State        // a saved login to begin with; nil means none
	Downloads string        // folder for downloads, empty means they are refused
	KeepUntil time.Time     // when it ends without us
	Policy    egress.Policy // what its pages may reach
	Width     int           // of its window in CSS pixels; 0 means the provider's own
	Height    int
	Record    bool   // the provider is to record it, where it can
	Kept      string // the login that the provider itself keeps and that it begins with; empty means none
	Persist   bool   // what it becomes is kept there again when it ends
	Ahead     bool   // one that was started, and opened, before anybody asked will do
}

// Ref is what a record keeps to find a browser again. It holds no secret.
type Ref struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`                // Spec.ID, or that of a browser that was ready before
	Context  string `json:"context,omitempty"` // the browser context that is ours; empty where a tab is
	Target   string `json:"target,omitempty"`  // the tab that is ours, where there is no context
	Remote   string `json:"remote,omitempty"`  // the provider's own name for it
}

// State is what makes a browser logged in.
type State struct {
	Cookies []Cookie
	Origins []OriginState // by origin, in its order; each origin at most once
}

// OriginState is what one origin has stored, seen as the top-level page. A part
// that is nil is not known, or is to be left alone; one that is empty is empty.
type OriginState struct {
	Origin    string
	Local     []Item // localStorage, in the order of its keys
	Session   []Item // sessionStorage of the tab in front, in the order of its keys
	Databases []byte // IndexedDB as the page engine encodes it: typed, opaque JSON
}

// Item is one entry of a web storage. Keys may be secrets too.
type Item struct {
	Key   secret.Text
	Value secret.Text
}

// News that do not come from the browser itself but from what stands around
// it, delivered to the root session as events.
const (
	EventGap     = "Tapin.gap"     // Gap
	EventBlocked = "Tapin.blocked" // egress.Block
	EventFailed  = "Tapin.failed"  // egress.Failure
)

// Gap tells a client that follows another on the same browser that the replay
// is over: what is so was repeated as events, everything else that happened
// meanwhile must be read anew. A first client gets one too, with nothing before it.
type Gap struct {
	AwayMS int64  `json:"away_ms"`
	Missed uint64 `json:"missed"` // events that came while nobody was connected
	Blocks uint64 `json:"blocks"` // requests the guard refused meanwhile
}
