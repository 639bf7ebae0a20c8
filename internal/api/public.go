package api

import (
	"context"
	"net/http"
	"time"
)

// Reached is the answer of POST /public/check: whether the address that people
// are sent to leads to this sidecar, seen by asking it from this machine.
type Reached struct {
	Public

	Reached   bool      `json:"reached"`
	Reason    string    `json:"reason,omitempty" doc:"Why it does not, in a sentence."`
	Advice    string    `json:"advice,omitempty" doc:"What to do about it."`
	TookMS    int64     `json:"took_ms"`
	CheckedAt time.Time `json:"checked_at"`
}

// CheckPublic asks the public address whether it leads to the sidecar.
func (c *Client) CheckPublic(ctx context.Context) (*Reached, error) {
	return call[Reached](ctx, c, http.MethodPost, "/public/check", struct{}{}, nil)
}
