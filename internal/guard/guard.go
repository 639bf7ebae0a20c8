// Package guard keeps a panic where it belongs. It owns which goroutine may fall
// alone, what is started again and what is given up, the crash reports of a home
// and the list of what the next start leaves out. It must never let anything of
// a page, or a value that a program had in its hands, into a report, and it must
// never go on where a promise may be broken: what is vital stops the process.
package guard

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Process is what a panic in any goroutine of this process is reported to.
type Process struct {
	Reports *Reports
	Logger  *slog.Logger
	// Plant is asked by tests whether a name is to fail now; nil in the program
	// that people have.
	Plant func(name string) bool

	house atomic.Pointer[House] // where what fails again and again is shown; nil: nowhere yet
}

// process is the one place in the product that every goroutine knows without
// being shown it, as the standard library's logger is: there is one crash folder
// a process, and a panic comes where nobody expected one.
var process atomic.Pointer[Process]

// Install has this process survive panics in what only watches, counts, paints
// or notifies, and report them all. In a process without it, such as the tests
// of a room, a panic stays what it is. The returned function takes it back.
func Install(p *Process) (remove func()) {
	process.Store(p)
	return func() { process.CompareAndSwap(p, nil) }
}

// ShowIn has what Again starts again be seen as a failure in a house of this
// process, if it has a guard.
func ShowIn(h *House) {
	if p := process.Load(); p != nil {
		p.house.Store(h)
	}
}

// planted is the value of a panic that a test planted.
type planted struct{}

// Catch is deferred, as the first thing, by a goroutine that may fall alone. A
// panic is reported and goes no further; then is what has to become of those
// who wait for it.
func Catch(name string, then ...func()) {
	p := process.Load()
	if p == nil {
		return
	}
	v := recover()
	if v == nil && p.Plant != nil && p.Plant(name) {
		v = planted{}
	}
	if v == nil {
		return
	}
	p.report(name, v, false)
	for _, do := range then {
		do()
	}
}

// Vital is deferred where going on would break a promise. A panic is reported
// and the process stops, whoever else would have caught it on the way.
func Vital(name string) {
	p := process.Load()
	if p == nil {
		return
	}
	v := recover()
	if v == nil && p.Plant != nil && p.Plant(name) {
		v = planted{}
	}
	if v == nil {
		return
	}
	p.report(name, v, true)
	os.Exit(StoppedItself)
}

// StoppedItself is the exit code of a process that a vital panic stopped: Go's own.
const StoppedItself = 2

// Note reports a panic that somebody else has recovered, whose own deferred
// function calls it: the failure of one request.
func Note(name string, v any) {
	if p := process.Load(); p != nil && v != nil {
		p.report(name, v, false)
	}
}

// Call runs fn and makes an error of its panic, for those who wait for a result.
func Call[T any](name string, fn func() T, failed T) (result T) {
	result = failed
	defer Catch(name)
	return fn()
}

// report writes down a panic, and says in the log where to read on.
func (p *Process) report(name string, v any, stopped bool) {
	r := p.Reports.new(name, Describe(v))
	r.Stack, r.Stopped = stack(), stopped
	if c, ok := v.(*carried); ok {
		r.Stack = c.at
	}
	file, err := p.Reports.Write(r)
	switch {
	case p.Logger == nil:
	case err != nil:
		p.Logger.Error("it panicked, and the crash report could not be written", "where", name, "panic", r.Cause, "error", err)
	default:
		p.Logger.Error("it panicked", "where", name, "panic", r.Cause, "report", file, "stops", stopped)
	}
}

// Group runs parts of one piece of work beside each other. A panic in one of
// them is the panic of whoever waits: it belongs to the same request. Its zero
// value is ready.
type Group struct {
	wg    sync.WaitGroup
	mu    sync.Mutex
	first *carried
}

// carried is a panic on its way to the goroutine that waits.
type carried struct {
	value any
	at    []Frame
}

func (c *carried) Error() string {
	return fmt.Sprintf("a panic in a part of it: %s", Describe(c.value))
}

// Run runs fn in a goroutine of its own.
func (g *Group) Run(fn func()) {
	g.wg.Go(func() {
		if process.Load() == nil { // a test sees the panic where it is
			fn()
			return
		}
		defer func() {
			if v := recover(); v != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.first == nil {
					g.first = &carried{v, stack()}
				}
			}
		}()
		fn()
	})
}

// Wait returns when all have, or panics as the first of them did.
func (g *Group) Wait() {
	g.wg.Wait()
	if g.first != nil {
		panic(g.first)
	}
}

// Parts runs the parts of a room beside each other until all have ended. A panic
// in one of them ends the others, and is the panic of whoever runs the room.
func Parts(ctx context.Context, parts ...func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g Group
	for _, part := range parts {
		g.Run(func() {
			ended := false
			defer func() {
				if !ended {
					cancel()
				}
			}()
			part(ctx)
			ended = true
		})
	}
	g.Wait()
}

// Again runs fn until it returns, and once more after each panic, ever later. It
// is for one page, one viewer or one session, and for what somebody waits for as
// long as ctx lasts: no other of its kind falls with it, and it is not given up.
// Until it has gone well for a while the house shows that it fails.
func Again(ctx context.Context, name string, fn func()) {
	var down atomic.Bool
	well := func() {
		if h := shownIn(); h != nil && down.CompareAndSwap(true, false) {
			h.partWell(name)
		}
	}
	defer well()
	for pause := againAfter; ; pause = min(4*pause, againAtMost) {
		began, steady := time.Now(), time.AfterFunc(againSteady, func() { defer Catch("rooms"); well() })
		ended := whole(name, fn)
		steady.Stop()
		if ended || ctx.Err() != nil {
			return
		}
		if h := shownIn(); h != nil && down.CompareAndSwap(false, true) {
			h.partFell(name)
		}
		if time.Since(began) >= againSteady {
			pause = againAfter
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func shownIn() *House {
	if p := process.Load(); p != nil {
		return p.house.Load()
	}
	return nil
}

const (
	againAfter  = 100 * time.Millisecond
	againAtMost = 30 * time.Second
	againSteady = time.Minute // it has gone well for so long: it no longer fails
)

// whole runs fn and reports whether it came to its end.
func whole(name string, fn func()) (ended bool) {
	defer Catch(name)
	fn()
	return true
}
