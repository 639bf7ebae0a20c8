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

	// So many ends within the window are a loop: the owner is told, and the
	// pauses grow. Those that were never ready weigh more: one that serves in
	// between is of use. One that died of itself weighs most: it will again.
	window  time.Duration
	unready int
	crashes int
	ends    int
	seldom  []time.Duration // the pauses in a loop; the last for ever
}

func usual() rhythm {
	return rhythm{
		ready: 60 * time.Second,
		poll:  3 * time.Second, answer: 4 * time.Second, silent: 15 * time.Second,
		pauses: []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second},
		steady: time.Minute,
		window: 15 * time.Minute, unready: 10, crashes: 5, ends: 120,
		seldom: []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute},
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

// pacer decides how soon to start again. It never decides not to: whatever is
// wrong may pass, and then no hand is needed.
type pacer struct {
	rhythm

	tries   int
	unready []time.Time // ends of sidecars that were never ready
	crashes []time.Time // ends of those that panicked, and were not ended from outside
	ends    []time.Time // all ends
	looped  int         // starts since it is a loop; 0 while it is none
	many    int         // how many ends are a loop now; 0 while it is none
	told    bool        // that it is one
}

// next is the pause before the next start. Failures above 0 say that so many
// have just become a loop.
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
	p.crashes = recent(p.crashes)
	if was.panicked {
		p.crashes = append(p.crashes, now)
	}
	if was.healthy >= p.steady {
		p.tries, p.looped = 0, 0
	}
	switch {
	case len(p.unready) >= p.rhythm.unready:
		p.many = len(p.unready)
	case was.panicked && p.rhythm.crashes > 0 && len(p.crashes) >= p.rhythm.crashes:
		p.many = len(p.crashes)
	case len(p.ends) >= p.rhythm.ends:
		p.many = len(p.ends)
	case p.looped == 0: // it is one until a sidecar was well for a while
		p.many = 0
	}
	if p.many > 0 && !p.told {
		failures, p.told = p.many, true
	}
	if p.many == 0 && len(p.crashes) < max(1, p.rhythm.crashes) {
		p.told = false // one that crashes every few minutes is told of once
	}
	if p.many > 0 {
		pause = p.pauses[len(p.pauses)-1]
		if len(p.seldom) > 0 { // a tunnel's says itself how long it rests
			pause = p.seldom[min(p.looped, len(p.seldom)-1)]
		}
		p.looped++
		return pause, failures
	}
	pause = p.pauses[min(p.tries, len(p.pauses)-1)]
	p.tries++
	return pause, 0
}
