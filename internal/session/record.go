package session

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/event"
	"tapin/internal/page"
	"tapin/internal/store"
)

// The states of a record. One that is over is deleted once its news are out.
const (
	stateStarting = "starting"
	stateActive   = "active"
	stateParked   = "parked" // without a browser, until a person comes back
	stateOver     = "over"
)

// record is what recovery needs to know of a session. It holds no secret. The
// id never changes; the facts are written and read under the records' lock,
// and whoever wants to look at them takes a copy.
type record struct {
	ID string `json:"session_id"`
	facts
	hidden *page.Hidden // what pages have to hide; it is never written down
}

type facts struct {
	Version    int          `json:"version"`
	State      string       `json:"state"`
	Generation int          `json:"generation"`
	StartedAt  time.Time    `json:"started_at"`
	LastUsedAt time.Time    `json:"last_used_at"`
	Deadline   time.Time    `json:"deadline"`
	Ref        browser.Ref  `json:"ref"`
	Look       page.Look    `json:"look"`
	Context    string       `json:"context,omitempty"`    // the saved login it was started with
	Restored   bool         `json:"restored,omitempty"`   // that login existed
	NoSave     bool         `json:"no_save,omitempty"`    // and is not to be saved
	Private    bool         `json:"private,omitempty"`    // more than the agent's own doing is in it
	PageLost   bool         `json:"page_lost,omitempty"`  // a browser was lost under a person
	Reviving   bool         `json:"reviving,omitempty"`   // the one in its place is not ready yet
	Origins    []string     `json:"origins,omitempty"`    // where it has been
	Relayed    []relayed    `json:"relayed,omitempty"`    // what was typed for the owner, by key
	AwakeSince time.Time    `json:"awake_since,omitzero"` // when it came back from a park
	HumanAt    time.Time    `json:"human_at,omitzero"`    // when a person last did something in it, about
	HumanIn    string       `json:"human_in,omitempty"`   // the hand-off of that person
	Theirs     []string     `json:"theirs,omitempty"`     // downloads that a person began
	Warned     time.Time    `json:"warned,omitzero"`      // the deadline of which the owner was told
	Outbox     event.Outbox `json:"outbox,omitempty"`
	Hides      bool         `json:"hides,omitempty"`  // a page was given something that nobody may read back
	Kept       string       `json:"kept,omitempty"`   // where the provider keeps the login too
	Record     bool         `json:"record,omitempty"` // the provider records it
	EndsAt     time.Time    `json:"ends_at,omitzero"` // the provider ends the browser then
	Notes      []string     `json:"notes,omitempty"`  // what the provider does not allow
}

// records keeps them on the disk: persist, then act, then tell.
type records struct {
	home  *store.Home
	pump  *event.Pump
	index *event.Index

	writing sync.Mutex // one writer at a time
	mu      sync.Mutex // of records in memory; never held while the disk is waited for
}

func newRecords(home *store.Home, pump *event.Pump) *records {
	return &records{home: home, pump: pump, index: event.NewIndex(home, "sessions/open")}
}

func recordFile(id string) string { return "sessions/" + id + ".json" }

// open writes a new record and lists it as open, in this order of safety: a
// listed record that does not exist is no harm.
func (r *records) open(rec *record) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.index.Add(rec.ID); err != nil {
		return err
	}
	now := r.copy(rec)
	if err := r.home.WriteJSON(recordFile(rec.ID), &now); err != nil {
		_ = r.index.Remove(rec.ID)
		return err
	}
	return nil
}

// copy is a record as it is now.
func (r *records) copy(rec *record) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *rec
}

// point notes in memory alone which browser is that of a record, until that is
// written down: a change that was under way may take it back before.
func (r *records) point(rec *record, inst browser.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.has(inst)
}

// has says which browser is the session's.
func (r *record) has(inst browser.Instance) {
	r.Ref = inst.Ref()
	r.bound(browser.BoundsOf(inst))
}

// change writes the next version of a record together with its news, then tells them.
func (r *records) change(ctx context.Context, rec *record, news string, apply func(*record)) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	next := r.copy(rec)
	if next.State == stateOver {
		return nil // its file may be gone, and must not come back
	}
	apply(&next)
	next.Version++
	if news != "" {
		data, err := json.Marshal(next.told())
		if err != nil {
			return err
		}
		// What was not told yet stays in front; telling twice is telling once.
		next.Outbox = append(slices.Clone(next.Outbox), event.Event{ID: next.ID, Version: next.Version, Type: news, At: time.Now().UTC(), Data: data})
	}
	if err := r.home.WriteJSON(recordFile(next.ID), &next); err != nil {
		return err
	}
	r.mu.Lock()
	rec.facts = next.facts
	r.mu.Unlock()
	if err := r.pump.Deliver(ctx, next.Outbox...); err != nil {
		return nil // the outbox is on the disk; the pump tries again
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.Outbox = nil
	return nil
}

// told is what the feed says of a session.
func (r *record) told() any {
	return struct {
		SessionID  string    `json:"session_id"`
		Provider   string    `json:"provider"`
		Generation int       `json:"generation"`
		Deadline   time.Time `json:"deadline"`
		Context    string    `json:"context,omitempty"`
		PageLost   bool      `json:"page_lost,omitempty"`
		Notes      []string  `json:"notes,omitempty"`
	}{r.ID, r.Ref.Provider, r.Generation, r.Deadline, r.Context, r.PageLost, r.Notes}
}

// close tells that a session is over and forgets its record. Without a reason
// worth telling (it never began) nothing is told.
func (r *records) close(ctx context.Context, rec *record, reason string) error {
	news := "session.stopped"
	if r.copy(rec).State == stateStarting {
		news = ""
	} else if reason != "" {
		news = "session.ended"
	}
	if err := r.change(ctx, rec, news, func(r *record) { r.State = stateOver }); err != nil {
		return err
	}
	if len(r.copy(rec).Outbox) > 0 {
		return nil // not told yet: recovery finishes it
	}
	return r.forget(rec.ID)
}

func (r *records) forget(id string) error {
	if err := r.home.Remove(recordFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.index.Remove(id)
}

// touch notes when a session was last used, without news and without haste.
func (r *records) touch(rec *record, at time.Time) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	rec.LastUsedAt = at
	now := *rec
	r.mu.Unlock()
	if now.State == stateOver {
		return nil // its file is gone, and must not come back
	}
	return r.home.WriteJSON(recordFile(now.ID), &now)
}

// sawHuman notes when a person did something, without news.
func (r *records) sawHuman(rec *record, handoff string, at time.Time) error {
	return r.change(context.Background(), rec, "", func(next *record) { next.HumanAt, next.HumanIn = at, handoff })
}

// hides notes, before it is so, that pages have something to hide.
func (r *records) hides(ctx context.Context, rec *record) error {
	r.mu.Lock()
	known := rec.Hides
	r.mu.Unlock()
	if known {
		return nil
	}
	if err := r.change(ctx, rec, "", func(next *record) { next.Hides, next.Private = true, true }); err != nil {
		return err
	}
	r.hidden(rec).Mark()
	return nil
}

// hidden is what pages have to hide, for as long as this process lives.
func (r *records) hidden(rec *record) *page.Hidden {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.hidden == nil {
		rec.hidden = page.NewHidden(rec.Hides)
	}
	return rec.hidden
}

// all reads the open records, and says why others cannot be read.
func (r *records) all() (found []*record, damaged map[string]error, err error) {
	damaged = map[string]error{}
	ids, err := r.index.List()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		rec := &record{}
		switch err := r.home.ReadRecord(recordFile(id), rec, store.Of(&rec.ID, id)); {
		case errors.Is(err, fs.ErrNotExist):
			if err := r.index.Remove(id); err != nil {
				damaged[id] = err
			}
		case err != nil:
			damaged[id] = err
		default:
			found = append(found, rec)
		}
	}
	return found, damaged, nil
}
