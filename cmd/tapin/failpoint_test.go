package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tapin/internal/sidecar"
	"tapin/internal/store"
)

// failpointFile is how a test tells the processes that it starts which file
// arms them. The program that people have looks for neither: see run.
const failpointFile = "TAPIN_TEST_FAILPOINT"

// failpoint is an instant at which a process ends itself: the nth time that a
// step of a change of such a file was made.
type failpoint struct {
	Change string     `json:"change"` // as said by general
	Step   store.Step `json:"step"`
	Nth    int        `json:"nth"`
	Round  int        `json:"round"` // tells one arming from the next
}

// anyChange is a failpoint in whatever is written.
const anyChange = "any change"

func (f failpoint) String() string { return f.Change + ", " + string(f.Step) }

// names are what is different in every round.
var names = regexp.MustCompile(`_[0-9a-z]{16,}(-\d+)?|\d{4}-\d\d-\d\d|\d{6,}`)

// general is a change as it is in every round: ids and numbers are stars.
func general(change string) string { return names.ReplaceAllString(change, "*") }

// dieWhenTold is what a process under test does after each step of each write:
// it looks whether this one is to be its last. The kill comes from itself, in
// the middle of the call, and no line of it is run after that.
func dieWhenTold() func(string, store.Step) {
	file := os.Getenv(failpointFile)
	if file == "" {
		return nil
	}
	var mu sync.Mutex
	var armed failpoint
	left := 0
	return func(change string, step store.Step) {
		change = general(change)
		trace(file, change)
		raw, err := os.ReadFile(file)
		var f failpoint
		if err != nil || json.Unmarshal(raw, &f) != nil || f.Change != change && f.Change != anyChange || f.Step != step {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if f != armed {
			armed, left = f, f.Nth
		}
		if left--; left > 0 {
			return
		}
		// Of several processes one dies of it.
		if os.Rename(file, struck(file)) == nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// holdFile is how a test tells the sidecars that it starts which file, while it
// is there, keeps them from serving.
const holdFile = "TAPIN_TEST_HOLD"

// stepsAsTold is all that a test may have a process do after a step of a write.
func stepsAsTold() func(string, store.Step) {
	die, hold := dieWhenTold(), os.Getenv(holdFile)
	if hold == "" {
		return die
	}
	return func(change string, step store.Step) {
		// What a killed one left of this file goes first, before any port is taken.
		for change == "remove "+sidecar.AddressFile && step == store.Removed {
			if _, err := os.Stat(hold); err != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if die != nil {
			die(change, step)
		}
	}
}

// struck is what an armed file is called once somebody has died of it.
func struck(file string) string { return file + ".struck" }

// trace notes a step where somebody wants to know what is written at all.
func trace(file, change string) {
	f, err := os.OpenFile(traceOf(file), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString(change + "\n")
	_ = f.Close()
}

func traceOf(file string) string { return file + ".trace" }

// unreadableFile names a list of files, relative to the home, that the disk of
// the processes under test does not give.
const unreadableFile = "TAPIN_TEST_UNREADABLE"

func failWhenTold() func(string) error {
	list := os.Getenv(unreadableFile)
	if list == "" {
		return nil
	}
	return func(name string) error {
		raw, err := os.ReadFile(list)
		if err == nil && slices.Contains(strings.Split(string(raw), "\n"), name) {
			return &fs.PathError{Op: "read", Path: name, Err: syscall.EIO}
		}
		return nil
	}
}

// readsAsTold is all that a test may have become of a reading.
func readsAsTold() func(name string) error {
	die, fail := dieReading(), failWhenTold()
	if die == nil && fail == nil {
		return nil
	}
	return func(name string) error {
		if die != nil {
			_ = die(name) // or it does not come back
		}
		if fail != nil {
			return fail(name)
		}
		return nil
	}
}
