package handoff

import (
	"context"
	"time"

	"tapin/internal/page"
	"tapin/internal/secret"
)

// Stage is the session as a hand-off needs it. All methods are safe for
// concurrent use; a session that is not there is NO_SESSION, and a hand-off
// that does not hold it any more is refused or, where that is the wish anyway,
// changes nothing.
type Stage interface {
	// Lend closes the gate for the agent, lets actions under way end, and looks
	// at the page. No session means the active one. HANDOFF_ACTIVE when another
	// hand-off holds it.
	Lend(ctx context.Context, session, handoff string, o LendOptions) (Lent, error)
	// Return opens the gate again. It may be repeated. loggedIn says that the
	// saved login of the session was seen to work.
	Return(ctx context.Context, session, handoff string, loggedIn bool) error
	// Observe looks at the page.
	Observe(ctx context.Context, session, handoff string, o page.ObserveOptions) (page.Observation, error)
	// Plain gives the page the agent's own layout and keeps it so until free is
	// called: a person may have it laid out for their screen meanwhile. fitted says
	// that they ever had since the wheel is theirs.
	Plain(ctx context.Context, session, handoff string) (free func(), fitted bool, err error)
	// Fitted reports whether the page is laid out for a person's screen now.
	Fitted(session string) bool
	// Holds tells which conditions are met, and nothing else of the page. In a
	// person's layout only addresses count: where all of those hold, the others are
	// taken to hold as well, until they are looked at in the agent's.
	Holds(ctx context.Context, session, handoff string, conditions []page.Condition) ([]bool, error)
	// Stale notes that the saved login of the session did not do. It may be repeated.
	Stale(ctx context.Context, session string) error
	// Generation is the how manieth browser of its session the one now is.
	Generation(session string) (int, error)
	// KeepUntil raises the deadline of the session, as far as its plan allows.
	KeepUntil(ctx context.Context, session string, t time.Time) error
	// Screenshot photographs the page, secret fields masked.
	Screenshot(ctx context.Context, session, handoff string) (page.Image, error)
	// Type types into the field that has the focus; with the same key, once.
	Type(ctx context.Context, session, handoff string, text secret.Text, key string) (page.Typed, error)
	// Close saves the login and ends the session.
	Close(ctx context.Context, session, reason string) (contextSaved bool, err error)
	// Park saves what the page needs and frees the browser; Unpark brings a
	// browser back, or tells which one is there already. Both may be repeated.
	Park(ctx context.Context, session, handoff string) error
	Unpark(ctx context.Context, session, handoff string) (generation int, err error)
	// Presence tells when a person last did something in the page, and whether
	// anybody looks at it now.
	Presence(session string) (lastHumanInput time.Time, watching bool)
}

// LendOptions are what is wanted of a page as the wheel changes hands.
type LendOptions struct {
	TabID      string // to be in front; none means the one that is
	Observe    page.ObserveOptions
	Conditions []page.Condition
	Photo      bool
}

// Lent is a session as it was when the wheel changed hands.
type Lent struct {
	SessionID  string
	Generation int
	TabID      string
	Seen       page.Observation
	Holds      []bool      // of the conditions, in their order
	Photo      *page.Image // secret fields masked; nil where there is none
	Until      time.Time   // past which the browser cannot be kept; zero means as long as is wished
}

// Evidence is where a run's evidence is kept. Safe for concurrent use.
type Evidence interface {
	// Check returns NOT_FOUND for a run that is not there.
	Check(ctx context.Context, run string) error
	// AppendOnce adds a pointer, unless one of that kind and ref is there.
	AppendOnce(ctx context.Context, run, kind, ref, summary string) error
}

// Sealer keeps what must not lie on the disk in the clear, as a vault does.
// Safe for concurrent use.
type Sealer interface {
	Seal(name, origin string, plaintext []byte) ([]byte, error)
	Open(name, origin string, sealed []byte) ([]byte, error)
}
