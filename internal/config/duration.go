package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time that a person writes: seconds as a number, or
// with units as in "90s", "1h30m", "7d". It prints in the same form.
type Duration time.Duration

var errDuration = errors.New(`must be a length of time: seconds as a number, or like "90s", "1h30m", "7d"`)

// longest keeps every sum of two durations far from overflow.
const longest = 100 * 365 * 24 * time.Hour

// Std returns the value for the time package.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// UnmarshalText reads seconds, or a number with units.
func (d *Duration) UnmarshalText(b []byte) error {
	text := string(b)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		// A NaN fails both comparisons, and must not slip through.
		if !(seconds >= 0 && seconds <= longest.Seconds()) {
			return errDuration
		}
		*d = Duration(math.Round(seconds * float64(time.Second)))
		return nil
	}
	var total time.Duration
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return errDuration
		}
		if total, text = time.Duration(n)*24*time.Hour, rest; text == "" {
			text = "0"
		}
	}
	rest, err := time.ParseDuration(text)
	if err != nil || rest < 0 || rest > longest || total+rest > longest {
		return errDuration
	}
	*d = Duration(total + rest)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String writes the value without empty units: 30m, not 30m0s.
func (d Duration) String() string {
	std := time.Duration(d)
	if std == 0 {
		return "0"
	}
	if std >= 24*time.Hour && std%(24*time.Hour) == 0 {
		return strconv.Itoa(int(std/(24*time.Hour))) + "d"
	}
	s := std.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
