package session

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/page"
)

// undoWithin bounds the way back of a replacement that was cut off.
const undoWithin = 10 * time.Second

// undo is what an origin had before it was replaced, sealed. It is on the disk
// from before the first change until the replacement has come to its end: a
// line that is cut, or a sidecar that is killed in between, leaves what is to be
// put back, and whoever has the browser next does it.
type undo struct {
	Origin  string          `json:"origin"`
	Cookies bool            `json:"cookies"` // they are replaced, also where there were none
	State   json.RawMessage `json:"state"`
}

func undoFile(id string) string { return "sessions/" + id + ".undo" }

// replaceOrigin replaces what an origin has, or changes nothing; whoever calls
// it has the turn.
func (s *Session) replaceOrigin(ctx context.Context, origin string, cookies []browser.Cookie, st browser.OriginState) (page.Replaced, error) {
	v := s.view()
	if err := s.host.rememberOrigin(ctx, s.ID(), v.tabs, origin, cookies != nil, st); err != nil {
		return page.Replaced{}, err
	}
	done, err := v.tabs.ReplaceOrigin(ctx, origin, cookies, st)
	if err == nil || v.inst.Conn().Err() == nil {
		s.host.forgetOrigin(s.ID()) // it is done, or was put back by itself
	}
	return done, err
}

// rememberOrigin keeps what is about to be replaced. Only the parts that are
// replaced are put back.
func (h *Host) rememberOrigin(ctx context.Context, id string, tabs *page.Tabs, origin string, cookies bool, st browser.OriginState) error {
	if h.deps.Sealer == nil {
		return nil
	}
	had, stored, err := tabs.ReadOrigin(ctx, origin)
	if err != nil {
		return err
	}
	if !cookies {
		had = nil
	}
	if st.Local == nil {
		stored.Local = nil
	}
	if st.Session == nil {
		stored.Session = nil
	}
	stored.Databases = nil // an envelope carries none, and so replaces none
	state, err := browser.State{Cookies: had, Origins: []browser.OriginState{stored}}.Encode()
	if err != nil {
		return err
	}
	plain, err := json.Marshal(undo{origin, cookies, state})
	if err != nil {
		return err
	}
	sealed, err := h.deps.Sealer.Seal(undoFile(id), "", plain)
	if err != nil {
		return err
	}
	return h.deps.Home.Write(undoFile(id), sealed)
}

// forgetOrigin says that a replacement has come to its end, whichever.
func (h *Host) forgetOrigin(id string) {
	if err := h.deps.Home.Remove(undoFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("what an origin had before an import could not be removed", "session", id, "error", err)
	}
}

// putBack undoes a replacement that was cut off in this browser, if one was. A
// browser whose state is in doubt is not given back: half of one login and half
// of another is neither.
func (h *Host) putBack(ctx context.Context, id string, tabs *page.Tabs) error {
	if h.deps.Sealer == nil {
		return nil
	}
	sealed, err := h.deps.Home.Read(undoFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	plain, err := h.deps.Sealer.Open(undoFile(id), "", sealed)
	if err != nil {
		return err
	}
	var u undo
	if err := json.Unmarshal(plain, &u); err != nil {
		return err
	}
	state, err := browser.DecodeState(u.State)
	if err != nil {
		return err
	}
	if u.Cookies && state.Cookies == nil {
		state.Cookies = []browser.Cookie{}
	}
	stored := browser.OriginState{Origin: u.Origin}
	for _, each := range state.Origins {
		stored = each
	}
	ctx, cancel := context.WithTimeout(ctx, undoWithin)
	defer cancel()
	_, err = tabs.ReplaceOrigin(ctx, u.Origin, state.Cookies, stored)
	if errors.Is(err, fault.OriginMismatch) && stored.Session != nil {
		// The tab has gone elsewhere since, and its sessionStorage with it.
		stored.Session = nil
		_, err = tabs.ReplaceOrigin(ctx, u.Origin, state.Cookies, stored)
	}
	if err != nil {
		return err
	}
	h.log.Info("an import that was cut off is undone", "session", id, "origin", u.Origin)
	h.forgetOrigin(id)
	return nil
}
