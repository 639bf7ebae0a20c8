package api

import "time"

// StartRequest is the body of POST /session/start.
type StartRequest struct {
	URL         string    `json:"url,omitempty" max:"8192" doc:"The address to open first; a blank page without it."`
	Context     string    `json:"context,omitempty" max:"128" doc:"The name of a saved login to start with."`
	Provider    string    `json:"provider,omitempty" max:"64" doc:"local, browserbase or cdp; the configured one without it."`
	Viewport    *Viewport `json:"viewport,omitempty" doc:"The size of the page."`
	Mobile      bool      `json:"mobile,omitempty" doc:"Behave as a phone does."`
	Locale      string    `json:"locale,omitempty" max:"64" doc:"A language tag such as de-CH."`
	Timezone    string    `json:"timezone,omitempty" max:"64" doc:"A zone name such as Europe/Zurich."`
	TimeoutS    int       `json:"timeout_s,omitempty" min:"0" max:"86400" doc:"How long the session may live; the configured time without it."`
	Record      bool      `json:"record,omitempty" doc:"Have the provider record the session, where it can."`
	SaveContext *bool     `json:"save_context,omitempty" doc:"Whether stopping saves the login; the configured choice without it."`
	Look

	// IdempotencyKey travels as the Idempotency-Key header: a repeated start
	// with the same key and body finds the session of the first one.
	IdempotencyKey string `json:"-"`
}

// Viewport is the size of the page in CSS pixels.
type Viewport struct {
	Width  int     `json:"width" required:"true" min:"1" max:"10000"`
	Height int     `json:"height" required:"true" min:"1" max:"10000"`
	Scale  float64 `json:"scale,omitempty" min:"0" max:"8" doc:"Device pixels to a CSS pixel; 1 without it."`
}

// StartAnswer is the new session and what it shows.
type StartAnswer struct {
	SessionInfo
	LiveViewURL *string         `json:"live_view_url" doc:"Where a person can look at it, or null. It carries no token: who opens it is asked who they are."`
	Outline     *SnapshotAnswer `json:"outline,omitempty" doc:"Where it was asked for and could be read."`
	Page
}

// StopRequest is the body of POST /session/stop.
type StopRequest struct {
	SaveContext *bool `json:"save_context,omitempty" doc:"Overrides what the session was started with."`
	Verified    bool  `json:"verified,omitempty" doc:"Says that a page which needs the saved login was seen without logging in."`
}

// StopAnswer tells what became of the session.
type StopAnswer struct {
	SessionID    string `json:"session_id"`
	Stopped      bool   `json:"stopped"`
	ContextSaved bool   `json:"context_saved" doc:"Whether the login was saved."`
}

// NavigateRequest is the body of POST /session/navigate.
type NavigateRequest struct {
	URL  string `json:"url" required:"true" max:"8192" doc:"The address to open."`
	Wait string `json:"wait,omitempty" max:"64" doc:"What to wait for, such as load or domcontentloaded."`
	// Less than what a page gets anyway, for callers in a hurry.
	TimeoutMS int `json:"timeout_ms,omitempty" min:"1" max:"60000" doc:"How long the page may take to become usable, if less than usual."`
	Look
}

// MoveRequest is the body of /session/back, /forward and /reload.
type MoveRequest struct {
	Look
}

// PageAnswer is what an action on a page answers.
type PageAnswer struct {
	SessionID  string          `json:"session_id"`
	StatusCode int             `json:"status_code,omitempty" doc:"The HTTP status of the document, where there was one."`
	TookMS     int64           `json:"took_ms" doc:"How long the action took, without the picture."`
	Outline    *SnapshotAnswer `json:"outline,omitempty" doc:"Where it was asked for and could be read."`
	Page
}

// ScreenshotQuery says what to photograph and how.
type ScreenshotQuery struct {
	FullPage bool   `json:"full_page,omitempty" doc:"The whole page instead of the viewport."`
	Format   string `json:"format,omitempty" enum:"png,jpeg,webp" doc:"png without it."`
	Quality  int    `json:"quality,omitempty" min:"1" max:"100" doc:"For jpeg and webp; 80 without it."`
	Element
	Text      string `json:"text,omitempty" max:"1024" doc:"What the element to photograph says."`
	TimeoutMS int    `json:"timeout_ms,omitempty" min:"1" max:"60000" doc:"How long to wait for the element; 5,000 without it."`
}

// ActiveSession names the active session.
type ActiveSession struct {
	SessionID string    `json:"session_id"`
	StartedAt time.Time `json:"started_at"`
}

// SessionInfo is what is known of a session without asking its browser.
type SessionInfo struct {
	SessionID  string    `json:"session_id,omitempty"`
	Provider   string    `json:"provider,omitempty"`
	Generation int       `json:"generation,omitempty" doc:"Counts the browsers of this session; refs and grants die with theirs."`
	StartedAt  time.Time `json:"started_at,omitzero"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	Deadline   time.Time `json:"deadline,omitzero" doc:"When the session ends by itself."`
	Context    string    `json:"context,omitempty" doc:"The saved login it was started with."`
	Restored   bool      `json:"context_restored,omitempty" doc:"Whether that login existed; otherwise it is begun with this session."`
	EndsAt     time.Time `json:"browser_ends_at,omitzero" doc:"When the provider ends the browser, whatever is wished."`
	Notes      []string  `json:"notes,omitempty" doc:"What the provider does not allow, and what that means."`
	PageLost   bool      `json:"page_lost,omitempty" doc:"A browser was lost while a person was in it; another one took its place, with the last saved state."`
}

// Sessions is the answer of GET /sessions.
type Sessions struct {
	Sessions []SessionInfo `json:"sessions"`
}

// Status is the answer of GET /session/status. Without a session it is
// {"active": false} and nothing else.
type Status struct {
	Active bool `json:"active"`
	SessionInfo
	Driver  string   `json:"driver,omitempty" enum:"agent,human" doc:"Who drives."`
	Handoff string   `json:"handoff_id,omitempty" doc:"The hand-off that has the wheel. Until it ends the agent is told neither url, title nor tabs."`
	URL     string   `json:"url,omitempty"`
	Title   string   `json:"title,omitempty"`
	Tabs    []Tab    `json:"tabs,omitempty"`
	Dialogs []Dialog `json:"dialogs,omitempty"`

	Questions []Question `json:"questions,omitempty" doc:"What else pages ask the person at the browser."`

	LiveViewURL *string `json:"live_view_url,omitempty" doc:"Where a person can look at it; who opens it is asked who they are."`
}

// Tab is one page of a session.
type Tab struct {
	TabID  string `json:"tab_id"`
	URL    string `json:"url"`
	Title  string `json:"title"`
	Active bool   `json:"active" doc:"Whether actions go to this tab."`
}

// Dialog is an alert, confirm, prompt or beforeunload that waits for an answer.
type Dialog struct {
	TabID   string `json:"tab_id"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Question is something beside a dialog that a page asks the person at the
// browser. The page goes on without an answer.
type Question struct {
	TabID    string `json:"tab_id"`
	Kind     string `json:"kind" enum:"permission,file_chooser,http_auth,passkey" doc:"Answered with POST /session/permission, /upload or /auth. A passkey needs no answer: it was declined, and the site shows another way in."`
	Origin   string `json:"origin,omitempty" doc:"Who asks."`
	Name     string `json:"name,omitempty" doc:"The permission."`
	Realm    string `json:"realm,omitempty" doc:"What the site calls the place that the password is for."`
	Multiple bool   `json:"multiple,omitempty" doc:"Whether several files may be chosen."`
}
