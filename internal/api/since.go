package api

import (
	"strconv"
	"strings"
	"time"

	"tapin/internal/fault"
)

// Since reads a time, or how long before now it was: 90m, 24h, 7d. Nothing
// means the beginning of time.
func Since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fault.New(fault.InvalidRequest, "", "field \"since\" must be a time, or how long ago it was").
		WithHint("Write 2026-01-31T09:00:00Z, or how long ago: 90m, 24h, 7d.").With("field", "since")
}
