package apiserver

import (
	"context"
	"time"

	"tapin/internal/browser"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/logins"
)

// Contexts are the saved logins. Safe for concurrent use; *logins.Room is one.
type Contexts interface {
	List(ctx context.Context) ([]logins.Info, error)
	Get(ctx context.Context, name string) (logins.Info, error)
	Delete(ctx context.Context, name string, opts *logins.DeleteOptions) (logins.Deleted, error)
	Rename(ctx context.Context, name, to string) error
	Check(ctx context.Context, name string) (logins.Checked, error)
	Export(ctx context.Context, name string, o logins.ExportOptions) (logins.Exported, error)
	Import(ctx context.Context, name string, e logins.Envelope, opts *logins.ImportOptions) (logins.Imported, error)
}

// Live reads and writes the login of a session that runs. It refuses while a
// person drives. Safe for concurrent use.
type Live interface {
	// Capture reads what the origin has, by default the one of the tab in front.
	Capture(ctx context.Context, session string, o CaptureOptions) (Captured, error)
	// Apply puts a verified envelope in the place of what its origin has, and
	// puts the old state back if that fails half-way.
	Apply(ctx context.Context, session string, e logins.Envelope, o ApplyOptions) (Applied, error)
}

// CaptureOptions say what to read.
type CaptureOptions struct {
	TabID, Origin string
	HTTPAuth      bool
	UserAgent     bool // and the viewport
}

// Captured is the login of a live session.
type Captured struct {
	State     browser.State
	Origin    string
	At        time.Time
	UserAgent string
	Viewport  *logins.Viewport
	HTTPAuth  *logins.HTTPAuth
	// Pristine says that neither a saved login nor a person was ever in the
	// session: all there is of it, the agent made.
	Pristine bool
}

// ApplyOptions say where an envelope goes.
type ApplyOptions struct {
	TabID        string
	Sealed       bool // it came so, and is not the agent's to read from then on
	StrictOrigin bool // ORIGIN_MISMATCH unless the tab is at the envelope's origin
}

// Applied is what an envelope changed in a live session.
type Applied struct {
	Cookies, StorageKeys int
	LeftAlone            []string
}

// maxEnvelopeBody is a sealed envelope of the greatest length, and its request.
const maxEnvelopeBody = 2*logins.MaxEnvelope + 1<<20

// contexts is what the server knows of logins.
type contexts struct {
	saved   Contexts
	live    Live
	porter  logins.Porter
	known   []string
	journal Journal
}

func (c contexts) rooms() (Contexts, error) {
	if c.saved == nil {
		return nil, fault.New(fault.Disabled, "", "there are no saved logins here")
	}
	return c.saved, nil
}

func (c contexts) sessions() (Live, error) {
	if c.live == nil {
		return nil, fault.New(fault.Disabled, "", "the login of a live session cannot be carried here")
	}
	return c.live, nil
}

// note leaves a line: who, what, which origin, how much. No name of a cookie.
func (s *Server) note(c *call, what, session, origin string, counts map[string]int, began time.Time, err error) {
	if s.contexts.journal == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		outcome = string(fault.Of(err).Code)
	}
	entry := event.Entry{At: began, Who: c.role.String(), What: what, Session: session, Origin: origin, Counts: counts, Took: time.Since(began), Outcome: outcome}
	if err := s.contexts.journal.Write(entry); err != nil {
		s.log.Warn("a line of the journal is lost", "what", what, "error", err)
	}
}
