// Package handoff is the durable checkpoint at which a person takes over a
// browser from an agent and gives it back. It owns the hand-off records, their
// timers, the snapshots before and after, and the retry to-dos.
// It must never keep or tell anything of a page beyond its typed snapshots, nor
// let two ends of one hand-off both count.
package handoff

import (
	"slices"
	"time"

	"tapin/internal/event"
	"tapin/internal/page"
)

// Status is where a hand-off stands. All but Running are final.
type Status string

// The states of a hand-off.
const (
	Running   Status = "RUNNING"
	Finished  Status = "FINISHED"
	Cancelled Status = "CANCELLED"
	TimedOut  Status = "TIMED_OUT"
)

// Statuses lists all states.
func Statuses() []Status { return []Status{Running, Finished, Cancelled, TimedOut} }

// Reason is why a person is needed.
type Reason string

// The reasons.
const (
	Login          Reason = "login"
	SecondFactor   Reason = "2fa"
	Captcha        Reason = "captcha"
	Permission     Reason = "permission"
	ManualRecovery Reason = "manual_recovery"
	Other          Reason = "other"
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{Login, SecondFactor, Captcha, Permission, ManualRecovery, Other}
}

// By is who does something to a hand-off.
type By string

// Who can end a hand-off; the first two are also who can ask for something.
const (
	Owner  By = "owner"
	Agent  By = "agent"
	Verify By = "verify" // the conditions held
	Time   By = "time"
)

// The two ways a hand-off can run out of time.
const (
	CloseOnTimeout  = "close"  // save, close, leave a to-do
	ReturnOnTimeout = "return" // the agent has the wheel again
)

// Snapshot is a page as a hand-off keeps it: typed fields, never a text of the
// page beyond its title, never a value.
type Snapshot struct {
	URL            string   `json:"url"` // no query, no fragment, no userinfo
	Origin         string   `json:"origin"`
	Title          string   `json:"title"`
	Timestamp      int64    `json:"timestamp"` // Unix ms
	CookieCount    int      `json:"cookie_count"`
	LocalKeys      []string `json:"local_storage_keys"` // names, sorted
	SessionKeys    []string `json:"session_storage_keys"`
	DOMFingerprint string   `json:"dom_fingerprint"`
	ScreenshotRef  string   `json:"screenshot_ref,omitempty"` // a file of the home, if one was asked for
}

// Change says of one field of the snapshots whether it changed.
type Change struct {
	Field   string   `json:"field"`
	Change  string   `json:"change"` // changed or unchanged
	Before  string   `json:"before,omitempty"`
	After   string   `json:"after,omitempty"`
	Added   []string `json:"added,omitempty"` // names of storage keys
	Removed []string `json:"removed,omitempty"`
}

// Verified is what was checked when a hand-off was called done.
type Verified struct {
	Checked []string `json:"checked"` // each condition as a phrase
	Held    bool     `json:"held"`
}

// Record is one hand-off as it stands in meta.json.
type Record struct {
	ID           string     `json:"handoff_id"`
	Version      int        `json:"version"`
	Status       Status     `json:"status"`
	Reason       Reason     `json:"reason"`
	Instruction  string     `json:"instruction,omitempty"`
	Task         string     `json:"task,omitempty"`
	SessionID    string     `json:"session_id"`
	Generation   int        `json:"generation"`
	TabID        string     `json:"tab_id"`
	RunID        string     `json:"run_id,omitempty"`
	Follows      string     `json:"follows,omitempty"`
	StartedBy    By         `json:"started_by"`
	OnTimeout    string     `json:"on_timeout"`
	Notify       bool       `json:"notify"`
	CreatedAt    time.Time  `json:"created_at"`
	Deadline     time.Time  `json:"deadline"`
	FinishesAt   time.Time  `json:"finishes_at,omitzero"` // when the countdown ends, while one runs
	FinishedAt   time.Time  `json:"finished_at,omitzero"`
	FinishedBy   By         `json:"finished_by,omitempty"`
	Parked       bool       `json:"parked"`
	Before       Snapshot   `json:"before"`
	After        *Snapshot  `json:"after,omitempty"`
	Delta        []Change   `json:"delta,omitempty"`
	DeltaSummary string     `json:"delta_summary,omitempty"`
	ResumeHint   string     `json:"resume_hint,omitempty"`
	Verified     *Verified  `json:"verified"`
	Attempts     int        `json:"attempts"` // how often a person was asked about this blocker
	ContextSaved *bool      `json:"context_saved,omitempty"`
	TodoID       string     `json:"todo_id,omitempty"`
	Book         bookkeeper `json:"book"`

	watch watch // what is so only while this process lives
}

// bookkeeper is what the room needs to go on after a restart, and no door shows.
type bookkeeper struct {
	Verify    []page.Condition `json:"verify,omitempty"`
	Capture   bool             `json:"capture,omitempty"` // pictures beside the snapshots
	HasPhoto  bool             `json:"has_photo,omitempty"`
	Timeout   time.Duration    `json:"timeout"`   // what it was given, for another round after a park
	Latest    time.Time        `json:"latest"`    // past which nothing moves the deadline
	RemindAt  []time.Duration  `json:"remind_at"` // of idleness
	IdleSince time.Time        `json:"idle_since"`
	HumanAt   time.Time        `json:"human_at,omitzero"` // when a person last did something
	MetAt     time.Time        `json:"met_at,omitzero"`   // when a person was first seen to be there
	Reminded  int              `json:"reminded,omitempty"`
	Warned    bool             `json:"warned,omitempty"`
	Graced    time.Duration    `json:"graced,omitempty"` // added since a person was busy at the deadline
	Pending   []Effect         `json:"pending,omitempty"`
	Heard     []string         `json:"heard,omitempty"` // keys of words that had their effect
	Outbox    event.Outbox     `json:"outbox,omitempty"`
}

// watch is what the looks at the page have shown.
type watch struct {
	heldSince time.Time // the conditions hold since then
	quietFor  time.Duration
	looked    bool // somebody looks at the page
	unsure    bool // in a person's layout the conditions seemed to hold, in the agent's they did not
}

// MetAt is when a person was first seen to be there: at the page, or with a word
// about it. Zero means that none was.
func (r Record) MetAt() time.Time { return r.Book.MetAt }

// IsOver reports whether nothing more can happen to it.
func (r Record) IsOver() bool { return r.Status != Running }

// clone shares nothing that is changed in place.
func (r Record) clone() Record {
	r.Book.Pending = slices.Clone(r.Book.Pending)
	r.Book.Outbox = slices.Clone(r.Book.Outbox)
	return r
}
