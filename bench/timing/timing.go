// Package timing is how rounds are timed and condensed, by the benchmark and by
// the Go benchmarks that it reads.
//
// On a machine that shares its processors with others, the host takes them away now
// and then, for milliseconds or for seconds, and says so afterwards. What it took has
// nothing to do with what was measured, so rounds are told apart by it: whole rounds,
// because whoever takes longer in one is also hit more often.
package timing

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ticks is what the processors have done since the machine was started, in
// hundredths of a second.
type Ticks struct {
	Busy int // without what runs only where nobody else wants to
	Held int // a processor was wanted, and the host kept it to itself
	All  int
}

// Now reads them; where a system does not tell, there are none.
func Now() Ticks {
	var now Ticks
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return now
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.Atoi(field)
		if err != nil || i > 8 { // its name; and guests, who are in another figure already
			continue
		}
		now.All += ticks
		switch i {
		case 2, 4, 5: // nice, idle, and waiting for the disk
		case 8:
			now.Held += ticks
		default:
			now.Busy += ticks
		}
	}
	return now
}

// Since is what came to them after an earlier moment.
func Since(then Ticks) Ticks {
	now := Now()
	return Ticks{Busy: now.Busy - then.Busy, Held: now.Held - then.Held, All: now.All - then.All}
}

// Share is for how much of the time the host kept the processors to itself.
func (t Ticks) Share() float64 { return float64(t.Held) / float64(max(1, t.All)) }

// Calm is the share that the host may keep in a round that counts.
const Calm = 0.02

// Rounds are what everybody got, round after round.
type Rounds[T any] struct {
	all  []round[T]
	open round[T]
}

type round[T any] struct {
	got   map[string][]T
	began Ticks
	held  float64
}

// Begin begins a round.
func (r *Rounds[T]) Begin() { r.open = round[T]{got: map[string][]T{}, began: Now()} }

// Add notes what somebody got in the round that was begun.
func (r *Rounds[T]) Add(who string, got T) { r.open.got[who] = append(r.open.got[who], got) }

// End ends the round. One in which nobody got anything was none.
func (r *Rounds[T]) End() {
	if len(r.open.got) > 0 {
		r.open.held = Since(r.open.began).Share()
		r.all = append(r.all, r.open)
	}
}

// Counted is what everybody got in the rounds that count: those in which the machine
// was calm, or where these are less than half of all, the calmer half.
func (r *Rounds[T]) Counted() map[string][]T {
	counted := map[string][]T{}
	for _, each := range r.calm() {
		for who, got := range each.got {
			counted[who] = append(counted[who], got...)
		}
	}
	return counted
}

// Played is how many rounds there were, and how many of them do not count.
func (r *Rounds[T]) Played() (all, left int) { return len(r.all), len(r.all) - len(r.calm()) }

func (r *Rounds[T]) calm() []round[T] {
	calmest := slices.Clone(r.all)
	slices.SortStableFunc(calmest, func(a, b round[T]) int { return cmp.Compare(a.held, b.held) })
	n := (len(calmest) + 1) / 2
	for n < len(calmest) && calmest[n].held <= Calm {
		n++
	}
	return calmest[:n]
}

// Quantile lies between two of them where it is none of them: of an even number,
// the median is the middle of the middle two.
func Quantile[T ~int64 | ~float64](all []T, q float64) T {
	sorted := slices.Sorted(slices.Values(all))
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + T((at-float64(below))*float64(sorted[above]-sorted[below]))
}

// A browser draws at the beats of a clock, sixty times a second. Most of what is measured
// waits for the next of them, so it takes a beat more or less by the moment at which it
// begins; and who begins in step with it is early or late every time.
const beat = time.Second / 60

// started is a moment at which the beats are counted from.
var started = time.Now()

// InPhase waits, for a beat at most, until somebody's nth turn is to begin: their turns
// are spread evenly over the time between two beats, everybody's alike.
func InPhase(n int) {
	wait := phase(n) - time.Since(started)%beat
	if wait < 0 {
		wait += beat
	}
	time.Sleep(wait)
}

// phase is how long after a beat somebody's nth turn begins.
func phase(n int) time.Duration {
	const apart = 0.6180339887 // of a beat: however many turns there are, no gap is left
	_, share := math.Modf(float64(n) * apart)
	return time.Duration(share * float64(beat))
}

// Milliseconds is a duration as the tables have it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
