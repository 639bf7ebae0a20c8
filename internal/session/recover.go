package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"tapin/internal/browser"
	"tapin/internal/store"
)

const (
	// pickUpWithin is how recently an agent must have used a session for it to be
	// picked up again: longer ago, it has gone on without it.
	pickUpWithin = time.Minute
	// judgeWithin bounds what is done about one session: a browser that does not
	// answer must not keep the others, nor the sidecar, waiting.
	judgeWithin = 10 * time.Second
)

// Recovered is what became of the sessions of an earlier process.
type Recovered struct {
	Reconnected []string
	Closed      []string
	LeftAlone   []string // could not be judged; named so that somebody can
}

// Recover puts in order what an earlier process left: sessions in use go on,
// all others are closed, and browsers of ours that no record names are ended.
// It may be called at any time: a session that is live, being started or being
// ended is not looked at.
func (h *Host) Recover(ctx context.Context) (Recovered, error) {
	h.recovering.Lock() // two at a time would judge the same session twice
	defer h.recovering.Unlock()
	var out Recovered
	before := h.live(nil)
	found, damaged, err := h.records.all()
	if err != nil {
		return out, err // without records nothing can be judged
	}
	for _, id := range slices.Sorted(maps.Keys(damaged)) {
		if before[id] {
			delete(damaged, id)
			continue
		}
		out.LeftAlone = append(out.LeftAlone, id)
	}
	h.mu.Lock()
	h.unread = damaged
	h.mu.Unlock()
	byProvider := map[string][]*record{"local": nil} // its folder may hold what a kill left before any record
	for _, name := range h.opts.Sweep {
		byProvider[name] = nil
	}
	for _, rec := range found {
		byProvider[rec.Ref.Provider] = append(byProvider[rec.Ref.Provider], rec)
	}
	var failed error
	for name, recs := range byProvider {
		failed = errors.Join(failed, h.recoverProvider(ctx, name, recs, damaged, before, &out))
	}
	h.recovered = true
	return out, failed
}

// live adds the sessions that are this process's own now.
func (h *Host) live(to map[string]bool) map[string]bool {
	if to == nil {
		to = map[string]bool{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.sessions {
		to[id] = true
	}
	for id := range h.starting {
		to[id] = true
	}
	for id := range h.parked {
		to[id] = true
	}
	return to
}

func (h *Host) recoverProvider(ctx context.Context, name string, recs []*record, damaged map[string]error, live map[string]bool, out *Recovered) error {
	var known []browser.Ref
	for _, rec := range recs {
		known = append(known, rec.Ref)
	}
	provider, err := h.deps.Providers(name)
	var own []browser.Ref
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, judgeWithin)
		own, err = provider.Own(limited, known)
		cancel()
	}
	// Asked after the browsers were: one that was listed has a session by now,
	// and one that has ended since was live before.
	live = h.live(live)
	recorded := recs
	recs = slices.DeleteFunc(slices.Clone(recs), func(rec *record) bool { return live[rec.ID] })
	if err != nil {
		for _, rec := range recs {
			out.LeftAlone = append(out.LeftAlone, rec.ID)
		}
		return err
	}
	var failed error
	for _, ref := range own {
		if slices.ContainsFunc(recorded, func(r *record) bool { return r.Ref.ID == ref.ID }) || live[sessionOf(ref)] ||
			h.recovered && !store.ValidID("ses", sessionOf(ref)) || // somebody else in this process uses it
			slices.ContainsFunc(slices.Collect(maps.Keys(damaged)), func(id string) bool { return strings.HasPrefix(ref.ID, id) }) {
			continue
		}
		if err := h.endRef(ctx, provider, ref); err != nil {
			out.LeftAlone = append(out.LeftAlone, ref.ID)
			failed = errors.Join(failed, err)
		}
	}
	for _, rec := range recs {
		running := slices.ContainsFunc(own, func(ref browser.Ref) bool { return ref.ID == rec.Ref.ID })
		failed = errors.Join(failed, h.resume(ctx, provider, rec, running, out))
	}
	return failed
}

// sessionOf is the session that a browser of ours was made for: the browser's
// id is the session's and a number.
func sessionOf(ref browser.Ref) string { return ref.ID[:max(0, strings.LastIndex(ref.ID, "-"))] }

// resume goes on with a session or closes it.
func (h *Host) resume(ctx context.Context, provider browser.Provider, rec *record, running bool, out *Recovered) error {
	now, known := time.Now(), h.records.copy(rec)
	handoff, until, held := h.holder(rec.ID)
	if held && now.Before(until) && known.State != stateOver {
		return h.resumeHeld(ctx, provider, rec, handoff, running, out)
	}
	if held && running && known.State == stateActive {
		// Its time is over, or its end was cut short: it gives the wheel back or
		// closes the session itself, and tells what it did.
		_, err := h.reconnect(ctx, provider, rec, handoff)
		if err == nil {
			out.Reconnected = append(out.Reconnected, rec.ID)
			return nil
		}
		h.log.Warn("a session that a person was in could not be picked up again", "session", rec.ID, "error", err)
	}
	// One that costs is never kept for an agent that may not come back.
	if running && !browser.TraitsOf(provider).Billed && known.State == stateActive && now.Sub(known.LastUsedAt) < pickUpWithin+touchEvery && now.Before(known.Deadline) {
		_, err := h.reconnect(ctx, provider, rec, "")
		if err == nil {
			out.Reconnected = append(out.Reconnected, rec.ID)
			return nil
		}
		h.log.Warn("a session could not be picked up again", "session", rec.ID, "error", err)
	}
	if running && known.State == stateActive && known.Context != "" && !known.NoSave {
		// Its login is worth more than the browser.
		if s, err := h.reconnect(ctx, provider, rec, ""); err == nil {
			out.Closed = append(out.Closed, rec.ID)
			_, err := h.end(ctx, s, "tapin was restarted")
			return err
		}
	}
	if running {
		if err := h.endRef(ctx, provider, known.Ref); err != nil {
			out.LeftAlone = append(out.LeftAlone, rec.ID)
			return err
		}
	}
	out.Closed = append(out.Closed, rec.ID)
	if known.State == stateOver {
		if err := h.deps.Pump.Deliver(ctx, known.Outbox...); err != nil {
			return err
		}
		return h.records.forget(rec.ID)
	}
	return h.letGo(ctx, rec, "tapin was restarted")
}

// Claims tells which session a person holds. It is derived from the records of
// hand-offs, asked at recovery, and never kept. A claim whose time is over is
// good for a browser that runs, and for no new one.
type Claims interface {
	Holder(session string) (handoff string, until time.Time, ok bool)
}

func (h *Host) holder(session string) (handoff string, until time.Time, ok bool) {
	if h.deps.Claims == nil {
		return "", time.Time{}, false
	}
	return h.deps.Claims.Holder(session)
}

// resumeHeld goes on with a session that a person is in, whatever it takes: the
// same page if its browser runs, another browser with what was kept if not.
func (h *Host) resumeHeld(ctx context.Context, provider browser.Provider, rec *record, handoff string, running bool, out *Recovered) error {
	if rec.State == stateParked {
		h.mu.Lock()
		h.parked[rec.ID] = parked{rec, handoff}
		h.mu.Unlock()
		if running { // killed between the record and the browser's end
			h.endLeft(ctx, provider, rec.ID, rec.Ref)
		}
		return nil
	}
	if running && !rec.Reviving { // one that is not ready has nothing of the person's yet
		_, err := h.reconnect(ctx, provider, rec, handoff)
		if err == nil {
			out.Reconnected = append(out.Reconnected, rec.ID)
			return nil
		}
		h.log.Warn("a browser that a person was in could not be reached, and is made anew", "session", rec.ID, "error", err)
	}
	limited, cancel := context.WithTimeout(ctx, reviveWithin)
	defer cancel()
	view, err := h.revive(limited, provider, rec, true)
	if err == nil {
		err = h.records.change(ctx, rec, "session.restored", func(r *record) { r.State, r.Reviving = stateActive, false })
	}
	if err != nil {
		_ = h.endRef(ctx, provider, h.records.copy(rec).Ref)
		out.Closed = append(out.Closed, rec.ID)
		return errors.Join(err, h.letGo(ctx, rec, "its browser was lost"))
	}
	s := newSession(h, provider, view, rec)
	s.lease = leaseOf(s.record(), handoff, time.Now())
	h.take(s)
	out.Reconnected = append(out.Reconnected, rec.ID)
	return nil
}

// endLeft ends a browser that its session has no use for any more, and tries
// again until it is gone. That it is still there keeps nobody from going on: a
// later start ends what no record names.
func (h *Host) endLeft(ctx context.Context, provider browser.Provider, session string, ref browser.Ref) {
	timer := session + "/left"
	h.deps.Schedule.Cancel(timer)
	err := h.endRef(ctx, provider, ref)
	if err == nil {
		return
	}
	h.log.Warn("a browser that is not needed any more could not be ended yet", "session", session, "browser", ref.ID, "error", err)
	h.deps.Schedule.Set(timer, time.Now().Add(retryEndAfter), func(ctx context.Context) { h.endLeft(ctx, provider, session, ref) })
}

func (h *Host) endRef(ctx context.Context, provider browser.Provider, ref browser.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	return provider.End(ctx, ref)
}

func (h *Host) reconnect(ctx context.Context, provider browser.Provider, rec *record, handoff string) (*Session, error) {
	view, err := h.connectAgain(ctx, provider, rec)
	if err != nil {
		return nil, err
	}
	s := newSession(h, provider, view, rec)
	if handoff != "" {
		s.lease = leaseOf(s.record(), handoff, time.Now())
	}
	if err := h.records.change(ctx, rec, "session.recovered", func(*record) {}); err != nil {
		s.abandon()
		return nil, err
	}
	h.take(s)
	return s, nil
}

// connectAgain tries twice. Who is stopped in the middle, as on a machine that is
// put to sleep, wakes with the time for it over, and the browser is well.
func (h *Host) connectAgain(ctx context.Context, provider browser.Provider, rec *record) (made view, err error) {
	for range 2 {
		limited, cancel := context.WithTimeout(ctx, judgeWithin)
		made, err = h.connect(limited, provider, rec, nil)
		cancel()
		if err == nil || errors.Is(err, browser.ErrTakenOver) {
			break
		}
	}
	return made, err
}
