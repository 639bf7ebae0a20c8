package handoff

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/testwait"
)

func TestMain(m *testing.M) {
	testwait.Draws("30") // the race detector takes half a second for each meeting
	m.Run()
}

// TestHoweverEndsMeetThereIsOne lets ends of every kind come at drawn moments,
// with a browser that takes drawn times, and finds exactly one outcome.
func TestHoweverEndsMeetThereIsOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		moment := rapid.IntRange(0, 40)
		kinds := rapid.SliceOfN(rapid.SampledFrom([]string{"owner done", "owner anyway", "agent done", "agent cancels", "owner aborts", "lost", "parks"}), 2, 6).Draw(rt, "ends")
		var at []time.Duration
		for range kinds {
			at = append(at, time.Duration(moment.Draw(rt, "at"))*100*time.Millisecond)
		}
		slow := rapid.SliceOfN(rapid.IntRange(0, 3), 16, 16).Draw(rt, "slow")
		verify := rapid.Bool().Draw(rt, "verify")
		loggedInAt := time.Duration(moment.Draw(rt, "logged in at")) * 100 * time.Millisecond
		if err := meet(t, kinds, at, slow, verify, loggedInAt); err != nil {
			rt.Fatal(err)
		}
	})
}

func meet(t *testing.T, kinds []string, at []time.Duration, slow []int, verify bool, loggedInAt time.Duration) (failed error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stage := newTheatre()
		var mu sync.Mutex
		calls := 0
		stage.step = func(string) error {
			mu.Lock()
			calls++
			d := time.Duration(slow[calls%len(slow)]) * 100 * time.Millisecond
			mu.Unlock()
			time.Sleep(d)
			return nil
		}
		h, err := moveIn(t, t.TempDir(), stage, &runs{}, nil, nil)
		must(t, err)
		defer h.moveOut()
		o := StartOptions{RunID: "run_1", Timeout: 3 * time.Second}
		if verify {
			o.Verify = untilHome
		}
		rec := h.begin(o)
		var told sync.Map
		var wg sync.WaitGroup
		ctx := context.Background()
		for i, kind := range kinds {
			wg.Go(func() {
				time.Sleep(at[i])
				var got Record
				var err error
				switch kind {
				case "owner done":
					got, err = h.Finish(ctx, Owner, rec.ID, false)
				case "owner anyway":
					got, err = h.Finish(ctx, Owner, rec.ID, true)
				case "agent done":
					got, err = h.Finish(ctx, Agent, rec.ID, false)
				case "agent cancels":
					got, err = h.Cancel(ctx, Agent, rec.ID)
				case "owner aborts":
					got, err = h.Cancel(ctx, Owner, rec.ID)
				case "parks":
					got, err = h.Park(ctx, Owner, rec.ID)
				case "lost":
					h.stage.lose()
					h.SessionEnded(ctx, aSession, "lost")
					got = h.get(rec.ID)
				}
				if err == nil && got.IsOver() {
					told.Store(fmt.Sprint(got.Status, got.FinishedBy, got.FinishedAt), true)
				}
			})
		}
		wg.Go(func() {
			time.Sleep(loggedInAt)
			h.stage.loggedIn()
		})
		wg.Wait()
		pass(25 * time.Hour)
		final := h.get(rec.ID)
		outcomes := 0
		told.Range(func(k, _ any) bool {
			outcomes++
			if k != fmt.Sprint(final.Status, final.FinishedBy, final.FinishedAt) {
				failed = fmt.Errorf("somebody was told %v, and it is %s by %s", k, final.Status, final.FinishedBy)
			}
			return true
		})
		if !final.IsOver() || outcomes > 1 {
			failed = fmt.Errorf("%s, and %d outcomes were told", final.Status, outcomes)
		}
		if failed == nil {
			failed = settledRight(h, final)
		}
	})
	return failed
}
