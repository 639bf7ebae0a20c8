package insight

import (
	"maps"
	"slices"
	"time"
)

// spread counts times by their length in seconds, rounded so that however many
// there are, there are few lengths. The zero value is one without times: a file
// does not write those that have none.
type spread map[int64]int

// grain is how exactly a time is counted.
func grain(d time.Duration) time.Duration {
	switch {
	case d < 2*time.Minute:
		return time.Second
	case d < 10*time.Minute:
		return 5 * time.Second
	case d < time.Hour:
		return 30 * time.Second
	}
	return 5 * time.Minute
}

func (s *spread) add(d time.Duration) {
	d = max(d, 0)
	s.addAll(spread{int64(d.Round(grain(d)) / time.Second): 1})
}

func (s *spread) addAll(other spread) {
	if *s == nil {
		*s = spread{}
	}
	for seconds, n := range other {
		(*s)[seconds] += n
	}
}

func (s spread) count() (n int) {
	for _, of := range s {
		n += of
	}
	return n
}

// quantiles are the lengths below or at which those shares of all are; nearest
// rank, so that each is one that was seen.
func (s spread) quantiles(shares ...float64) []int64 {
	out, total := make([]int64, len(shares)), s.count()
	if total == 0 {
		return out
	}
	lengths := slices.Sorted(maps.Keys(s))
	for i, share := range shares {
		rank, seen := int(share*float64(total)+0.999999), 0
		for _, seconds := range lengths {
			if seen += s[seconds]; seen >= max(rank, 1) {
				out[i] = seconds
				break
			}
		}
	}
	return out
}
