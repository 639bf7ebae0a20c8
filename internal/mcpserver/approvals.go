package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tapin/internal/api"
)

type approvalIn struct {
	Site        string `json:"site" required:"true" max:"253" doc:"The domain you are on, such as verizon.com."`
	Payee       string `json:"payee" required:"true" max:"200" doc:"Who gets the money, as the page names them."`
	Amount      string `json:"amount" required:"true" max:"24" doc:"The page's total in major units: 142.50"`
	Currency    string `json:"currency" required:"true" max:"3" doc:"USD, EUR, …"`
	Description string `json:"description,omitempty" max:"1000" doc:"What is paid, for the owner: Verizon bill."`
	session
}

type approvalRefIn struct {
	ApprovalID string `json:"approval_id" required:"true" max:"64"`
	WaitMS     int    `json:"wait_ms,omitempty" min:"0" max:"55000" doc:"Wait that long for the owner's answer; 0 answers at once."`
}

type approvalOut struct {
	ApprovalID string           `json:"approval_id,omitempty"`
	Version    int              `json:"version,omitempty"`
	Status     string           `json:"status,omitempty" enum:"pending,approved,denied,expired,used"`
	DecidedBy  string           `json:"decided_by,omitempty" enum:"owner,policy"`
	Granted    *api.Money       `json:"granted,omitempty" doc:"What one click may pay."`
	Deadline   time.Time        `json:"deadline,omitzero"`
	Outcome    string           `json:"outcome,omitempty" enum:"confirmed,none,unknown"`
	Reading    *api.PageReading `json:"page_reading,omitempty" doc:"What tapin read on the page itself."`
	Differs    []string         `json:"differs,omitempty" doc:"Where the page and your request disagree."`
}

func tellApproval(a *api.Approval) (string, *approvalOut) {
	out := &approvalOut{a.ApprovalID, a.Version, a.Status, a.DecidedBy, a.Granted, a.Deadline, a.Outcome, &a.Reading, nil}
	out.Reading.Label = quoted(out.Reading.Label)
	for _, d := range a.Differs {
		out.Differs = append(out.Differs, quoted(d))
	}
	words := fmt.Sprintf("Approval %s is %s.", a.ApprovalID, a.Status)
	switch a.Status {
	case "pending":
		words += " The owner was asked: wait with oc_approval_status and wait_ms, and leave the page as it is."
	case "approved":
		words += fmt.Sprintf(" Click the final button once, with approval_id; until %s.", a.Deadline.UTC().Format(time.RFC3339))
	case "denied":
		words += " Do not pay."
	case "expired":
		words += " Nobody answered, or it was not used in time. Ask again if it is still wanted."
	case "used":
		if a.Outcome == "unknown" {
			words += " It may have been paid: do not try again. Look at the page, and tell the owner."
		}
	}
	if len(a.Differs) > 0 {
		words += " The page and the request disagree; the owner sees both."
	}
	return words, out
}

func approvalRequest(ctx context.Context, c *call, in *approvalIn) (string, *approvalOut, error) {
	now, err := tell(ctx, c.line, func(client *api.Client) (*api.Approval, error) {
		return client.RequestApproval(ctx, api.ApprovalRequest{
			Site: strings.TrimSpace(in.Site), Payee: in.Payee, Amount: in.Amount, Currency: in.Currency, Description: in.Description, SessionID: in.SessionID,
		})
	})
	if err != nil {
		return "", nil, err
	}
	words, out := tellApproval(now)
	return words, out, nil
}

// approvalStatus waits until the owner has answered.
func approvalStatus(ctx context.Context, c *call, in *approvalRefIn) (string, *approvalOut, error) {
	deadline := time.Now().Add(time.Duration(min(in.WaitMS, maxWaitMS)) * time.Millisecond)
	q := api.WaitQuery{}
	for {
		now, err := ask(ctx, c.line, func(client *api.Client) (*api.Approval, error) { return client.Approval(ctx, in.ApprovalID, q) })
		if err != nil {
			return "", nil, err
		}
		left := time.Until(deadline).Milliseconds()
		if now.Status != "pending" || left <= 0 {
			words, out := tellApproval(now)
			return words, out, nil
		}
		q = api.WaitQuery{After: now.Version, WaitMS: int(left)}
	}
}
