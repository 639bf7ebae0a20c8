package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"tapin/internal/browser"
	"tapin/internal/guard"
	"tapin/internal/page"
)

// regainAfter are the pauses before each try to get a lost browser back: at
// once, because the browser may be fine and only the line was cut, then slowly.
var regainAfter = []time.Duration{0, 2 * time.Second, 5 * time.Second, 10 * time.Second}

// errGone means that there is no browser to come back to.
var errGone = errors.New("the browser is gone")

// connect opens a running browser again: under the policy of today, with each
// tab in the state it had.
func (h *Host) connect(ctx context.Context, provider browser.Provider, rec *record, recipes page.Recipes) (view, error) {
	inst, err := provider.Reconnect(ctx, h.records.copy(rec).Ref)
	if err != nil {
		return view{}, err
	}
	if err := inst.SetPolicy(ctx, h.opts.Policy); err != nil {
		_ = inst.Release()
		return view{}, err
	}
	v, err := h.open(ctx, inst, h.viewing(rec, recipes))
	if err != nil {
		return view{}, err
	}
	if err := h.putBack(ctx, rec.ID, v.tabs); err != nil {
		v.close()
		return view{}, err
	}
	return v, nil
}

// watch gives the session its deadline, and gets its browser back when the line
// to it is cut.
func (h *Host) watch(s *Session) {
	h.arm(s)
	h.watchLogin(s)
	s.mu.Lock()
	s.watched = true
	s.mu.Unlock()
	go func() {
		defer guard.Catch("sessions")
		guard.Again(h.life, "sessions", func() { h.stayWith(s) })
	}()
}

// stayWith gets a session's browser back as often as it is lost, until it is over.
func (h *Host) stayWith(s *Session) {
	for {
		conn := s.view().inst.Conn()
		select {
		case <-conn.Done():
		case <-s.over:
			return
		}
		switch err := h.regain(s, conn.Err()); {
		case err == nil:
		case errors.Is(err, browser.ErrTakenOver):
			// A later sidecar has browser and record: neither is ours to touch.
			h.forget(s, err.Error())
			return
		case s.heldBy() != "" && h.replace(s, err) == nil:
		default:
			_, _ = h.end(context.Background(), s, "its browser was lost ("+conn.Err().Error()+")")
			return
		}
	}
}

// regain brings a lost browser back under the session. It holds the turn, so
// that whoever comes meanwhile waits; what was under way has failed, and is
// never repeated here: it may have been done.
func (h *Host) regain(s *Session, cause error) error {
	if browser.HasEnded(cause) {
		return errGone
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.over:
		return errGone
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	go func() {
		defer guard.Catch("sessions")
		select {
		case <-s.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	old := s.view()
	recipes := old.tabs.Recipes()
	h.log.Info("the line to a browser was cut", "session", s.ID(), "cause", cause)
	err := errGone
	for _, pause := range regainAfter {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		var next view
		if next, err = h.tryAgain(ctx, s, recipes); err == nil {
			old.close()
			s.show(next)
			if err := h.records.change(ctx, s.rec, "session.reconnected", func(*record) {}); err != nil {
				h.log.Warn("that a browser was reached again could not be told", "session", s.ID(), "error", err)
			}
			return nil
		}
		if errors.Is(err, errGone) || errors.Is(err, browser.ErrTakenOver) {
			return err
		}
	}
	return err
}

// tryAgain is one try; errGone means that no further one makes sense.
func (h *Host) tryAgain(ctx context.Context, s *Session, recipes page.Recipes) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	next, err := h.connect(ctx, s.provider, s.rec, recipes)
	if err == nil || errors.Is(err, browser.ErrTakenOver) {
		return next, err
	}
	known := s.record().Ref
	own, ownErr := s.provider.Own(ctx, []browser.Ref{known})
	if ownErr == nil && !slices.ContainsFunc(own, func(ref browser.Ref) bool { return ref.ID == known.ID }) {
		return view{}, errGone
	}
	return view{}, err
}

// view is a browser as it is now; a reconnect brings another one.
type view struct {
	inst browser.Instance
	tabs *page.Tabs
}

// close lets go of the browser; it lives on.
func (v view) close() {
	v.tabs.Close()
	_ = v.inst.Release()
}
