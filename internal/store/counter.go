package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"tapin/internal/fault"
)

// Counter adds one to the counter of that name and returns the new value; the
// first is 1. No two calls, in whatever process, get the same value, and none
// gets a smaller one than a call before it.
func (h *Home) Counter(name string) (uint64, error) {
	unlock, err := h.Lock(context.Background(), "counter-"+name)
	if err != nil {
		return 0, err
	}
	defer unlock()
	file := path.Join("counters", name)
	value, err := h.readCounter(file)
	if err != nil {
		return 0, err
	}
	value++
	// On the disk before anybody is told: a kill may skip a value, never repeat one.
	if err := h.Write(file, strconv.AppendUint(nil, value, 10)); err != nil {
		return 0, err
	}
	return value, nil
}

func (h *Home) readCounter(file string) (uint64, error) {
	data, err := h.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		// Starting again at 1 would break the one promise a counter makes.
		return 0, fault.New(fault.Internal, "count "+file, "holds no number").
			WithHint("Write a number into %s that is higher than any used before.", path.Join(h.path, file))
	}
	if value+1 == 0 {
		return 0, fmt.Errorf("count %s: exhausted", file)
	}
	return value, nil
}
