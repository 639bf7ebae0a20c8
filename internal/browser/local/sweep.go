package local

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// sweep removes the folder of a browser whose holder is dead, and reports
// whether none is there any more. A holder lives exactly as long as its lock is
// held; the browser itself cannot outlive it.
func (p *Provider) sweep(ctx context.Context, dir string) (gone bool) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600) //nolint:gosec // under our own folder
	if os.IsNotExist(err) {
		// Without a lock file there never was a holder, or it has tidied up.
		return os.RemoveAll(dir) == nil
	}
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil { //nolint:gosec // a descriptor is small
		return false
	}
	return p.remove(ctx, dir)
}

// remove deletes a folder in which a dying browser may still be writing.
func (p *Provider) remove(ctx context.Context, dir string) bool {
	for {
		if err := os.RemoveAll(dir); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitEnd waits until the holder of a lost browser has tidied up after itself,
// and does it in its place when it could not.
func (p *Provider) awaitEnd(ctx context.Context, dir string) bool {
	for {
		if p.sweep(ctx, dir) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}
