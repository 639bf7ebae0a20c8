package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// JournalQuery chooses entries of the journal.
type JournalQuery struct {
	Recent    int    `json:"recent,omitempty" min:"0" max:"1000" doc:"How many of the newest entries; 100 without it, none beside a summary."`
	Summary   bool   `json:"summary,omitempty" doc:"Count the entries."`
	Since     string `json:"since,omitempty" max:"64" doc:"A time, or how long ago: 90m, 24h, 7d."`
	Who       string `json:"who,omitempty" max:"64" doc:"agent, owner or tapin."`
	What      string `json:"what,omitempty" max:"128" doc:"An operation, or a family of them such as session."`
	SessionID string `json:"session_id,omitempty" max:"64"`
	Outcome   string `json:"outcome,omitempty" max:"64" doc:"ok, a code, or failed for everything but ok."`
}

// JournalAnswer is the answer of GET /journal.
type JournalAnswer struct {
	Entries []JournalEntry  `json:"entries" doc:"Oldest first."`
	More    bool            `json:"more" doc:"Whether there are older ones that fit."`
	Summary *JournalSummary `json:"summary,omitempty"`
}

// JournalEntry is one operation: who did what, with which outcome, and never with which arguments.
type JournalEntry struct {
	At        time.Time      `json:"at"`
	Who       string         `json:"who"`
	What      string         `json:"what"`
	SessionID string         `json:"session_id,omitempty"`
	Origin    string         `json:"origin,omitempty"`
	Counts    map[string]int `json:"counts,omitempty" doc:"How much there was of something: characters, cookies, keys."`
	TookMS    float64        `json:"took_ms"`
	Outcome   string         `json:"outcome" doc:"ok, or the code of the error."`
}

// JournalSummary is the journal in figures.
type JournalSummary struct {
	Entries  int            `json:"entries"`
	Failed   int            `json:"failed"`
	Sessions int            `json:"sessions"`
	First    time.Time      `json:"first,omitzero"`
	Last     time.Time      `json:"last,omitzero"`
	ByWhat   []JournalTally `json:"by_what" doc:"The most frequent first."`
	ByWho    []JournalTally `json:"by_who"`
	Outcomes []JournalTally `json:"outcomes"`
}

// JournalTally counts the entries of one name.
type JournalTally struct {
	Name   string  `json:"name"`
	Count  int     `json:"count"`
	Failed int     `json:"failed"`
	TookMS float64 `json:"took_ms" doc:"All of them together."`
}

// Cleanup is the answer of POST /cleanup: what became of sessions that tapin
// started and that nobody uses any more.
type Cleanup struct {
	Closed      []string `json:"closed"`
	Reconnected []string `json:"reconnected"`
	LeftAlone   []string `json:"left_alone" doc:"Could not be judged; named so that somebody can."`
}

// CleanupRequest is the body of POST /cleanup; it is empty.
type CleanupRequest struct{}

// Journal asks for entries of the journal.
func (c *Client) Journal(ctx context.Context, q JournalQuery) (*JournalAnswer, error) {
	values := url.Values{}
	for name, value := range map[string]string{
		"since": q.Since, "who": q.Who, "what": q.What, "session_id": q.SessionID, "outcome": q.Outcome,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Recent != 0 {
		values.Set("recent", strconv.Itoa(q.Recent))
	}
	if q.Summary {
		values.Set("summary", "true")
	}
	return call[JournalAnswer](ctx, c, http.MethodGet, "/journal?"+values.Encode(), nil, nil)
}

// Cleanup puts in order what sessions left behind.
func (c *Client) Cleanup(ctx context.Context) (*Cleanup, error) {
	return call[Cleanup](ctx, c, http.MethodPost, "/cleanup", CleanupRequest{}, nil)
}
