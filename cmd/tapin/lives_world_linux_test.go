package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// diskSize is that of a home's own disk: enough for a few browsers.
const diskSize = "512m"

// full fills the disk, and makes room again after a step. Whatever is answered
// meanwhile, tapin goes on answering.
func (l *lives) full(s step) {
	l.t.Helper()
	l.struck, l.mute = true, true
	defer func() { l.mute = false }()
	filler := filepath.Join(l.home, "filler")
	f, err := os.Create(filler)
	if err != nil {
		l.fail("%v", err)
	}
	block := make([]byte, 1<<20)
	for size := len(block); size >= 1<<10; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	_ = f.Close()
	_ = s.play(l) // what became of it is read from outside
	if l.dice.IntN(2) == 0 {
		l.strike("sidecar")
	} else if got, err := l.try("agent", "GET", "/health", nil, ""); err != nil || !got.ok() {
		l.fail("on a full disk /health answers %d %v, %v", got.code, got.body, err)
	}
	if err := os.Remove(filler); err != nil {
		l.fail("%v", err)
	}
}

// readOnly starts tapin on a disk that cannot be written to: it serves or says
// why not, and the next start needs nothing.
func (l *lives) readOnly() {
	l.t.Helper()
	l.struck = true
	l.down()
	if err := syscall.Mount("", l.home, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		l.fail("%v", err)
	}
	out, err := l.tapin("up", "--background", "--no-check", "--allow-private")
	if err != nil && (len(strings.TrimSpace(out)) < 20 || strings.Contains(out, "panic") || strings.Contains(out, "goroutine ")) {
		l.fail("on a disk that cannot be written to it says %q, %v", out, err)
	}
	if err := syscall.Mount("", l.home, "", syscall.MS_REMOUNT, "size="+diskSize); err != nil {
		l.fail("%v", err)
	}
	l.start()
}

// unpack puts the home of the first version where this life's is, as if it had
// been written a while ago.
func (l *lives) unpack() {
	l.t.Helper()
	out, err := exec.CommandContext(l.t.Context(), "tar", "-xzf", filepath.Join("testdata", "lives", "first.tar.gz"), "-C", l.home).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	written := firstFacts(l.t).Written
	by := time.Since(written.Add(aWhileAgo)).Truncate(time.Second)
	if at := written.Add(by); at.Hour() == 0 && at.Minute() < 2 {
		by -= aWhileAgo // what is counted by the day was all on one day
	}
	day := written.Add(by).Format(time.DateOnly)
	l.rewrite(func(text string) string {
		text = stamp.ReplaceAllStringFunc(text, func(s string) string {
			at, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				return s
			}
			return at.Add(by).Format(time.RFC3339Nano)
		})
		// All of it was written within a minute, so it has one day.
		return strings.ReplaceAll(text, written.Format(time.DateOnly)+`"`, day+`"`)
	}, func(name string) string { return strings.ReplaceAll(name, written.Format(time.DateOnly), day) })
}

// aWhileAgo is how long ago the home of the first version was left.
const aWhileAgo = 5 * time.Minute

// stamp is a moment in a file of the home.
var stamp = regexp.MustCompile(`\b20\d\d-[01]\d-[0-3]\dT[0-9:.]+Z`)

// facts are what the first version answered about its home.
type facts struct {
	Written                   time.Time
	Login, Message            string
	Handoffs, Runs, Approvals int
	Ends                      map[string]string
}

func firstFacts(t testing.TB) (f facts) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "lives", "first.json"))
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// jump lets days pass while tapin is down, or takes them back: all days that
// the home's files tell of are moved the other way. What is sealed stays.
func (l *lives) jump(days int) {
	l.t.Helper()
	if l.days+days < -1 {
		days = -days
	}
	l.down()
	l.days += days
	l.latest = max(l.latest, l.days)
	l.moveDays(-days)
	l.start()
}

// date is a day in a file of the home, and look how a message of the chat shows
// a deadline, whose change would have it sent anew.
var (
	date = regexp.MustCompile(`\b20\d\d-[01]\d-[0-3]\d`)
	look = regexp.MustCompile(`("look":"[^"]* )(\d{10})"`)
)

// moveDays moves all days in the home.
func (l *lives) moveDays(days int) {
	l.t.Helper()
	move := func(text string) string {
		text = look.ReplaceAllStringFunc(text, func(m string) string {
			parts := look.FindStringSubmatch(m)
			at, _ := strconv.ParseInt(parts[2], 10, 64)
			return fmt.Sprintf(`%s%d"`, parts[1], at+int64(days)*86400)
		})
		return date.ReplaceAllStringFunc(text, func(d string) string {
			at, err := time.Parse(time.DateOnly, d)
			if err != nil {
				return d
			}
			return at.AddDate(0, 0, days).Format(time.DateOnly)
		})
	}
	l.rewrite(move, move)
}

// rewrite changes all texts and names of files in the home.
func (l *lives) rewrite(text, name func(string) string) {
	l.t.Helper()
	renamed := map[string]string{}
	err := filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, filepath.Join(l.home, "logs")+"/") {
			return err
		}
		if to := name(d.Name()); to != d.Name() {
			renamed[path] = filepath.Join(filepath.Dir(path), to)
		}
		switch filepath.Ext(path) {
		case ".json", ".jsonl", ".yaml":
		default:
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text(string(raw))), 0o600)
	})
	if err != nil {
		l.fail("%v", err)
	}
	// Two days may get each other's names.
	for from := range renamed {
		if err := os.Rename(from, from+".moving"); err != nil {
			l.fail("%v", err)
		}
	}
	for from, to := range renamed {
		if err := os.Rename(from+".moving", to); err != nil {
			l.fail("%v", err)
		}
	}
}
