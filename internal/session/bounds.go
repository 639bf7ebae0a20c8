package session

import (
	"context"
	"time"

	"tapin/internal/browser"
	"tapin/internal/secret"
)

// endBefore is how long before a provider ends a browser we end it ourselves:
// its login has to be read and saved first.
const endBefore = 30 * time.Second

// bound keeps what a provider does not allow, and every deadline within it.
func (r *record) bound(b browser.Bounds) {
	r.EndsAt, r.Notes = b.EndsAt.UTC(), b.Notes
	if last := r.last(); !last.IsZero() && last.Before(r.Deadline) {
		r.Deadline = last
	}
}

// last is when the session ends at the latest, so that what is in it is saved
// before the provider ends its browser; zero means that it does not.
func (r record) last() time.Time {
	if r.EndsAt.IsZero() {
		return time.Time{}
	}
	return r.EndsAt.Add(-endBefore)
}

// Kept are saved logins that a provider keeps too: a Saved that is one is asked
// where. Safe for concurrent use.
type Kept interface {
	// KeptAt is where that provider keeps a login, "" when it does not.
	KeptAt(ctx context.Context, name, provider string) (id string, err error)
	// KeepAt notes where it does.
	KeepAt(ctx context.Context, name, session, provider, id string) error
}

// keptBy finds out where the provider keeps the login of a session, and makes a
// place for it if it is to be saved.
func (h *Host) keptBy(ctx context.Context, provider browser.Provider, rec *record) error {
	now := h.records.copy(rec)
	_, keeps := provider.(browser.Keeper)
	saved, knows := h.deps.Saved.(Kept)
	if now.Context == "" || !keeps || !knows {
		return nil
	}
	id, err := saved.KeptAt(ctx, now.Context, provider.Name())
	if err != nil {
		return err
	}
	if id == "" {
		return h.keepAnew(ctx, provider, rec)
	}
	return h.records.change(ctx, rec, "", func(r *record) { r.Kept = id })
}

// keepAnew makes a new place for a login at its provider, if it is to be saved.
// That there is none is said, and stops nothing: we keep the login ourselves.
func (h *Host) keepAnew(ctx context.Context, provider browser.Provider, rec *record) error {
	now := h.records.copy(rec)
	var id string
	if !now.NoSave {
		id = h.newKept(ctx, provider, rec.ID, now.Context)
	}
	return h.records.change(ctx, rec, "", func(r *record) { r.Kept = id })
}

func (h *Host) newKept(ctx context.Context, provider browser.Provider, session, login string) string {
	keeper, keeps := provider.(browser.Keeper)
	saved, knows := h.deps.Saved.(Kept)
	if !keeps || !knows {
		return ""
	}
	id, err := keeper.NewKept(ctx)
	if err == nil {
		if err = saved.KeepAt(ctx, login, session, provider.Name(), id); err != nil {
			_ = keeper.DropKept(context.WithoutCancel(ctx), id) // nobody would find it again
			id = ""
		}
	}
	if err != nil {
		h.log.Warn("the provider does not keep a login too", "session", session, "context", login, "error", err)
	}
	return id
}

// LiveView is the provider's own view of the tab in front, empty where it has
// none. It changes with the tab. Whoever has it can act in the browser.
func (s *Session) LiveView(ctx context.Context) (secret.Text, error) {
	v := s.view()
	tab := ""
	if list := v.tabs.List(); len(list) > 0 {
		tab = list[len(list)-1].ID()
	}
	return v.inst.LiveViewURL(ctx, tab)
}
