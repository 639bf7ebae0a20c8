package daemon

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"tapin/internal/event"
	"tapin/internal/guard"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

// loopAfter is how many times a sidecar may die of one room within the window
// before the next one does without that room.
const loopAfter = 3

// openHouse makes the house of the daemon's own background rooms.
func (d *daemon) openHouse() {
	d.board, d.blamed = &trouble.Board{}, map[string][]time.Time{}
	guard.MendLeftOut(d.opts.Home)
	d.leftOut = guard.OpenLeftOut(d.opts.Home.Path(), d.opts.Version)
	d.house = guard.NewHouse(&guard.Options{Board: d.board, Tell: d.tellOfRoom, Logger: d.log, Planted: d.opts.Planted})
}

func (d *daemon) reports(part string) *guard.Reports {
	return &guard.Reports{
		Home: d.opts.Home.Path(), Part: part, Version: d.opts.Version,
		Names: func() []string { return event.LastNames(d.opts.Home, 50) },
	}
}

// install has this process report what panics, and survive it where it can.
func (d *daemon) install() (remove func()) {
	remove = guard.Install(&guard.Process{Reports: d.reports("daemon"), Logger: d.log, Plant: d.opts.Plant})
	guard.ShowIn(d.house)
	return remove
}

// tellOfRoom leaves a letter about a room of the daemon's, and shows it to all
// who ask the sidecar.
func (d *daemon) tellOfRoom(n guard.News, t trouble.Trouble, failures int) {
	d.showTroubles()
	kinds := map[guard.News]string{guard.Failed: event.RoomFailed, guard.GivenUp: event.RoomGivenUp, guard.Back: event.RoomBack}
	d.leaveRoomNews(kinds[n], t, failures)
}

func (d *daemon) leaveRoomNews(kind string, t trouble.Trouble, failures int) {
	news := event.RoomNews{Room: t.What, Details: t.What + ": " + t.Details, Hint: t.Hint, Count: failures}
	if err := d.leave(kind, store.NewID("rom"), news); err != nil {
		d.log.Error("the owner could not be left a word about it", "room", t.What, "error", err)
	}
}

// showTroubles leaves the daemon's own list where the sidecar shows it.
func (d *daemon) showTroubles() {
	d.showing.Lock() // so that an older list never follows a newer one
	defer d.showing.Unlock()
	if err := guard.WriteBoard(d.opts.Home.Path(), d.board.List()); err != nil {
		d.log.Warn("what does not work in the daemon is not shown", "error", err)
	}
}

// isOver reports whether the sidecar has ended by itself.
func (c *child) isOver() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// postMortem finds out what a sidecar died of: from its own report, from what
// the runtime printed, or from the signal. nil means it ended as programs do.
// Panicked says that nobody outside ended it.
func (d *daemon) postMortem(c *child, born time.Time) (crash *guard.Kept, panicked bool) {
	if c.gaveReason() {
		return nil, false
	}
	if own := guard.Of(d.opts.Home.Path(), c.pid(), born); len(own) > 0 {
		return &own[0], true
	}
	one := guard.Report{Part: "sidecar", PID: c.pid(), Stopped: true}
	cause, frames, died := c.last.Crash()
	switch sig, signalled := c.signal(); {
	case died:
		one.Cause, one.Stack, one.Room = cause, frames, guard.RoomOf(frames)
	case signalled && sig == syscall.SIGKILL:
		one.Cause = "killed by SIGKILL, from outside; the system does that where memory has run out. There is no stack."
		if one.Room = c.beginning(); one.Room != "" {
			one.Cause += " Of the rooms that it can do without one was just beginning."
		}
	case signalled:
		one.Cause = "ended by " + sig.String() + ", from outside. There is no stack."
	default:
		return nil, false
	}
	kept, err := d.reports("sidecar").Keep(one)
	if err != nil {
		d.log.Error("the crash report could not be written", "error", err)
	}
	d.log.Error("the sidecar crashed", "pid", c.pid(), "cause", kept.Cause, "room", kept.Room, "report", kept.File)
	return &kept, died
}

// signal is what ended the sidecar, if a signal did.
func (c *child) signal() (syscall.Signal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) {
		return 0, false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return status.Signal(), ok && status.Signaled()
}

// leaveOut has the next start do without the room that a sidecar died of, once
// it has died of it often enough; at once if it had been left out before. It
// reports whether it did.
func (d *daemon) leaveOut(crash guard.Kept) bool {
	name := crash.Room
	if !guard.CanDoWithout(name) {
		name = guard.RoomOf(crash.Stack)
	}
	if !guard.CanDoWithout(name) {
		return false
	}
	now := time.Now()
	recent := slices.DeleteFunc(d.blamed[name], func(t time.Time) bool { return now.Sub(t) > d.rhythm.window })
	d.blamed[name] = append(recent, now)
	if n := len(d.blamed[name]); n < loopAfter && !d.leftOut.OnTrial(name) {
		return false
	}
	guard.MendLeftOut(d.opts.Home) // what became of it since must not keep this from being written
	if err := d.leftOut.Leave(name, crash.File); err != nil {
		d.log.Error("the room that it crashes in could not be left out", "room", name, "error", err)
		return false
	}
	n := len(d.blamed[name])
	delete(d.blamed, name)
	d.log.Warn("the next start leaves out what crashed", "room", name, "report", crash.File)
	d.leaveRoomNews(event.RoomLeftOut, trouble.Trouble{
		What: name, Details: "It took tapin down again and again. tapin goes on without it, and tries it again after a day.",
		Hint: "tapin logs --crash shows the report. tapin doctor --fix has the next start try it again.",
	}, n)
	return true
}

// loopWords say that the sidecar fails again and again, and that it is tried on
// and on.
func (d *daemon) loopWords(failures int, was life) (details, hint string) {
	details = fmt.Sprintf("The sidecar failed %d times within %v. It is started again and again, ever more seldom.", failures, d.rhythm.window)
	if was.crash == nil {
		return details, "See logs/sidecar.log in tapin's home."
	}
	return details, "tapin logs --crash shows what happened."
}

// showLoop puts the loop on the list, where it stays until a sidecar was well
// for a while.
func (d *daemon) showLoop(failures int, was life) {
	details, hint := d.loopWords(failures, was)
	d.board.Set(loopKey, trouble.Trouble{What: "sidecar", State: trouble.Restarting, Details: details, Hint: hint})
	d.showTroubles()
}

// tellOfLoop tells the owner, once.
func (d *daemon) tellOfLoop(failures int, was life, cause error) {
	details, hint := d.loopWords(failures, was)
	d.log.Error("the sidecar fails again and again", "failures", failures, "cause", cause)
	if err := d.leave(event.CrashLoop, store.NewID("dmn"), event.Trouble{Details: details, Hint: hint, Count: failures}); err != nil {
		d.log.Error("the owner could not be left a word about it", "error", err)
	}
}

const loopKey = "sidecar"

// well takes down what is no longer so once a sidecar has served for a while.
func (d *daemon) well() {
	d.board.Clear(loopKey)
	d.showTroubles()
}
