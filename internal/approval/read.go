package approval

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/store"
)

const (
	pageSize = 50
	maxPage  = 200
)

// find is a record by its id: the live one, or a copy from the disk.
func (r *Room) find(id string) (*Record, error) {
	if live := r.open[id]; live != nil {
		return live, nil
	}
	rec, err := r.read(id)
	if err != nil {
		return nil, err
	}
	return &rec, nil
}

func (r *Room) read(id string) (Record, error) {
	missing := fault.New(fault.NotFound, "", "there is no approval %q", clip(id)).WithHint("GET /approvals lists them.")
	if !store.ValidID("apr", id) {
		return Record{}, missing
	}
	var rec Record
	err := r.deps.Home.ReadRecord(file(id), &rec, store.Of(&rec.ID, id))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, missing
	}
	return rec, err
}

// Get reads an approval.
func (r *Room) Get(id string) (Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.find(id)
	if err != nil {
		return Record{}, err
	}
	return *rec, nil
}

// Wait reads an approval as soon as its version is beyond after, and otherwise
// when the time is up. One that is over is not waited for.
func (r *Room) Wait(ctx context.Context, id string, after int, within time.Duration) (Record, error) {
	timeUp := time.NewTimer(within)
	defer timeUp.Stop()
	for {
		r.mu.Lock()
		rec, err := r.find(id)
		changed := r.changed
		if err != nil {
			r.mu.Unlock()
			return Record{}, err
		}
		now := *rec
		r.mu.Unlock()
		if now.Version > after || now.IsOver() {
			return now, nil
		}
		select {
		case <-changed:
		case <-timeUp.C:
			return now, nil
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// Filter says which approvals are wanted; empty fields leave the choice open.
type Filter struct {
	Status    Status
	SessionID string
	Limit     int    // 0 means 50
	Cursor    string // the id that the page before ended with
}

// Page is a part of the list.
type Page struct {
	Approvals []Record
	Next      string // cursor of what follows; "" at the end
}

// List lists approvals, the newest first.
func (r *Room) List(ctx context.Context, f Filter) (Page, error) {
	limit := min(f.Limit, maxPage)
	if limit <= 0 {
		limit = pageSize
	}
	if f.Cursor != "" && !store.ValidID("apr", f.Cursor) {
		return Page{}, fault.New(fault.InvalidRequest, "", "that is no cursor of this list").With("field", "cursor")
	}
	names, err := r.deps.Home.List(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Page{}, err
	}
	slices.Sort(names)
	out := Page{Approvals: []Record{}}
	for _, name := range slices.Backward(names) {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || f.Cursor != "" && id >= f.Cursor {
			continue
		}
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		rec, err := r.Get(id)
		if err != nil {
			r.log.Warn("an approval cannot be read", "approval", id, "error", err)
			continue
		}
		if f.Status != "" && rec.Status != f.Status || f.SessionID != "" && rec.SessionID != f.SessionID {
			continue
		}
		if len(out.Approvals) == limit {
			out.Next = out.Approvals[limit-1].ID
			return out, nil
		}
		out.Approvals = append(out.Approvals, rec)
	}
	return out, nil
}

// After lists up to limit approvals whose ids come after one, the oldest first.
// Those made before since are not read.
func (r *Room) After(ctx context.Context, id string, since time.Time, limit int) ([]Record, error) {
	names, err := r.deps.Home.List(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(names) // ids sort by when they were made
	from := max(id, store.FirstID("apr", since))
	var out []Record
	for _, name := range names {
		one, ok := strings.CutSuffix(name, ".json")
		if !ok || one <= from || len(out) == limit {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := r.Get(one)
		if err != nil {
			r.log.Warn("an approval cannot be read", "approval", one, "error", err)
			continue
		}
		out = append(out, rec)
	}
	return out, nil
}

// PendingOnes are the approvals that wait for an answer, the oldest first.
func (r *Room) PendingOnes() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Record{}
	for _, rec := range r.open {
		if rec.Status == Pending {
			out = append(out, *rec)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Changed is closed when anything about approvals or policies changes next.
func (r *Room) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// crop is the picture of the total, as it is sealed.
type crop struct {
	Format page.Format `json:"format"`
	Base64 string      `json:"base64"`
}

// keepCrop keeps the picture for the question, sealed, until it is answered. A
// picture that cannot be kept is no reason not to ask.
func (r *Room) keepCrop(rec *Record, shot *page.Image) {
	if shot == nil {
		return
	}
	plain, err := json.Marshal(crop{shot.Format, shot.Base64})
	var sealed []byte
	if err == nil {
		sealed, err = r.deps.Sealer.Seal(cropFile(rec.ID), rec.Reading.Origin, plain)
	}
	if err == nil {
		err = r.deps.Home.Write(cropFile(rec.ID), sealed)
	}
	if err != nil {
		r.log.Warn("the picture of a total could not be kept", "approval", rec.ID, "error", err)
		return
	}
	rec.Book.HasCrop = true
}

// Crop is the picture of where the total stood when it was asked for.
func (r *Room) Crop(id string) (page.Image, error) {
	rec, err := r.Get(id)
	if err != nil {
		return page.Image{}, err
	}
	sealed, err := r.deps.Home.Read(cropFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return page.Image{}, fault.New(fault.NotFound, "", "there is no picture for %s", id).WithHint("It is kept until the question is answered.")
	}
	var kept crop
	if err == nil {
		var plain []byte
		if plain, err = r.deps.Sealer.Open(cropFile(id), rec.Reading.Origin, sealed); err == nil {
			err = json.Unmarshal(plain, &kept)
		}
	}
	return page.Image{Format: kept.Format, Base64: kept.Base64}, err
}

func (r *Room) dropCrop(id string) {
	if err := r.deps.Home.Remove(cropFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("the picture of a total could not be removed", "approval", id, "error", err)
	}
}
