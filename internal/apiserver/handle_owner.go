package apiserver

import (
	"context"
	"errors"
	"strconv"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/inbox"
	"tapin/internal/owners"
	"tapin/internal/secret"
)

// Owners are the people who may speak for the owner. Safe for concurrent use;
// *owners.Room is one.
type Owners interface {
	Invite(ctx context.Context) (secret.Text, time.Time, error)
	Claim(ctx context.Context, code secret.Text, id int64, name string) (owners.Outcome, error)
	Decide(ctx context.Context, id int64, letIn bool) (owners.Outcome, error)
	Remove(ctx context.Context, id int64) error
	List() ([]owners.Owner, []owners.Waiting)
}

// Inbox is what the owner said to the agent. Safe for concurrent use;
// *inbox.Room is one.
type Inbox interface {
	Put(ctx context.Context, m inbox.Message, key string) error
	Wait(ctx context.Context, after uint64, limit int, within time.Duration) ([]inbox.Message, error)
	Acknowledge(ctx context.Context, upTo uint64) error
}

// The rooms fit the door.
var (
	_ Owners = (*owners.Room)(nil)
	_ Inbox  = (*inbox.Room)(nil)
)

// people are who the owner is, and what they said.
type people struct {
	owners Owners
	inbox  Inbox
}

// PairingCode is the one answer that has a code in the clear: it is for the
// owner, and told this once.
type PairingCode struct {
	Code      string    `json:"code" doc:"Sent to the bot as /start CODE, once."`
	ExpiresAt time.Time `json:"expires_at"`
}

// ownerRoutes are the rows about who speaks for the owner, and to the agent.
func ownerRoutes() []*route {
	return []*route{
		get("/owners", Owner, "Lists who may speak for the owner in a chat.", (*Server).listOwners),
		post("/owners/pair", Owner, "Makes a code by which somebody in the chat becomes an owner.", (*Server).pairOwner),
		post("/owners/claim", Owner, "Shows a code that somebody sent in the chat.", (*Server).claimOwner),
		post("/owners/{id}/decide", Owner, "Lets somebody in who waits, or sends them away.", (*Server).decideOwner),
		remove("/owners/{id}", Owner, "Takes an owner off the list.", (*Server).removeOwner),
		get("/inbox", Agent, "Reads what the owner said to the agent, and waits for it.", (*Server).readInbox),
		post("/inbox", Owner, "Leaves a message for the agent.", (*Server).leaveMessage).withKey(),
	}
}

func (s *Server) ownerRoom() (Owners, error) {
	if s.people.owners == nil {
		return nil, fault.New(fault.Disabled, "", "this server has no owners in a chat")
	}
	return s.people.owners, nil
}

func (s *Server) inboxRoom() (Inbox, error) {
	if s.people.inbox == nil {
		return nil, fault.New(fault.Disabled, "", "this server has no inbox")
	}
	return s.people.inbox, nil
}

func (s *Server) listOwners(*call, *nothing) (*api.Owners, error) {
	room, err := s.ownerRoom()
	if err != nil {
		return nil, err
	}
	all, waiting := room.List()
	answer := &api.Owners{Owners: []api.Owner{}, Waiting: []api.WaitingOwner{}}
	for _, o := range all {
		answer.Owners = append(answer.Owners, api.Owner(o))
	}
	for _, w := range waiting {
		answer.Waiting = append(answer.Waiting, api.WaitingOwner(w))
	}
	return answer, nil
}

func (s *Server) pairOwner(c *call, _ *api.Nothing) (*PairingCode, error) {
	room, err := s.ownerRoom()
	if err != nil {
		return nil, err
	}
	code, until, err := room.Invite(c.r.Context())
	if err != nil {
		return nil, err
	}
	return &PairingCode{Code: code.Reveal(), ExpiresAt: until}, nil
}

func (s *Server) claimOwner(c *call, req *api.ClaimOwnerRequest) (*api.OwnerOutcome, error) {
	room, err := s.ownerRoom()
	if err != nil {
		return nil, err
	}
	outcome, err := room.Claim(c.r.Context(), req.Code, req.ID, req.Name)
	if err != nil {
		return nil, err
	}
	return &api.OwnerOutcome{ID: strconv.FormatInt(req.ID, 10), Outcome: string(outcome)}, nil
}

func (s *Server) decideOwner(c *call, req *api.DecideOwnerRequest) (*api.OwnerOutcome, error) {
	room, err := s.ownerRoom()
	if err != nil {
		return nil, err
	}
	id, err := ownerID(c.id)
	if err != nil {
		return nil, err
	}
	outcome, err := room.Decide(c.r.Context(), id, req.LetIn)
	if err != nil {
		return nil, err
	}
	if !req.LetIn {
		outcome = "refused"
	}
	return &api.OwnerOutcome{ID: c.id, Outcome: string(outcome)}, nil
}

func (s *Server) removeOwner(c *call) (*api.OwnerOutcome, error) {
	room, err := s.ownerRoom()
	if err != nil {
		return nil, err
	}
	id, err := ownerID(c.id)
	if err != nil {
		return nil, err
	}
	return &api.OwnerOutcome{ID: c.id, Outcome: "removed"}, room.Remove(c.r.Context(), id)
}

func ownerID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, fault.New(fault.NotFound, "", "there is no such owner").WithHint("GET /owners lists them.")
	}
	return id, nil
}

func (s *Server) readInbox(c *call, q *api.InboxQuery) (*api.Inbox, error) {
	room, err := s.inboxRoom()
	if err != nil {
		return nil, err
	}
	ctx, stop := s.waiting(c)
	defer stop()
	if q.After > 0 {
		if err := room.Acknowledge(ctx, q.After); err != nil {
			return nil, err
		}
	}
	found, err := room.Wait(ctx, q.After, q.Limit, time.Duration(q.WaitMS)*time.Millisecond)
	if err != nil && !(errors.Is(err, context.Canceled) && c.r.Context().Err() == nil) {
		return nil, err
	}
	answer := &api.Inbox{Messages: []api.InboxMessage{}}
	for _, m := range found {
		answer.Messages = append(answer.Messages, api.InboxMessage{
			Seq: m.Seq, Kind: string(m.Kind), Text: m.Text, From: m.From, At: m.At, TodoID: m.TodoID, HandoffID: m.HandoffID,
		})
	}
	return answer, nil
}

func (s *Server) leaveMessage(c *call, req *api.InboxRequest) (*api.Inboxed, error) {
	room, err := s.inboxRoom()
	if err != nil {
		return nil, err
	}
	key, _, err := c.once()
	if err != nil {
		return nil, err
	}
	kind := inbox.Kind(req.Kind)
	if kind == "" {
		kind = inbox.Words
	}
	m := inbox.Message{Kind: kind, Text: req.Text, From: req.From, TodoID: req.TodoID, HandoffID: req.HandoffID}
	return &api.Inboxed{Left: true}, room.Put(c.r.Context(), m, key)
}
