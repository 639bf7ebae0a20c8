package console

import (
	"context"
	"time"

	"tapin/internal/api"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// House is what there is to see. All methods of all seams are safe for
// concurrent use, their errors are faults, and they act as the owner.
type House interface {
	// Look tells how everything stands, but for devices and approvals. What could
	// not be read is empty, and named in Troubles.
	Look(ctx context.Context) State
	// Changed is closed when Look has something new to say. What it does not
	// hear of is found by looking again.
	Changed() <-chan struct{}
	// Past tells of hand-offs that are over, those after the cursor; "" is the
	// newest. next is the cursor of what follows, "" at the end.
	Past(ctx context.Context, cursor string) (items []Past, next string, err error)
	// Picture is what a session shows, secrets masked; NOT_FOUND while a person
	// drives, and nothing of it is kept.
	Picture(ctx context.Context, session string) (page.Image, error)
}

// Handoffs is what may be decided about a hand-off. The version is the one the
// owner was shown: what has changed since is not decided.
type Handoffs interface {
	// Finish reports whether it is over: conditions that do not hold send it back.
	Finish(ctx context.Context, id string, version int) (over bool, err error)
	Cancel(ctx context.Context, id string, version int) error
	Postponed
}

// Postponed is what may be done about the time of a hand-off, and a to-do.
type Postponed interface {
	Park(ctx context.Context, id string, version int) error
	Resume(ctx context.Context, id string, version int) error
	Extend(ctx context.Context, id string, more time.Duration) error
	TodoDone(ctx context.Context, id string) error
}

// Logins is what may be done about a saved login.
type Logins interface {
	// Check says in a sentence what was found out.
	Check(ctx context.Context, name string) (sentence string, works bool, err error)
	Delete(ctx context.Context, name string) error
}

// Links are the ways into a live browser.
type Links interface {
	// Open makes a link for one device of the owner's: its id, and the path with
	// its token.
	Open(ctx context.Context, session string) (id string, path secret.Text, err error)
	Move(ctx context.Context, id string, number int) error
	// Revoke ends a link. Ending one that is over is no error.
	Revoke(ctx context.Context, id string) error
}

// Sessions ends a session.
type Sessions interface {
	End(ctx context.Context, session string) error
}

// Approvals are the payments that wait for the owner, and the policies by which
// others do not.
type Approvals interface {
	Pending(ctx context.Context) ([]Approval, error)
	// Policies are those of the saved logins, by name.
	Policies(ctx context.Context) (map[string]Policy, error)
	// Decide is the owner's word. Where the page shows another sum than the agent
	// says, a yes names the one that the owner was shown.
	Decide(ctx context.Context, id string, approve bool, amount, currency string) error
	// DecidePolicy is about the proposal that the owner was shown; "" ends the
	// policy that is in force.
	DecidePolicy(ctx context.Context, login, proposal string, allow bool) error
}

// Figures tell how asking the owner went over the last days.
type Figures interface {
	Analytics(ctx context.Context, days int) (*api.Analytics, error)
}

// State is everything that the owner is shown. The lists are bounded; the door
// cuts what is longer.
type State struct {
	Handoffs  []Handoff  `json:"handoffs"`
	Approvals []Approval `json:"approvals"`
	Sessions  []Session  `json:"sessions"`
	Logins    []Login    `json:"logins"`
	History   []Past     `json:"history"`
	// MoreHistory is the cursor of what follows the history; "" at its end.
	MoreHistory string   `json:"more_history"`
	Todos       []Todo   `json:"todos"`
	Links       []Link   `json:"links"`
	Devices     []Device `json:"devices"`
	Lookups     []Lookup `json:"lookups"`
	Troubles    []string `json:"troubles"` // sentences about what could not be read
}

// Handoff is one that runs.
type Handoff struct {
	ID          string    `json:"id"`
	Version     int       `json:"version"`
	Reason      string    `json:"reason"`
	Instruction string    `json:"instruction,omitempty"`
	Task        string    `json:"task,omitempty"`
	Site        string    `json:"site"`
	SessionID   string    `json:"session_id"`
	CreatedAt   time.Time `json:"created_at"`
	Deadline    time.Time `json:"deadline"`
	Attempts    int       `json:"attempts"`
	Parked      bool      `json:"parked"`
	Watched     bool      `json:"watched"` // somebody has it open
}

// Approval is a payment that waits.
type Approval struct {
	ID          string    `json:"id"`
	Site        string    `json:"site"`
	Payee       string    `json:"payee"`
	Amount      string    `json:"amount"` // major units, as the contract has them
	Currency    string    `json:"currency"`
	Description string    `json:"description,omitempty"`
	Deadline    time.Time `json:"deadline"`
	Page        *Reading  `json:"page"` // nil when it could not be read
}

// Reading is what was read on the page, beside what the agent says.
type Reading struct {
	Origin   string `json:"origin"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Agrees   bool   `json:"agrees"`
}

// Session is an open browser.
type Session struct {
	ID          string    `json:"id"`
	Driver      string    `json:"driver"` // agent, owner, or nobody: it waits for the owner
	Host        string    `json:"host"`
	Registrable string    `json:"registrable"`
	Title       string    `json:"title"`
	StartedAt   time.Time `json:"started_at"`
	Deadline    time.Time `json:"deadline"`
	Provider    string    `json:"provider"`
	Context     string    `json:"context"`
	// Thumb is another number whenever there may be another picture; nil while
	// there is none to be had.
	Thumb *uint32 `json:"thumb"`
}

// Login is a saved login.
type Login struct {
	Name         string    `json:"name"`
	Domain       string    `json:"domain"`
	LastUsed     time.Time `json:"last_used,omitzero"`
	LastVerified time.Time `json:"last_verified,omitzero"`
	Freshness    string    `json:"freshness"` // verified, unverified, stale
	Bytes        int64     `json:"bytes"`
	InUse        bool      `json:"in_use"`
	Policy       *Policy   `json:"policy"`
}

// Policy is a standing approval of payments.
type Policy struct {
	MaxAmount     string    `json:"max_amount"`
	Currency      string    `json:"currency"`
	MonthlyBudget string    `json:"monthly_budget"`
	Spent         string    `json:"spent"`
	Expires       time.Time `json:"expires,omitzero"`
	Pending       bool      `json:"pending"`            // the owner has not confirmed it
	Proposal      string    `json:"proposal,omitempty"` // names what is pending, as it is shown
}

// Past is a hand-off that is over.
type Past struct {
	ID         string    `json:"id"`
	Reason     string    `json:"reason"`
	Site       string    `json:"site"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"created_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	FinishedBy string    `json:"finished_by"`
	Attempts   int       `json:"attempts"`
	Verified   *bool     `json:"verified"` // nil: nothing was checked
	Summary    string    `json:"summary"`
	Delta      []Change  `json:"delta"`
}

// Change is one thing that a hand-off changed, in words.
type Change struct {
	Field  string `json:"field"`
	Change string `json:"change"`
}

// Todo is what a hand-off left behind.
type Todo struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"`
	Site      string    `json:"site"`
	CreatedAt time.Time `json:"created_at"`
}

// Link is a way into a live browser.
type Link struct {
	ID         string    `json:"id"`
	SessionID  string    `json:"session_id"`
	Host       string    `json:"host"`
	Mode       string    `json:"mode"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	Claimed    bool      `json:"claimed"`
	Waiting    []int     `json:"waiting"`
	ThisDevice bool      `json:"this_device"`
}

// Device is one that is signed in.
type Device struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Kind       string    `json:"kind"`
	CreatedAt  time.Time `json:"created_at"`
	SeenAt     time.Time `json:"seen_at"`
	ThisDevice bool      `json:"this_device"`

	links []string // that it made
}
