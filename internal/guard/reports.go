package guard

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"tapin/internal/store"
)

// Folder is where a home keeps its crash reports.
const Folder = "crashes"

const (
	reportSuffix = ".json"
	mostReports  = 20
	mostBytes    = 64 << 10 // of one
)

// Reports are the crash reports of a home. They are written without the store:
// what has just failed may hold its locks.
type Reports struct {
	Home    string // the folder of the home
	Part    string // which process writes: daemon or sidecar
	Version string
	Names   func() []string // of the last operations; nil: none

	mu      sync.Mutex
	written int
}

func (r *Reports) new(room, cause string) Report {
	one := Report{
		At: time.Now().UTC().Round(0), Part: r.Part, PID: os.Getpid(), Room: room, Cause: cause,
		Browser: browserOf(r.Home), Version: r.Version, Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
	}
	if r.Names != nil {
		one.Names = quietly(r.Names)
	}
	return one
}

// browserCache is where the engine remembers which browser it found.
const browserCache = "chromium.json"

var browserVersion = regexp.MustCompile(`(?i)"version":\s*"([\d.]{1,40})"`)

func browserOf(home string) string {
	raw, err := readAtMost(filepath.Join(home, browserCache), 4<<10)
	if m := browserVersion.FindSubmatch(raw); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}

// quietly asks for what would be good to know. Whoever is asked may be what has
// just failed: it is not waited for, and its own panic says nothing new.
func quietly[T any](ask func() T) T {
	answer := make(chan T, 1)
	go func() {
		defer func() { _ = recover() }()
		answer <- ask()
	}()
	select {
	case got := <-answer:
		return got
	case <-time.After(time.Second):
		var none T
		return none
	}
}

// Keep completes a report that somebody else found the cause of, and keeps it.
func (r *Reports) Keep(one Report) (Kept, error) {
	full := r.new(one.Room, one.Cause)
	full.PID, full.Stack, full.Stopped = one.PID, one.Stack, one.Stopped
	if !one.At.IsZero() {
		full.At = one.At.UTC().Round(0)
	}
	file, err := r.Write(full)
	return Kept{file, full}, err
}

// Write keeps a report and drops the oldest beyond what is kept. One of what was
// reported before takes the place of the earlier one, and counts it: what fails
// again and again must not push out what else there is to read. It returns the
// name of the file, in the home.
func (r *Reports) Write(one Report) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.sameAs(&one)
	raw, err := json.MarshalIndent(one, "", "  ")
	if err != nil {
		return "", err
	}
	for len(raw) > mostBytes {
		one.Stack, one.Names = one.Stack[:len(one.Stack)/2], nil
		if raw, err = json.MarshalIndent(one, "", "  "); err != nil {
			return "", err
		}
	}
	folder := filepath.Join(r.Home, Folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	r.written++ // several may come in one moment
	name := fmt.Sprintf("%s-%s-%d-%03d%s", one.At.Format("20060102T150405.000Z"), cmp.Or(one.Part, "tapin"), one.PID, r.written, reportSuffix)
	temp, err := os.CreateTemp(folder, ".new-") // 0600
	if err != nil {
		return "", err
	}
	_, err = temp.Write(append(raw, '\n'))
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(folder, name))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return "", err
	}
	for _, file := range before {
		if file != Folder+"/"+name {
			_ = os.Remove(filepath.Join(r.Home, file))
		}
	}
	r.dropOld(folder)
	return Folder + "/" + name, nil
}

// sameAs has a report count the earlier ones of the same, and names their files.
func (r *Reports) sameAs(one *Report) (files []string) {
	all, _ := List(r.Home) // the newest first
	for i := range all {
		if !one.same(&all[i].Report) {
			continue
		}
		files = append(files, all[i].File)
		one.Times = max(one.Times, 1) + max(all[i].Times, 1)
		one.First = all[i].At
		if !all[i].First.IsZero() {
			one.First = all[i].First
		}
	}
	return files
}

func (r *Reports) dropOld(folder string) {
	names := reportNames(folder)
	for _, name := range names[:max(0, len(names)-mostReports)] {
		_ = os.Remove(filepath.Join(folder, name))
	}
}

// reportNames are those of a folder, the oldest first.
func reportNames(folder string) (names []string) {
	found, _ := os.ReadDir(folder)
	for _, f := range found {
		if f.Type().IsRegular() && strings.HasSuffix(f.Name(), reportSuffix) && !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names
}

// Kept is a report with the name of its file.
type Kept struct {
	File string `json:"file"` // in the home
	Report
}

// List reads the crash reports of a home, the newest first. One that cannot be
// read is left out.
func List(home string) (all []Kept, err error) {
	folder := filepath.Join(home, Folder)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range slices.Backward(reportNames(folder)) {
		one := Kept{File: Folder + "/" + name}
		if raw, err := readAtMost(filepath.Join(folder, name), 2*mostBytes); err == nil && json.Unmarshal(raw, &one.Report) == nil {
			all = append(all, one)
		}
	}
	return all, nil
}

func readAtMost(file string, most int64) ([]byte, error) {
	return store.ReadFile(file, most) // takes no lock, and never waits
}

// Of are the reports that a process wrote as it stopped, the newest first.
func Of(home string, pid int, since time.Time) (own []Kept) {
	all, _ := List(home)
	for _, one := range all {
		if one.PID == pid && one.Stopped && !one.At.Before(since) {
			own = append(own, one)
		}
	}
	return own
}
