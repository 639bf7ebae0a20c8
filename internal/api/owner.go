package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tapin/internal/secret"
)

// Pairing is the answer of POST /owners/pair: a code for one person, told this
// once.
type Pairing struct {
	Code      secret.Text `json:"code"`
	ExpiresAt time.Time   `json:"expires_at"`
}

// ClaimOwnerRequest is the body of POST /owners/claim.
type ClaimOwnerRequest struct {
	Code secret.Text `json:"code" required:"true" max:"64" doc:"What somebody sent in the chat."`
	ID   int64       `json:"id" required:"true" min:"1" doc:"Who sent it, in Telegram."`
	Name string      `json:"name,omitempty" max:"256"`
}

// DecideOwnerRequest is the body of POST /owners/{id}/decide.
type DecideOwnerRequest struct {
	LetIn bool `json:"let_in" doc:"false sends them away."`
}

// OwnerOutcome is what became of a pairing.
type OwnerOutcome struct {
	ID      string `json:"owner_id"`
	Outcome string `json:"outcome" enum:"paired,waiting,already,refused,removed"`
}

// Owners lists who may speak for the owner in a chat.
type Owners struct {
	Owners  []Owner        `json:"owners"`
	Waiting []WaitingOwner `json:"waiting" doc:"Who had a code, and waits for an owner's word."`
}

// Owner is one of them.
type Owner struct {
	ID       int64     `json:"id"`
	Name     string    `json:"name,omitempty"`
	PairedAt time.Time `json:"paired_at,omitzero"`
	Fixed    bool      `json:"fixed,omitempty" doc:"By configuration."`
}

// WaitingOwner is somebody who wants to be one.
type WaitingOwner struct {
	ID   int64     `json:"id"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
}

// PairOwner makes a code by which somebody in the chat becomes an owner.
func (c *Client) PairOwner(ctx context.Context) (*Pairing, error) {
	return call[Pairing](ctx, c, http.MethodPost, "/owners/pair", Nothing{}, nil)
}

// ClaimOwner shows a code that somebody sent.
func (c *Client) ClaimOwner(ctx context.Context, req ClaimOwnerRequest) (*OwnerOutcome, error) {
	// The body of this one request is where the code goes on in the clear.
	body := struct {
		Code string `json:"code"`
		ID   int64  `json:"id"`
		Name string `json:"name,omitempty"`
	}{req.Code.Reveal(), req.ID, req.Name}
	return call[OwnerOutcome](ctx, c, http.MethodPost, "/owners/claim", body, nil)
}

// DecideOwner is an owner's word about somebody who waits.
func (c *Client) DecideOwner(ctx context.Context, id int64, letIn bool) (*OwnerOutcome, error) {
	return call[OwnerOutcome](ctx, c, http.MethodPost, ownerAt(id)+"/decide", DecideOwnerRequest{LetIn: letIn}, nil)
}

// RemoveOwner takes an owner off the list.
func (c *Client) RemoveOwner(ctx context.Context, id int64) (*OwnerOutcome, error) {
	return call[OwnerOutcome](ctx, c, http.MethodDelete, ownerAt(id), nil, nil)
}

// Owners lists who may speak for the owner in a chat.
func (c *Client) Owners(ctx context.Context) (*Owners, error) {
	return call[Owners](ctx, c, http.MethodGet, "/owners", nil, nil)
}

func ownerAt(id int64) string { return "/owners/" + url.PathEscape(strconv.FormatInt(id, 10)) }
