package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Processes are a holder, its browser, and everything below them. They are
// found by way of /proc, so that tests with them run on Linux.
type Processes struct {
	Holder, Browser int
	All             []int
}

// ProcessesOf finds them by the browser's name, which both command lines carry.
func ProcessesOf(t *testing.T, id string) Processes {
	t.Helper()
	p, parents := find(id)
	if p.Holder == 0 || p.Browser == 0 {
		t.Fatalf("the processes of %s were not found: %+v", id, p)
	}
	for pid := range parents {
		for up := pid; up > 1; up = parents[up] {
			if up == p.Holder {
				p.All = append(p.All, pid)
				break
			}
		}
	}
	return p
}

// BrowserOf is the browser's process, 0 while there is none.
func BrowserOf(id string) int {
	p, _ := find(id)
	return p.Browser
}

// find looks through the process list for a holder and its browser, and tells
// everybody's parents.
func find(id string) (Processes, map[int]int) {
	parents := map[int]int{}
	var p Processes
	var browsers []int // also what a browser has forked and is not a program of its own yet
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		stat, err := os.ReadFile(filepath.Join(dir, "stat")) //nolint:gosec // the process list
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline")) //nolint:gosec // the process list
		args := strings.Split(string(cmdline), "\x00")
		switch {
		case len(args) > 2 && args[1] == "holder" && args[2] == id:
			p.Holder = pid
		case strings.Contains(string(cmdline), id+"/profile") && slices.Contains(args, "--remote-debugging-pipe") && !strings.Contains(string(cmdline), "--type="):
			browsers = append(browsers, pid)
		}
	}
	for _, pid := range browsers {
		if parents[pid] == p.Holder {
			p.Browser = pid
		}
	}
	return p, parents
}

// Alive are those that still run; a zombie does not.
func (p Processes) Alive() []int {
	var out []int
	for _, pid := range p.All {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			out = append(out, pid)
		}
	}
	return out
}
