package api

import (
	"context"
	"net/http"
	"time"
)

// Usage is the answer of GET /usage: what billed browsers came to this month.
type Usage struct {
	Month      string          `json:"month" doc:"As in 2026-02, in UTC."`
	Minutes    int             `json:"minutes" doc:"Begun minutes of all providers, those that run included."`
	CapMinutes int             `json:"cap_minutes,omitempty" doc:"The owner's limit; none without it."`
	Providers  []ProviderUsage `json:"providers"`
	Running    []BilledBrowser `json:"running" doc:"Browsers that are being paid for now."`
}

// ProviderUsage is what one provider's browsers came to.
type ProviderUsage struct {
	Provider string `json:"provider"`
	Sessions int    `json:"sessions"`
	Seconds  int64  `json:"seconds" doc:"Each browser counts for a minute at least."`
}

// BilledBrowser is one that is being paid for.
type BilledBrowser struct {
	BrowserID string    `json:"browser_id"`
	Provider  string    `json:"provider"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until" doc:"When it ends by itself at the latest."`
}

// Usage tells what billed browsers came to this month.
func (c *Client) Usage(ctx context.Context) (*Usage, error) {
	return call[Usage](ctx, c, http.MethodGet, "/usage", nil, nil)
}
