package event

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runSchedule runs test in a bubble with a schedule, and ends the schedule.
func runSchedule(t *testing.T, test func(t *testing.T, s *Schedule)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSchedule()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		test(t, s)
		cancel()
		<-done
	})
}

func TestDeadlinesFireInTime(t *testing.T) {
	runSchedule(t, func(t *testing.T, s *Schedule) {
		start := time.Now()
		fired := make(chan string, 10)
		note := func(id string) func(context.Context) {
			return func(context.Context) { fired <- fmt.Sprint(id, " ", time.Since(start)) }
		}
		s.Set("late", start.Add(10*time.Minute), note("late"))
		s.Set("soon", start.Add(time.Second), note("soon"))
		s.Set("past", start.Add(-time.Hour), note("past"))
		s.Set("moved", start.Add(time.Second), note("too early"))
		s.Set("moved", start.Add(2*time.Second), note("moved"))
		s.Set("cancelled", start.Add(time.Second), note("cancelled"))
		if !s.Cancel("cancelled") || s.Cancel("cancelled") || s.Cancel("unknown") {
			t.Error("Cancel does not say what it did")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		close(fired)
		var got []string
		for f := range fired {
			got = append(got, f)
		}
		if diff := cmp.Diff([]string{"past 0s", "soon 1s", "moved 2s", "late 10m0s"}, got); diff != "" {
			t.Error(diff)
		}
		if at, ok := s.Next(); ok {
			t.Errorf("next is %v", at)
		}
	})
}

func TestNextIsTheEarliest(t *testing.T) {
	t.Parallel()
	s := NewSchedule()
	at := time.Unix(1000, 0)
	for i, id := range []string{"c", "a", "b"} {
		s.Set(id, at.Add(time.Duration(2-i)*time.Hour), func(context.Context) {})
	}
	s.Cancel("b")
	if got, ok := s.Next(); !ok || !got.Equal(at.Add(time.Hour)) {
		t.Errorf("next is %v, %v", got, ok)
	}
}

func TestASleepingLaptopIsNoticedWithinHalfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64 // what the wall clock is ahead of the timers
		s := NewSchedule()
		s.now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		fired := make(chan struct{})
		s.Set("x", time.Now().Add(8*time.Hour), func(context.Context) { close(fired) })
		time.Sleep(time.Minute)
		slept.Store(int64(9 * time.Hour))
		select {
		case <-fired:
		case <-time.After(recheckEvery + time.Second):
			t.Error("the deadline was missed")
		}
		cancel()
		synctest.Wait()
	})
}

func TestASlowDeadlineDoesNotHoldUpTheNext(t *testing.T) {
	runSchedule(t, func(t *testing.T, s *Schedule) {
		fired := make(chan struct{})
		s.Set("slow", time.Now(), func(ctx context.Context) { <-ctx.Done() })
		s.Set("next", time.Now().Add(time.Second), func(context.Context) { close(fired) })
		<-fired
	})
}

func TestADeadlineMayTouchTheSchedule(t *testing.T) {
	runSchedule(t, func(t *testing.T, s *Schedule) {
		n := make(chan int, 10)
		var again func(context.Context)
		count := 0
		again = func(context.Context) {
			count++
			n <- count
			if count < 3 {
				s.Set("x", time.Now().Add(time.Second), again)
			}
		}
		s.Set("x", time.Now(), again)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(n) != 3 {
			t.Errorf("fired %d times", len(n))
		}
	})
}

func TestWhatWasReplacedOnceDueDoesNotFire(t *testing.T) {
	t.Parallel()
	s := NewSchedule()
	fire := func(context.Context) {}
	s.Set("replaced", time.Unix(1, 0), fire)
	s.Set("cancelled", time.Unix(2, 0), fire)
	s.Set("kept", time.Unix(3, 0), fire)
	due, _ := s.due() // as Run does, just before it fires
	s.Set("replaced", time.Now().Add(time.Hour), fire)
	s.Cancel("cancelled")
	var claimed []string
	for _, d := range due {
		if s.claim(d) {
			claimed = append(claimed, d.id)
		}
	}
	if diff := cmp.Diff([]string{"kept"}, claimed); diff != "" {
		t.Error(diff)
	}
	if _, ok := s.Next(); !ok {
		t.Error("the replacement was lost")
	}
}
