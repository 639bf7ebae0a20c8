package page

import (
	"sync/atomic"

	"tapin/internal/cdp"
)

// Logged counts the lines of its console that a tab is told from now on.
func (t *Tab) Logged() func() int64 {
	var lines atomic.Int64
	cdp.Listen(t.session, logged, func(line) { lines.Add(1) })
	return lines.Load
}
