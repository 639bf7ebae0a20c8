package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) {
	testwait.Draws("30")
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openHome(t *testing.T) *store.Home {
	t.Helper()
	h, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

func openFeed(t *testing.T, h *store.Home, opts *FeedOptions) *Feed {
	t.Helper()
	f, err := OpenFeed(h, opts)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

func publish(t *testing.T, f *Feed, id string, version int) Event {
	t.Helper()
	e, err := f.Publish(t.Context(), Event{ID: id, Version: version, Type: "test.happened", Data: json.RawMessage(`{"a": 1}`)})
	must(t, err)
	return e
}

func seqs(events []Event) []uint64 {
	var out []uint64
	for _, e := range events {
		out = append(out, e.Seq)
	}
	return out
}

func TestTheFeedSurvivesARestart(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	f := openFeed(t, h, nil)
	want := []Event{publish(t, f, "a", 1), publish(t, f, "b", 1), publish(t, f, "a", 2)}
	must(t, f.Close())
	must(t, f.Close())
	if _, err := f.Publish(t.Context(), Event{ID: "a", Version: 9, Type: "t"}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("published to a closed feed: %v", err)
	}

	f = openFeed(t, h, nil)
	got, resync := f.Since(0, 0)
	compact := cmp.Transformer("json", func(r json.RawMessage) string {
		var v any
		_ = json.Unmarshal(r, &v)
		return fmt.Sprint(v)
	})
	if diff := cmp.Diff(want, got, compact); diff != "" || resync {
		t.Errorf("resync %v: %s", resync, diff)
	}
	if e := publish(t, f, "a", 2); e.Seq != 3 {
		t.Errorf("published twice: %d", e.Seq)
	}
	if e := publish(t, f, "c", 1); e.Seq != 4 {
		t.Errorf("the next number is %d", e.Seq)
	}
}

func TestPublishRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	f := openFeed(t, openHome(t), nil)
	for name, e := range map[string]Event{
		"no id":      {Version: 1, Type: "t"},
		"no version": {ID: "a", Type: "t"},
		"no type":    {ID: "a", Version: 1},
		"bad data":   {ID: "a", Version: 1, Type: "t", Data: json.RawMessage("{")},
	} {
		if _, err := f.Publish(t.Context(), e); err == nil {
			t.Errorf("%s was published", name)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Publish(gone, Event{ID: "a", Version: 1, Type: "t"}); !errors.Is(err, context.Canceled) {
		t.Errorf("published for a caller who is gone: %v", err)
	}
	if f.Last() != 0 {
		t.Errorf("last is %d", f.Last())
	}
}

func TestOnlyOneHasTheFeedOpen(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	first := openFeed(t, h, nil)
	if _, err := OpenFeed(h, nil); !errors.Is(err, fault.Busy) {
		t.Errorf("got %v", err)
	}
	must(t, first.Close())
	openFeed(t, h, nil)
}

func TestSinceByCursor(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	opts := &FeedOptions{MaxEvents: 16} // segments of 2
	f := openFeed(t, h, opts)
	if events, resync := f.Since(0, 0); len(events) != 0 || resync {
		t.Errorf("an empty feed: %v, %v", events, resync)
	}
	for n := range 30 {
		publish(t, f, "a", n+1)
	}
	check := func(f *Feed) {
		for name, tt := range map[string]struct {
			cursor uint64
			limit  int
			first  uint64
			count  int
			resync bool
		}{
			"the newest":             {29, 0, 30, 1, false},
			"nothing newer":          {30, 0, 0, 0, false},
			"a page":                 {20, 3, 21, 3, false},
			"all that is kept":       {14, 0, 15, 16, false},
			"just past retention":    {13, 0, 15, 16, true},
			"from the beginning":     {0, 0, 15, 16, true},
			"past retention, a page": {0, 5, 15, 5, true},
			"from the future":        {31, 0, 15, 16, true},
		} {
			events, resync := f.Since(tt.cursor, tt.limit)
			if len(events) != tt.count || resync != tt.resync || len(events) > 0 && events[0].Seq != tt.first {
				t.Errorf("%s: %v, resync %v", name, seqs(events), resync)
			}
		}
	}
	check(f)
	must(t, f.Close())
	f = openFeed(t, h, opts)
	check(f)
	files, err := h.List("events")
	must(t, err)
	if len(files) != 8 {
		t.Errorf("files: %v", files)
	}
	if e := publish(t, f, "a", 30); e.Seq != 30 {
		t.Errorf("a kept event was published again as %d", e.Seq)
	}
	if e := publish(t, f, "a", 1); e.Seq != 31 {
		t.Errorf("a forgotten event is %d", e.Seq)
	}
}

func TestTheFeedIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	f := openFeed(t, h, &FeedOptions{MaxBytes: 8 << 10})
	data, err := json.Marshal(make([]byte, 600))
	must(t, err)
	for n := range 40 {
		_, err := f.Publish(t.Context(), Event{ID: "a", Version: n + 1, Type: "t", Data: data})
		must(t, err)
	}
	total := 0
	files, err := h.List("events")
	must(t, err)
	for _, name := range files {
		content, err := h.Read("events/" + name)
		must(t, err)
		total += len(content)
	}
	if total > 8<<10 || total < 4<<10 {
		t.Errorf("%d bytes are kept", total)
	}
}

func TestNumbersNeverRepeatWhateverIsLeftOfTheNewestSegment(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	opts := &FeedOptions{MaxEvents: 16}
	f := openFeed(t, h, opts)
	for n := range 5 {
		publish(t, f, "a", n+1)
	}
	must(t, f.Close())
	// A kill right after the new segment was made, and in the middle of a line.
	must(t, h.Write("events/00000000000000000006.jsonl", []byte(`{"seq":6,"id":"a","ver`)))
	f = openFeed(t, h, opts)
	if e := publish(t, f, "a", 6); e.Seq != 6 {
		t.Errorf("the next number is %d", e.Seq)
	}
	must(t, f.Close())
	must(t, h.Write("events/00000000000000000100.jsonl", nil))
	must(t, h.Write("events/notes.txt", nil))
	f = openFeed(t, h, opts)
	if e := publish(t, f, "a", 7); e.Seq != 100 {
		t.Errorf("the next number is %d", e.Seq)
	}
}

func TestWaitEndsWithAnEventACancelOrTheFeed(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	synctest.Test(t, func(t *testing.T) {
		f, err := OpenFeed(h, nil)
		must(t, err)
		publish(t, f, "a", 1)
		must(t, f.Wait(t.Context(), 0))
		must(t, f.Wait(t.Context(), 7)) // a cursor that needs a resync

		results := make(chan error, 3)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { results <- f.Wait(t.Context(), 1) }()
		synctest.Wait()
		publish(t, f, "a", 1) // known already: nothing new
		synctest.Wait()
		if len(results) != 0 {
			t.Fatal("woken by nothing")
		}
		publish(t, f, "a", 2)
		must(t, <-results)
		go func() { results <- f.Wait(ctx, 2) }()
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		go func() { results <- f.Wait(t.Context(), 2) }()
		synctest.Wait()
		must(t, f.Close())
		if err := <-results; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestASlowReaderMissesNothing(t *testing.T) {
	t.Parallel()
	f := openFeed(t, openHome(t), nil)
	const publishers, each = 4, 25
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for n := range each {
				if _, err := f.Publish(t.Context(), Event{ID: fmt.Sprint(p), Version: n + 1, Type: "t"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	cursor := uint64(0)
	for cursor < publishers*each {
		must(t, f.Wait(t.Context(), cursor))
		events, resync := f.Since(cursor, 3)
		for _, e := range events {
			if e.Seq != cursor+1 || resync {
				t.Fatalf("%d after %d, resync %v", e.Seq, cursor, resync)
			}
			cursor = e.Seq
		}
	}
	wg.Wait()
}

func TestPublishingInAnyOrderWithRestartsKeepsEachEventOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		h, err := store.Open(filepath.Join(root, store.NewID("home")), nil)
		if err != nil {
			rt.Fatal(err)
		}
		defer h.Close()
		f, err := OpenFeed(h, nil)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		model := map[key]uint64{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if rapid.IntRange(0, 4).Draw(rt, "restart") == 0 {
				_ = f.Close()
				if f, err = OpenFeed(h, nil); err != nil {
					rt.Fatal(err)
				}
			}
			e := Event{ID: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id"), Version: rapid.IntRange(1, 3).Draw(rt, "version"), Type: "t", At: time.Unix(1, 0)}
			got, err := f.Publish(t.Context(), e)
			if err != nil {
				rt.Fatal(err)
			}
			want, known := model[e.key()]
			if !known {
				want = uint64(len(model) + 1)
				model[e.key()] = want
			}
			if got.Seq != want {
				rt.Fatalf("%v is %d, want %d", e.key(), got.Seq, want)
			}
		}
	})
}
