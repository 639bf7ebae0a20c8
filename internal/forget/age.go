package forget

import (
	"regexp"
	"strings"
	"time"

	"tapin/internal/store"
)

// age tells what was there when a wish was noted. What came since, because tapin
// served before the wish could be fulfilled, is not meant by it.
type age struct {
	since time.Time // zero: nothing was served since
}

// record reports whether a record came later, by its id, or else by the times in it.
func (a age) record(id string, v any) bool {
	prefix, _, _ := strings.Cut(id, "_")
	if !a.since.IsZero() && store.ValidID(prefix, id) {
		return id >= store.FirstID(prefix, a.since.Add(time.Millisecond))
	}
	return a.value(v)
}

// value reports whether what a value holds came later.
func (a age) value(v any) bool {
	at, ok := timeOf(v)
	return ok && a.later(at)
}

func (a age) later(at time.Time) bool { return !a.since.IsZero() && at.After(a.since) }

// file is value for a file, which has a time of its own.
func (a age) file(v any, changed time.Time) bool {
	if at, ok := timeOf(v); ok {
		return a.later(at)
	}
	return a.later(changed)
}

var loggedAt = regexp.MustCompile(`^time=(\S+)`)

// line is value for a line of a log that is not JSON.
func (a age) line(text string) bool {
	found := loggedAt.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, found[1])
	return err == nil && a.later(at)
}

// timeOf is when something came to be, as it says itself.
func timeOf(v any) (time.Time, bool) {
	fields, _ := v.(map[string]any)
	for _, key := range []string{"created_at", "started_at", "confirmed_at", "at", "time"} {
		text, _ := fields[key].(string)
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
