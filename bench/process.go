package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tapin/bench/timing"
)

// usage is what processes have used, and hold.
type usage struct {
	RSS   float64 // MiB
	CPU   float64 // seconds, since they started
	Files float64 // open descriptors
}

// ours are the processes of a tapin that were started from its program: the
// one we started and everything below it, without the browsers.
func ours(root int, binary string) ([]int, error) {
	full, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return nil, err
	}
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := statOf(pid); len(fields) > 2 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	var found []int
	for pid := range parents {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || strings.TrimSuffix(program, " (deleted)") != full {
			continue
		}
		// A holder is detached: nobody's child. It is ours by its home.
		if below(parents, pid, root) || homeOf(pid) != "" && homeOf(pid) == homeOf(root) {
			found = append(found, pid)
		}
	}
	return found, nil
}

func below(parents map[int]int, pid, root int) bool {
	for ; pid > 1; pid = parents[pid] {
		if pid == root {
			return true
		}
	}
	return false
}

// homeOf is the temporary home that a process was told of, by its arguments or
// the folder it works in.
func homeOf(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	said := string(bytes.ReplaceAll(raw, []byte{0}, []byte{' '}))
	if at := strings.Index(said, filepath.Join(os.TempDir(), "tapin")); at >= 0 {
		rest := said[at+len(os.TempDir())+1:]
		end := strings.IndexAny(rest, "/ ")
		if end < 0 {
			end = len(rest)
		}
		return rest[:end]
	}
	return ""
}

// statOf are the fields of a process from its state on.
func statOf(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

// used adds up what processes use.
func used(pids []int) usage {
	var all usage
	for _, pid := range pids {
		fields := statOf(pid)
		if len(fields) < 22 {
			continue
		}
		pages, _ := strconv.ParseFloat(fields[21], 64)
		all.CPU += onProcessors(pid, fields)
		all.RSS += pages * float64(os.Getpagesize()) / (1 << 20)
		if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
			all.Files += float64(len(open))
		}
	}
	return all
}

// onProcessors is for how many seconds a process has run. The system counts ticks for it,
// in hundredths of a second, and nanoseconds for each of its threads; ours end with it.
func onProcessors(pid int, stat []string) float64 {
	user, _ := strconv.ParseFloat(stat[11], 64)
	system, _ := strconv.ParseFloat(stat[12], 64)
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	exact := 0.0
	for _, name := range threads {
		if raw, err := os.ReadFile(name); err == nil { //nolint:gosec // of a process of ours
			ran, _, _ := strings.Cut(string(raw), " ")
			nanoseconds, _ := strconv.ParseFloat(ran, 64)
			exact += nanoseconds / 1e9
		}
	}
	if exact == 0 { // not every kernel does
		return (user + system) / 100
	}
	return exact
}

// What counts as quiet, and how long that is waited for: a part of what all
// processors can do, for a while.
const (
	quietShare = 0.08
	quietFor   = 500 * time.Millisecond
	quietAfter = 8 * time.Second
)

// quiet waits until the machine is done with what was set off.
func quiet(ctx context.Context) error {
	for began := time.Now(); ; {
		then := timing.Now()
		select {
		case <-time.After(quietFor):
		case <-ctx.Done():
			return ctx.Err()
		}
		now := timing.Since(then)
		if float64(now.Busy+now.Held) < quietShare*float64(now.All) || time.Since(began) > quietAfter {
			return nil
		}
	}
}
