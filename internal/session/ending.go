package session

import (
	"context"
	"errors"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// Stop ends a session and its browser. A login it was started with is saved,
// unless save says otherwise.
func (h *Host) Stop(ctx context.Context, id string, save *bool) (Stopped, error) {
	s, err := h.Get(id)
	if err != nil {
		return Stopped{}, err
	}
	if err := s.permit(ctx); err != nil {
		return Stopped{}, err
	}
	s.mu.Lock()
	s.saveAs = save
	s.mu.Unlock()
	return h.end(ctx, s, "")
}

// Shut ends a session on behalf of a hand-off: its person gave up, or never
// came. A parked one has nothing left to end but its record.
func (h *Host) Shut(ctx context.Context, id, reason string) (Stopped, error) {
	if h.isParked(id) {
		return Stopped{ID: id, ContextSaved: true}, h.discard(ctx, id, reason)
	}
	s, err := h.Get(id)
	if errors.Is(err, fault.NoSession) {
		return Stopped{ID: id}, nil // it is over already
	}
	if err != nil {
		return Stopped{}, err
	}
	// The gate stays closed: until the browser is gone the page is the person's.
	return h.end(ctx, s, reason)
}

// retryEndAfter is when an end that failed is tried again.
const retryEndAfter = 5 * time.Second

// end is the one way out: gate, browser, record, news. Whoever comes second
// waits for the first and gets the same answer. It goes on when its caller has
// hung up, and one that failed is tried again: until it succeeds the session is
// still listed, because its browser may still run.
func (h *Host) end(ctx context.Context, s *Session, reason string) (Stopped, error) {
	ctx = context.WithoutCancel(ctx)
	return s.end(func() (Stopped, error) {
		began := time.Now()
		h.unwatch(s.ID())
		s.shut(whyOver(reason, s.view().inst.Conn().Err()))
		s.interrupt(errStopped)
		saved := h.saveLast(ctx, s)
		s.close("")
		// Its own time: a login that took long to read must not keep a browser alive.
		ctx, cancel := context.WithTimeout(ctx, judgeWithin)
		defer cancel()
		inst := s.view().inst
		err := inst.End(ctx)
		if err != nil {
			// It may be unreachable from here: the provider knows other ways.
			err = s.provider.End(ctx, inst.Ref())
		}
		if known := s.record().Ref; err == nil && known.ID != inst.Ref().ID {
			err = s.provider.End(ctx, known) // one that was to take the place of a lost one
		}
		if err == nil {
			s.setFreed() // before it is told: whoever hears of it may start another
			err = h.letGo(ctx, s.rec, reason)
		}
		h.journal(event.Entry{At: began, Who: who(ctx, reason), What: "session.stop", Session: s.ID(), Took: time.Since(began), Outcome: outcome(err)})
		if err != nil {
			if inst.Conn().Err() != nil {
				h.tellEnd(s, reason) // out of reach, it is over for whoever was in it
			}
			h.deps.Schedule.Set(s.ID(), time.Now().Add(retryEndAfter), func(ctx context.Context) { _, _ = h.end(ctx, s, reason) })
			return Stopped{}, err
		}
		h.mu.Lock()
		delete(h.sessions, s.ID())
		h.changed(s.ID())
		h.lastEnd = reason
		h.mu.Unlock()
		h.tellEnd(s, reason)
		return Stopped{ID: s.ID(), ContextSaved: saved}, nil
	})
}

// tellEnd says once that a session is over. The one who ends it calls it.
func (h *Host) tellEnd(s *Session, reason string) {
	if s.toldEnd {
		return
	}
	s.toldEnd = true
	held := s.heldBy()
	if h.opts.OnEnd != nil {
		h.opts.OnEnd(s.ID(), held, reason)
	}
	s.openGate(held) // nobody drives it any more
}

// Close ends all sessions, also those that are still being started; it is the
// sidecar's orderly end. One that a person holds is not ended.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	h.stop()
	h.starts.Wait() // bounded: their context is over

	h.mu.Lock()
	var all []*Session
	var held []*Session
	for _, s := range h.sessions {
		if s.heldBy() != "" {
			held = append(held, s)
			continue
		}
		all = append(all, s)
	}
	h.mu.Unlock()
	for _, s := range held {
		// It could not be parked. The browser lives on in the person's hands, and
		// the next start finds it.
		h.log.Warn("a browser that a person is in is left running", "session", s.ID())
		h.forget(s, "tapin was stopped")
	}
	errs := make([]error, len(all))
	var wg guard.Group
	for i, s := range all {
		wg.Run(func() { _, errs[i] = h.end(ctx, s, "tapin was stopped") })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *Host) journal(e event.Entry) {
	if err := h.deps.Journal.Write(e); err != nil {
		h.log.Warn("the journal could not be written", "error", err)
	}
}

// whyOver is what those are told whose work an end cuts off; empty where the
// browser was lost before, which speaks for itself.
func whyOver(reason string, lost error) string {
	switch {
	case lost != nil:
		return ""
	case reason == "":
		return "it was stopped"
	}
	return reason
}

// who tells a caller's wish from our own doing.
func who(ctx context.Context, reason string) string {
	if reason == "" {
		return string(driverOf(ctx))
	}
	return "tapin"
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(fault.Of(err).Code)
}
