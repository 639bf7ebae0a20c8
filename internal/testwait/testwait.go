// Package testwait is the patience of the tests. It owns the one limit that all
// waits of all tests have, the ways to wait for what no event announces, and how
// much of a test is left to those who have an hour. It must never be imported by
// anything but tests, nor be used to say how long a thing may take: who waits
// fails only if what is waited for does not come.
package testwait

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

const (
	// usual is far more than anything takes, also on a machine that is busy.
	usual = 2 * time.Minute
	// often is how often For looks.
	often = 5 * time.Millisecond
)

// Limit is how long a test waits for what has to come. TAPIN_TEST_WAIT sets
// another.
func Limit() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("TAPIN_TEST_WAIT")); err == nil && d > 0 {
		return d
	}
	return usual
}

// End is when the patience of one ends who begins to wait now.
func End() time.Time { return time.Now().Add(Limit()) }

// Over is told of the end of the patience of one who begins to wait now.
func Over() <-chan time.Time { return time.After(Limit()) }

// Late is when every test is over that began before now: for what must not end
// by itself while one goes on.
func Late() time.Time { return time.Now().Add(3 * Limit()) }

// Within is a context that ends with the patience, for one step of a test.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, Limit())
}

// Context is one for a whole test, which has many steps and waits for its turn
// between them. It ends before the package's own time does.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), Late())
	t.Cleanup(cancel)
	return ctx
}

// For waits for what no event announces.
func For(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Comes(is) {
		t.Fatalf("%s did not come within %s", what, Limit())
	}
}

// Comes is For where somebody has more to say about what did not come.
func Comes(is func() bool) bool {
	for end := End(); !is(); time.Sleep(often) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Long reports whether there is time for everything: make test-long has it, and make
// chaos for what it runs.
func Long() bool { return os.Getenv("TAPIN_TEST_LONG") != "" || os.Getenv("TAPIN_CHAOS") != "" }

// Rounds is how often a test does what shows the more the oftener it is done.
func Rounds(usually, long int) int {
	if Long() {
		return long
	}
	return usually
}

// Some is a draw of the rows of a table of which each costs a page, a process or
// a key: the run that is in everybody's way has time for so many of them, another
// few each time, and the long run and the chaos for all.
func Some[R any](most int, rows []R) []R {
	if Long() || len(rows) <= most {
		return rows
	}
	rows = slices.Clone(rows)
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows[:most]
}

// SomeOf is Some for a table whose rows have names.
func SomeOf[R any](most int, rows map[string]R) map[string]R {
	drawn := map[string]R{}
	for _, name := range Some(most, slices.Sorted(maps.Keys(rows))) {
		drawn[name] = rows[name]
	}
	return drawn
}

// Spare is the setting of the tests for browsers that wait for whoever comes next:
// one beside each that a test asks for is half of what it costs. Those that kill
// and look on have them in the long run, and those about them always.
func Spare() string {
	if Long() {
		return "1m"
	}
	return "0"
}

// Draws is Rounds for the properties of a package; its TestMain says it.
func Draws(usually string) {
	if f := flag.Lookup("rapid.checks"); f != nil && !Long() {
		_ = f.Value.Set(usually)
	}
}
