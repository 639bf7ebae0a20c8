package api

import (
	"time"

	"tapin/internal/secret"
)

// Nothing is the body of a route that takes none.
type Nothing struct{}

// HandoffRequest is the body of POST /handoff/start.
type HandoffRequest struct {
	Reason            string      `json:"reason" required:"true" enum:"login,2fa,captcha,permission,manual_recovery,other" doc:"Why a person is needed."`
	Instruction       string      `json:"instruction,omitempty" max:"1024" doc:"What the person is asked to do."`
	Task              string      `json:"task,omitempty" max:"1024" doc:"What the agent was doing, and will go on with."`
	TimeoutMS         int64       `json:"timeout_ms,omitempty" min:"1000" doc:"How long the person is waited for; the configured time without it."`
	OnTimeout         string      `json:"on_timeout,omitempty" enum:"close,return" doc:"What happens then: close the session and leave a to-do, or give the wheel back. close without it."`
	CaptureScreenshot bool        `json:"capture_screenshot,omitempty" doc:"Keep pictures beside the snapshots, secret fields masked."`
	Verify            []Condition `json:"verify,omitempty" doc:"What is so when the person is done, and is not all so now."`
	Follows           string      `json:"follows,omitempty" max:"64" doc:"The hand-off before, when the same thing still blocks."`
	RunID             string      `json:"run_id,omitempty" max:"64" doc:"The run that gets this hand-off as evidence."`
	SessionID         string      `json:"session_id,omitempty" max:"64" doc:"The active session without it."`
	TabID             string      `json:"tab_id,omitempty" max:"128" doc:"The tab in front without it."`
	Notify            *bool       `json:"notify,omitempty" doc:"false calls nobody: the person is there already."`

	// IdempotencyKey travels as the Idempotency-Key header.
	IdempotencyKey string `json:"-"`
}

// Condition is something that is so or not so of a page; exactly one is given.
type Condition struct {
	URL     string `json:"url,omitempty" max:"512" doc:"The address contains this; * stands for anything."`
	Text    string `json:"text,omitempty" max:"512" doc:"The page shows this text."`
	Visible string `json:"visible,omitempty" max:"512" doc:"Something that matches this selector is visible."`
	Absent  string `json:"absent,omitempty" max:"512" doc:"Nothing that matches this selector is visible."`
}

// TakeoverRequest is the body of POST /session/takeover.
type TakeoverRequest struct {
	Instruction string `json:"instruction,omitempty" max:"1024" doc:"A word for the record."`
	TimeoutMS   int64  `json:"timeout_ms,omitempty" min:"1000" doc:"The configured time without it."`
	OnTimeout   string `json:"on_timeout,omitempty" enum:"close,return" doc:"return without it."`
}

// FinishRequest is the body of POST /handoff/{id}/finish.
type FinishRequest struct {
	Anyway bool `json:"anyway,omitempty" doc:"Hand it back although its conditions do not hold; for the owner."`

	// IdempotencyKey travels as the Idempotency-Key header.
	IdempotencyKey string `json:"-"`
}

// ExtendRequest is the body of POST /handoff/{id}/extend.
type ExtendRequest struct {
	MoreMS int64 `json:"more_ms,omitempty" min:"1000" max:"14400000" doc:"15 minutes without it."`

	// IdempotencyKey travels as the Idempotency-Key header: with the same key
	// time is added once.
	IdempotencyKey string `json:"-"`
}

// HandoffTypeRequest is the body of POST /handoff/{id}/type.
type HandoffTypeRequest struct {
	Text secret.Text `json:"text" required:"true" max:"100000" doc:"Typed into the field that has the focus, and kept nowhere."`

	// IdempotencyKey travels as the Idempotency-Key header: with the same key
	// a text is typed once.
	IdempotencyKey string `json:"-"`
}

// HandoffTyped tells what was typed, by kind and place and never by value.
type HandoffTyped struct {
	HandoffID  string `json:"handoff_id"`
	Characters int    `json:"characters"`
	Field      string `json:"field" doc:"Its kind: password, text, one-time-code, …"`
	Origin     string `json:"origin"`
}

// HandoffPicture is what the owner asked to see.
type HandoffPicture struct {
	HandoffID  string `json:"handoff_id"`
	MIMEType   string `json:"mime_type"`
	Screenshot string `json:"screenshot,omitempty" doc:"In base64."`
}

// Detach takes the encoded picture out.
func (p *HandoffPicture) Detach() string {
	s := p.Screenshot
	p.Screenshot = ""
	return s
}

// WaitQuery is for records that can be waited for.
type WaitQuery struct {
	After  int `json:"after,omitempty" min:"0" doc:"The version already seen; the answer waits for a newer one."`
	WaitMS int `json:"wait_ms,omitempty" min:"0" max:"60000" doc:"How long to wait for it."`
}

// HandoffsQuery says which hand-offs to list.
type HandoffsQuery struct {
	Status    string `json:"status,omitempty" enum:"RUNNING,FINISHED,CANCELLED,TIMED_OUT"`
	Reason    string `json:"reason,omitempty" enum:"login,2fa,captcha,permission,manual_recovery,other"`
	SessionID string `json:"session_id,omitempty" max:"64"`
	RunID     string `json:"run_id,omitempty" max:"64"`
	Limit     int    `json:"limit,omitempty" min:"1" max:"200" doc:"50 without it."`
	Cursor    string `json:"cursor,omitempty" max:"32" doc:"next of the page before."`
}

// Handoffs is a page of hand-offs, the newest first.
type Handoffs struct {
	Handoffs []Handoff `json:"handoffs"`
	Next     string    `json:"next,omitempty" doc:"The cursor of what follows; a page may be short and still have one."`
}

// Handoff is one hand-off.
type Handoff struct {
	HandoffID    string    `json:"handoff_id"`
	Version      int       `json:"version"`
	Status       string    `json:"status" enum:"RUNNING,FINISHED,CANCELLED,TIMED_OUT"`
	Reason       string    `json:"reason"`
	Instruction  string    `json:"instruction,omitempty"`
	Task         string    `json:"task,omitempty"`
	SessionID    string    `json:"session_id"`
	Generation   int       `json:"generation"`
	TabID        string    `json:"tab_id"`
	RunID        string    `json:"run_id,omitempty"`
	Follows      string    `json:"follows,omitempty"`
	StartedBy    string    `json:"started_by" enum:"agent,owner"`
	OnTimeout    string    `json:"on_timeout" enum:"close,return"`
	CreatedAt    time.Time `json:"created_at"`
	Deadline     time.Time `json:"deadline"`
	FinishesAt   time.Time `json:"finishes_at,omitzero" doc:"When the countdown ends, while one runs."`
	FinishedAt   time.Time `json:"finished_at,omitzero"`
	FinishedBy   string    `json:"finished_by,omitempty" doc:"owner, agent, verify or time; none when the browser was lost."`
	Parked       bool      `json:"parked"`
	Before       Snapshot  `json:"before"`
	After        *Snapshot `json:"after,omitempty"`
	Delta        []Change  `json:"delta,omitempty"`
	DeltaSummary string    `json:"delta_summary,omitempty"`
	ResumeHint   string    `json:"resume_hint,omitempty" doc:"Where the agent is now, what was verified and what was not."`
	Verified     *Verified `json:"verified" doc:"What was checked when it was called done; null when nothing was."`
	Attempts     int       `json:"attempts" doc:"How often a person was asked about this."`
	ContextSaved *bool     `json:"context_saved,omitempty" doc:"Whether the login was saved, when the session was closed."`
	TodoID       string    `json:"todo_id,omitempty"`
	Notice       string    `json:"notice,omitempty" doc:"One line about a hand-off that was just started."`
}

// Snapshot is a page in typed fields: nothing that was typed, no values.
type Snapshot struct {
	URL                string   `json:"url" doc:"Without query, fragment and userinfo."`
	Origin             string   `json:"origin"`
	Title              string   `json:"title"`
	Timestamp          int64    `json:"timestamp" doc:"Unix milliseconds."`
	CookieCount        int      `json:"cookie_count"`
	LocalStorageKeys   []string `json:"local_storage_keys" doc:"Names, sorted."`
	SessionStorageKeys []string `json:"session_storage_keys"`
	DOMFingerprint     string   `json:"dom_fingerprint"`
	ScreenshotRef      string   `json:"screenshot_ref,omitempty" doc:"A file under tapin's home."`
}

// Change says of one field of the snapshots whether it changed.
type Change struct {
	Field   string   `json:"field" enum:"url,title,origin,cookie_count,storage_keys,dom_fingerprint"`
	Change  string   `json:"change" enum:"changed,unchanged"`
	Before  string   `json:"before,omitempty"`
	After   string   `json:"after,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// Verified is what was checked when a hand-off was called done.
type Verified struct {
	Checked []string `json:"checked"`
	Held    bool     `json:"held"`
}

// Todos lists what waits for the owner.
type Todos struct {
	Todos []Todo `json:"todos"`
}

// Todo is what a hand-off left behind for which nobody had time.
type Todo struct {
	TodoID    string    `json:"todo_id"`
	HandoffID string    `json:"handoff_id"`
	Reason    string    `json:"reason"`
	Task      string    `json:"task,omitempty"`
	Site      string    `json:"site"`
	URL       string    `json:"url"`
	CreatedAt time.Time `json:"created_at"`
}

// TodoDone is the answer of POST /todos/{id}/done.
type TodoDone struct {
	TodoID string `json:"todo_id"`
	Done   bool   `json:"done"`
}
