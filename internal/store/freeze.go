package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/gofrs/flock"

	"tapin/internal/fault"
)

// Every change of the home, in whatever process, holds the second of these locks
// together with all others that are being made. Who freezes the home holds both
// alone: the first one so that no new change begins while the last ones end.
const (
	freezeLock = ".freeze"
	changeLock = ".changes"
)

const (
	// freezeFor bounds a freeze; one that lasted longer was none.
	freezeFor = 5 * time.Second
	// patience is how long a change waits for a thaw. It is longer than any freeze,
	// so that only who was stopped in one is not waited for.
	patience   = 2 * freezeFor
	freezePoll = 2 * time.Millisecond
)

// errFrozenTooLong is a freeze in which somebody may have changed something.
var errFrozenTooLong = errors.New("the home could not be held still for long enough")

// change begins a change of the home. It waits while the home is frozen, and not
// for ever: whoever froze it may have been stopped.
func (h *Home) change(op, name string) (end func(), err error) {
	if err := h.mayChange(op, name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	door, inside, err := h.doors()
	if err != nil {
		return nil, storageError(op, err)
	}
	if _, err = door.TryRLockContext(ctx, freezePoll); err == nil {
		_, err = inside.TryRLockContext(ctx, freezePoll)
	}
	_ = door.Unlock()
	if err != nil && ctx.Err() == nil {
		return nil, storageError(op, err)
	}
	return func() { _ = inside.Unlock() }, nil
}

// freeze holds every change of the home off, in all processes, once those under
// way have ended. What thaw returns says whether nothing was changed meanwhile.
func (h *Home) freeze(ctx context.Context) (thaw func() error, err error) {
	const op = "hold the home still"
	ctx, cancel := context.WithTimeout(ctx, freezeFor)
	defer cancel()
	began := time.Now()
	door, inside, err := h.doors()
	if err != nil {
		return nil, storageError(op, err)
	}
	if _, err = door.TryLockContext(ctx, freezePoll); err == nil {
		_, err = inside.TryLockContext(ctx, freezePoll)
	}
	if err != nil {
		_ = inside.Unlock()
		_ = door.Unlock()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fault.New(fault.Busy, op, "what is being written did not end within %v", freezeFor).WithHint("Try again in a moment.")
		}
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return func() error {
		_ = inside.Unlock()
		_ = door.Unlock()
		if time.Since(began) > freezeFor {
			return fault.New(fault.Busy, op, "%w", errFrozenTooLong).WithHint("Try again in a moment.")
		}
		return nil
	}, nil
}

// doors are the two locks. Their files are made by the first change.
func (h *Home) doors() (door, inside *flock.Flock, err error) {
	if !h.hasDoors.Load() {
		for _, name := range []string{freezeLock, changeLock} {
			if _, err := h.lockFlock(name); err != nil {
				return nil, nil, err
			}
		}
		h.hasDoors.Store(true)
	}
	return h.flock(path.Join(lockFolder, freezeLock)), h.flock(path.Join(lockFolder, changeLock)), nil
}
