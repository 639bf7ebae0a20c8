package store

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"tapin/internal/fault"
)

const (
	counterFolder = "counters"
	// mostCounted is far beyond what was ever counted: what holds more was not
	// written by a counter, and nothing could be counted on from the last number.
	mostCounted = 1 << 62
)

// counters are those that the program has. Without one of them nobody knows what
// was promised; what else lies in their folder is none.
var counters = []string{"epoch"}

// Counter adds one to the counter of that name and returns the new value; the
// first is 1. No two calls, in whatever process, get the same value, and none
// gets a smaller one than a call before it.
func (h *Home) Counter(name string) (uint64, error) {
	// Locks are never removed: where one was held, something was counted before.
	// One that was just made is of somebody who counts first, as we may be.
	counted := false
	if info, err := h.root.Stat(path.Join(lockFolder, "counter-"+name)); err == nil {
		counted = info.Size() > 0 || time.Since(info.ModTime()) > time.Minute
	}
	unlock, err := h.Lock(context.Background(), "counter-"+name)
	if err != nil {
		return 0, err
	}
	defer unlock()
	counted = counted || len(h.asideOf(lockFolder))+len(h.asideOf(counterFolder))+len(h.asideOf(path.Join(counterFolder, name))) > 0
	file := path.Join(counterFolder, name)
	value, err := h.readCounter(file)
	if err != nil {
		return 0, err
	}
	if value == 0 && counted {
		// The file is lost. Nobody counts more than once a second for years on end.
		value = uint64(time.Now().Unix()) //nolint:gosec // after 1970
	}
	value++
	// On the disk before anybody is told: a kill may skip a value, never repeat one.
	if err := h.Write(file, strconv.AppendUint(nil, value, 10)); err != nil {
		return 0, err
	}
	return value, nil
}

func (h *Home) readCounter(file string) (uint64, error) {
	const hint = "Restore it from a backup, or have tapin doctor --fix put a number there that is higher than any before."
	data, err := h.readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fault.New(fault.Unreadable, "count "+file, "%s cannot be read: %s", file, inWords(err)).WithHint(hint)
	}
	value, err := countIn(data)
	if err != nil {
		// Starting again at 1 would break the one promise a counter makes.
		return 0, fault.New(fault.Unreadable, "count "+file, "%s cannot be used: %s", file, inWords(err)).WithHint(hint)
	}
	return value, nil
}

// countIn is what a counter's file says.
func countIn(data []byte) (uint64, error) {
	value, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && value >= mostCounted:
		return 0, errors.New("it holds a number that is too high to have been counted")
	case err != nil:
		return 0, errors.New("it holds no number")
	}
	return value, nil
}

// checkCounters refuses a home with a counter that cannot be read: what was
// promised under its numbers would be undone by going on.
func (h *Home) checkCounters(op string) error {
	for _, name := range counters {
		if _, err := h.readCounter(path.Join(counterFolder, name)); err != nil {
			f := fault.Of(err)
			return fault.New(f.Code, op, "%s", f.Details()).WithHint("%s Nothing was changed.", f.Advice())
		}
	}
	return nil
}

// MendCounter puts a counter that cannot be read aside. The next number is one
// that cannot have been given before.
func (h *Home) MendCounter(name string) error {
	_, err := h.PutAside(path.Join(counterFolder, name), errors.New("it could not be used"))
	return err
}

// RaiseCounter has the counter of that name go on beyond a value, if it is not there yet.
func (h *Home) RaiseCounter(name string, beyond uint64) error {
	unlock, err := h.Lock(context.Background(), "counter-"+name)
	if err != nil {
		return err
	}
	defer unlock()
	file := path.Join(counterFolder, name)
	if value, err := h.readCounter(file); err != nil || value >= beyond {
		return err
	}
	return h.Write(file, strconv.AppendUint(nil, beyond, 10))
}

// CounterAt is the value that a counter gave last; 0 if it gave none.
func (h *Home) CounterAt(name string) (uint64, error) {
	return h.readCounter(path.Join(counterFolder, name))
}
