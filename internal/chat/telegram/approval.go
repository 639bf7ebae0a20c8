package telegram

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"tapin/internal/chat"
	"tapin/internal/event"
)

// approval is a payment that the owner is asked about, as the feed tells of it.
type approval struct {
	ApprovalID string   `json:"approval_id"`
	Status     string   `json:"status"` // pending, or how it was decided
	Site       string   `json:"site"`
	Question   string   `json:"question"`
	Notice     string   `json:"notice,omitempty"`
	Differs    []string `json:"differs,omitempty"` // where the agent and the page disagree
	Reading    struct {
		Origin string `json:"origin"`
		Total  *sum   `json:"total,omitempty"`
	} `json:"page_reading"`
	Claim     sum       `json:"claim"`
	DecidedBy string    `json:"decided_by,omitempty"`
	Outcome   string    `json:"outcome,omitempty"`
	Photo     bool      `json:"photo,omitempty"`
	Deadline  time.Time `json:"deadline,omitzero"`
}

// sum is an amount in major units.
type sum struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func (s sum) String() string { return s.Amount + " " + s.Currency }

func (a *approval) pending() bool { return a.Status == "pending" }

func (a *approval) label() string { return "the payment on " + chat.Clean(a.Site) }

// disputed reports whether the agent and the page name different sums.
func (a *approval) disputed() bool { return a.Reading.Total != nil && *a.Reading.Total != a.Claim }

// words are what the owner reads: the question, and beside it what we read on
// the page ourselves.
func (a *approval) words() string {
	var b strings.Builder
	b.WriteString(chat.Clean(a.Question))
	where := chat.Handoff{Origin: a.Reading.Origin}.Site()
	switch {
	case a.Reading.Total == nil:
		b.WriteString("\nI could not read a total on " + where + " myself.")
	default:
		b.WriteString("\nThe page on " + where + " says " + a.Reading.Total.String() + ".")
	}
	for _, d := range a.Differs {
		b.WriteString("\n⚠️ " + chat.Clean(d))
	}
	switch a.Status {
	case "pending":
	case "approved":
		b.WriteString("\nYou said yes.")
	case "denied":
		b.WriteString("\nYou said no. Nothing is paid.")
	case "expired":
		b.WriteString("\nThe time was over. Nothing is paid.")
	}
	if a.Notice != "" && a.Status == "used" {
		b.WriteString("\n" + chat.Clean(a.Notice))
	}
	return b.String()
}

func (a *approval) compose(in int64) post {
	p := post{chat: in, text: chat.Text{Plain: a.words()}}
	if a.pending() {
		yes := "Yes"
		if a.disputed() {
			yes = "Yes, pay " + a.Reading.Total.String()
		}
		p.buttons = &keyboard{Rows: [][]button{{press(yes, verbYes, a.ApprovalID), press("No", verbNo, a.ApprovalID)}}}
	}
	return p
}

// takeApproval takes in how a payment stands. One that a policy approved is no
// question; what became of it is told afterwards.
func (r *Room) takeApproval(e event.Event) error {
	a := &approval{}
	if json.Unmarshal(e.Data, a) != nil || a.ApprovalID == "" {
		r.log.Error("news of an approval cannot be read", "seq", e.Seq)
		return nil
	}
	r.mu.Lock()
	c := r.cards[a.ApprovalID]
	if c == nil && !a.pending() {
		r.mu.Unlock()
		if a.DecidedBy == "policy" && a.Notice != "" {
			r.tellAll(e, note{Text: chat.Clean(a.Notice)})
		}
		return nil
	}
	defer r.mu.Unlock()
	if c == nil {
		c = &card{ID: a.ApprovalID}
		r.cards[c.ID] = c
	}
	if e.Version <= c.Version {
		return nil // it came again
	}
	c.Version, c.Approval = e.Version, a
	if !a.pending() && c.waits() {
		c.EndedAt = time.Now().UTC()
	}
	r.prod()
	return r.keep(c)
}

// expire ends the questions whose time is over. Called with the lock held.
func (r *Room) expire(now time.Time) {
	for _, c := range r.cards {
		if a := c.Approval; a != nil && a.pending() && !a.Deadline.IsZero() && now.After(a.Deadline) {
			over := *a
			over.Status = "expired"
			c.Approval, c.EndedAt = &over, now.UTC()
			if err := r.keep(c); err != nil {
				r.log.Warn("a question whose time is over stays open", "error", err)
			}
		}
	}
}

// crop is the picture of where the total stands.
func (r *Room) crop(ctx context.Context, a *approval) []byte {
	if !a.Photo || !a.pending() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	c, err := r.sidecar(ctx)
	if err != nil {
		return nil
	}
	shot, err := c.ApprovalPhoto(ctx, a.ApprovalID)
	if err != nil {
		return nil
	}
	return shot.Bytes
}
