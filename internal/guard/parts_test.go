package guard_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/guard"
	"tapin/internal/trouble"
)

func TestTheSamePanicIsOneReportAndEvictsNoOther(t *testing.T) {
	t.Parallel()
	r := &guard.Reports{Home: t.TempDir(), Part: "sidecar"}
	at := time.Unix(1_800_000_000, 0).UTC()
	write := func(room, caller string) {
		t.Helper()
		at = at.Add(time.Minute)
		stack := []guard.Frame{{Func: "runtime.mapassign", Line: "map.go:1"}, {Func: "tapin/internal/x.f", Line: "x.go:1"}, {Func: caller, Line: "y.go:2"}}
		if _, err := r.Write(guard.Report{At: at, Part: "sidecar", Room: room, Cause: "assignment to entry in nil map", Stack: stack}); err != nil {
			t.Fatal(err)
		}
	}
	write("figures", "tapin/internal/x.g")
	began := at.Add(time.Minute)
	for i := range 50 {
		write("live view", fmt.Sprint("tapin/internal/x.h", i)) // whoever called it
	}
	all, err := guard.List(r.Home)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	if one := all[0]; one.Room != "live view" || one.Times != 50 || !one.First.Equal(began) || !one.At.Equal(at) {
		t.Errorf("the one that comes again and again: %+v", one)
	}
	if all[1].Room != "figures" || all[1].Times != 0 {
		t.Errorf("the other: %+v", all[1])
	}
}

func TestAPanicInAPartIsTheFailureOfItsRoom(t *testing.T) { //nolint:paralleltest // the reports are the process's
	synctest.Test(t, func(t *testing.T) {
		var board trouble.Board
		var news told
		h := guard.NewHouse(&guard.Options{Board: &board, Tell: news.tell})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		begun := 0
		all.Go(func() {
			h.Room(ctx, "chat", func(ctx context.Context) {
				guard.Parts(ctx, func(context.Context) { fall(canary) }, func(ctx context.Context) { begun++; <-ctx.Done() })
			})
		})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := board.List(); len(got) != 1 || got[0].State != trouble.Restarting {
			t.Fatalf("after a failure: %+v", got)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := board.List(); len(got) != 1 || got[0].State != trouble.GivenUp || begun != 5 {
			t.Fatalf("after ever more failures: %+v; the other part was begun %d times", got, begun)
		}
		all.Wait()
	})
}

func TestWhatIsStartedAgainForEverIsShown(t *testing.T) { //nolint:paralleltest // the reports are the process's
	synctest.Test(t, func(t *testing.T) {
		var board trouble.Board
		var news told
		guard.ShowIn(guard.NewHouse(&guard.Options{Board: &board, Tell: news.tell}))
		defer guard.ShowIn(nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		var well atomic.Bool
		for range 2 { // two pages of which each fails
			all.Go(func() {
				guard.Again(ctx, "live view", func() {
					if !well.Load() {
						fall(canary)
					}
					<-ctx.Done()
				})
			})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := board.List(); len(got) != 1 || got[0].What != "live view" || got[0].State != trouble.Restarting {
			t.Fatalf("while it fails: %+v", got)
		}
		well.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := board.List(); len(got) != 0 {
			t.Fatalf("when it has gone well for a while: %+v", got)
		}
		stop()
		all.Wait()
		if want := []string{"live view failed 1", "live view back 1"}; !slices.Equal(news.all, want) {
			t.Fatalf("told %q, want %q", news.all, want)
		}
	})
}

func TestARoomThatWasGivenUpIsOnAgainWhenItIsBegunAnew(t *testing.T) { //nolint:paralleltest // the reports are the process's
	synctest.Test(t, func(t *testing.T) {
		var board trouble.Board
		var news told
		h := guard.NewHouse(&guard.Options{Board: &board, Tell: news.tell})
		h.Room(t.Context(), "news for wakes", func(context.Context) { fall(canary) })
		if h.Off("news for wakes") == nil || len(board.List()) != 1 {
			t.Fatal("it was not given up")
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { h.Room(ctx, "news for wakes", func(ctx context.Context) { <-ctx.Done() }) })
		synctest.Wait()
		if err := h.Off("news for wakes"); err != nil || len(board.List()) != 0 {
			t.Errorf("it runs again, and is said to be %v, %+v", err, board.List())
		}
		if last := news.all[len(news.all)-1]; last != "news for wakes back 5" {
			t.Errorf("told last: %q", last)
		}
		stop()
		all.Wait()
	})
}
