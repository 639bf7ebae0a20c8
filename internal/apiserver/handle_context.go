package apiserver

import (
	"slices"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/logins"
)

func (s *Server) listContexts(c *call, _ *nothing) (*api.Contexts, error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	infos, err := saved.List(c.r.Context())
	if err != nil {
		return nil, err
	}
	answer := &api.Contexts{Contexts: make([]api.Context, len(infos))}
	for i, info := range infos {
		answer.Contexts[i] = contextOf(info)
	}
	return answer, nil
}

func (s *Server) showContext(c *call, _ *nothing) (*api.Context, error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	info, err := saved.Get(c.r.Context(), c.id)
	if err != nil {
		return nil, err
	}
	answer := contextOf(info)
	return &answer, nil
}

func (s *Server) deleteContext(c *call) (_ *api.DeletedContext, err error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	defer func(began time.Time) { s.note(c, "context.delete", "", "", nil, began, err) }(time.Now())
	gone, err := saved.Delete(c.r.Context(), c.id, &logins.DeleteOptions{OnlyExpired: c.role < Owner})
	if err != nil {
		return nil, err
	}
	return &api.DeletedContext{
		Name: gone.Name, State: gone.Sealed, Previous: gone.Previous, Damaged: gone.SetAside,
		Entry: gone.Entry, History: gone.History, Remains: gone.Remains,
	}, nil
}

func (s *Server) renameContext(c *call, req *api.RenameRequest) (_ *api.RenameAnswer, err error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	defer func(began time.Time) { s.note(c, "context.rename", "", "", nil, began, err) }(time.Now())
	if err := saved.Rename(c.r.Context(), c.id, req.To); err != nil {
		return nil, err
	}
	return &api.RenameAnswer{Name: req.To, Was: c.id}, nil
}

func (s *Server) checkContext(c *call, _ *api.CheckRequest) (_ *api.CheckAnswer, err error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	defer func(began time.Time) { s.note(c, "context.check", "", "", nil, began, err) }(time.Now())
	found, err := saved.Check(c.r.Context(), c.id)
	if err != nil {
		return nil, err
	}
	return &api.CheckAnswer{Name: c.id, ContextCheck: *checkOf(&found)}, nil
}

func (s *Server) exportSaved(c *call, req *api.ExportRequest) (*api.ExportAnswer, error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	if req.IncludeHTTPAuth || req.CaptureUA || req.TabID != "" || req.SessionID != "" {
		return nil, fault.New(fault.InvalidRequest, "", "a saved login has no tab, no user agent and no HTTP password").
			WithHint("Leave tabId, session_id, captureUA and includeHttpAuth out, or use POST /context/export.")
	}
	return s.export(c, req, "", false, func() (logins.Exported, bool, error) {
		out, err := saved.Export(c.r.Context(), c.id, logins.ExportOptions{Origin: req.Origin, NoStorage: withoutStorage(req)})
		return out, false, err
	})
}

func (s *Server) exportLive(c *call, req *api.ExportRequest) (*api.ExportAnswer, error) {
	live, err := s.contexts.sessions()
	if err != nil {
		return nil, err
	}
	if req.IncludeHTTPAuth && c.role < Owner {
		return nil, fault.New(fault.Forbidden, "", "includeHttpAuth is for the owner")
	}
	id, err := s.sessionID(req.SessionID)
	if err != nil {
		return nil, err
	}
	return s.export(c, req, id, true, func() (logins.Exported, bool, error) {
		got, err := live.Capture(c.r.Context(), id, CaptureOptions{TabID: req.TabID, Origin: req.Origin, HTTPAuth: req.IncludeHTTPAuth, UserAgent: req.CaptureUA})
		if err != nil {
			return logins.Exported{}, false, err
		}
		out, err := logins.Export(got.State, logins.ExportOptions{
			Origin: got.Origin, CapturedAt: got.At, NoStorage: withoutStorage(req),
			UserAgent: got.UserAgent, Viewport: got.Viewport, HTTPAuth: got.HTTPAuth,
		})
		return out, got.Pristine, err
	})
}

// export reads a login and seals it, unless the caller may have it in the
// clear. What the agent made itself it may read; what a person gave, or what
// comes from a saved login, leaves this door sealed.
func (s *Server) export(c *call, req *api.ExportRequest, session string, live bool, read func() (logins.Exported, bool, error)) (_ *api.ExportAnswer, err error) {
	var origin string
	counts := map[string]int{}
	defer func(began time.Time) { s.note(c, "context.export", session, origin, counts, began, err) }(time.Now())
	if err := s.mayAddress(c, req); err != nil {
		return nil, err
	}
	out, pristine, err := read()
	if err != nil {
		return nil, err
	}
	e := out.Envelope
	origin = e.Origin
	counts["cookies"], counts["storage_keys"] = len(e.Cookies), out.StorageKeys
	answer := &api.ExportAnswer{
		Envelope: out.Raw, Origin: e.Origin, Cookies: len(e.Cookies), StorageKeys: out.StorageKeys, Skipped: out.Skipped, NotCarried: out.NotCarried,
	}
	mayRead := c.role >= Owner || live && pristine
	addressed := len(req.Recipients) > 0 || !req.Passphrase.IsEmpty()
	switch {
	case req.Sealed != nil && !*req.Sealed && !mayRead:
		return nil, fault.New(fault.Forbidden, "", "this login leaves tapin sealed").WithHint("Leave sealed out, or have the owner export it.")
	case req.Sealed != nil && !*req.Sealed && addressed:
		return nil, fault.New(fault.InvalidRequest, "", "what is not sealed has no recipients and no passphrase")
	case req.Sealed != nil && !*req.Sealed, req.Sealed == nil && mayRead && !addressed:
		return answer, nil
	case s.contexts.porter == nil:
		return nil, fault.New(fault.Disabled, "", "nothing can be sealed here")
	}
	answer.Sealed = true
	answer.Envelope, err = logins.Seal(s.contexts.porter, out.Raw, &logins.SealOptions{Recipients: req.Recipients, Passphrase: req.Passphrase})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// mayAddress keeps the agent from sealing for itself: a key or passphrase of
// its own choice would be as good as the clear.
func (s *Server) mayAddress(c *call, req *api.ExportRequest) error {
	if c.role >= Owner {
		return nil
	}
	if !req.Passphrase.IsEmpty() {
		return fault.New(fault.Forbidden, "", "a passphrase is the owner's to choose").WithHint("Leave it out: the envelope opens in this tapin.")
	}
	for _, r := range req.Recipients {
		own := s.contexts.porter != nil && r == s.contexts.porter.Recipient()
		if !own && !slices.Contains(s.contexts.known, r) {
			return fault.New(fault.Forbidden, "", "the owner has not named that recipient").WithHint("Leave recipients out: the envelope opens in this tapin.")
		}
	}
	return nil
}

func (s *Server) importSaved(c *call, req *api.ImportRequest) (_ *api.ImportAnswer, err error) {
	saved, err := s.contexts.rooms()
	if err != nil {
		return nil, err
	}
	if req.StrictOrigin || req.TabID != "" || req.SessionID != "" {
		return nil, fault.New(fault.InvalidRequest, "", "a saved login has no tab").WithHint("Leave strictOrigin, tabId and session_id out, or use POST /context/import.")
	}
	answer := &api.ImportAnswer{}
	defer func(began time.Time) { s.noteImport(c, "", answer, began, err) }(time.Now())
	e, _, err := s.unseal(req)
	if err != nil {
		return nil, err
	}
	answer.Origin = e.Origin
	got, err := saved.Import(c.r.Context(), c.id, e, &logins.ImportOptions{OnlyNew: c.role < Owner})
	if err != nil {
		return nil, err
	}
	answer.New, answer.AppliedCookies, answer.AppliedStorageKeys, answer.LeftAlone = got.New, got.Cookies, got.StorageKeys, got.LeftAlone
	return answer, nil
}

func (s *Server) importLive(c *call, req *api.ImportRequest) (_ *api.ImportAnswer, err error) {
	live, err := s.contexts.sessions()
	if err != nil {
		return nil, err
	}
	id, err := s.sessionID(req.SessionID)
	if err != nil {
		return nil, err
	}
	answer := &api.ImportAnswer{}
	defer func(began time.Time) { s.noteImport(c, id, answer, began, err) }(time.Now())
	e, sealed, err := s.unseal(req)
	if err != nil {
		return nil, err
	}
	answer.Origin = e.Origin
	got, err := live.Apply(c.r.Context(), id, e, ApplyOptions{TabID: req.TabID, StrictOrigin: req.StrictOrigin, Sealed: sealed})
	if err != nil {
		return nil, err
	}
	answer.AppliedCookies, answer.AppliedStorageKeys, answer.LeftAlone = got.Cookies, got.StorageKeys, got.LeftAlone
	return answer, nil
}

func (s *Server) noteImport(c *call, session string, answer *api.ImportAnswer, began time.Time, err error) {
	s.note(c, "context.import", session, answer.Origin, map[string]int{"cookies": answer.AppliedCookies, "storage_keys": answer.AppliedStorageKeys}, began, err)
}

// unseal reads the envelope of a request. A wrong integrity is named as such in
// a member of its own; nothing else is.
func (s *Server) unseal(req *api.ImportRequest) (e logins.Envelope, sealed bool, err error) {
	if s.contexts.porter != nil {
		e, sealed, err = logins.Unseal(s.contexts.porter, req.Envelope, req.Passphrase)
	} else {
		e, err = logins.Verify(req.Envelope)
	}
	if f := fault.Of(err); f != nil && f.Code == fault.IntegrityMismatch {
		return e, sealed, f.With("integrityError", f.Details())
	}
	return e, sealed, err
}

// sessionID is the session that is named, or the active one.
func (s *Server) sessionID(id string) (string, error) {
	if id != "" {
		on, err := s.sessions.Get(id)
		if err != nil {
			return "", err
		}
		return on.Info().ID, nil
	}
	on, err := s.sessions.Active()
	if err != nil {
		return "", err
	}
	return on.Info().ID, nil
}

func withoutStorage(req *api.ExportRequest) bool {
	return req.IncludeStorage != nil && !*req.IncludeStorage
}

func contextOf(info logins.Info) api.Context {
	out := api.Context{
		Name: info.Name, Domain: info.Domain, Provider: info.Provider, Notes: info.Notes, BrowserbaseContextID: info.BrowserbaseContextID,
		Saved: info.Saved, SavedAt: info.SavedAt, Generation: info.Generation, Bytes: info.Bytes, Cookies: info.Cookies, Origins: info.Origins,
		LastUsed: info.LastUsed.String(), LastVerified: info.LastVerified.String(), VerifiedBy: string(info.VerifiedHow),
		StaleSince: info.StaleSince, StaleWhy: string(info.StaleWhy), LastCheck: checkOf(info.LastCheck), InUseBy: info.InUseBy, Damaged: info.SetAside,
	}
	if l := info.Lifetime; l.Count > 0 || !l.Since.IsZero() {
		out.Lifetime = &api.ContextLifetime{Count: l.Count, MedianS: int64(l.Median.Seconds()), LastS: int64(l.Last.Seconds()), Since: l.Since}
	}
	if p := info.Policy; p != nil {
		out.PaymentApproval = &api.PaymentApproval{MaxAmount: p.MaxAmount, AutoApprove: p.AutoApprove, Currency: p.Currency, MonthlyBudget: p.MonthlyBudget, Expires: p.Expires.String()}
	}
	if check := info.Check; check != nil {
		out.Check = &api.ContextProbe{URL: check.URL, Selector: check.Selector, Text: check.Text}
	}
	for _, err := range []error{info.Unreadable, info.Problem} {
		if err != nil {
			out.Problem = problem(fault.Of(err))
		}
	}
	return out
}

func checkOf(c *logins.Checked) *api.ContextCheck {
	if c == nil {
		return nil
	}
	return &api.ContextCheck{At: c.At, Result: string(c.Result), Reason: c.Reason}
}
