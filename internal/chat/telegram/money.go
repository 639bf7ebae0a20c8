package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tapin/internal/api"
	"tapin/internal/chat"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/money"
)

// policy reports whether a message is a sentence about what may be paid
// without asking.
func (r *Room) policy(l letter) bool {
	if len(l.wish.Kinds) != 1 || l.wish.Kinds[0] != chat.Plain {
		return false
	}
	_, about, _ := money.ParseWish(l.words.Reveal(), time.Now())
	return about
}

// decidePayment is the owner's yes or no to a payment. A yes is to what the
// page showed when it was asked.
func (r *Room) decidePayment(ctx context.Context, l letter, d chat.Decision) error {
	r.mu.Lock()
	var asked approval
	if c := r.cards[d.Target]; c != nil && c.Approval != nil {
		asked = *c.Approval
	}
	r.mu.Unlock()
	req := api.DecideRequest{Decision: "deny"}
	if d.Kind == chat.Yes {
		req.Decision = "approve"
		if asked.disputed() {
			req.Amount, req.Currency = asked.Reading.Total.Amount, asked.Reading.Total.Currency
		}
	}
	err := r.try(ctx, func(ctx context.Context, c *api.Client) error {
		_, err := c.Decide(ctx, d.Target, req)
		return err
	})
	switch {
	case errors.Is(err, fault.ApprovalExpired), errors.Is(err, fault.NotFound):
		r.answer(ctx, l, chat.ThatIsOver, nil)
	case err != nil:
		return err
	case d.Kind == chat.Yes:
		r.answer(ctx, l, "Yes it is. I'm confirming.", nil)
	default:
		r.answer(ctx, l, "Not paid.", nil)
	}
	return nil
}

// sayPolicy proposes what a sentence about payments says; a button confirms it.
func (r *Room) sayPolicy(ctx context.Context, l letter) error {
	var said *api.SayAnswer
	err := r.try(ctx, func(ctx context.Context, c *api.Client) (err error) {
		said, err = c.SayPolicy(ctx, l.words.Reveal())
		return err
	})
	switch {
	case errors.Is(err, fault.Disabled):
		return r.passOn(ctx, l)
	case err != nil:
		return err
	case !said.Understood:
		return r.passOn(ctx, l)
	case said.Proposal != nil:
		r.answer(ctx, l, chat.Clean(said.Sentence), policyButtons(said.Proposal.ProposalID))
	default:
		r.answer(ctx, l, said.Sentence, nil)
	}
	return nil
}

func policyButtons(proposal string) *keyboard {
	return &keyboard{Rows: [][]button{{press("Yes, do that", verbPolicy, proposal), press("No", verbNoPolicy, proposal)}}}
}

// settlePolicy is the owner's word about a proposal.
func (r *Room) settlePolicy(ctx context.Context, l letter, d chat.Decision) error {
	var said *api.PolicyAnswer
	err := r.try(ctx, func(ctx context.Context, c *api.Client) (err error) {
		if d.Kind == confirmPolicy {
			said, err = c.ConfirmPolicy(ctx, d.Target)
		} else {
			said, err = c.DenyPolicy(ctx, d.Target)
		}
		return err
	})
	if errors.Is(err, fault.NotFound) {
		r.answer(ctx, l, chat.ThatIsOver, nil)
		return nil
	}
	if err != nil {
		return err
	}
	l.query, l.message = "", 0 // worth a message of its own
	r.answer(ctx, l, chat.Clean(said.Sentence), nil)
	return nil
}

// takeProposal asks about a policy that somebody wrote into a file: by words it
// was asked about already.
func (r *Room) takeProposal(e event.Event) {
	var p struct {
		ID       string `json:"proposal_id"`
		From     string `json:"from"`
		Sentence string `json:"sentence"`
	}
	if json.Unmarshal(e.Data, &p) == nil && p.ID != "" && p.From == "manifest" {
		r.tellAll(e, note{Text: "Your list of logins says: " + chat.Clean(p.Sentence) + " Shall that be so?", Buttons: policyButtons(p.ID)})
	}
}
