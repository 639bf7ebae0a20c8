package session

import (
	"context"

	"github.com/chromedp/cdproto/target"
)

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
