package browser

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// Traits are what is special about a provider. The zero value is a browser that
// costs nothing, is not recorded, and whose logins only we keep.
type Traits struct {
	Billed  bool // it costs by the minute: nothing of ours may run on unused
	Records bool // it can record a session
	Found   bool // whatever a kill left of its browsers is found again without a record
}

// Special is a Provider with traits.
type Special interface{ Traits() Traits }

// TraitsOf are those of a provider.
func TraitsOf(p Provider) Traits {
	if s, ok := p.(Special); ok {
		return s.Traits()
	}
	return Traits{}
}

// ErrNoKept says that the login named by Spec.Kept is not there any more. Nothing
// was made.
var ErrNoKept = errors.New("the provider does not keep that login any more")

// Keeper is a Provider that keeps logins itself, beside the ones we keep. Safe
// for concurrent use.
type Keeper interface {
	// NewKept makes a place for a login, for Spec.Kept.
	NewKept(ctx context.Context) (id string, err error)
	// DropKept deletes one for good. One that is gone is no error.
	DropKept(ctx context.Context, id string) error
}

// Bounds are limits that a provider sets by itself. They are told at the start,
// and every timer of ours stays within them.
type Bounds struct {
	EndsAt  time.Time // the browser ends then, whatever we wish; zero means that it does not
	Fragile bool      // a lost connection ends the browser
	Notes   []string  // what the owner and the agent should know, in sentences
}

// Bounded is an Instance with bounds.
type Bounded interface{ Bounds() Bounds }

// BoundsOf are those of an instance.
func BoundsOf(i Instance) Bounds {
	if b, ok := i.(Bounded); ok {
		return b.Bounds()
	}
	return Bounds{}
}

// Unused is an Instance that knows whether a page has ever been in its browser.
type Unused interface{ Unused() bool }

// IsUnused reports whether none has, as far as that is known.
func IsUnused(i Instance) bool {
	u, ok := i.(Unused)
	return ok && u.Unused()
}

// Unseen is an Instance whose windows may be ones that nobody ever looks at.
type Unseen interface{ Unseen() bool }

// IsUnseen reports whether they are, as far as that is known.
func IsUnseen(i Instance) bool {
	u, ok := i.(Unseen)
	return ok && u.Unseen()
}

// FirstTab asks for a tab where there is none yet. A window that nobody looks at
// fills its screen: then it has no frame, no tabs and no address to draw, which it
// otherwise does anew with each page.
func FirstTab(i Instance, address string) target.CreateTargetParams {
	p := target.CreateTargetParams{URL: address, BrowserContextID: cdp.BrowserContextID(i.Ref().Context)}
	if IsUnseen(i) {
		window := true
		p.NewWindow, p.WindowState = &window, target.WindowStateFullscreen
	}
	return p
}

// Distant is an Instance whose browser may be on another machine, to which
// nothing can be brought but through its pages.
type Distant interface{ Distant() bool }

// Courier is an Instance that shares no disk with us. Carry brings files of
// ours to the machine of the browser, and tells where they are there.
type Courier interface {
	Carry(ctx context.Context, files []string) (there []string, err error)
}
