package api

import (
	"time"

	"tapin/internal/secret"
)

// LinkRequest is the body of POST /links.
type LinkRequest struct {
	SessionID string `json:"session_id,omitempty" max:"64" doc:"The active session without it; a parked one must be named."`
	Mode      string `json:"mode,omitempty" enum:"drive,watch" doc:"drive without it."`
	Minutes   int    `json:"minutes,omitempty" min:"1" max:"10080" doc:"How long it opens; as long as its session, at most a week, without it."`
}

// Link is what may be known of a personal link into a live browser.
type Link struct {
	LinkID    string    `json:"link_id"`
	SessionID string    `json:"session_id"`
	Mode      string    `json:"mode" enum:"drive,watch"`
	URL       string    `json:"url" doc:"Where it leads; it opens nothing by itself."`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at" doc:"It dies with its session at the latest."`
	Claimed   bool      `json:"claimed" doc:"Whether a device has it."`
	Waiting   []int     `json:"waiting" doc:"The numbers that further devices show, until the owner lets one of them in."`
	Session   bool      `json:"session_view,omitempty" doc:"The one that live_view_url names: it has no token."`
}

// Links lists links, the oldest first.
type Links struct {
	Links []Link `json:"links"`
}

// MintedLink is a new link, and the address that lets the first device in.
// The token in it is told this once.
type MintedLink struct {
	Link
	OpenURL secret.Text `json:"open_url"`

	ProviderView bool `json:"provider_view,omitempty"`
}

// MoveLinkRequest is the body of POST /links/{id}/move.
type MoveLinkRequest struct {
	Number int `json:"number" required:"true" min:"10" max:"99" doc:"What the waiting device shows."`
}

// RevokedLink is the answer of DELETE /links/{id}.
type RevokedLink struct {
	LinkID  string `json:"link_id"`
	Revoked bool   `json:"revoked"`
}

// PublicRequest is the body of PUT /public.
type PublicRequest struct {
	URL string `json:"url,omitempty" max:"512" doc:"An https origin, such as a tunnel's; empty when there is none any more."`
}

// Public is where people reach the live view and the console.
type Public struct {
	URL    string `json:"url" doc:"What links begin with now."`
	Source string `json:"source" enum:"configured,discovered,none" doc:"Whether the owner has set it, a tunnel has told it, or it is this machine's own."`
	Local  string `json:"local" doc:"The address on this machine."`

	LAN []string `json:"lan,omitempty" doc:"Where devices of the same network may watch."`
}
