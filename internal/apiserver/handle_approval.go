package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"tapin/internal/api"
	"tapin/internal/approval"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/page"
)

// Approvals are the payments that the door opens onto. All methods are safe for
// concurrent use, and their errors are faults.
type Approvals interface {
	Request(ctx context.Context, q approval.Request) (approval.Record, error)
	Wait(ctx context.Context, id string, after int, within time.Duration) (approval.Record, error)
	List(ctx context.Context, f approval.Filter) (approval.Page, error)
	Decide(ctx context.Context, id string, yes bool, sum *approval.Sum) (approval.Record, error)
	Crop(id string) (page.Image, error)
	StandingPolicies
}

// StandingPolicies are what is approved without asking.
type StandingPolicies interface {
	Say(ctx context.Context, text string) (approval.Answer, error)
	Set(ctx context.Context, login string, s approval.Standing) (approval.Standing, error)
	Stop(ctx context.Context, name string) (approval.Answer, error)
	Confirm(ctx context.Context, proposal string) (approval.Standing, error)
	Reject(ctx context.Context, proposal string) error
	InForce(ctx context.Context) ([]approval.Standing, []approval.Proposal)
	Left(s approval.Standing) (money.Amount, bool)
	Clear(ctx context.Context, site, label string) error
	Unclear(ctx context.Context, site string) error
	ClearedOnes() []approval.Cleared
}

var _ Approvals = (*approval.Room)(nil)

// approvalRoutes are the rows about payments. Whatever allows something is the
// owner's alone; an agent may ask, and wait.
func approvalRoutes() []*route {
	set := post("/contexts/{name}/policy", Owner, "Sets what a saved login's site may be paid without asking.", (*Server).setPolicy)
	set.method = http.MethodPut
	return []*route{
		post("/approval/request", Agent, "Asks the owner for a payment; a policy of the owner's may answer.", (*Server).requestApproval).withKey(),
		get("/approvals", Agent, "Lists approvals, the newest first.", (*Server).listApprovals),
		get("/approval/{id}", Agent, "Reads an approval, and waits for news of it.", (*Server).getApproval),
		post("/approval/{id}/decide", Owner, "Answers a request for a payment.", (*Server).decide),
		raw("/approval/{id}/photo", Owner, "The picture of where the total stood.", (*Server).approvalPhoto, "image/jpeg", "image/png", "image/webp"),
		get("/policies", Agent, "Lists what is approved without asking, and what waits for the owner's yes.", (*Server).policies),
		post("/policies/say", Owner, "Takes a sentence about payments.", (*Server).sayPolicy),
		post("/policies/clear", Owner, "Says that a button of a site is no payment.", (*Server).clearButton),
		post("/policies/{id}/confirm", Owner, "Puts a proposal into force.", (*Server).confirmPolicy),
		post("/policies/{id}/deny", Owner, "Takes a proposal back.", (*Server).denyPolicy),
		set,
	}
}

func (s *Server) approvalRoom() (Approvals, error) {
	if s.approvals == nil {
		return nil, fault.New(fault.Disabled, "", "this server asks about no payments")
	}
	return s.approvals, nil
}

func (s *Server) requestApproval(c *call, req *api.ApprovalRequest) (*api.Approval, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	amount, err := money.Of(req.Amount, req.Currency)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	id, err := once(s, c, errand[string]{
		digest: digestOf(c.route(), string(body)),
		within: startTime,
		do: func(ctx context.Context) (string, error) {
			rec, err := room.Request(ctx, approval.Request{Site: req.Site, Payee: req.Payee, Amount: amount, Description: req.Description, SessionID: req.SessionID})
			return rec.ID, err
		},
		settled: func(error) bool { return false }, // a failed request leaves nothing
	})
	if err != nil {
		return nil, err
	}
	rec, err := room.Wait(c.r.Context(), id, 0, 0)
	if err != nil {
		return nil, err
	}
	return approvalOf(rec), nil
}

func (s *Server) getApproval(c *call, q *api.WaitQuery) (*api.Approval, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	rec, err := polled(s, c, q, room.Wait)
	if err != nil {
		return nil, err
	}
	return approvalOf(rec), nil
}

func (s *Server) listApprovals(c *call, q *api.ApprovalsQuery) (*api.Approvals, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	found, err := room.List(c.r.Context(), approval.Filter{Status: approval.Status(q.Status), SessionID: q.SessionID, Limit: q.Limit, Cursor: q.Cursor})
	if err != nil {
		return nil, err
	}
	answer := &api.Approvals{Approvals: []api.Approval{}, Next: found.Next}
	for _, rec := range found.Approvals {
		answer.Approvals = append(answer.Approvals, *approvalOf(rec))
	}
	return answer, nil
}

func (s *Server) decide(c *call, req *api.DecideRequest) (*api.Approval, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	var sum *approval.Sum
	if req.Amount != "" {
		code := req.Currency
		if code == "" {
			rec, err := room.Wait(c.r.Context(), c.id, 0, 0)
			if err != nil {
				return nil, err
			}
			code = rec.Approvable().Currency
		}
		named, err := money.Of(req.Amount, code)
		if err != nil {
			return nil, err
		}
		given := approval.SumOf(named)
		sum = &given
	}
	rec, err := room.Decide(c.r.Context(), c.id, req.Decision == "approve", sum)
	if err != nil {
		return nil, err
	}
	return approvalOf(rec), nil
}

func (s *Server) approvalPhoto(c *call, _ *nothing) error {
	room, err := s.approvalRoom()
	if err != nil {
		return err
	}
	shot, err := room.Crop(c.id)
	if err != nil {
		return err
	}
	picture, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		return fault.New(fault.ProviderError, "", "the browser's picture is not base64")
	}
	return c.send(http.StatusOK, shot.Format.MIME(), picture)
}

func (s *Server) policies(c *call, _ *nothing) (*api.Policies, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	return policiesOf(c.r.Context(), room), nil
}

func (s *Server) sayPolicy(c *call, req *api.SayRequest) (*api.SayAnswer, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	answer, err := room.Say(c.r.Context(), req.Text)
	if err != nil {
		return nil, err
	}
	out := &api.SayAnswer{Understood: answer.Understood, Sentence: answer.Sentence}
	if answer.Proposal != nil {
		p := proposalOf(*answer.Proposal)
		out.Proposal = &p
	}
	return out, nil
}

func (s *Server) confirmPolicy(c *call, _ *api.Nothing) (*api.PolicyAnswer, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	standing, err := room.Confirm(c.r.Context(), c.id)
	if err != nil {
		return nil, err
	}
	p := standingOf(standing)
	return &api.PolicyAnswer{Policy: &p, Sentence: "From now on I approve by myself — " + p.Sentence + "."}, nil
}

func (s *Server) denyPolicy(c *call, _ *api.Nothing) (*api.PolicyAnswer, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	return &api.PolicyAnswer{Sentence: "I go on asking."}, room.Reject(c.r.Context(), c.id)
}

func (s *Server) clearButton(c *call, req *api.ClearRequest) (*api.Policies, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	if req.Undo {
		err = room.Unclear(c.r.Context(), req.Site)
	} else {
		err = room.Clear(c.r.Context(), req.Site, req.Label)
	}
	if err != nil {
		return nil, err
	}
	return policiesOf(c.r.Context(), room), nil
}

func (s *Server) setPolicy(c *call, req *api.PolicyRequest) (*api.PolicyAnswer, error) {
	room, err := s.approvalRoom()
	if err != nil {
		return nil, err
	}
	if req.MaxAmount == "" {
		answer, err := room.Stop(c.r.Context(), c.id)
		return &api.PolicyAnswer{Sentence: answer.Sentence}, err
	}
	most, err := money.Of(req.MaxAmount, req.Currency)
	if err != nil {
		return nil, err
	}
	want := approval.Standing{Max: approval.SumOf(most), Expires: req.Expires.UTC()}
	if req.Expires.IsZero() {
		want.Expires = time.Time{}
	}
	if req.MonthlyBudget != "" {
		budget, err := money.Of(req.MonthlyBudget, req.Currency)
		if err != nil {
			return nil, err
		}
		monthly := approval.SumOf(budget)
		want.Monthly = &monthly
	}
	standing, err := room.Set(c.r.Context(), c.id, want)
	if err != nil {
		return nil, err
	}
	p := standingOf(standing)
	return &api.PolicyAnswer{Policy: &p, Sentence: "From now on I approve by myself — " + p.Sentence + "."}, nil
}

func policiesOf(ctx context.Context, room Approvals) *api.Policies {
	out := &api.Policies{Policies: []api.StandingPolicy{}, Proposals: []api.PolicyProposal{}, Cleared: []api.ClearedButton{}}
	policies, proposals := room.InForce(ctx)
	for _, s := range policies {
		p := standingOf(s)
		if left, ok := room.Left(s); ok {
			p.Left = &api.Money{Amount: left.Major(), Currency: string(left.Currency)}
		}
		out.Policies = append(out.Policies, p)
	}
	for _, p := range proposals {
		out.Proposals = append(out.Proposals, proposalOf(p))
	}
	for _, b := range room.ClearedOnes() {
		out.Cleared = append(out.Cleared, api.ClearedButton(b))
	}
	return out
}

func proposalOf(p approval.Proposal) api.PolicyProposal {
	return api.PolicyProposal{ProposalID: p.ID, From: p.From, Policy: standingOf(p.Policy), CreatedAt: p.CreatedAt}
}

func standingOf(s approval.Standing) api.StandingPolicy {
	p := api.StandingPolicy{Login: s.Login, Site: s.Site, Max: api.Money(s.Max), Expires: s.Expires, Zone: s.Zone, ConfirmedAt: s.ConfirmedAt, Sentence: s.Sentence()}
	if s.Monthly != nil {
		monthly := api.Money(*s.Monthly)
		p.Monthly = &monthly
	}
	return p
}

func approvalOf(r approval.Record) *api.Approval {
	a := &api.Approval{
		ApprovalID: r.ID, Version: r.Version, Status: string(r.Status), SessionID: r.SessionID, Generation: r.Generation,
		Site: r.Site, Payee: r.Payee, Amount: r.Claim.Amount, Currency: r.Claim.Currency, Description: r.Description, Differs: r.Differs,
		Question: r.Question(), Notice: r.Notice(), CreatedAt: r.CreatedAt, Deadline: r.Deadline, DecidedAt: r.DecidedAt, DecidedBy: string(r.DecidedBy),
		UsedAt: r.UsedAt, Outcome: r.Outcome,
		Reading: api.PageReading{
			Origin: r.Reading.Origin, Decision: r.Reading.Decision, Label: r.Reading.Label, Certain: r.Reading.Certain, Larger: r.Reading.Larger,
			Echoed: r.Reading.Echoed, Foreign: r.Reading.Foreign, PayeeSeen: r.Reading.PayeeSeen, SiteSeen: r.Reading.SiteSeen,
		},
	}
	if t := r.Reading.Total; t != nil {
		total := api.Money(*t)
		a.Reading.Total = &total
	}
	for _, seen := range r.Reading.Seen {
		a.Reading.Seen = append(a.Reading.Seen, api.Money(seen))
	}
	if r.Granted != nil {
		granted := api.Money(*r.Granted)
		a.Granted = &granted
	}
	return a
}
