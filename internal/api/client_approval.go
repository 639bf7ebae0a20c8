package api

import (
	"context"
	"net/http"
	"net/url"
)

// RequestApproval asks the owner, or a policy of the owner's, for a payment.
func (c *Client) RequestApproval(ctx context.Context, req ApprovalRequest) (*Approval, error) {
	return call[Approval](ctx, c, http.MethodPost, "/approval/request", req, keyed(req.IdempotencyKey))
}

// Approval reads an approval, and with a WaitMS waits for news of it.
func (c *Client) Approval(ctx context.Context, id string, q WaitQuery) (*Approval, error) {
	ctx, cancel := c.patient(ctx, q)
	defer cancel()
	return call[Approval](ctx, c, http.MethodGet, query(approvalAt(id, ""), q.values()), nil, nil)
}

// Approvals lists approvals, the newest first.
func (c *Client) Approvals(ctx context.Context, q ApprovalsQuery) (*Approvals, error) {
	values := given(map[string]string{"status": q.Status, "session_id": q.SessionID, "cursor": q.Cursor}, q.Limit)
	return call[Approvals](ctx, c, http.MethodGet, query("/approvals", values), nil, nil)
}

// Decide is the owner's answer.
func (c *Client) Decide(ctx context.Context, id string, req DecideRequest) (*Approval, error) {
	return call[Approval](ctx, c, http.MethodPost, approvalAt(id, "/decide"), req, nil)
}

// ApprovalPhoto is the picture of where the total stood, for the owner.
func (c *Client) ApprovalPhoto(ctx context.Context, id string) (*Shot, error) {
	body, mime, err := c.bytes(ctx, approvalAt(id, "/photo"))
	if err != nil {
		return nil, err
	}
	return &Shot{Bytes: body, MIMEType: mime}, nil
}

// Policies lists what is approved without asking, and what waits for a yes.
func (c *Client) Policies(ctx context.Context) (*Policies, error) {
	return call[Policies](ctx, c, http.MethodGet, "/policies", nil, nil)
}

// SayPolicy takes a sentence of the owner's about payments.
func (c *Client) SayPolicy(ctx context.Context, text string) (*SayAnswer, error) {
	return call[SayAnswer](ctx, c, http.MethodPost, "/policies/say", SayRequest{Text: text}, nil)
}

// ConfirmPolicy puts a proposal into force.
func (c *Client) ConfirmPolicy(ctx context.Context, proposal string) (*PolicyAnswer, error) {
	return call[PolicyAnswer](ctx, c, http.MethodPost, "/policies/"+url.PathEscape(proposal)+"/confirm", Nothing{}, nil)
}

// DenyPolicy takes a proposal back.
func (c *Client) DenyPolicy(ctx context.Context, proposal string) (*PolicyAnswer, error) {
	return call[PolicyAnswer](ctx, c, http.MethodPost, "/policies/"+url.PathEscape(proposal)+"/deny", Nothing{}, nil)
}

// ClearButton says that a button of a site is no payment.
func (c *Client) ClearButton(ctx context.Context, req ClearRequest) (*Policies, error) {
	return call[Policies](ctx, c, http.MethodPost, "/policies/clear", req, nil)
}

// SetPolicy sets the policy of a saved login; one without a maximum ends it.
func (c *Client) SetPolicy(ctx context.Context, login string, req PolicyRequest) (*PolicyAnswer, error) {
	return call[PolicyAnswer](ctx, c, http.MethodPut, "/contexts/"+url.PathEscape(login)+"/policy", req, nil)
}

func approvalAt(id, rest string) string { return "/approval/" + url.PathEscape(id) + rest }
