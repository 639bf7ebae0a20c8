package oneshot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
)

// attempts fails so often, each time after a while, and then works.
type attempts struct {
	err   error
	fails int
	each  time.Duration
	n     int
	began []time.Duration
}

func (a *attempts) try(start time.Time) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		a.n++
		a.began = append(a.began, time.Since(start))
		select {
		case <-time.After(a.each):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if a.n <= a.fails {
			return "", a.err
		}
		return "done", nil
	}
}

func TestRetriesComeAfter2And4And8And16Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &attempts{err: fault.BrowserLost, fails: 9}
		start := time.Now()
		_, retries, err := persist(t.Context(), callWithin, a.try(start))
		if retries != 4 || !errors.Is(err, fault.BrowserLost) || time.Since(start) != 30*time.Second {
			t.Fatalf("%d retries in %s, %v", retries, time.Since(start), err)
		}
		for i, seconds := range []float64{0, 2, 6, 14, 30} {
			if a.began[i].Seconds() != seconds {
				t.Errorf("attempt %d began after %s", i+1, a.began[i])
			}
		}
	})
}

func TestWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	failed := func(reason string) error {
		return fault.New(fault.NavigationFailed, "", "it failed").With("reason", reason)
	}
	for name, tt := range map[string]struct {
		err   error
		again bool
	}{
		"a page that was too slow":              {fault.NavigationTimeout, true},
		"a picture that did not come":           {fault.WaitTimeout, true},
		"a browser that did not start":          {fault.SessionCreateFailed, true},
		"a browser that was lost":               {fault.BrowserLost, true},
		"a provider's trouble":                  {fault.ProviderError, true},
		"a provider that asks for patience":     {fault.RateLimited, true},
		"a connection that was refused":         {failed("refused"), true},
		"a connection that broke off":           {failed("net::ERR_CONNECTION_RESET"), true},
		"a name that does not exist":            {failed("dns"), false},
		"a certificate that is wrong":           {failed("net::ERR_CERT_AUTHORITY_INVALID"), false},
		"a file instead of a page":              {fault.NavigationFailed, false},
		"an address that is none":               {fault.InvalidURL, false},
		"an address that is refused":            {fault.BlockedTarget, false},
		"a picture that is too large":           {fault.ImageTooLarge, false},
		"a selector that finds nothing":         {fault.EmptyExtraction, false},
		"an instruction that makes no sense":    {fault.InvalidRequest, false},
		"tools that are switched off":           {fault.Disabled, false},
		"a provider that is not set up":         {fault.ProviderNotConfigured, false},
		"no place that became free in time":     {fault.Busy, false},
		"something that should not have been":   {errors.New("what"), false},
		"a fault of ours with a wrapped reason": {fault.Wrap(fault.Internal, "x", failed("timeout")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &attempts{err: tt.err, fails: 1}
				_, retries, err := persist(t.Context(), callWithin, a.try(time.Now()))
				if again := retries == 1 && err == nil; again != tt.again {
					t.Errorf("%d retries, %v", retries, err)
				}
			})
		})
	}
}

func TestNoRetryStartsThatCannotEndInTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		within, each time.Duration
		attempts     int
	}{
		"slow pages in the full time":          {callWithin, openWithin, 4},
		"slow pages in the time of a host":     {55 * time.Second, openWithin, 2},
		"pages that fail at once":              {callWithin, 0, 5},
		"a caller in a hurry":                  {10 * time.Second, time.Second, 1},
		"a caller with time for one more":      {33 * time.Second, 0, 2},
		"an attempt that takes all it may":     {callWithin, attemptWithin, 2},
		"one that would take longer than that": {callWithin, time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &attempts{err: fault.NavigationTimeout, fails: 9, each: tt.each}
				start := time.Now()
				_, retries, err := persist(t.Context(), tt.within, a.try(start))
				if a.n != tt.attempts || retries != a.n-1 || fault.Of(err).Code != fault.NavigationTimeout {
					t.Errorf("%d attempts, %d retries, %v", a.n, retries, err)
				}
				last := a.began[len(a.began)-1]
				if len(a.began) > 1 && last+attemptWithin > tt.within {
					t.Errorf("an attempt that began after %s may end after %s", last, last+attemptWithin)
				}
				if took := time.Since(start); took > tt.within {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestABrowserThatIsNotReadyWithinTheCallersTimeIsATimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		within time.Duration
		want   fault.Code
	}{{time.Second, fault.NavigationTimeout}, {callWithin, fault.SessionCreateFailed}} {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := persist(t.Context(), tt.within, func(ctx context.Context) (bool, error) {
				<-ctx.Done()
				return false, fault.Wrap(fault.SessionCreateFailed, "open a tab", ctx.Err())
			})
			if f := fault.Of(err); f.Code != tt.want {
				t.Errorf("within %s: %v", tt.within, err)
			}
		})
	}
}

func TestACallerWhoLeavesEndsThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := &attempts{err: fault.BrowserLost, fails: 9}
		start := time.Now()
		_, retries, err := persist(ctx, callWithin, a.try(start))
		if time.Since(start) != time.Second || retries != 0 || !errors.Is(err, fault.BrowserLost) {
			t.Errorf("%d retries in %s, %v", retries, time.Since(start), err)
		}
	})
}

func TestInnerTimesEndBeforeOuterOnes(t *testing.T) {
	t.Parallel()
	if openWithin+quietWithin+readWithin >= attemptWithin || attemptWithin >= callWithin {
		t.Error("the times do not nest")
	}
}
