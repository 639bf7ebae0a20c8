package apiserver

import (
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/handoff"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/taskrun"
)

// Handoffs are the hand-offs that the door opens onto. All methods are safe for
// concurrent use, and their errors are faults.
type Handoffs interface {
	Start(ctx context.Context, o handoff.StartOptions) (handoff.Record, error)
	Wait(ctx context.Context, id string, after int, within time.Duration) (handoff.Record, error)
	List(ctx context.Context, f handoff.Filter) (handoff.Page, error)
	Turns
	Relay
	Todos() ([]handoff.Todo, error)
	TodoDone(id string) error
}

// Turns are what can be done about a person's turn.
type Turns interface {
	Finish(ctx context.Context, by handoff.By, id string, anyway bool) (handoff.Record, error)
	Cancel(ctx context.Context, by handoff.By, id string) (handoff.Record, error)
	Extend(ctx context.Context, by handoff.By, id string, more time.Duration) (handoff.Record, error)
	Park(ctx context.Context, by handoff.By, id string) (handoff.Record, error)
	Resume(ctx context.Context, id string) (handoff.Record, error)
	Present(ctx context.Context, id string) error
}

// Relay is what the owner can do without opening the page.
type Relay interface {
	Type(ctx context.Context, id string, text secret.Text, key string) (page.Typed, error)
	Screenshot(ctx context.Context, id string) (page.Image, error)
	Photo(ctx context.Context, id string) (page.Image, error)
}

// Runs are the task runs. Safe for concurrent use.
type Runs interface {
	Start(ctx context.Context, goal string) (taskrun.Record, error)
	Wait(ctx context.Context, id string, after int, within time.Duration) (taskrun.Record, error)
	Update(ctx context.Context, id, note string) (taskrun.Record, error)
	AppendOnce(ctx context.Context, run, kind, ref, summary string) error
	NeedsHelp(ctx context.Context, id, what string) (taskrun.Record, error)
	Complete(ctx context.Context, id string, end taskrun.Status, summary string) (taskrun.Record, error)
	List(ctx context.Context, status taskrun.Status, limit int, cursor string) (taskrun.Page, error)
}

// The rooms fit the door.
var (
	_ Handoffs = (*handoff.Room)(nil)
	_ Runs     = (*taskrun.Room)(nil)
)

// handoffRoom is the room of hand-offs, in a server that has one.
func (s *Server) handoffRoom() (Handoffs, error) {
	if s.handoffs == nil {
		return nil, fault.New(fault.Disabled, "", "this server has no hand-offs")
	}
	return s.handoffs, nil
}

func (s *Server) runRoom() (Runs, error) {
	if s.runs == nil {
		return nil, fault.New(fault.Disabled, "", "this server has no task runs")
	}
	return s.runs, nil
}

// by is who calls, as the rooms know them.
func (c *call) by() handoff.By {
	if c.role >= Owner {
		return handoff.Owner
	}
	return handoff.Agent
}

// waiting is the context of a call that waits for news: it ends with the
// caller, and with the server.
func (s *Server) waiting(c *call) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.r.Context())
	stop := context.AfterFunc(s.streaming, cancel)
	return ctx, func() { stop(); cancel() }
}
