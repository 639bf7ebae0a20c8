package origin

import (
	"sync"
	"time"
)

// maxCounted bounds how many addresses are told apart; those beyond share one count.
const maxCounted = 4096

// Limit counts by name, and starts over after each span. It is safe for
// concurrent use.
type Limit struct {
	most int
	span time.Duration

	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// NewLimit allows so many of each name in a span.
func NewLimit(most int, span time.Duration) *Limit {
	return &Limit{most: most, span: span, counts: map[string]int{}}
}

// Allow counts one more, and reports whether that is still within the limit.
func (l *Limit) Allow(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= l.span {
		l.since = now
		clear(l.counts)
	}
	if _, known := l.counts[name]; !known && len(l.counts) >= maxCounted {
		name = "" // the rest of the world
	}
	l.counts[name]++
	return l.counts[name] <= l.most
}
