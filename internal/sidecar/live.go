package sidecar

import (
	"context"
	"errors"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/handoff"
	"tapin/internal/liveview"
	"tapin/internal/page"
	"tapin/internal/session"
	"tapin/internal/site"
)

// changes tells those who look at a session that something about it is
// different, whichever room it is in. It is safe for concurrent use.
type changes struct {
	mu    sync.Mutex
	waits map[string]chan struct{}
}

// next is closed at the next change of a session.
func (c *changes) next(session string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits == nil {
		c.waits = map[string]chan struct{}{}
	}
	wait := c.waits[session]
	if wait == nil {
		wait = make(chan struct{})
		c.waits[session] = wait
	}
	return wait
}

// tell is called under the locks of others, and so waits for nothing.
func (c *changes) tell(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait := c.waits[session]; wait != nil {
		close(wait)
		delete(c.waits, session)
	}
}

// screens shows sessions and their hand-offs to the live view in the words of
// its own. The rooms do not know each other.
type screens struct {
	sessions *session.Host
	handoffs *handoff.Room
	changes  *changes
}

var _ liveview.Screens = screens{}

func (s screens) Screen(id string) (liveview.Screen, error) {
	on, err := s.sessions.Screen(id)
	if err != nil {
		return nil, err
	}
	return screen{s, id, on}, nil
}

type screen struct {
	screens
	id string
	on *session.Screen
}

// Tabs asks for the channel first, so that no change falls in between.
func (s screen) Tabs() (*page.Tabs, <-chan struct{}) {
	changed := s.changes.next(s.id)
	tabs, gone := s.on.Tabs()
	if gone == nil {
		gone = changed
	}
	return tabs, gone
}

func (s screen) Act(ctx context.Context, id string, fn func(context.Context, *page.Tabs) error) error {
	return s.on.Act(ctx, id, fn)
}

func (s screen) Fit(ctx context.Context, id string, g page.Glass, want page.Fitting) error {
	return s.on.Fit(ctx, id, g, want)
}

// Status is how session and hand-off stand together.
func (s screen) Status() (liveview.Status, <-chan struct{}) {
	changed := s.changes.next(s.id)
	seen := s.on.Seen()
	status := liveview.Status{Look: seen.Look, Deadline: seen.Deadline, Over: seen.Over}
	if rec, ok := s.handoffs.Current(s.id); ok {
		status.Handoff = toldOf(rec)
	}
	return status, changed
}

func toldOf(r handoff.Record) *liveview.Handoff {
	h := &liveview.Handoff{
		ID: r.ID, Version: r.Version, Status: string(r.Status), Reason: string(r.Reason), Instruction: r.Instruction, Task: r.Task,
		Deadline: r.Deadline, Attempts: r.Attempts, Checked: r.Phrases(), FinishesAt: r.FinishesAt, Parked: r.Parked,
		Held: !r.FinishesAt.IsZero() || r.Verified != nil && r.Verified.Held,
	}
	if of, err := site.Of(r.Before.URL); err == nil {
		h.Site = site.Display(of)
	}
	return h
}

// decisions are what a person may decide at the live view: the owner's word.
type decisions struct{ room *handoff.Room }

var _ liveview.Handoffs = decisions{}

func (d decisions) Finish(ctx context.Context, id string, anyway bool) error {
	_, err := d.room.Finish(ctx, handoff.Owner, id, anyway)
	return err // one that is sent back is shown as asked again
}

func (d decisions) Cancel(ctx context.Context, id string) error {
	_, err := d.room.Cancel(ctx, handoff.Owner, id)
	return err
}

func (d decisions) Extend(ctx context.Context, id string, more time.Duration) error {
	_, err := d.room.Extend(ctx, handoff.Owner, id, more)
	return err
}

func (d decisions) Park(ctx context.Context, id string) error {
	_, err := d.room.Park(ctx, handoff.Owner, id)
	return err
}

func (d decisions) Resume(ctx context.Context, id string) error {
	_, err := d.room.Resume(ctx, id)
	return err
}

func (d decisions) Present(ctx context.Context, id string) error { return d.room.Present(ctx, id) }

// Takeover begins a hand-off from the person's side. Nobody is called, and
// nothing is closed when its time is over: the owner asked for neither.
func (d decisions) Takeover(ctx context.Context, id string) error {
	_, err := d.room.Start(session.As(ctx, session.Owner), handoff.StartOptions{
		By: handoff.Owner, Reason: handoff.Other, SessionID: id, Silent: true, OnTimeout: handoff.ReturnOnTimeout,
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Busy, "", "the agent could not be stopped in time")
	}
	return err
}
