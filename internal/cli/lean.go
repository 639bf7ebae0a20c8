package cli

import (
	"runtime/debug"
	"time"
)

const (
	// leanPercent is how much garbage a process keeps beside what it needs. Ours
	// live for days beside browsers and hold little: memory is dearer than the
	// moments that the collector takes.
	leanPercent = 40
	// leanAfter is when starting is over: what only that needed goes back.
	leanAfter = 3 * time.Second
)

// lean keeps a process that stays small; the returned func ends that.
func lean() (stop func()) {
	debug.SetGCPercent(leanPercent)
	later := time.AfterFunc(leanAfter, func() {
		debug.FreeOSMemory()
		forgetProgram()
	})
	return func() { later.Stop() }
}
