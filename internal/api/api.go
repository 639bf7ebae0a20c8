// Package api is the contract of the control listener as Go types, and its typed client.
// It owns the names of routes' fields, the spellings accepted beside them, and the strictness with which a body is read.
// It must never import more than the ground, print a token, or send one anywhere but to the sidecar it was made for.
package api

import "tapin/internal/trouble"

// Problem is why something did not work, in the words of the one table.
type Problem struct {
	Error   string `json:"error" doc:"A code from the table of the contract."`
	Details string `json:"details" doc:"What happened, as a sentence."`
	Hint    string `json:"hint" doc:"What to do next."`
}

// Page tells what the browser shows after an action, with a picture of it
// unless the request said "screenshot": false.
type Page struct {
	URL             string   `json:"url" doc:"The address of the page."`
	Title           string   `json:"title" doc:"The title of the page."`
	MIMEType        string   `json:"mime_type,omitempty" doc:"The encoding of screenshot."`
	Screenshot      string   `json:"screenshot,omitempty" doc:"The viewport, in base64."`
	Dialog          *Dialog  `json:"dialog,omitempty" doc:"The dialog that is open now; until it is answered there are no pictures."`
	ScreenshotError *Problem `json:"screenshot_error,omitempty" doc:"Why there is no picture although one was asked for; the action itself was done."`
}

// Detach takes the encoded picture out, so that a door can write it as it is
// instead of having it escaped and copied by an encoder.
func (p *Page) Detach() string {
	s := p.Screenshot
	p.Screenshot = ""
	return s
}

// Look is what every action accepts about what its answer shows of the page. The
// outline is one call instead of two.
type Look struct {
	Screenshot *bool          `json:"screenshot,omitempty" doc:"false leaves the picture out of the answer."`
	Outline    *SnapshotQuery `json:"outline,omitempty" doc:"Answer with the page's outline too, as GET /session/snapshot gives it."`
}

// Wanted reports whether the answer shall carry a picture.
func (l Look) Wanted() bool { return l.Screenshot == nil || *l.Screenshot }

// Health is the answer of GET /health, the only one that needs no token.
type Health struct {
	Status   string         `json:"status" enum:"ok,degraded" doc:"\"degraded\" while something in troubles does not work; whatever is not there does."`
	Version  string         `json:"version"`
	Provider string         `json:"provider" doc:"The configured browser provider."`
	Active   *ActiveSession `json:"active_session" doc:"The active session, or null."`
	Sessions int            `json:"sessions" doc:"How many sessions there are."`
	UptimeS  int64          `json:"uptime_s"`
	// Troubles is never null.
	Troubles []trouble.Trouble `json:"troubles" doc:"What does not work although tapin serves, the oldest first."`
}

// EventsQuery says where in the feed to go on.
type EventsQuery struct {
	After *uint64 `json:"after,omitempty" doc:"The last event already seen; the Last-Event-ID header does the same and wins."`
}

// Resync is the data of the resync event: what lay between the caller's cursor
// and Oldest is no longer kept, so state must be read anew.
type Resync struct {
	Oldest uint64 `json:"oldest" doc:"The oldest event still kept; 0 when there is none."`
}
