package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"tapin/internal/browser/local/holder"
)

// sweep removes the folder of a browser whose holder is dead, and reports
// whether none is there any more. A holder lives exactly as long as its lock is
// held; the browser itself cannot outlive it.
func (p *Provider) sweep(ctx context.Context, dir string) (gone bool) {
	goOn := p.still()
	defer goOn()
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600) //nolint:gosec // under our own folder
	if os.IsNotExist(err) {
		// Without a lock file there never was a holder, or it has tidied up.
		return holder.Remove(dir) == nil
	}
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	goOn()
	return p.remove(ctx, dir)
}

// still keeps everybody else from making or judging folders until goOn is
// called: a folder that is being made has no lock for a moment, and looks as if
// its holder were dead. It may be called more than once.
func (p *Provider) still() (goOn func()) {
	run, err := os.Open(p.run)
	if err != nil {
		return func() {} // there is no folder to make or to judge
	}
	for errors.Is(syscall.Flock(int(run.Fd()), syscall.LOCK_EX), syscall.EINTR) {
	}
	return sync.OnceFunc(func() { _ = run.Close() })
}

// remove deletes the folder of a dead holder. Its browser is killed a moment after
// it, and the browser's own processes end a moment after that: one that has just
// begun makes the folder anew, so all of them have to be gone first.
func (p *Provider) remove(ctx context.Context, dir string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for {
		if endLeftovers(dir) && holder.Remove(dir) == nil {
			return true
		}
		if !pause(ctx) {
			return false
		}
	}
}

// pause leaves those who are ending a moment, and reports whether there is more time.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(20 * time.Millisecond):
		return true
	}
}

// clear waits for a holder that is about to end, and removes its folder. Somebody
// else may be at that too, and is waited for.
func (p *Provider) clear(ctx context.Context, dir string) bool {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for takePulse(dir).awaitEnd(ctx) {
		if p.sweep(ctx, dir) {
			return true
		}
		if !pause(ctx) {
			break
		}
	}
	return false
}

// pulse is the lock of a living holder, opened while its folder exists: it can
// be taken at the very moment the holder's process is gone, whatever became of
// the folder.
type pulse struct{ lock *os.File }

func takePulse(dir string) pulse {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600) //nolint:gosec // under our own folder
	if err != nil {
		return pulse{}
	}
	return pulse{lock}
}

// awaitEnd waits until the holder is gone, and reports whether it is.
func (p pulse) awaitEnd(ctx context.Context) bool {
	if p.lock == nil {
		return true
	}
	defer func() { _ = p.lock.Close() }()
	for syscall.Flock(int(p.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}
