package session

import (
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
)

// settleWithin is what a person's last deed gets to come to its end when the
// wheel goes back.
const settleWithin = 2 * time.Second

// Screen is a session as somebody sees it who looks on: also while the line to
// its browser is being mended, and while it is parked. Nothing here waits for a
// turn. It is safe for concurrent use.
type Screen struct {
	host *Host
	id   string
}

// Seen is how a session stands for somebody who looks on.
type Seen struct {
	Look     page.Look
	Deadline time.Time
	Handoff  string // that has the wheel; "" while the agent drives
	Over     bool
}

// Screen is that of a session which is not over; NO_SESSION otherwise.
func (h *Host) Screen(id string) (*Screen, error) {
	s := &Screen{h, id}
	if s.Seen().Over {
		return nil, fault.New(fault.NoSession, "", "no session %q is active", id)
	}
	return s, nil
}

// Seen tells how the session stands. Options.OnChange hears when it is to be
// asked again.
func (s *Screen) Seen() Seen {
	s.host.mu.Lock()
	on, parked := s.host.sessions[s.id], s.host.parked[s.id]
	_, starting := s.host.starting[s.id]
	s.host.mu.Unlock()
	switch {
	case on != nil:
		rec := on.record()
		return Seen{Look: rec.Look, Deadline: on.Info().Deadline, Handoff: on.heldBy()}
	case parked.rec != nil:
		rec := s.host.records.copy(parked.rec)
		return Seen{Look: rec.Look, Deadline: rec.Deadline, Handoff: parked.handoff}
	}
	return Seen{Over: !starting}
}

// Tabs are those of the browser as it is now; nil while there is none to show.
// The channel is closed when there are others to be asked for; it is nil where
// only a change of the session itself brings some.
func (s *Screen) Tabs() (*page.Tabs, <-chan struct{}) {
	s.host.mu.Lock()
	on := s.host.sessions[s.id]
	s.host.mu.Unlock()
	if on == nil {
		return nil, nil
	}
	on.mu.Lock()
	defer on.mu.Unlock()
	conn := on.now.inst.Conn()
	if on.closing || conn.Err() != nil {
		return nil, on.shown
	}
	return on.now.tabs, conn.Done()
}

// Act does something for the person of a hand-off that has the wheel at this
// moment; HANDOFF_NOT_RUNNING otherwise. It is a sign of life. What is under way
// when the wheel goes back is cut off before the agent has it.
func (s *Screen) Act(ctx context.Context, handoff string, fn func(context.Context, *page.Tabs) error) error {
	if handoff == "" {
		return notHeld("")
	}
	on, err := s.host.Get(s.id)
	if err != nil {
		return err
	}
	ctx = acting(ctx, handoff)
	note, err := on.admits(actorOf(ctx))
	if err != nil {
		return err
	}
	if note != nil {
		s.host.aside(note) // no tap waits for the disk
	}
	ctx, done, err := on.lean(ctx, handoff)
	if err != nil {
		return err
	}
	defer done()
	now := on.view()
	if err := now.inst.Conn().Err(); err != nil {
		return err
	}
	return fn(ctx, now.tabs)
}

// Fit lays the page out for the screen of whoever drives under a hand-off. It is no
// deed of theirs, and no sign of life.
func (s *Screen) Fit(ctx context.Context, handoff string, g page.Glass, want page.Fitting) error {
	on, err := s.host.Get(s.id)
	if err != nil {
		return err
	}
	ctx, done, err := on.lean(acting(ctx, handoff), handoff)
	if err != nil {
		return err
	}
	defer done()
	// What the owner has done over the API meanwhile is aimed at the page as it lies.
	if err := on.await(ctx); err != nil {
		return err
	}
	defer func() { <-on.turn }()
	now := on.view()
	if err := now.inst.Conn().Err(); err != nil {
		return err
	}
	return now.tabs.Fit(ctx, g, want)
}

// lean begins what a person does under a lease.
func (s *Session) lean(ctx context.Context, handoff string) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.handoff != handoff || s.closing || s.lease.ending {
		return nil, nil, notHeld("")
	}
	ctx, cancel := context.WithCancel(ctx)
	if s.deeds == nil {
		s.deeds = map[*context.CancelFunc]struct{}{}
	}
	s.deeds[&cancel] = struct{}{}
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.deeds, &cancel)
		if len(s.deeds) == 0 && s.still != nil {
			close(s.still)
			s.still = nil
		}
	}, nil
}

// settle cuts off what a person still does under a lease that ends, and waits
// until it has stopped: the next hand at the wheel must be the only one.
func (s *Session) settle(ctx context.Context, handoff string) {
	s.mu.Lock()
	if s.lease.handoff != handoff {
		s.mu.Unlock()
		return
	}
	s.lease.ending = true
	var still chan struct{}
	for cancel := range s.deeds {
		(*cancel)()
	}
	if len(s.deeds) > 0 {
		if s.still == nil {
			s.still = make(chan struct{})
		}
		still = s.still
	}
	s.mu.Unlock()
	if still == nil {
		return
	}
	late := time.NewTimer(settleWithin)
	defer late.Stop()
	select {
	case <-still:
	case <-late.C:
	case <-ctx.Done():
	}
}

// unsettle takes back that a lease ends, because it does not.
func (s *Session) unsettle(handoff string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.handoff == handoff {
		s.lease.ending = false
	}
}

// changed tells that a session began, was parked, or is no more.
func (h *Host) changed(session string) {
	if h.opts.OnChange != nil {
		h.opts.OnChange(session)
	}
}
