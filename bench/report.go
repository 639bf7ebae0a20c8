package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// report is a whole run: where, with what, and what came of it.
type report struct {
	At       time.Time         `json:"at"`
	Took     string            `json:"took"`
	Held     float64           `json:"held"` // how much of the time the host kept the processors to itself
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	Rounds   int               `json:"rounds"`
	Rows     []row             `json:"rows"`
	Curves   []curve           `json:"curves,omitempty"`
}

// curve is how a cost grows with a number.
type curve struct {
	Name   string    `json:"name"`
	X      string    `json:"x"`
	Even   bool      `json:"even,omitempty"` // its points are as far apart as they are large
	Points []float64 `json:"points"`
	Lines  []line    `json:"lines"`
	Note   string    `json:"note,omitempty"`
}

type line struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
}

// describe notes the machine and the versions.
func (r *report) describe(ctx context.Context, b *bench) {
	r.At, r.Rounds, r.Versions = time.Now().UTC(), b.rounds, map[string]string{"go": runtime.Version()}
	r.Machine = fmt.Sprintf("%s/%s, %d cores%s%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), memory())
	tell := func(name, command string, args ...string) {
		if out, err := exec.CommandContext(ctx, command, args...).Output(); err == nil { //nolint:gosec // the programs to measure
			said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			r.Versions[name] = strings.TrimSpace(said[strings.IndexByte(said, ' ')+1:]) // after its own name
		}
	}
	tell("chromium", b.chromium, "--version")
	tell("tapin", b.binary, "version")
	if !b.peers {
		return
	}
	tell("node", "node", "--version")
	for _, name := range []string{"playwright-core", "@playwright/mcp", "chrome-devtools-mcp", "agent-browser"} {
		raw, err := os.ReadFile(peerFile(filepath.FromSlash(name), "package.json"))
		var described struct {
			Version string `json:"version"`
		}
		if err == nil && json.Unmarshal(raw, &described) == nil {
			r.Versions[name] = described.Version
		}
	}
}

func processor() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(raw); m != nil {
		return " (" + string(bytes.TrimSpace(m[1])) + ")"
	}
	return ""
}

func memory() string {
	raw, err := os.ReadFile("/proc/meminfo")
	var kib float64
	if err != nil {
		return ""
	}
	if _, err := fmt.Sscanf(string(raw), "MemTotal: %f kB", &kib); err != nil {
		return ""
	}
	return fmt.Sprintf(", %.0f GiB", kib/1024/1024)
}

// print shows the table: a line a target, then what everybody got.
func (r *report) print(w io.Writer) {
	for _, part := range parts {
		r.printPart(w, part)
	}
	_, _ = fmt.Fprintln(w, r.heldUp())
	_, _ = fmt.Fprintln(w, "\nmedians, in parentheses to the floor; the best round")
	for _, each := range r.Rows {
		if len(each.Figures) > 0 {
			_, _ = fmt.Fprintf(w, "%-52s %s\n", each.Name, each.line())
		}
	}
	_, _ = fmt.Fprintf(w, "\ntook %s\n", r.Took)
}

// printPart shows the verdicts of one part, if there are any.
func (r *report) printPart(w io.Writer, p part) {
	lines := [][4]string{{p.name, "target", "got", ""}}
	count := map[string]int{}
	for _, each := range r.Rows {
		for _, v := range each.in(p) {
			count[v.Result]++
			lines = append(lines, [4]string{each.Name, v.target(), brief(v.Got), v.Result})
		}
	}
	if len(lines) == 1 {
		return
	}
	var name, target int
	for _, l := range lines {
		name, target = max(name, utf8.RuneCountInString(l[0])), max(target, utf8.RuneCountInString(l[1]))
	}
	_, _ = fmt.Fprintln(w)
	for _, l := range lines {
		_, _ = fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s  %-*s  %5s  %s", name, l[0], target, l[1], l[2], l[3]), " "))
	}
	_, _ = fmt.Fprintf(w, "%d met, %d missed, %d bounded\n", count[met], count[missed], count[bounded])
}

// part is one half of the rows.
type part struct {
	name   string
	listed bool
}

// parts are the rows that the target table names, and those that are held to the
// same targets on other pages.
var parts = []part{{"rows of the target table", true}, {"further rows, held to the same", false}}

// in are the verdicts of a row that belongs to a part.
func (r row) in(p part) []verdict {
	if r.Listed != p.listed {
		return nil
	}
	return r.Verdicts
}

func (v verdict) target() string {
	sign := "≤"
	if v.Least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %s %s", v.What, sign, brief(v.Limit))
}

// line is what everybody got.
func (r row) line() string {
	var cells []string
	for _, who := range ordered(r.Figures) {
		f := r.Figures[who]
		cell := who + " " + brief(f.Median)
		if f.Ratio > 0 && who != "floor" {
			cell += " (" + brief(f.Ratio) + ")"
		}
		if f.Best > 0 {
			cell += " best " + brief(f.Best)
		}
		cells = append(cells, cell)
	}
	return r.Unit + ": " + strings.Join(cells, ", ")
}

// save keeps the run, and has the documentation show it if it is named for that.
func (r *report) save(shown string) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	name := filepath.Join("bench", "results", r.At.Format("20060102-150405")+".json")
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(name, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	fmt.Println("written to", name)
	if shown == "" {
		return nil
	}
	if err := os.WriteFile(shown, append(raw, '\n'), 0o644); err != nil { //nolint:gosec // part of the documentation
		return err
	}
	return renderFile(lastRun)
}

// The runs that the documentation shows, the last whole one and the last soak; others
// stay where they were made.
const (
	lastRun  = "docs/benchmarks.json"
	lastSoak = "docs/soak.json"
)
