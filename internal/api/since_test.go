package api_test

import (
	"testing"
	"time"

	"tapin/internal/api"
)

func TestSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"90m":                       now.Add(-90 * time.Minute),
		"0s":                        now,
		"7d":                        now.AddDate(0, 0, -7),
		"2026-01-30T09:00:00Z":      time.Date(2026, 1, 30, 9, 0, 0, 0, time.UTC),
		"2026-01-30T09:00:00+01:00": time.Date(2026, 1, 30, 8, 0, 0, 0, time.UTC),
	} {
		if got, err := api.Since(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "d", "-1d", "99999999d", "1.5d", " 7d", "2026-01-30"} {
		if got, err := api.Since(text, now); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func FuzzSince(f *testing.F) {
	for _, seed := range []string{"", "90m", "7d", "65535d", "2026-01-30T09:00:00Z", "-1h", "9223372036s"} {
		f.Add(seed)
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := api.Since(text, now)
		if _, absolute := time.Parse(time.RFC3339, text); err == nil && absolute != nil && at.After(now) {
			t.Fatalf("%q is in the future: %v", text, at)
		}
	})
}
