package api

import (
	"encoding/json"
	"time"

	"tapin/internal/secret"
)

// Contexts is the answer of GET /contexts.
type Contexts struct {
	Contexts []Context `json:"contexts"`
}

// Context is one saved login, without any value of it. A day stands where only
// the day is known, else a time.
type Context struct {
	Name                 string `json:"name"`
	Domain               string `json:"domain,omitempty"`
	Provider             string `json:"provider,omitempty" doc:"Where its sessions run; the configured provider without it."`
	Notes                string `json:"notes,omitempty"`
	BrowserbaseContextID string `json:"browserbase_context_id,omitempty"`

	Saved      bool      `json:"saved" doc:"Whether a state of it is kept here."`
	SavedAt    time.Time `json:"saved_at,omitzero"`
	Generation uint64    `json:"generation,omitempty" doc:"Counts the states that were saved."`
	Bytes      int64     `json:"bytes" doc:"What the sealed state takes."`
	Cookies    int       `json:"cookies"`
	Origins    []string  `json:"origins,omitempty" doc:"Whose storage is in it."`

	LastUsed     string           `json:"last_used,omitempty"`
	LastVerified string           `json:"last_verified,omitempty" doc:"When it was last found to work."`
	VerifiedBy   string           `json:"verified_by,omitempty" enum:"check,handoff,owner" doc:"How."`
	StaleSince   time.Time        `json:"stale_since,omitzero" doc:"When it was found not to work any more."`
	StaleWhy     string           `json:"stale_why,omitempty" enum:"login,check"`
	LastCheck    *ContextCheck    `json:"last_check,omitempty"`
	Lifetime     *ContextLifetime `json:"lifetime,omitempty" doc:"How long it lasts."`
	InUseBy      string           `json:"in_use_by,omitempty" doc:"The session that has it."`

	PaymentApproval *PaymentApproval `json:"payment_approval,omitempty" doc:"What the manifest says; it is in force once the owner has confirmed it."`
	Check           *ContextProbe    `json:"check,omitempty" doc:"How to find out whether it works."`
	Damaged         []string         `json:"damaged,omitempty" doc:"Files that were set aside, under tapin's home."`
	Problem         *Problem         `json:"problem,omitempty" doc:"Why it cannot be used."`
}

// PaymentApproval is a standing approval as the manifest has it.
type PaymentApproval struct {
	MaxAmount     string `json:"max_amount,omitempty"`
	AutoApprove   bool   `json:"auto_approve"`
	Currency      string `json:"currency,omitempty"`
	MonthlyBudget string `json:"monthly_budget,omitempty"`
	Expires       string `json:"expires,omitempty"`
}

// ContextProbe is where to look, and for what.
type ContextProbe struct {
	URL      string `json:"url"`
	Selector string `json:"selector,omitempty"`
	Text     string `json:"text,omitempty"`
}

// ContextLifetime sums up how long a login lasted each time.
type ContextLifetime struct {
	Count   int       `json:"count"`
	MedianS int64     `json:"median_s"`
	LastS   int64     `json:"last_s"`
	Since   time.Time `json:"since,omitzero" doc:"When the present one began."`
}

// ContextCheck is what a check found out.
type ContextCheck struct {
	At     time.Time `json:"at"`
	Result string    `json:"result" enum:"valid,expired,unknown"`
	Reason string    `json:"reason"`
}

// CheckRequest is the body of POST /contexts/{name}/check.
type CheckRequest struct{}

// CheckAnswer is the answer of POST /contexts/{name}/check.
type CheckAnswer struct {
	Name string `json:"name"`
	ContextCheck
}

// DeletedContext tells what is gone, and what is not.
type DeletedContext struct {
	Name     string `json:"name"`
	State    bool   `json:"state" doc:"The saved state is gone."`
	Previous bool   `json:"previous" doc:"The state before it is gone."`
	Damaged  int    `json:"damaged" doc:"Files set aside that are gone."`
	Entry    bool   `json:"entry" doc:"Its lines in the manifest are gone."`
	History  bool   `json:"history" doc:"What was known of its freshness is gone."`
	Remains  string `json:"remains,omitempty" doc:"The Browserbase context that is still there."`
}

// RenameRequest is the body of POST /contexts/{name}/rename.
type RenameRequest struct {
	To string `json:"to" required:"true" max:"64" doc:"The new name."`
}

// RenameAnswer is the answer of POST /contexts/{name}/rename.
type RenameAnswer struct {
	Name string `json:"name"`
	Was  string `json:"was"`
}

// ExportRequest is the body of POST /contexts/{name}/export and, for the live
// session, of POST /context/export.
type ExportRequest struct {
	Origin          string      `json:"origin,omitempty" max:"2048" doc:"Whose login; the active tab's, or the only one, without it."`
	IncludeStorage  *bool       `json:"includeStorage,omitempty" doc:"false leaves localStorage and sessionStorage out."`
	IncludeHTTPAuth bool        `json:"includeHttpAuth,omitempty" doc:"For the owner."`
	CaptureUA       bool        `json:"captureUA,omitempty" doc:"Put the user agent and the viewport in."`
	TabID           string      `json:"tabId,omitempty" max:"128" doc:"The tab, of the live session."`
	SessionID       string      `json:"session_id,omitempty" max:"64" doc:"The session; the active one without it."`
	Sealed          *bool       `json:"sealed,omitempty" doc:"Whether only the recipients can read it. Without it: sealed, where it must be."`
	Recipients      []string    `json:"recipients,omitempty" doc:"Other tapins that can open it; this one without any."`
	Passphrase      secret.Text `json:"passphrase,omitzero" max:"1024" doc:"Opens it, instead of recipients. It is in no answer, log or journal."`
}

// ExportAnswer is an envelope and what is not in it.
type ExportAnswer struct {
	Envelope    json.RawMessage `json:"envelope" doc:"To be passed on as it is."`
	Origin      string          `json:"origin"`
	Sealed      bool            `json:"sealed"`
	Cookies     int             `json:"cookies"`
	StorageKeys int             `json:"storage_keys"`
	Skipped     int             `json:"skipped,omitempty" doc:"Cookies that no browser would take back."`
	NotCarried  []string        `json:"not_carried,omitempty" doc:"What the origin has beside these."`
}

// ImportRequest is the body of POST /contexts/{name}/import and, for the live
// session, of POST /context/import.
type ImportRequest struct {
	Envelope     json.RawMessage `json:"envelope" required:"true" doc:"Plain or sealed, as it was exported."`
	StrictOrigin bool            `json:"strictOrigin,omitempty" doc:"Refuse unless the active tab is at the envelope's origin, instead of going there first."`
	TabID        string          `json:"tabId,omitempty" max:"128" doc:"The tab, of the live session."`
	SessionID    string          `json:"session_id,omitempty" max:"64" doc:"The session; the active one without it."`
	Passphrase   secret.Text     `json:"passphrase,omitzero" max:"1024" doc:"Of an envelope that was sealed with one."`
}

// ImportAnswer tells what was applied. An envelope whose integrity is wrong is
// refused with INTEGRITY_MISMATCH, and integrityError says so again.
type ImportAnswer struct {
	Origin             string   `json:"origin"`
	New                bool     `json:"new,omitempty" doc:"There was no such login before."`
	AppliedCookies     int      `json:"appliedCookies"`
	AppliedStorageKeys int      `json:"appliedStorageKeys"`
	LeftAlone          []string `json:"left_alone,omitempty" doc:"Parts that the envelope does not carry."`
}
