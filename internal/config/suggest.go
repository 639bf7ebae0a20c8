package config

import "strings"

// didYouMean returns `; did you mean "x"?` for the nearest candidate, or
// nothing when none is near enough to be what was meant.
func didYouMean(written string, candidates []string) string {
	best, least := "", len(written)/3+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(written), strings.ToLower(c), least); d <= least && (best == "" || d < least) {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return `; did you mean "` + best + `"?`
}

// distance counts the letters to add, remove, change or swap with their
// neighbour to turn a into b. Beyond limit it may return any larger number.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
