package browserbase

import (
	"slices"
	"time"

	"tapin/internal/secret"
)

// The states of a session at Browserbase.
const (
	statusPending = "PENDING"
	statusRunning = "RUNNING"
)

// The keys of our mark in a session's userMetadata: which tapin it belongs to,
// and which of its browsers it is.
const (
	markKey    = "tapin"
	browserKey = "tapin_browser"
)

// remote is a session as Browserbase tells of it. Its ways in are secrets: they
// carry the key that signs.
type remote struct {
	ID         string         `json:"id"`
	Status     string         `json:"status"`
	CreatedAt  time.Time      `json:"createdAt"`
	StartedAt  time.Time      `json:"startedAt"`
	EndedAt    time.Time      `json:"endedAt"`
	ExpiresAt  time.Time      `json:"expiresAt"`
	KeepAlive  bool           `json:"keepAlive"`
	ConnectURL secret.Text    `json:"connectUrl"`
	Metadata   map[string]any `json:"userMetadata"` // others keep there what they like
}

func (r remote) text(key string) string {
	s, _ := r.Metadata[key].(string)
	return s
}

// browser is which of our browsers it is.
func (r remote) browser() string { return r.text(browserKey) }

// runs reports whether it costs.
func (r remote) runs() bool { return r.Status == statusRunning || r.Status == statusPending }

// oldestFirst puts those that run in the order in which they were made.
func oldestFirst(all []remote) []remote {
	all = slices.DeleteFunc(slices.Clone(all), func(r remote) bool { return !r.runs() })
	slices.SortFunc(all, func(a, b remote) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all
}

// wish is the body of a create.
type wish struct {
	ProjectID       string            `json:"projectId,omitempty"`
	Region          string            `json:"region,omitempty"`
	KeepAlive       bool              `json:"keepAlive"`
	Timeout         int               `json:"timeout"` // seconds
	UserMetadata    map[string]string `json:"userMetadata"`
	BrowserSettings settings          `json:"browserSettings"`
}

type settings struct {
	Context       *keptContext `json:"context,omitempty"`
	BlockAds      bool         `json:"blockAds"`
	SolveCaptchas bool         `json:"solveCaptchas"`
	// Said outright: both are on where nothing is said, and would keep what a
	// person types.
	RecordSession bool      `json:"recordSession"`
	LogSession    bool      `json:"logSession"`
	Viewport      *viewport `json:"viewport,omitempty"`
}

type keptContext struct {
	ID      string `json:"id"`
	Persist bool   `json:"persist"`
}

type viewport struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// release is the body that ends a session.
type release struct {
	ProjectID string `json:"projectId,omitempty"`
	Status    string `json:"status"`
}

const requestRelease = "REQUEST_RELEASE"

// views are where the tabs of a session can be seen. Each lets whoever has it act.
type views struct {
	Fullscreen secret.Text `json:"debuggerFullscreenUrl"`
	Pages      []struct {
		ID         string      `json:"id"`
		Fullscreen secret.Text `json:"debuggerFullscreenUrl"`
	} `json:"pages"`
}
