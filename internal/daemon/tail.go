package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tapin/internal/store"
)

// Line is one line of a log.
type Line struct {
	At   time.Time `json:"at"` // a line that has no time of its own has that of the one before
	Part string    `json:"part"`
	Text string    `json:"line"`
}

// Tail reads the logs of a home's daemon, sidecar and tunnel as one, and goes on where
// it was. It is not safe for concurrent use.
type Tail struct {
	parts []*partTail
}

// OpenTail reads nothing yet. Close must be called.
func OpenTail(home *store.Home) *Tail {
	t := &Tail{}
	for _, part := range []string{"daemon", "sidecar", "tunnel"} {
		t.parts = append(t.parts, &partTail{part: part, path: filepath.Join(home.Path(), logFolder, part+".log")})
	}
	return t
}

// Read returns what has been written since the last time, in the order of time;
// the first time, everything that is kept.
func (t *Tail) Read() ([]Line, error) {
	var lines []Line
	var errs []error
	for _, p := range t.parts {
		more, err := p.read()
		lines, errs = append(lines, more...), append(errs, err)
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return a.At.Compare(b.At) })
	return lines, errors.Join(errs...)
}

// Close closes the files. It may be called more than once.
func (t *Tail) Close() error {
	for _, p := range t.parts {
		if p.file != nil {
			_ = p.file.Close()
			p.file = nil
		}
	}
	return nil
}

// mostOfLog bounds what is read at once of a log that was put aside; they are
// far smaller.
const mostOfLog = 256 << 20

// partTail follows one log over its rotations.
type partTail struct {
	part, path string
	begun      bool
	file       *os.File
	torn       []byte // of a line that is not whole yet
	at         time.Time
}

func (p *partTail) read() (lines []Line, err error) {
	if !p.begun {
		p.begun = true
		aside, err := filepath.Glob(p.path + ".[0-9]*")
		if err != nil {
			return nil, err
		}
		slices.Sort(aside) // .1 is the newest
		for _, file := range slices.Backward(aside) {
			raw, err := store.ReadFile(file, mostOfLog)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return lines, fmt.Errorf("read log: %w", err)
			}
			lines = append(lines, p.split(raw)...)
		}
	}
	for {
		if p.file == nil {
			p.file, err = store.OpenFile(p.path)
			if errors.Is(err, fs.ErrNotExist) {
				return lines, nil
			}
			if err != nil {
				return lines, fmt.Errorf("read log: %w", err)
			}
		}
		rotated := p.rotated() // asked before the rest is read: nothing is written to it after
		raw, err := io.ReadAll(p.file)
		lines = append(lines, p.split(raw)...)
		if err != nil || !rotated {
			return lines, err
		}
		_ = p.file.Close()
		p.file, p.torn = nil, nil
	}
}

// rotated reports whether the file has been put aside.
func (p *partTail) rotated() bool {
	ours, err := p.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(p.path)
	return err == nil && !os.SameFile(ours, named)
}

func (p *partTail) split(raw []byte) (lines []Line) {
	raw = append(p.torn, raw...)
	for {
		line, rest, whole := bytes.Cut(raw, []byte("\n"))
		if !whole {
			p.torn = slices.Clone(raw)
			return lines
		}
		raw = rest
		text := strings.TrimSuffix(string(line), "\r")
		if text == "" || strings.HasPrefix(text, logHeader) {
			continue
		}
		if at, ok := lineTime(text); ok {
			p.at = at
		}
		lines = append(lines, Line{At: p.at, Part: p.part, Text: text})
	}
}

// lineTime is the time that a line of slog begins with.
func lineTime(text string) (time.Time, bool) {
	value, ok := strings.CutPrefix(text, "time=")
	if !ok {
		return time.Time{}, false
	}
	value, _, _ = strings.Cut(value, " ")
	at, err := time.Parse(time.RFC3339Nano, value)
	return at, err == nil
}
