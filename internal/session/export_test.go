package session

import (
	"context"

	"github.com/chromedp/cdproto/target"
)

// ParkOnRecord writes that a session is parked, and does nothing about it.
func (h *Host) ParkOnRecord(ctx context.Context, id string) error {
	s, err := h.Get(id)
	if err != nil {
		return err
	}
	return h.records.change(ctx, s.rec, "session.parked", func(r *record) { r.State = stateParked })
}

// Sever cuts the line to a session's browser, as a restarted switch would.
func (h *Host) Sever(id string) {
	if s, err := h.Get(id); err == nil {
		_ = s.view().inst.Release()
	}
}

// CrashPage crashes the page in front.
func (h *Host) CrashPage(ctx context.Context, id string) error {
	s, err := h.Get(id)
	if err != nil {
		return err
	}
	tab, err := s.view().tabs.Front(ctx)
	if err != nil {
		return err
	}
	conn := s.view().inst.Conn()
	var at struct {
		SessionID target.SessionID `json:"sessionId"`
	}
	if err := conn.Root().Call(ctx, "Target.attachToTarget", map[string]any{"targetId": tab.ID(), "flatten": true}, &at); err != nil {
		return err
	}
	return conn.Session(at.SessionID).Send(ctx, "Page.crash", nil)
}

// Busy reports whether something is under way in a session.
func (h *Host) Busy(id string) bool {
	s, err := h.Get(id)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut != nil
}

// ReviveHalf makes another browser for a session of an earlier process, and
// stops as a kill would before anything is in it.
func (h *Host) ReviveHalf(ctx context.Context, fatal func(...any), id string) {
	found, _, err := h.records.all()
	if err != nil || len(found) != 1 || found[0].ID != id {
		fatal(found, err)
		return
	}
	provider, err := h.deps.Providers("")
	if err != nil {
		fatal(err)
		return
	}
	if _, err := h.revive(ctx, provider, found[0], true); err == nil {
		fatal("it was made whole")
	}
}

// OpenedAhead is how many browsers that are nobody's have their tabs taken.
func (h *Host) OpenedAhead() int {
	h.ahead.mu.Lock()
	defer h.ahead.mu.Unlock()
	return len(h.ahead.tabs)
}
