package session

import (
	"context"
	"fmt"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
)

// reviveWithin bounds a new browser in the place of another.
const reviveWithin = 45 * time.Second

// replaceEvery is how often a lost browser is made anew.
const replaceEvery = 10 * time.Second

// revive makes another browser for a session whose own is gone, with the state
// that was kept and on the page where it was. The record names the browser
// before it exists, so that no crash leaves one that nobody knows. With a page
// that was lost it says so in the same write, and that the browser is not ready
// yet: whoever finds it like that makes it anew.
func (h *Host) revive(ctx context.Context, provider browser.Provider, rec *record, lost bool) (view, error) {
	address, state, err := h.readState(rec.ID)
	if err != nil {
		return view{}, err
	}
	now := h.records.copy(rec)
	h.endLeft(ctx, provider, rec.ID, now.Ref)
	next := browser.Ref{Provider: provider.Name(), ID: fmt.Sprintf("%s-%d", rec.ID, now.Generation+1)}
	err = h.records.change(ctx, rec, "", func(r *record) {
		r.Generation, r.Ref = now.Generation+1, next
		r.PageLost, r.Reviving = r.PageLost || lost, lost
	})
	if err != nil {
		return view{}, err
	}
	v, written, err := h.create(ctx, provider, rec)
	if err != nil {
		return view{}, err
	}
	if err := written(); err != nil {
		v.close()
		return view{}, err
	}
	if _, err := v.tabs.Restore(ctx, state); err != nil {
		v.close()
		return view{}, err
	}
	if address != "" {
		if tab, err := v.tabs.Front(ctx); err == nil {
			// Where it was may not answer now; the person sees that, and goes on from there.
			_, _ = tab.Navigate(ctx, address, "")
		}
	}
	return v, nil
}

// replace puts another browser under a session that a person holds, because its
// own is lost. What the page was is lost with it, and that is said.
func (h *Host) replace(s *Session, cause error) error {
	ctx, cancel := context.WithTimeout(h.life, reviveWithin)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.over:
		return errGone
	}
	if !s.taken() {
		return errGone // it was lost before anybody had it
	}
	if time.Since(s.replaced) < replaceEvery {
		return errGone // what kills it would kill the next one too
	}
	s.replaced = time.Now()
	h.log.Warn("a browser that a person was in is lost and made anew", "session", s.ID(), "cause", cause)
	old := s.view()
	old.close()
	next, err := h.revive(ctx, s.provider, s.rec, true)
	if err != nil {
		_ = h.endRef(context.WithoutCancel(ctx), s.provider, s.record().Ref)
		return err
	}
	s.show(next)
	rec := s.record()
	s.mu.Lock()
	s.info.Generation, s.info.PageLost = rec.Generation, true
	s.mu.Unlock()
	if h.opts.OnReplace != nil {
		// Not from here: whoever hears of it may want the turn.
		h.deps.Schedule.Set(s.ID()+"/replaced", time.Now(), func(context.Context) { h.opts.OnReplace(s.ID(), rec.Generation) })
	}
	return h.records.change(ctx, s.rec, "session.restored", func(r *record) { r.Reviving = false })
}

// Park saves what is in a browser and frees it, until the person of the
// hand-off comes back. The session keeps its id.
func (h *Host) Park(ctx context.Context, id, handoff string) error {
	const op = "park"
	if h.deps.Sealer == nil {
		return fault.New(fault.Disabled, op, "there is no key to seal the session's state with")
	}
	s, err := h.Get(id)
	if err != nil {
		if h.isParked(id) {
			return nil
		}
		return err
	}
	if s.heldBy() != handoff {
		return notHeld(op)
	}
	s.settle(ctx, handoff)
	defer s.unsettle(handoff)
	if err := s.await(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	now, err := s.read(ctx, readWithin)
	if err == nil {
		err = h.sealState(s, now)
	}
	if err != nil {
		return fault.New(fault.Internal, op, "the state of the browser could not be kept; it goes on: %w", err)
	}
	if s.saves() {
		if err := h.saveLogin(ctx, s, now); err != nil {
			h.log.Warn("a login could not be saved", "session", s.ID(), "error", err)
		}
	}
	if err := h.records.change(ctx, s.rec, "session.parked", func(r *record) { r.State = stateParked }); err != nil {
		return err
	}
	h.unwatch(id)
	s.close("it was parked")
	h.mu.Lock()
	delete(h.sessions, id)
	h.parked[id] = parked{s.rec, handoff}
	h.changed(id)
	h.mu.Unlock()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), judgeWithin)
	defer cancel()
	if err := s.view().inst.End(ending); err != nil {
		h.endLeft(context.WithoutCancel(ctx), s.provider, id, s.record().Ref)
	}
	return nil
}

// parked is a session without a browser.
type parked struct {
	rec     *record
	handoff string
}

func (h *Host) isParked(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.parked[id]
	return ok
}

// Unpark gives a parked session a browser again, with the person at the wheel.
// When it fails the session stays parked.
func (h *Host) Unpark(ctx context.Context, id, handoff string) (generation int, err error) {
	h.mu.Lock()
	p, ok := h.parked[id]
	h.mu.Unlock()
	if !ok {
		s, err := h.Get(id)
		if err != nil {
			return 0, err
		}
		return s.Info().Generation, nil
	}
	if p.handoff != handoff {
		return 0, notHeld("resume")
	}
	if err := h.reserve(id); err != nil {
		return 0, err
	}
	defer h.unreserve(id)
	ctx, cancel := context.WithTimeout(ctx, reviveWithin)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	provider, err := h.deps.Providers(h.records.copy(p.rec).Ref.Provider)
	if err != nil {
		return 0, err
	}
	v, err := h.revive(ctx, provider, p.rec, false)
	if err != nil {
		_ = h.endRef(context.WithoutCancel(ctx), provider, h.records.copy(p.rec).Ref)
		return 0, err
	}
	deadline := time.Now().Add(h.opts.Timeout).UTC()
	err = h.records.change(ctx, p.rec, "session.resumed", func(r *record) {
		r.State, r.LastUsedAt, r.AwakeSince = stateActive, time.Now().UTC(), time.Now().UTC()
		if r.Deadline.Before(deadline) {
			r.Deadline = deadline
		}
	})
	if err != nil {
		v.close()
		_ = h.endRef(context.WithoutCancel(ctx), provider, h.records.copy(p.rec).Ref)
		return 0, err
	}
	s := newSession(h, provider, v, p.rec)
	s.lease.handoff = handoff
	h.mu.Lock()
	delete(h.parked, id)
	h.mu.Unlock()
	h.take(s)
	_ = v.inst.KeepUntil(ctx, deadline.Add(grace))
	return s.Info().Generation, nil
}

// discard ends a parked session for good.
func (h *Host) discard(ctx context.Context, id, reason string) error {
	h.mu.Lock()
	p, ok := h.parked[id]
	h.mu.Unlock()
	if !ok {
		return nil
	}
	if err := h.letGo(ctx, p.rec, reason); err != nil {
		return err
	}
	h.mu.Lock()
	delete(h.parked, id)
	h.changed(id)
	h.mu.Unlock()
	return nil
}
