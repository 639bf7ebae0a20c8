package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// InboxQuery says which messages to read.
type InboxQuery struct {
	After  uint64 `json:"after,omitempty" doc:"The last message you have; it and those before it are forgotten. Without it all that wait are told."`
	WaitMS int    `json:"wait_ms,omitempty" min:"0" max:"60000" doc:"How long to wait for one."`
	Limit  int    `json:"limit,omitempty" min:"1" max:"50"`
}

// Inbox is what the owner said to the agent.
type Inbox struct {
	Messages []InboxMessage `json:"messages"`
}

// InboxMessage is one message of the owner's.
type InboxMessage struct {
	Seq       uint64    `json:"seq" doc:"Give the last one as after, and it is not told again."`
	Kind      string    `json:"kind" enum:"message,retry" doc:"retry: what a hand-off left undone shall be tried again."`
	Text      string    `json:"text"`
	From      string    `json:"from,omitempty"`
	At        time.Time `json:"at"`
	TodoID    string    `json:"todo_id,omitempty"`
	HandoffID string    `json:"handoff_id,omitempty"`
}

// InboxRequest is the body of POST /inbox.
type InboxRequest struct {
	Kind      string `json:"kind,omitempty" enum:"message,retry" doc:"message without it."`
	Text      string `json:"text" required:"true" max:"16384"`
	From      string `json:"from,omitempty" max:"256"`
	TodoID    string `json:"todo_id,omitempty" max:"64"`
	HandoffID string `json:"handoff_id,omitempty" max:"64"`

	// IdempotencyKey travels as the Idempotency-Key header.
	IdempotencyKey string `json:"-"`
}

// Inboxed is the answer of POST /inbox.
type Inboxed struct {
	Left bool `json:"left"`
}

// Inbox reads what the owner said, and with a WaitMS waits for it.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) (*Inbox, error) {
	ctx, cancel := c.patient(ctx, WaitQuery{WaitMS: q.WaitMS})
	defer cancel()
	values := url.Values{}
	for name, n := range map[string]uint64{"after": q.After, "wait_ms": uint64(max(q.WaitMS, 0)), "limit": uint64(max(q.Limit, 0))} {
		if n > 0 {
			values.Set(name, strconv.FormatUint(n, 10))
		}
	}
	return call[Inbox](ctx, c, http.MethodGet, query("/inbox", values), nil, nil)
}

// LeaveMessage leaves a message for the agent, for the owner.
func (c *Client) LeaveMessage(ctx context.Context, req InboxRequest) (*Inboxed, error) {
	return call[Inboxed](ctx, c, http.MethodPost, "/inbox", req, keyed(req.IdempotencyKey))
}
