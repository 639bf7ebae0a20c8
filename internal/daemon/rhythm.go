package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// endWithin is longer than the five seconds that the sidecar gives itself, so
// that the inner bound ends first.
const endWithin = 6 * time.Second

// rhythm is the patience of a daemon with its sidecar.
type rhythm struct {
	ready  time.Duration   // for a start, which reconnects to earlier browsers before it serves
	poll   time.Duration   // between two questions whether it serves
	answer time.Duration   // for the answer
	silent time.Duration   // without an answer it is given up; its browsers go on without it
	pauses []time.Duration // before each start after the one before failed; the last for ever
	steady time.Duration   // healthy for so long, it begins at the first pause again

	// A sidecar is given up after so many ends within the window. Those that
	// were never ready weigh more: one that serves in between is of use.
	window  time.Duration
	unready int
	ends    int
}

func usual() rhythm {
	return rhythm{
		ready: 60 * time.Second,
		poll:  3 * time.Second, answer: 4 * time.Second, silent: 15 * time.Second,
		pauses: []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second},
		steady: time.Minute,
		window: 15 * time.Minute, unready: 10, ends: 120,
	}
}

// watchHealth returns when the sidecar has been silent for too long. The time
// runs from the first question without an answer, not from the last answer: a
// machine that was asleep must not cost a healthy sidecar its life.
func (r rhythm) watchHealth(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(r.poll)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		asked := time.Now()
		asking, cancel := context.WithTimeout(ctx, r.answer)
		err := ask(asking)
		cancel()
		switch {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = asked
		case time.Since(since) >= r.silent:
			return fmt.Errorf("it did not answer for %v", r.silent)
		}
	}
}

// pacer decides how soon to start again, and when not to.
type pacer struct {
	rhythm

	tries   int
	unready []time.Time // ends of sidecars that were never ready
	ends    []time.Time // all ends
}

// next is the pause before the next start. With failures above 0 there should
// be none: so many there were.
func (p *pacer) next(was life, now time.Time) (pause time.Duration, failures int) {
	recent := func(times []time.Time) []time.Time {
		return slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) > p.window })
	}
	p.ends = append(recent(p.ends), now)
	p.unready = recent(p.unready)
	if was.ready {
		p.unready = nil
	} else {
		p.unready = append(p.unready, now)
	}
	switch {
	case len(p.unready) >= p.rhythm.unready:
		return 0, len(p.unready)
	case len(p.ends) >= p.rhythm.ends:
		return 0, len(p.ends)
	}
	if was.healthy >= p.steady {
		p.tries = 0
	}
	pause = p.pauses[min(p.tries, len(p.pauses)-1)]
	p.tries++
	return pause, 0
}
