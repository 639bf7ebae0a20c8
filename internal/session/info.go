package session

import (
	"context"
	"time"

	"tapin/internal/page"
)

// StartOptions are what a caller may ask of a new session. The zero value is a
// blank page in the default provider.
type StartOptions struct {
	URL         string
	Context     string // name of a saved login
	Provider    string // "" means the configured one
	Viewport    *Viewport
	Mobile      bool
	Locale      string
	Timezone    string
	Timeout     time.Duration // 0 means the configured one
	SaveContext *bool
	Record      bool // have the provider record it
	// Meanwhile is run with the page open, while the session goes on record. It
	// may look, and must not act: should the record fail, nothing was started.
	// recorded waits until that is known, and reports whether it is on record.
	Meanwhile func(ctx context.Context, s *Session, recorded func() bool)
}

// Viewport is the size of the page in CSS pixels.
type Viewport struct {
	Width  int     `json:"width"`
	Height int     `json:"height"`
	Scale  float64 `json:"scale,omitempty"` // device pixel ratio; 0 means 1
}

// Info is what may be said of a session without asking its browser.
type Info struct {
	ID         string
	Provider   string
	Generation int // counts the browsers of this session
	StartedAt  time.Time
	LastUsedAt time.Time
	Deadline   time.Time
	Context    string // the saved login it was started with
	Restored   bool   // whether that login existed
	PageLost   bool   // a browser was lost under a person, and another took its place

	// EndsAt is when the provider ends the browser, whatever is wished; zero means
	// that it does not. Notes are what else it does not allow, in sentences.
	EndsAt time.Time
	Notes  []string
}

// Status is Info and what the browser shows now.
type Status struct {
	Info
	Driver  string // "agent" or "human"
	Handoff string // the hand-off that has the wheel
	URL     string
	Title   string
	Tabs    []Tab
	Dialogs []Dialog

	Questions []Question // dialogs aside
}

// Question is something beside a dialog that a page asks the person at the browser.
type Question struct {
	TabID string
	page.Question
}

// Tab is one page of the session.
type Tab struct {
	ID     string
	URL    string
	Title  string
	Active bool
}

// Dialog is an open alert, confirm, prompt or beforeunload.
type Dialog struct {
	TabID   string
	Kind    string
	Message string
}

// Stopped is what became of a session that was told to stop.
type Stopped struct {
	ID           string
	ContextSaved bool
}
