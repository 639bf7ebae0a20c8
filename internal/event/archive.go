package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/store"
)

// Archive keeps the records of one kind: for each a folder with meta.json and,
// beside it, events.jsonl. It lists those that are open, so that a start need
// not look at the others, and all of them in the order in which they came.
// Writing one record is its owner's to put in order; beyond that an archive is
// safe for concurrent use.
type Archive struct {
	home   *store.Home
	pump   *Pump
	folder string
	index  *Index
	series *store.Series
}

// OpenArchive opens the archive in folder, such as handoffs.
func OpenArchive(home *store.Home, pump *Pump, folder string) (*Archive, error) {
	series, err := home.OpenSeries(path.Join(folder, "list"))
	if err != nil {
		return nil, err
	}
	a := &Archive{home: home, pump: pump, folder: folder, index: NewIndex(home, path.Join(folder, "open")), series: series}
	return a, a.listAnew()
}

// listAnew makes the list again from the records, if it is lost: their ids sort
// by when they came. A list that was never written lists none.
func (a *Archive) listAnew() error {
	if newest, err := a.series.Before(0, 1); err != nil || len(newest) > 0 || a.series.Last() > 0 {
		return err
	}
	names, err := a.home.List(a.folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := a.home.Stat(a.File(name, "meta.json"))
		if err != nil || !info.Mode().IsRegular() {
			continue // no record
		}
		if _, err := a.series.Append(name, info.ModTime()); err != nil {
			return err
		}
	}
	return nil
}

// File is the name of a file that belongs to a record.
func (a *Archive) File(id, name string) string { return path.Join(a.folder, id, name) }

// Begin makes a place for a record. It comes before the record's first write:
// a place without a record is no harm, a record without a place would be lost.
func (a *Archive) Begin(id string, at time.Time) error {
	if err := a.index.Add(id); err != nil {
		return err
	}
	_, err := a.series.Append(id, at)
	return err
}

// Reopen marks a record that was settled as open again, before it is written
// with something to tell.
func (a *Archive) Reopen(id string) error { return a.index.Add(id) }

// Write replaces a record.
func (a *Archive) Write(id string, record any) error {
	return a.home.WriteJSON(a.File(id, "meta.json"), record)
}

// Read reads a record and the id that stands in it; one that is not there is
// fs.ErrNotExist, and one that is not that record is UNREADABLE.
func (a *Archive) Read(id string, record any, in *string) error {
	return a.home.ReadRecord(a.File(id, "meta.json"), record, store.Of(in, id))
}

// Tell writes news of a record beside it and publishes them. Each is written
// and published once, however often it is told; the record's outbox may be
// emptied when this returns nil.
func (a *Archive) Tell(ctx context.Context, id string, news Outbox) error {
	if len(news) == 0 {
		return nil
	}
	if err := a.note(id, news); err != nil {
		return err
	}
	return a.pump.Deliver(ctx, news...)
}

// note adds to events.jsonl what is not in it yet.
func (a *Archive) note(id string, news Outbox) error {
	log, err := a.home.OpenLog(a.File(id, "events.jsonl"), nil) // one that cannot be used is put aside
	if err != nil {
		return err
	}
	last := 0
	err = log.Scan(func(line []byte) error {
		var e Event
		if json.Unmarshal(line, &e) == nil {
			last = max(last, e.Version)
		}
		return nil
	})
	for _, e := range news {
		if err != nil || e.Version <= last {
			continue
		}
		var line []byte
		if line, err = json.Marshal(e); err == nil {
			err = log.Append(line)
		}
	}
	return errors.Join(err, log.Close())
}

// Settle takes a record off the list of open ones. It comes after the last
// write of one that is over and has nothing left to tell.
func (a *Archive) Settle(id string) error { return a.index.Remove(id) }

// Open lists the records that are not over.
func (a *Archive) Open() ([]string, error) { return a.index.List() }

// Forget removes a record and everything beside it.
func (a *Archive) Forget(id string) error {
	if id == "" || path.Base(id) != id || id[0] == '.' {
		return fmt.Errorf("forget: %q is not an id", id)
	}
	if err := a.home.RemoveAll(path.Join(a.folder, id)); err != nil {
		return err
	}
	return a.index.Remove(id)
}

// NeverBegun removes what lies in the place of a record that is not there: whoever
// began it was killed before its first write, perhaps after its pictures. Where a
// record was put aside there, or anything was told of it, only the mark goes.
func (a *Archive) NeverBegun(id string) error {
	names, err := a.home.List(path.Join(a.folder, id))
	if err != nil {
		return err
	}
	for _, name := range names {
		_, known := layout.Of(a.File(id, name))
		if _, aside := layout.Original(name); aside || !known || name == "events.jsonl" {
			return a.index.Remove(id)
		}
	}
	return a.Forget(id)
}

// Last is the number of the newest record that was ever begun.
func (a *Archive) Last() uint64 { return a.series.Last() }

// Before lists up to limit records that came before seq, the newest first; a
// seq of 0 begins with the newest. Some may have been forgotten.
func (a *Archive) Before(seq uint64, limit int) ([]store.Entry, error) {
	return a.series.Before(seq, limit)
}

// After lists up to limit records that came after seq, the oldest first. Some
// may have been forgotten.
func (a *Archive) After(seq uint64, limit int) ([]store.Entry, error) {
	return a.series.After(seq, limit)
}

// Expire forgets records that came before that time, at most one file of the
// list at a time, and reports whether there may be more. What is kept, because
// it is still open, keeps what came after it too.
func (a *Archive) Expire(ctx context.Context, before time.Time, kept func(id string) bool) (more bool, err error) {
	entries, droppable, err := a.series.Oldest()
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if ctx.Err() != nil || !e.At.Before(before) || kept(e.ID) {
			return false, ctx.Err()
		}
		var record struct{}
		err := a.home.ReadJSON(a.File(e.ID, "meta.json"), &record)
		if errors.Is(err, fault.Unreadable) {
			continue // it stays until somebody has looked at it
		}
		there, err := a.home.Exists(path.Join(a.folder, e.ID))
		if err == nil && there {
			err = a.Forget(e.ID)
		}
		if err != nil {
			return false, err
		}
	}
	if !droppable {
		return false, nil
	}
	return true, a.series.DropOldest()
}

// Close lets go of the archive's files.
func (a *Archive) Close() error { return a.series.Close() }
