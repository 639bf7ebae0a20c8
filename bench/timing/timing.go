// Package timing is how turns are timed and condensed, by the benchmark and by
// the Go benchmarks that it reads.
//
// On a machine that shares its processors with others, the host takes them away now
// and then, for milliseconds or for seconds, and says so afterwards. What it took has
// nothing to do with what was measured, so turns are told apart by it.
package timing

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ticks is what the processors have done since the machine was started, in
// hundredths of a second.
type Ticks struct {
	Busy int
	Held int // there was work, and the host kept the processor to itself
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
		case 4, 5: // idle, and waiting for the disk
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

// Share is how much of what the processors had to do the host kept from them.
func (t Ticks) Share() float64 { return float64(t.Held) / float64(max(1, t.Busy+t.Held)) }

// Turns are what came of one thing that is measured again and again.
type Turns[T any] struct {
	all []turn[T]
}

type turn[T any] struct {
	got  T
	held int
}

// Add notes what came of a turn that began when the ticks were read.
func (t *Turns[T]) Add(got T, began Ticks) {
	t.all = append(t.all, turn[T]{got, Since(began).Held})
}

// Counted are the turns in which the host held nothing up. Where these are less than
// half of all, they are the half in which it held up least.
func (t *Turns[T]) Counted() []T {
	least := slices.Clone(t.all)
	slices.SortStableFunc(least, func(a, b turn[T]) int { return a.held - b.held })
	var counted []T
	for i, each := range least {
		if each.held > 0 && i >= (len(least)+1)/2 {
			break
		}
		counted = append(counted, each.got)
	}
	return counted
}

// Left is how many turns are not counted.
func (t *Turns[T]) Left() int { return len(t.all) - len(t.Counted()) }

// Quantile lies between two of them where it is none of them: of an even number,
// the median is the middle of the middle two.
func Quantile[T ~int64 | ~float64](all []T, q float64) T {
	sorted := slices.Sorted(slices.Values(all))
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + T((at-float64(below))*float64(sorted[above]-sorted[below]))
}

// Milliseconds is a duration as the tables have it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
