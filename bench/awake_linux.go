package main

import (
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stayAwake keeps every processor busy with nothing until its input ends.
func stayAwake() error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/autogroup", []byte("19"), 0o600) // where sessions have shares
	runtime.GOMAXPROCS(allowed.Count() + 1)                       // one is left for who reads
	ready := make(chan error)
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if allowed.IsSet(cpu) {
			left--
			go idleAway(cpu, ready)
		}
	}
	for range allowed.Count() {
		if err := <-ready; err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// idleAway runs on one processor where nobody else wants to.
func idleAway(cpu int, ready chan<- error) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	err := errors.Join(
		unix.SchedSetaffinity(0, &one),
		unix.Setpriority(unix.PRIO_PROCESS, 0, 19), // by which its time is told apart: see timing
		unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0),
	)
	ready <- err
	for { //nolint:staticcheck // that is all it does
	}
}
