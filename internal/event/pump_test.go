package event

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/store"
)

func happened(id string, version int) Event {
	return Event{ID: id, Version: version, Type: "test.happened", At: time.Unix(1, 0).UTC()}
}

func TestRecoverPumpsOpenRecordsOnly(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	f := openFeed(t, h, nil)
	p := NewPump(f, h, nil)
	index := NewIndex(h, "sessions/open")
	file := func(id string) string { return "sessions/" + id + ".json" }
	type record struct {
		Version int    `json:"version"`
		Outbox  Outbox `json:"outbox,omitempty"`
	}
	must(t, index.Add("a"))
	must(t, h.WriteJSON(file("a"), record{2, Outbox{happened("a", 1), happened("a", 2)}}))
	must(t, p.Deliver(t.Context(), happened("a", 1))) // killed before the second one
	must(t, h.WriteJSON(file("over"), record{1, Outbox{happened("over", 1)}}))
	must(t, index.Add("never-written"))
	must(t, index.Add("b"))
	must(t, h.WriteJSON(file("b"), record{1, Outbox{happened("b", 1)}}))

	for range 2 {
		must(t, p.Recover(t.Context(), index, file))
	}
	var got []key
	events, _ := f.Since(0, 0)
	for _, e := range events {
		got = append(got, e.key())
	}
	if diff := cmp.Diff([]key{{"a", 1}, {"a", 2}, {"b", 1}}, got, cmp.AllowUnexported(key{})); diff != "" {
		t.Error(diff)
	}
	open, err := index.List()
	must(t, err)
	if diff := cmp.Diff([]string{"a", "b"}, open); diff != "" {
		t.Error(diff)
	}
}

func TestADamagedRecordDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	f := openFeed(t, h, nil)
	p := NewPump(f, h, nil)
	index := NewIndex(h, "open")
	must(t, index.Add("a"))
	must(t, h.Write("a.json", []byte("{")))
	must(t, index.Add("b"))
	must(t, h.WriteJSON("b.json", map[string]any{"outbox": Outbox{{ID: "b"}, happened("b", 1)}}))
	err := p.Recover(t.Context(), index, func(id string) string { return id + ".json" })
	if err == nil {
		t.Error("nobody was told")
	}
	if f.Last() != 1 {
		t.Errorf("last is %d", f.Last())
	}
}

func TestAFailedDeliveryIsRepeatedInOrder(t *testing.T) {
	t.Parallel()
	var dead atomic.Bool
	h, err := store.Open(filepath.Join(t.TempDir(), "home"), &store.Options{Guard: func(string) error {
		if dead.Load() {
			return errors.New("the disk is dead")
		}
		return nil
	}})
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	synctest.Test(t, func(t *testing.T) {
		f, err := OpenFeed(h, nil)
		must(t, err)
		defer f.Close()
		p := NewPump(f, h, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.Run(ctx); close(done) }()

		dead.Store(true)
		for n := range 2 {
			if err := p.Deliver(t.Context(), happened("a", n+1)); err == nil {
				t.Error("delivered to nowhere")
			}
		}
		dead.Store(false)
		time.Sleep(defaultRetryEvery)
		synctest.Wait()
		must(t, p.Deliver(t.Context(), happened("a", 3)))
		events, _ := f.Since(0, 0)
		for i, e := range events {
			if e.Version != i+1 {
				t.Errorf("version %d is at place %d", e.Version, i+1)
			}
		}
		if len(events) != 3 {
			t.Errorf("%d events", len(events))
		}
		cancel()
		<-done
	})
}

func TestAnIndexTakesPlainIDsAndForgives(t *testing.T) {
	t.Parallel()
	index := NewIndex(openHome(t), "open")
	for _, id := range []string{"", ".", "..", "../x", "a/b", `a\b`} {
		if index.Add(id) == nil || index.Remove(id) == nil {
			t.Errorf("%q was taken", id)
		}
	}
	must(t, index.Add("a"))
	must(t, index.Add("a"))
	must(t, index.Remove("a"))
	must(t, index.Remove("a"))
	if ids, err := index.List(); err != nil || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
}
