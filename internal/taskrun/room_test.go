package taskrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

var errKilled = errors.New("killed")

type house struct {
	*Room
	home *store.Home
	feed *event.Feed
}

func moveIn(t testing.TB, path string, guard func(string) error) *house {
	t.Helper()
	home, err := store.Open(path, &store.Options{Guard: guard})
	must(t, err)
	feed, err := event.OpenFeed(home, nil)
	must(t, err)
	room, err := New(home, event.NewPump(feed, home, nil), nil)
	must(t, err)
	must(t, room.Recover(t.Context()))
	return &house{room, home, feed}
}

func (h *house) moveOut() {
	_ = h.Room.Close()
	_ = h.feed.Close()
	_ = h.home.Close()
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := moveIn(t, t.TempDir(), nil)
	t.Cleanup(h.moveOut)
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestARunFromItsStartToItsEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := t.Context()
	run, err := h.Start(ctx, "pay the bill")
	must(t, err)
	if run.Status != Running || run.Version != 1 {
		t.Errorf("got %+v", run)
	}
	must(t, second(h.NeedsHelp(ctx, run.ID, "a login")))
	if got, _ := h.Get(run.ID); got.Status != NeedsHelp || got.Help != "a login" {
		t.Errorf("got %+v", got)
	}
	must(t, second(h.Update(ctx, run.ID, "logged in")))
	must(t, h.AppendOnce(ctx, run.ID, "handoff", "hof_1", "it changed"))
	done, err := h.Complete(ctx, run.ID, Completed, "paid")
	must(t, err)
	if done.Status != Completed || done.Help != "" || len(done.Notes) != 1 || len(done.Evidence) != 1 || done.Version != 5 {
		t.Errorf("got %+v", done)
	}
	again, err := h.Complete(ctx, run.ID, Completed, "other words")
	if err != nil || again.Summary != "paid" || again.Version != 5 {
		t.Errorf("the second end gave %+v, %v", again, err)
	}
	must(t, h.AppendOnce(ctx, run.ID, "handoff", "hof_2", "late, and a fact all the same"))
	for what, err := range map[string]error{
		"update": second(h.Update(ctx, run.ID, "x")), "help": second(h.NeedsHelp(ctx, run.ID, "x")), "another end": second(h.Complete(ctx, run.ID, Failed, "")),
		"an end that is none": second(h.Complete(ctx, run.ID, Running, "")), "no goal": second(h.Start(ctx, "  ")),
		"a long note": second(h.Update(ctx, run.ID, strings.Repeat("x", maxNote+1))),
	} {
		if !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, id := range []string{"run_06cz3qmhc04x2p5ae9gk8v71", "../x", ""} {
		if _, err := h.Get(id); !errors.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if open, err := h.archive.Open(); err != nil || len(open) != 0 {
		t.Errorf("open: %v, %v", open, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestMain(m *testing.M) {
	testwait.Draws("30")
	m.Run()
}

func TestEvidenceCountsOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	rapid.Check(t, func(rt *rapid.T) {
		run, err := h.Start(t.Context(), "x")
		must(t, err)
		refs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 8).Draw(rt, "refs")
		var wg sync.WaitGroup
		for _, ref := range refs {
			wg.Go(func() { _ = h.AppendOnce(t.Context(), run.ID, "handoff", ref, "") })
		}
		wg.Wait()
		got, err := h.Get(run.ID)
		must(t, err)
		var have []string
		for _, e := range got.Evidence {
			have = append(have, e.Ref)
		}
		slices.Sort(have)
		slices.Sort(refs)
		if !slices.Equal(have, slices.Compact(refs)) {
			rt.Fatalf("%v became %v", refs, have)
		}
	})
}

func TestACrashAtAnyWriteLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for n := int64(1); ; n++ {
		var left atomic.Int64
		left.Store(1 << 40)
		path := t.TempDir()
		h := moveIn(t, path, func(string) error {
			if left.Add(-1) < 0 {
				return errKilled
			}
			return nil
		})
		left.Store(n - 1)
		ctx := t.Context()
		run, startErr := h.Start(ctx, "pay")
		appended := h.AppendOnce(ctx, run.ID, "handoff", "hof_1", "s")
		ended := second(h.Complete(ctx, run.ID, Failed, ""))
		survived := left.Load() >= 0
		h.moveOut()

		h = moveIn(t, path, nil)
		page, err := h.List(ctx, "", 0, "")
		must(t, err)
		if len(page.Runs) != 1 {
			if startErr == nil || len(page.Runs) > 1 {
				t.Fatalf("killed at write %d: %d runs", n, len(page.Runs))
			}
			h.moveOut()
			continue
		}
		rec := page.Runs[0]
		must(t, h.AppendOnce(ctx, rec.ID, "handoff", "hof_1", "s"))
		rec, err = h.Get(rec.ID)
		must(t, err)
		events, _ := h.feed.Since(0, 0)
		if len(rec.Evidence) != 1 || ended == nil && rec.Status != Failed || len(events) != rec.Version || len(rec.Outbox) != 0 {
			t.Fatalf("killed at write %d: %d pieces of evidence (%v), %s (%v), %d of %d told", n, len(rec.Evidence), appended, rec.Status, ended, len(events), rec.Version)
		}
		h.moveOut()
		if survived {
			if n < 12 {
				t.Errorf("only %d writes", n)
			}
			return
		}
	}
}

func TestTextsFollowTheSecretRules(t *testing.T) {
	t.Parallel()
	const canary = "Tr0ub4dor-and-3-canaries"
	h := newHouse(t)
	ctx := t.Context()
	run, err := h.Start(ctx, "use "+canary)
	must(t, err)
	must(t, second(h.Update(ctx, run.ID, canary)))
	must(t, second(h.NeedsHelp(ctx, run.ID, canary)))
	must(t, h.AppendOnce(ctx, run.ID, "file", "x", canary))
	must(t, second(h.Complete(ctx, run.ID, Failed, canary)))
	for _, name := range []string{"meta.json", "events.jsonl"} {
		raw, err := os.ReadFile(filepath.Join(h.home.Path(), h.archive.File(run.ID, name)))
		if err != nil || strings.Contains(string(raw), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSummaryOfAHandoffStaysLegible(t *testing.T) {
	t.Parallel()
	const summary = "URL changed from http://127.0.0.1:42643/login to http://127.0.0.1:42643/secure."
	h := newHouse(t)
	run, err := h.Start(t.Context(), "log in")
	must(t, err)
	must(t, h.AppendOnce(t.Context(), run.ID, HandoffKind, "hof_1", summary))
	if run, err = h.Get(run.ID); err != nil || run.Evidence[0].Summary != summary {
		t.Errorf("%v, %v", run.Evidence, err)
	}
}

func TestTheListGoesFromTheNewestToTheOldest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 7 {
		run, err := h.Start(t.Context(), fmt.Sprint(i))
		must(t, err)
		if i%2 == 0 {
			must(t, second(h.Complete(t.Context(), run.ID, Completed, "")))
		}
	}
	var goals []string
	for cursor := ""; ; {
		page, err := h.List(t.Context(), "", 3, cursor)
		must(t, err)
		for _, r := range page.Runs {
			goals = append(goals, r.Goal)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if got := strings.Join(goals, ""); got != "6543210" {
		t.Error(got)
	}
	if page, err := h.List(t.Context(), Running, 0, ""); err != nil || len(page.Runs) != 3 {
		t.Errorf("%d running, %v", len(page.Runs), err)
	}
	if _, err := h.List(t.Context(), "", 0, "x"); !errors.Is(err, fault.InvalidRequest) {
		t.Error(err)
	}
}

func TestALongPollReturnsWhenTheRunGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := moveIn(t, t.TempDir(), nil)
		defer h.moveOut()
		run, err := h.Start(t.Context(), "x")
		must(t, err)
		began := time.Now()
		must(t, second(h.Wait(t.Context(), run.ID, 1, time.Minute)))
		if time.Since(began) != time.Minute {
			t.Error("it did not wait")
		}
		answer := make(chan Record)
		go func() {
			got, _ := h.Wait(context.Background(), run.ID, 1, time.Hour)
			answer <- got
		}()
		synctest.Wait()
		must(t, second(h.Update(t.Context(), run.ID, "on")))
		if got := <-answer; got.Version != 2 {
			t.Errorf("got version %d", got.Version)
		}
	})
}
