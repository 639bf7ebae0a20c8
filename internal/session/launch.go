package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/page"
	"tapin/internal/store"
)

func (h *Host) start(ctx context.Context, o StartOptions) (*Session, error) {
	const op = "start a session"
	plan, err := h.plan(o)
	if err != nil {
		return nil, err
	}
	provider, err := h.deps.Providers(o.Provider)
	if err != nil {
		return nil, err
	}
	if o.Record && !browser.TraitsOf(provider).Records {
		return nil, fault.New(fault.InvalidRequest, op, "provider %s cannot record a session", provider.Name()).
			With("field", "record").WithHint("Leave record out; nothing was started.")
	}
	id := store.NewID("ses")
	if err := h.reserve(id); err != nil {
		return nil, err
	}
	defer h.unreserve(id)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()

	now := time.Now().UTC()
	rec := &record{ID: id, facts: facts{
		Version: 1, State: stateStarting, Generation: 1, StartedAt: now, LastUsedAt: now, Deadline: now.Add(plan.timeout),
		Ref: browser.Ref{Provider: provider.Name(), ID: id + "-1"}, Look: plan.look,
		Context: o.Context, NoSave: o.SaveContext != nil && !*o.SaveContext, Record: o.Record,
	}}
	opened := beside(func() error {
		if err := h.records.open(rec); err != nil {
			return fault.Wrap(fault.Internal, op, err)
		}
		return nil
	})
	if !browser.TraitsOf(provider).Found || o.Context != "" {
		// What a browser costs, or a login that is lent, must be known of first.
		if err := opened(); err != nil {
			return nil, err
		}
	}
	s, written, err := h.launch(ctx, provider, rec)
	if err == nil && o.URL != "" {
		_, err = s.Navigate(ctx, o.URL, "")
	}
	err = cmp.Or(err, opened())
	if written != nil {
		err = cmp.Or(err, written())
	}
	if err != nil && s != nil {
		s.abandon()
	}
	if err == nil {
		err = h.admit(ctx, s, o.Meanwhile)
	}
	if err != nil {
		h.undo(context.WithoutCancel(ctx), provider, rec)
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return s, nil
}

// beside does something meanwhile; the returned function waits for its outcome.
func beside(do func() error) (outcome func() error) {
	done := make(chan error, 1)
	go func() {
		done <- guard.Call("sessions", do, errPanicked)
	}()
	return sync.OnceValue(func() error { return <-done })
}

// launch makes the browser of a session, and puts the saved login into it
// before its first request leaves. For written see create.
func (h *Host) launch(ctx context.Context, provider browser.Provider, rec *record) (s *Session, written func() error, err error) {
	state, err := h.checkout(ctx, rec)
	if err != nil {
		return nil, nil, err
	}
	if err := h.keptBy(ctx, provider, rec); err != nil {
		return nil, nil, err
	}
	v, written, err := h.create(ctx, provider, rec)
	if errors.Is(err, browser.ErrNoKept) {
		// Somebody deleted it there. What we keep ourselves is as good.
		if err = h.keepAnew(ctx, provider, rec); err == nil {
			v, written, err = h.create(ctx, provider, rec)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if now := h.records.copy(rec); now.Restored {
		restored, err := v.tabs.Restore(ctx, state)
		if err != nil {
			_ = written()
			v.close()
			return nil, nil, err
		}
		h.log.Info("a saved login was restored", "session", rec.ID, "context", now.Context, "cookies", restored.Cookies, "keys", restored.Keys)
	}
	return newSession(h, provider, v, rec), written, nil
}

// create makes a browser and takes its tabs. Where it can be found again goes on
// record meanwhile: written is to be waited for before anybody hears of it.
func (h *Host) create(ctx context.Context, provider browser.Provider, rec *record) (v view, written func() error, err error) {
	now := h.records.copy(rec)
	until := now.Deadline
	if now.State == stateParked { // its time stood still meanwhile, and begins again
		until = latest(until, time.Now().Add(h.opts.Timeout))
	}
	spec := browser.Spec{
		ID: now.Ref.ID, KeepUntil: until.Add(grace), Policy: h.opts.Policy, Width: now.Look.Width, Height: now.Look.Height,
		Record: now.Record, Kept: now.Kept, Persist: !now.NoSave, Ahead: true,
	}
	if h.opts.Downloads != "" {
		spec.Downloads = h.opts.Downloads + "/" + rec.ID
	}
	inst, err := provider.Create(ctx, spec)
	if err != nil {
		return view{}, nil, err
	}
	h.records.point(rec, inst) // also for the one who undoes it, should it not be written
	written = beside(func() error { return h.records.change(ctx, rec, "", func(r *record) { r.has(inst) }) })
	if v, err = h.open(ctx, inst, h.viewing(rec, nil)); err != nil {
		_ = written()
	}
	return v, written, err
}

// viewing is how the tabs of a session are taken.
func (h *Host) viewing(rec *record, recipes page.Recipes) *page.Options {
	now := h.records.copy(rec)
	h.begun.know(rec.ID, now.Theirs)
	return &page.Options{
		Look: now.Look, Recipes: recipes, OnBlock: h.opts.OnBlock, Logger: h.log,
		Origins: now.Origins, OnOrigin: func(origin string) { h.passOrigin(rec, origin) },
		OnSurprise: func(s page.Surprise) { h.surprised(rec, s) }, Hidden: h.records.hidden(rec),
	}
}

// open takes the tabs of a browser.
func (h *Host) open(ctx context.Context, inst browser.Instance, options *page.Options) (view, error) {
	if tabs := h.ahead.take(inst); tabs != nil {
		v := view{inst, tabs}
		if err := tabs.Belong(ctx, options); err != nil {
			v.close()
			return view{}, err
		}
		return v, nil
	}
	tabs, err := page.Open(ctx, inst, options)
	if err != nil {
		_ = inst.Release()
		return view{}, err
	}
	return view{inst, tabs}, nil
}

// admit puts a started session on record as active and begins to watch over it.
func (h *Host) admit(ctx context.Context, s *Session, meanwhile func(context.Context, *Session, func() bool)) error {
	written := beside(func() error {
		return h.records.change(ctx, s.rec, "session.started", func(r *record) { r.State = stateActive })
	})
	if meanwhile != nil {
		meanwhile(ctx, s, func() bool { return written() == nil })
	}
	if err := written(); err != nil {
		s.abandon()
		return err
	}
	h.take(s)
	return nil
}

// take makes a session one of ours.
func (h *Host) take(s *Session) {
	h.mu.Lock()
	h.sessions[s.ID()] = s
	h.changed(s.ID())
	h.mu.Unlock()
	h.watch(s)
}

// forget lets go of a session without ending anything.
func (h *Host) forget(s *Session, reason string) {
	h.unwatch(s.ID())
	s.abandon()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s.ID())
	h.changed(s.ID())
	h.lastEnd = reason
}

// undo removes what a failed start left.
func (h *Host) undo(ctx context.Context, provider browser.Provider, rec *record) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := provider.End(ctx, h.records.copy(rec).Ref); err != nil {
		// The record stays: the next start of the sidecar tries again.
		h.log.Warn("a browser that failed to start could not be removed", "session", rec.ID, "error", err)
		return
	}
	if err := h.letGo(ctx, rec, ""); err != nil {
		h.log.Warn("the record of a failed start could not be removed", "session", rec.ID, "error", err)
	}
}

// letGo is the end of a session whose browser is gone: its login is free for
// others, what was kept for it is removed, and its record is closed.
func (h *Host) letGo(ctx context.Context, rec *record, reason string) error {
	if login := h.records.copy(rec).Context; login != "" && h.deps.Saved != nil {
		if err := h.deps.Saved.Release(ctx, login, rec.ID); err != nil {
			return err
		}
	}
	h.dropState(rec.ID)
	h.begun.forget(rec.ID)
	return h.records.close(ctx, rec, reason)
}

func (h *Host) reserve(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return fault.New(fault.Busy, "start a session", "tapin is ending")
	}
	used := len(h.starting)
	for _, s := range h.sessions {
		if !s.isFreed() {
			used++
		}
	}
	if used < h.opts.Max {
		h.starting[id] = true
		h.starts.Add(1)
		return nil
	}
	f := fault.New(fault.SessionActive, "start a session", "%d of %d sessions are in use", used, h.opts.Max)
	for active := range h.sessions {
		f = f.With("session_id", active)
	}
	for active := range h.starting {
		if len(h.sessions) == 0 {
			f = f.With("session_id", active)
		}
	}
	return f
}

func (h *Host) unreserve(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.starting, id)
	h.starts.Done()
}

var errPanicked = errors.New("a part of it panicked")

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
