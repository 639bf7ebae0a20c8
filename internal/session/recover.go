package session

import (
	"context"
	"errors"
	"time"

	"tapin/internal/browser"
)

// pickUpWithin is how recently an agent must have used a session for it to be
// picked up again: longer ago, it has gone on without it.
const pickUpWithin = time.Minute

// Recovered is what became of the sessions of an earlier process.
type Recovered struct {
	Reconnected []string
	Closed      []string
	LeftAlone   []string // could not be judged; named so that somebody can
}

// Recover puts in order what an earlier process left: sessions in use go on,
// all others are closed, and browsers of ours that no record names are ended.
func (h *Host) Recover(ctx context.Context) (Recovered, error) {
	var out Recovered
	found, unread := h.records.all()
	byProvider := map[string][]browser.Ref{}
	for _, rec := range found {
		byProvider[rec.Ref.Provider] = append(byProvider[rec.Ref.Provider], rec.Ref)
	}
	if _, ok := byProvider["local"]; !ok {
		byProvider["local"] = nil // its run folder may hold what a kill left before any record
	}
	running := map[string]bool{}
	named := map[string]bool{}
	for _, rec := range found {
		named[rec.Ref.ID] = true
	}
	for name, known := range byProvider {
		provider, err := h.deps.Providers(name)
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		own, err := provider.Own(ctx, known)
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		for _, ref := range own {
			running[ref.ID] = true
			if named[ref.ID] {
				continue
			}
			if err := provider.End(ctx, ref); err != nil {
				out.LeftAlone = append(out.LeftAlone, ref.ID)
				unread = errors.Join(unread, err)
			}
		}
		for _, rec := range found {
			if rec.Ref.Provider == name {
				unread = errors.Join(unread, h.resume(ctx, provider, rec, running[rec.Ref.ID], &out))
			}
		}
	}
	return out, unread
}

// resume goes on with a session or closes it.
func (h *Host) resume(ctx context.Context, provider browser.Provider, rec *record, running bool, out *Recovered) error {
	now := time.Now()
	if running && rec.State == stateActive && now.Sub(rec.LastUsedAt) < pickUpWithin+touchEvery && now.Before(rec.Deadline) {
		err := h.reconnect(ctx, provider, rec)
		if err == nil {
			out.Reconnected = append(out.Reconnected, rec.ID)
			return nil
		}
		h.log.Warn("a session could not be picked up again", "session", rec.ID, "error", err)
	}
	if running {
		if err := provider.End(ctx, rec.Ref); err != nil {
			out.LeftAlone = append(out.LeftAlone, rec.ID)
			return err
		}
	}
	out.Closed = append(out.Closed, rec.ID)
	if rec.State == stateOver {
		if err := h.deps.Pump.Deliver(ctx, rec.Outbox...); err != nil {
			return err
		}
		return h.records.forget(rec.ID)
	}
	return h.records.close(ctx, rec, "tapin was restarted")
}

func (h *Host) reconnect(ctx context.Context, provider browser.Provider, rec *record) error {
	inst, err := provider.Reconnect(ctx, rec.Ref)
	if err != nil {
		return err
	}
	s, err := h.enter(ctx, provider, inst, rec)
	if err != nil {
		return err
	}
	if err := h.records.change(ctx, rec, "session.recovered", func(*record) {}); err != nil {
		s.abandon()
		return err
	}
	h.mu.Lock()
	h.sessions[s.ID()] = s
	h.mu.Unlock()
	h.watch(s)
	return nil
}
