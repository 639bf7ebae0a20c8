package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/page"
)

const (
	// drainWithin is what an action under way gets to come to its end before the
	// wheel changes hands; then it is cut off, and says that its effect is unknown.
	drainWithin = 5 * time.Second
	// photoWithin bounds the picture for the message: a page that does not let
	// itself be photographed must not keep the owner from being called.
	photoWithin = 5 * time.Second
)

// LendOptions are what is wanted of a page as the wheel changes hands.
type LendOptions struct {
	TabID      string // to be in front; none means the one that is
	Observe    page.ObserveOptions
	Conditions []page.Condition
	Photo      bool
}

// Lent is a session as it was when the wheel changed hands.
type Lent struct {
	SessionID  string
	Generation int
	TabID      string
	Seen       page.Observation
	Holds      []bool      // of the conditions, in their order
	Photo      *page.Image // with secrets masked; nil where there is none
	Until      time.Time   // past which the browser cannot be kept; zero means as long as is wished
}

// errLent cuts off what is under way.
var errLent = errors.New("a person takes over")

// Lend gives the wheel of a session to the person of a hand-off: newcomers are
// turned away at once, what is under way is let finish, and then the page is
// looked at for the last time. Lending again to the same hand-off changes
// nothing. When it fails the agent has the wheel again.
func (h *Host) Lend(ctx context.Context, id, handoff string, o LendOptions) (Lent, error) {
	s, err := h.find(id)
	if err != nil {
		return Lent{}, err
	}
	fresh, err := s.closeGate(handoff)
	if err != nil {
		return Lent{}, err
	}
	lent, err := Lent{}, errPanicked
	defer func() {
		if err != nil && fresh { // also when a look at the page panics
			s.openGate(handoff)
		}
	}()
	lent, err = h.lend(ctx, s, o)
	return lent, err
}

// leaseRoom is who has the wheel. When it panics nobody knows who has, and the
// process stops: the next one reads it from the hand-off's record.
const leaseRoom = "lease"

func (h *Host) lend(ctx context.Context, s *Session, o LendOptions) (Lent, error) {
	ctx = As(ctx, Owner)
	if err := s.drain(ctx); err != nil {
		return Lent{}, err
	}
	defer func() { <-s.turn }()
	if o.TabID != "" {
		if err := s.view().tabs.Switch(ctx, o.TabID); err != nil {
			return Lent{}, err
		}
	}
	tab, err := s.view().tabs.Front(ctx)
	if err != nil {
		return Lent{}, err
	}
	info := s.Info()
	lent := Lent{SessionID: info.ID, Generation: info.Generation, TabID: tab.ID(), Until: s.record().last()}
	if lent.Seen, err = tab.Observe(ctx, o.Observe); err != nil {
		return Lent{}, err
	}
	if lent.Holds, err = tab.Holds(ctx, o.Conditions); err != nil {
		return Lent{}, err
	}
	if o.Photo {
		lent.Photo = photo(ctx, tab)
	}
	// From here on nothing is exported until the person is done. Should the
	// browser be lost meanwhile, this is what there is to go back to.
	if err := h.records.hides(ctx, s.rec); err != nil {
		return Lent{}, err
	}
	if err := h.keepState(ctx, s); err != nil {
		return Lent{}, err
	}
	if err := h.foundAgain(ctx, s); err != nil {
		return Lent{}, err
	}
	s.mu.Lock()
	s.lease.taking = false // before the turn is let go of: see replace
	s.mu.Unlock()
	return lent, nil
}

// foundAgain takes back that a page was lost: it was another person's, and the
// agent has had time to hear of it.
func (h *Host) foundAgain(ctx context.Context, s *Session) error {
	if !s.Info().PageLost {
		return nil
	}
	if err := h.records.change(ctx, s.rec, "", func(r *record) { r.PageLost = false }); err != nil {
		return err
	}
	s.mu.Lock()
	s.info.PageLost = false
	s.mu.Unlock()
	return nil
}

// photo is the picture for the message. There may be none: a dialog is open, or
// the page has crashed.
func photo(ctx context.Context, tab *page.Tab) *page.Image {
	ctx, cancel := context.WithTimeout(ctx, photoWithin)
	defer cancel()
	shot, err := tab.Screenshot(ctx, page.ShotOptions{Format: page.JPEG, Quality: 70, MaskSecrets: true})
	if err != nil {
		return nil
	}
	return &shot
}

// closeGate turns the agent away, and reports whether it is this call that did.
func (s *Session) closeGate(handoff string) (bool, error) {
	defer guard.Vital(leaseRoom)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.lease.handoff {
	case handoff:
		return false, nil
	case "":
		s.lease = lease{handoff: handoff, taking: true}
		return true, nil
	}
	return false, fault.New(fault.HandoffActive, "", "this browser is already handed over").With("handoff_id", s.lease.handoff)
}

func (s *Session) openGate(handoff string) {
	defer guard.Vital(leaseRoom)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.handoff == handoff {
		s.lease, s.left = lease{}, true
	}
}

// drain takes the turn, and cuts off whoever does not give it back in time.
func (s *Session) drain(ctx context.Context) error {
	patience := time.AfterFunc(drainWithin, func() {
		defer guard.Catch("sessions")
		s.interrupt(errLent)
	})
	defer patience.Stop()
	return s.await(ctx)
}

// begin lets an operation be cut off. Its own context says by whom.
func (s *Session) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.cut = cancel
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		s.cut = nil
		s.mu.Unlock()
		cancel(nil)
	}
}

func (s *Session) interrupt(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil {
		s.cut(cause)
	}
}

// Return gives the wheel back to the agent, and saves what the person logged in
// to, which is verified if they were seen to be. Returning what this hand-off
// does not hold changes nothing.
func (h *Host) Return(ctx context.Context, id, handoff string, loggedIn bool) error {
	s, err := h.Get(id)
	if errors.Is(err, fault.NoSession) {
		return nil // it ended, and the lease with it
	}
	if err != nil {
		return err
	}
	if s.heldBy() != handoff {
		return nil
	}
	s.settle(ctx, handoff)
	s.undress(ctx)
	// Whoever waits for the turn meanwhile gets it when the gate is open, and is
	// refused: a text that comes too late goes nowhere.
	defer h.saveNow(ctx, s)()
	if login := s.record().Context; loggedIn && login != "" && h.deps.Saved != nil {
		if err := h.deps.Saved.Verified(ctx, login, ByHandoff); err != nil {
			h.log.Warn("that a login works could not be noted", "context", login, "error", err)
		}
	}
	s.openGate(handoff)
	h.dropState(id) // it was for this person's browser alone
	_ = s.use(time.Now())
	return nil
}

// undress gives the agent its own layout back, whatever has ended the turn. A page
// that hangs cannot be laid out, and keeps nobody waiting for long.
func (s *Session) undress(ctx context.Context) {
	tabs := s.view().tabs
	free, _, err := tabs.Unfit(ctx)
	if err != nil {
		return // the browser is gone
	}
	free()
	tabs.ForgetFit()
}

// Observe looks at the page that a hand-off holds.
func (h *Host) Observe(ctx context.Context, id, handoff string, o page.ObserveOptions) (page.Observation, error) {
	return held(ctx, h, id, handoff, func(ctx context.Context, t *page.Tab) (page.Observation, error) { return t.Observe(ctx, o) })
}

// Plain gives the page that a hand-off holds the agent's layout, until free is
// called, and tells whether it ever had a person's under this hand-off.
func (h *Host) Plain(ctx context.Context, id, handoff string) (free func(), fitted bool, err error) {
	s, err := h.Get(id)
	if err != nil {
		return nil, false, err
	}
	if s.heldBy() != handoff {
		return nil, false, notHeld("")
	}
	return s.view().tabs.Unfit(ctx)
}

// Fitted reports whether the page in front is laid out for a person's screen.
func (h *Host) Fitted(id string) bool {
	s, err := h.Get(id)
	return err == nil && s.view().tabs.Fitted().Phone
}

// Holds tells which conditions are met on the page that a hand-off holds. It
// waits for nobody's turn: a person at work must not hold it up, nor it them.
// What is to be seen in a person's layout says nothing about the agent's: there
// the addresses alone decide, for as long as nobody looks more closely.
func (h *Host) Holds(ctx context.Context, id, handoff string, conditions []page.Condition) ([]bool, error) {
	return held(ctx, h, id, handoff, func(ctx context.Context, t *page.Tab) ([]bool, error) {
		met, err := t.Holds(ctx, conditions)
		if err == nil && t.IsFitted() {
			met = byAddress(conditions, met)
		}
		return met, err
	})
}

// byAddress is what the addresses say of all conditions.
func byAddress(conditions []page.Condition, met []bool) []bool {
	addresses, all := 0, true
	for i, c := range conditions {
		if c.URL != "" {
			addresses++
			all = all && met[i]
		}
	}
	out := slices.Clone(met)
	for i, c := range conditions {
		if c.URL == "" {
			out[i] = addresses > 0 && all
		}
	}
	return out
}

// Photograph takes the picture that the owner asked for.
func (h *Host) Photograph(ctx context.Context, id, handoff string) (page.Image, error) {
	return held(ctx, h, id, handoff, func(ctx context.Context, t *page.Tab) (page.Image, error) {
		return t.Screenshot(ctx, page.ShotOptions{Format: page.JPEG, Quality: 70, MaskSecrets: true})
	})
}

// held does something with the page in front, on behalf of the hand-off that
// holds the session; one that does not hold it any more is refused.
func held[R any](ctx context.Context, h *Host, id, handoff string, fn func(context.Context, *page.Tab) (R, error)) (R, error) {
	var none R
	s, err := h.Get(id)
	if err != nil {
		return none, err
	}
	if s.heldBy() != handoff {
		return none, notHeld("")
	}
	tab, err := s.view().tabs.Front(ctx)
	if err != nil {
		return none, err
	}
	return fn(acting(ctx, handoff), tab)
}

// find is the session named, or the active one.
func (h *Host) find(id string) (*Session, error) {
	if id == "" {
		return h.Active()
	}
	return h.Get(id)
}
