package handoff

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	pageSize  = 50
	maxPage   = 200
	maxLooked = 1000 // records read for one page, whatever the filters leave of them
)

// Holder tells which hand-off has the wheel of a session, and until when. It
// is derived from the records and answers from the first moment. One whose end
// is written and not yet carried out still has it, and its time is over: what
// becomes of the browser is for it to say, and for nobody before it.
func (r *Room) Holder(session string) (handoff string, until time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.bySession[session]
	switch {
	case l == nil:
		return "", time.Time{}, false
	case l.running:
		return l.shown.ID, l.shown.Deadline, true
	}
	return l.shown.ID, time.Time{}, slices.Contains(l.shown.Book.Pending, returnWheel) || slices.Contains(l.shown.Book.Pending, closeSession)
}

// holding is the hand-off that runs in a session.
func (r *Room) holding(session string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.bySession[session]; l != nil && l.running {
		return l.id, true
	}
	return "", false
}

// Get reads a hand-off.
func (r *Room) Get(id string) (Record, error) {
	_, rec, err := r.find(id)
	return rec, err
}

// Wait reads a hand-off as soon as its version is beyond after, and otherwise
// when the time is up. One that is over is not waited for.
func (r *Room) Wait(ctx context.Context, id string, after int, within time.Duration) (Record, error) {
	timeUp := time.NewTimer(within)
	defer timeUp.Stop()
	for {
		l, rec, err := r.find(id)
		if err != nil || l == nil || rec.Version > after || rec.IsOver() {
			return rec, err
		}
		r.mu.Lock()
		changed, stale := l.changed, l.shown.Version != rec.Version
		r.mu.Unlock()
		if stale {
			continue
		}
		select {
		case <-changed:
		case <-timeUp.C:
			return rec, nil
		case <-ctx.Done():
			return rec, ctx.Err()
		}
	}
}

// find reads a hand-off from memory, or else from the disk; then l is nil.
func (r *Room) find(id string) (l *live, rec Record, err error) {
	if !store.ValidID("hof", id) {
		return nil, Record{}, missing(id)
	}
	r.mu.Lock()
	l = r.open[id]
	if l != nil {
		rec = l.shown
	}
	r.mu.Unlock()
	if l != nil {
		return l, rec, nil
	}
	err = r.archive.Read(id, &rec, &rec.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Record{}, missing(id)
	}
	return nil, rec, err
}

func missing(id string) error {
	return fault.New(fault.NotFound, "", "there is no hand-off %q", clip(id, 64)).WithHint("GET /handoffs lists them.")
}

// Placed is a hand-off by its place in the order in which they came.
type Placed struct {
	Seq    uint64
	ID     string
	At     time.Time
	Record *Record // nil when there is none: not yet, not any more, or older than was asked for
}

// Last is the number of the newest hand-off in the order in which they came.
func (r *Room) Last() uint64 { return r.archive.Last() }

// After lists up to limit hand-offs that came after a place, the oldest first.
// Those from before since are named, and not read.
func (r *Room) After(ctx context.Context, seq uint64, since time.Time, limit int) ([]Placed, error) {
	entries, err := r.archive.After(seq, limit)
	if err != nil {
		return nil, err
	}
	out := make([]Placed, 0, len(entries))
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one := Placed{Seq: e.Seq, ID: e.ID, At: e.At}
		if !e.At.Before(since) {
			_, rec, err := r.find(e.ID)
			switch {
			case err == nil:
				one.Record = &rec
			case !errors.Is(err, fault.NotFound):
				r.log.Warn("a hand-off cannot be read", "handoff", e.ID, "error", err)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// Filter says which hand-offs are wanted; empty fields leave the choice open.
type Filter struct {
	Status    Status
	Reason    Reason
	SessionID string
	RunID     string
	Limit     int    // 0 means 50
	Cursor    string // from the page before
}

func (f Filter) fits(r Record) bool {
	return (f.Status == "" || r.Status == f.Status) && (f.Reason == "" || r.Reason == f.Reason) &&
		(f.SessionID == "" || r.SessionID == f.SessionID) && (f.RunID == "" || r.RunID == f.RunID)
}

// Page is a part of the list.
type Page struct {
	Handoffs []Record
	Next     string // cursor of what follows; "" at the end
}

// List lists hand-offs, the newest first. A page may hold fewer than asked for
// and still have a next one: filters look at so many records and no more.
func (r *Room) List(ctx context.Context, f Filter) (Page, error) {
	limit := min(f.Limit, maxPage)
	if limit <= 0 {
		limit = pageSize
	}
	out := Page{Handoffs: []Record{}}
	if f.Status == Running && f.Cursor == "" {
		out.Handoffs = r.runningOnes(f, limit)
		return out, nil
	}
	var before uint64
	if f.Cursor != "" {
		n, err := strconv.ParseUint(f.Cursor, 10, 64)
		if err != nil || n == 0 {
			return Page{}, fault.New(fault.InvalidRequest, "", "that is no cursor of this list").With("field", "cursor")
		}
		before = n
	}
	for looked := 0; looked < maxLooked; {
		entries, err := r.archive.Before(before, limit)
		if err != nil || len(entries) == 0 {
			return out, err
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return Page{}, err
			}
			before = e.Seq
			looked++
			_, rec, err := r.find(e.ID)
			if errors.Is(err, fault.NotFound) {
				continue // past retention, or never begun
			}
			if err != nil {
				r.log.Warn("a hand-off cannot be read", "handoff", e.ID, "error", err)
				continue
			}
			if f.fits(rec) {
				out.Handoffs = append(out.Handoffs, rec)
			}
			if len(out.Handoffs) == limit {
				out.Next = cursor(before)
				return out, nil
			}
		}
	}
	out.Next = cursor(before)
	return out, nil
}

func cursor(seq uint64) string {
	if seq <= 1 {
		return ""
	}
	return strconv.FormatUint(seq, 10)
}

func (r *Room) runningOnes(f Filter, limit int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Record{}
	for _, l := range r.open {
		if f.fits(l.shown) {
			out = append(out, l.shown)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(b.ID, a.ID) })
	return out[:min(len(out), limit)]
}
