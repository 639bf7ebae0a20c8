package cli

import (
	"runtime/debug"
	"sync"
	"time"

	"tapin/internal/guard"
)

const (
	// leanPercent is how much garbage a process keeps beside what it needs. Ours
	// live for days beside browsers and hold little: memory is dearer than the
	// moments that the collector takes.
	leanPercent = 40
	// leanAfter is when starting is over: what only that needed goes back.
	leanAfter = 3 * time.Second
	// leanEvery is how often what a moment's work needed goes back after that. It
	// takes two milliseconds.
	leanEvery = 20 * time.Second
)

// lean keeps a process that stays small; the returned func ends that.
func lean() (stop func()) {
	debug.SetGCPercent(leanPercent)
	wait := time.NewTimer(leanAfter)
	over := make(chan struct{})
	go func() {
		defer guard.Catch("command line")
		for {
			select {
			case <-over:
				wait.Stop()
				return
			case <-wait.C:
			}
			debug.FreeOSMemory()
			forgetProgram()
			wait.Reset(leanEvery)
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}
