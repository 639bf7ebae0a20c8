package usage_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/browser/usage"
	"tapin/internal/fault"
	"tapin/internal/store"
)

func home(t *testing.T) *store.Home {
	t.Helper()
	h, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func open(t testing.TB, h *store.Home, minutes int) *usage.Ledger {
	t.Helper()
	l := usage.Open(h, &usage.Options{CapMinutes: minutes})
	return l
}

func TestABrowserIsCountedOnceWhateverIsKilledInBetween(t *testing.T) {
	t.Parallel()
	h := home(t)
	began := time.Now().UTC()
	if _, err := open(t, h, 0).Ask("ses_1-1", "browserbase", time.Hour); err != nil {
		t.Fatal(err)
	}
	// Each step by another process.
	open(t, h, 0).Begin("ses_1-1", "remote", began, began.Add(time.Hour))
	if running := open(t, h, 0).Running("browserbase"); len(running) != 1 || running[0].Remote != "remote" {
		t.Fatalf("there run %+v", running)
	}
	open(t, h, 0).Drop("ses_1-1") // it was made, and so cannot be dropped
	for range 3 {
		open(t, h, 0).End("ses_1-1", began.Add(90*time.Second))
	}
	if r := open(t, h, 0).Report(began); r.Minutes() != 2 || r.Providers["browserbase"] != (usage.Month{Sessions: 1, Seconds: 90}) || len(r.Running) != 0 {
		t.Errorf("the account is %+v", r)
	}
}

func TestMinutesOfABrowserThatRunsAreCountedUpToNow(t *testing.T) {
	t.Parallel()
	h := home(t)
	synctest.Test(t, func(t *testing.T) {
		l := open(t, h, 0)
		if _, err := l.Ask("ses_1-1", "browserbase", time.Hour); err != nil {
			t.Fatal(err)
		}
		l.Begin("ses_1-1", "remote", time.Time{}, time.Time{})
		for minutes := 1; minutes < 5; minutes++ {
			time.Sleep(time.Minute)
			if got := l.Report(time.Now()).Minutes(); got != minutes {
				t.Errorf("after %d minutes it is %d", minutes, got)
			}
		}
		time.Sleep(2 * time.Hour) // it has ended by itself meanwhile
		if got := l.Report(time.Now()).Minutes(); got != 60 {
			t.Errorf("after its time it is %d", got)
		}
	})
}

func TestNoOrderOfEventsExceedsACap(t *testing.T) {
	t.Parallel()
	h := home(t)
	rapid.Check(t, func(rt *rapid.T) {
		for _, file := range []string{"usage.json", "usage.json.before"} {
			if err := h.RemoveAll(file); err != nil {
				rt.Fatal(err)
			}
		}
		most := rapid.IntRange(1, 120).Draw(rt, "cap")
		l := open(t, h, most)
		now, spent := time.Now().UTC(), time.Duration(0)
		until := map[string]time.Duration{}
		for i := range rapid.IntRange(1, 5).Draw(rt, "browsers") {
			id := string(rune('a' + i))
			granted, err := l.Ask(id, "browserbase", time.Duration(rapid.IntRange(1, 90).Draw(rt, "wanted"))*time.Minute)
			if err != nil {
				if !errors.Is(err, fault.Disabled) {
					rt.Fatal(err)
				}
				continue
			}
			l.Begin(id, "r"+id, now, now.Add(granted))
			until[id] = granted
			if rapid.Bool().Draw(rt, "ends") {
				ran := time.Duration(rapid.Int64Range(0, int64(granted)).Draw(rt, "ran")).Round(time.Second)
				l.End(id, now.Add(ran))
				spent += max(ran, time.Minute)
				delete(until, id)
			}
		}
		for _, granted := range until {
			spent += granted // all that may still come
		}
		if spent > time.Duration(most)*time.Minute+time.Second {
			rt.Fatalf("with a cap of %d minutes it may come to %s", most, spent)
		}
	})
}
