package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// AnalyticsQuery says how far back to look.
type AnalyticsQuery struct {
	Days int `json:"days,omitempty" min:"1" max:"90" doc:"Whole days in UTC, today included; 30 without it."`
}

// Analytics is the answer of GET /analytics: how asking a person went. Sites are
// registrable domains; nothing in it names a page, a person or an amount of one
// payment.
type Analytics struct {
	Days     int    `json:"days"`
	KeptDays int    `json:"kept_days" doc:"As far back as there are figures; retention.handoffs may leave fewer than were asked for."`
	From     string `json:"from" doc:"The first day, as 2026-02-28."`
	To       string `json:"to" doc:"Today."`
	Counting bool   `json:"counting" doc:"Hand-offs of before are still being counted; the figures grow."`

	Handoffs  HandoffFigures    `json:"handoffs" doc:"Those that an agent asked for."`
	Takeovers int               `json:"takeovers" doc:"Times the owner took over unasked; in no other figure."`
	Reasons   []ReasonFigures   `json:"reasons" doc:"The most frequent first."`
	PerDay    []DayFigures      `json:"per_day" doc:"Every day, the oldest first."`
	Sites     []SiteFigures     `json:"sites" doc:"Those that asked most, first."`
	MoreSites int               `json:"more_sites,omitempty" doc:"Sites that the list leaves out."`
	Logins    []LoginFigures    `json:"logins" doc:"How long saved logins last; not bounded by days."`
	Approvals ApprovalFigures   `json:"approvals"`
	Cost      []MonthOfBrowsers `json:"cost" doc:"Billed browsers in the calendar months that the days touch, the newest first; as GET /usage counts."`
}

// HandoffFigures count hand-offs by how they ended.
type HandoffFigures struct {
	Asked       int      `json:"asked"`
	Running     int      `json:"running"`
	Ended       int      `json:"ended"`
	Unblocked   int      `json:"unblocked" doc:"Ended by the owner's done, or with their conditions seen to hold."`
	Expired     int      `json:"expired" doc:"Nobody came in time."`
	Aborted     int      `json:"aborted" doc:"The owner declined."`
	Abandoned   int      `json:"abandoned" doc:"The agent called it off, or went on without anything being checked."`
	Lost        int      `json:"lost" doc:"The browser was lost."`
	UnblockRate *float64 `json:"unblock_rate" doc:"Unblocked of ended; null before any has ended."`
	TimeToHuman Spread   `json:"time_to_human" doc:"From being asked until a person was first seen to be there."`
	TimeToDone  Spread   `json:"time_to_done" doc:"From being asked until unblocked."`
}

// Spread sums up times. They are counted to the second up to two minutes, and
// then in steps of at most a twelfth.
type Spread struct {
	Count   int   `json:"count" doc:"How many are known; the others are 0 without it."`
	MedianS int64 `json:"median_s"`
	P90S    int64 `json:"p90_s"`
}

// ReasonFigures are those of one reason.
type ReasonFigures struct {
	Reason string `json:"reason"`
	HandoffFigures
}

// DayFigures are those of one day.
type DayFigures struct {
	Day       string `json:"day"`
	Asked     int    `json:"asked"`
	Unblocked int    `json:"unblocked"`
}

// SiteFigures are those of one site.
type SiteFigures struct {
	Site string `json:"site" doc:"A registrable domain; (none) for pages without one, (others) for those beyond what is counted apart."`
	HandoffFigures
	Reasons []ReasonCount `json:"reasons" doc:"The most frequent first."`
	Advice  string        `json:"advice,omitempty" doc:"What would help here, where that is plain."`
}

// ReasonCount is how often there was a reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// LoginFigures tell how long the saved logins of a site last.
type LoginFigures struct {
	Site       string    `json:"site"`
	Logins     int       `json:"logins"`
	Stale      int       `json:"stale" doc:"Those that do not work now."`
	Ended      int       `json:"ended" doc:"Lives that were seen to end, the last 50 of each login."`
	MedianS    int64     `json:"median_s" doc:"How long those lasted; 0 before any has ended."`
	ShortestS  int64     `json:"shortest_s"`
	LongestS   int64     `json:"longest_s"`
	AliveSince time.Time `json:"alive_since,omitzero" doc:"Since when the oldest of those that work now does."`
}

// ApprovalFigures count payments that were asked for.
type ApprovalFigures struct {
	Asked     int       `json:"asked"`
	Open      int       `json:"open" doc:"Not answered yet, or allowed and not used yet."`
	ByOwner   int       `json:"approved_by_owner"`
	ByPolicy  int       `json:"approved_by_policy"`
	Denied    int       `json:"denied"`
	Expired   int       `json:"expired" doc:"Nobody answered in time."`
	Unused    int       `json:"unused" doc:"Of those approved: allowed, and never paid."`
	Paid      []PaidSum `json:"paid" doc:"What the page took, a sum for each currency."`
	Uncertain []PaidSum `json:"uncertain" doc:"What may have been paid: nobody saw what became of the click."`
}

// PaidSum is what was paid in one currency.
type PaidSum struct {
	Money
	Payments int `json:"payments"`
}

// MonthOfBrowsers is what the billed browsers of a month came to.
type MonthOfBrowsers struct {
	Month      string          `json:"month"`
	Minutes    int             `json:"minutes"`
	CapMinutes int             `json:"cap_minutes,omitempty" doc:"The owner's limit, for this month."`
	Providers  []ProviderUsage `json:"providers"`
}

// Analytics tells how asking a person went over the last days; 0 means 30.
func (c *Client) Analytics(ctx context.Context, days int) (*Analytics, error) {
	q := url.Values{}
	if days != 0 {
		q.Set("days", strconv.Itoa(days))
	}
	return call[Analytics](ctx, c, http.MethodGet, query("/analytics", q), nil, nil)
}
