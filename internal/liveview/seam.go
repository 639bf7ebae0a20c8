package liveview

import (
	"context"
	"time"

	"tapin/internal/link"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// Screens finds the browsers that people look at.
type Screens interface {
	// Screen is that of a session; NO_SESSION when it is over.
	Screen(session string) (Screen, error)
}

// Screen is one session as a live view needs it. Its methods are called from
// many goroutines, none of them waits for an agent's turn, and only Act may take
// longer than a moment.
type Screen interface {
	// Tabs are the tabs of the browser as it is now; nil while there is none,
	// because it is parked or a lost line is being mended. The channel is closed
	// when they are no longer the ones to show: then they are asked for again.
	Tabs() (*page.Tabs, <-chan struct{})
	// Status is how the session stands; the channel is closed when it changes.
	Status() (Status, <-chan struct{})
	// Fit lays the page out for the screen of whoever drives under that hand-off.
	Fit(ctx context.Context, handoff string, g page.Glass, want page.Fitting) error
	// Act runs fn for the person of that hand-off, if it holds the session at
	// this moment; HANDOFF_NOT_RUNNING otherwise. It is a sign of life.
	Act(ctx context.Context, handoff string, fn func(context.Context, *page.Tabs) error) error
}

// Handoffs is what a person may decide at the live view. Every method is the
// owner's word, checked by whoever carries it out.
type Handoffs interface {
	Finish(ctx context.Context, id string, anyway bool) error
	Cancel(ctx context.Context, id string) error
	Extend(ctx context.Context, id string, more time.Duration) error
	Park(ctx context.Context, id string) error
	Resume(ctx context.Context, id string) error
	// Present is a sign of life: it stops a countdown and moves idle timers.
	Present(ctx context.Context, id string) error
	// Takeover begins a hand-off from the person's side.
	Takeover(ctx context.Context, session string) error
}

// Links knows who may come in; link.Room is one.
type Links interface {
	Claim(ctx context.Context, id string, token secret.Text) (device secret.Text, err error)
	Admit(ctx context.Context, id string) (device secret.Text, err error)
	Knock(ctx context.Context, id string) (device secret.Text, err error)
	// Overhear notes that a device's secret goes over a way that others can read.
	Overhear(ctx context.Context, id string, device secret.Text) error
	Enter(ctx context.Context, id string, device secret.Text) (link.Link, error)
	Get(ctx context.Context, id string) (link.Link, error)
	Changed(id string) <-chan struct{}
}

var _ Links = (*link.Room)(nil)

// Status is how a session stands.
type Status struct {
	Look     page.Look
	Deadline time.Time
	Over     bool     // the session has ended
	Handoff  *Handoff // the one that runs, or else the last one that did
}

// Handoff is what a person at the live view is told of one.
type Handoff struct {
	ID          string
	Version     int
	Status      string // RUNNING, FINISHED, CANCELLED, TIMED_OUT
	Reason      string
	Instruction string
	Task        string
	Site        string
	Deadline    time.Time
	Attempts    int
	Checked     []string  // the conditions, as phrases
	Held        bool      // whether all of them are met
	FinishesAt  time.Time // when a countdown ends, while one runs
	Parked      bool
}

// running reports whether a person has the wheel.
func (s Status) running() bool {
	return s.Handoff != nil && s.Handoff.Status == "RUNNING" && !s.Handoff.Parked && !s.Over
}
