package event

import (
	"errors"
	"io/fs"
	"testing"
	"time"
)

type kept struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	Outbox  Outbox `json:"outbox,omitempty"`
}

func openArchive(t *testing.T) (*Archive, *Feed) {
	t.Helper()
	h := openHome(t)
	f := openFeed(t, h, nil)
	a, err := OpenArchive(h, NewPump(f, h, nil), "things")
	must(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a, f
}

func TestNewsAreWrittenAndPublishedOnce(t *testing.T) {
	t.Parallel()
	a, f := openArchive(t)
	must(t, a.Begin("a", time.Now()))
	must(t, a.Write("a", kept{"a", 2, Outbox{happened("a", 1), happened("a", 2)}}))
	must(t, a.Tell(t.Context(), "a", Outbox{happened("a", 1)}))
	for range 2 {
		must(t, a.Tell(t.Context(), "a", Outbox{happened("a", 1), happened("a", 2)}))
	}
	if events, _ := f.Since(0, 0); len(events) != 2 {
		t.Errorf("published %d events, want 2", len(events))
	}
	lines := 0
	must(t, a.home.ScanLog(a.File("a", "events.jsonl"), func([]byte) error { lines++; return nil }))
	if lines != 2 {
		t.Errorf("wrote %d lines, want 2", lines)
	}
}

// What has no record may have been killed before its first write. Where a record
// was put aside there, or anything was told of it, all of it stays.
func TestOnlyWhatNeverWasIsRemoved(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{
		"": false, "photo.age": false, "before.png": false,
		"events.jsonl": true, "meta.json.damaged-20261119T170340.123Z": true, "notes of the owner": true,
	} {
		h := openHome(t)
		a, err := OpenArchive(h, NewPump(openFeed(t, h, nil), h, nil), "handoffs")
		must(t, err)
		must(t, a.Begin("hof_1", time.Now()))
		if name != "" {
			must(t, h.Write(a.File("hof_1", name), []byte("x")))
		}
		must(t, a.NeverBegun("hof_1"))
		if name != "" {
			if there, err := h.Exists(a.File("hof_1", name)); there != stays || err != nil {
				t.Errorf("%s is there: %v, %v", name, there, err)
			}
		}
		if open, err := a.Open(); len(open) > 0 || err != nil {
			t.Errorf("with %q it is still open: %v, %v", name, open, err)
		}
		must(t, a.Close())
	}
}

func TestAnArchiveForgetsWhatIsOldAndOver(t *testing.T) {
	t.Parallel()
	a, _ := openArchive(t)
	now := time.Now()
	for i, id := range []string{"old", "older-but-open", "behind-it"} {
		must(t, a.Begin(id, now.Add(time.Duration(i-10)*time.Hour)))
		must(t, a.Write(id, kept{ID: id, Version: 1}))
	}
	must(t, a.Begin("young", now))
	must(t, a.Write("young", kept{ID: "young", Version: 1}))
	more, err := a.Expire(t.Context(), now.Add(-time.Hour), func(id string) bool { return id == "older-but-open" })
	must(t, err)
	if more {
		t.Error("there is said to be more in the only file")
	}
	for id, gone := range map[string]bool{"old": true, "older-but-open": false, "behind-it": false, "young": false} {
		var k kept
		if err := a.Read(id, &k, &k.ID); errors.Is(err, fs.ErrNotExist) != gone {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := a.Forget("../young"); err == nil {
		t.Error("a path was taken for an id")
	}
}
