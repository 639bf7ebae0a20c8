package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockFolder = "locks"
	lockPoll   = 20 * time.Millisecond // how soon a lock freed by another process is noticed
	probePoll  = time.Millisecond
	wasHeld    = "0" // in place of a pid: nobody's, and not as if it had never been held
	probeTries = 50  // a probe, or the way from lock to pid, takes far less than 50 ms
)

// waiters queues the goroutines of this process, so that the file lock, which
// can only be polled, is contended by processes alone.
type waiters struct {
	mu    sync.Mutex
	slots map[string]chan struct{}
}

// slot is a channel that the holder of name fills. A slot stays once made:
// there are as many as there are names of locks.
func (w *waiters) slot(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots == nil {
		w.slots = map[string]chan struct{}{}
	}
	s, ok := w.slots[name]
	if !ok {
		s = make(chan struct{}, 1)
		w.slots[name] = s
	}
	return s
}

// Lock waits until this caller alone, in this and every other process, holds
// the lock of that name. The kernel frees it if the process ends.
func (h *Home) Lock(ctx context.Context, name string) (unlock func(), err error) {
	op := "lock " + name
	if err := checkLockName(name); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	slot := h.locks.slot(name)
	select {
	case slot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", op, ctx.Err())
	}
	file, err := h.lockFlock(name)
	if err == nil {
		var ok bool
		if ok, err = file.TryLockContext(ctx, lockPoll); err == nil && !ok {
			err = errors.New("not locked")
		}
	}
	if err != nil {
		<-slot
		return nil, storageError(op, err)
	}
	return h.hold(name, file, slot), nil
}

// TryLock is Lock that does not wait: ok is false if somebody else holds it.
func (h *Home) TryLock(name string) (unlock func(), ok bool, err error) {
	op := "lock " + name
	if err := checkLockName(name); err != nil {
		return nil, false, fmt.Errorf("%s: %w", op, err)
	}
	slot := h.locks.slot(name)
	select {
	case slot <- struct{}{}:
	default:
		return nil, false, nil
	}
	file, err := h.lockFlock(name)
	for try := 0; err == nil && try < probeTries; try++ {
		if ok, err = file.TryLock(); ok {
			return h.hold(name, file, slot), true, nil
		}
		// LockHolder in another process takes the lock for a moment to see
		// whether it can. The file of a real holder names a live process.
		if pid := h.lockPID(name); pid != 0 && alive(pid) {
			break
		}
		time.Sleep(probePoll)
	}
	<-slot
	return nil, false, storageErrorOrNil(op, err)
}

// LockHolder reports whether somebody holds a lock, and their process id (0
// if it is not known yet). It does not disturb those who wait for it.
func (h *Home) LockHolder(name string) (pid int, held bool, err error) {
	op := "look at lock " + name
	if err := checkLockName(name); err != nil {
		return 0, false, fmt.Errorf("%s: %w", op, err)
	}
	info, err := h.root.Stat(path.Join(lockFolder, name))
	if err != nil || !info.Mode().IsRegular() {
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || isEscape(err) {
			return 0, false, nil // nobody can hold what is no lock
		}
		return 0, false, storageError(op, err)
	}
	if err := h.checkLock(name); err != nil {
		return 0, false, fmt.Errorf("%s: %w", op, err)
	}
	for range probeTries {
		file := h.flock(path.Join(lockFolder, name))
		ok, err := file.TryRLock()
		if err != nil {
			return 0, false, storageError(op, err)
		}
		if ok {
			return 0, false, storageErrorOrNil(op, file.Unlock())
		}
		if pid := h.lockPID(name); pid != 0 && alive(pid) {
			return pid, true, nil
		}
		time.Sleep(probePoll)
	}
	return 0, true, nil
}

// hold notes our pid in a lock file that we hold. The note is for people and
// probes; the lock is the kernel's, so failing to write it is no failure.
func (h *Home) hold(name string, file *flock.Flock, slot chan struct{}) (unlock func()) {
	h.writeLockPID(name, strconv.Itoa(os.Getpid()))
	return sync.OnceFunc(func() {
		h.writeLockPID(name, wasHeld)
		_ = file.Unlock()
		<-slot
	})
}

// lockFile is a plain lock for the store's own short sections. It waits in
// the kernel, and leaves no pid.
func (h *Home) lockFile(name string) (unlock func(), err error) {
	file, err := h.lockFlock(name)
	if err != nil {
		return nil, err
	}
	if err := file.Lock(); err != nil {
		return nil, err
	}
	return func() { _ = file.Unlock() }, nil
}

// lockFlock makes the lock file through the root, which refuses a link that
// leads outside. Lock files are never removed: two processes would end up
// holding locks on two files of one name.
func (h *Home) lockFlock(name string) (*flock.Flock, error) {
	if err := h.makeFolder(lockFolder); err != nil {
		return nil, err
	}
	name = path.Join(lockFolder, name)
	if err := h.NoFolder(name); err != nil { // nobody can hold a lock on one
		return nil, err
	}
	f, err := h.openFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return h.flock(name), nil
}

func (h *Home) writeLockPID(name, pid string) {
	f, err := h.openFile(path.Join(lockFolder, name), os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return
	}
	_, _ = f.WriteString(pid)
	_ = f.Close()
}

// lockPID is the pid noted in a lock file, or 0.
func (h *Home) lockPID(name string) int {
	f, err := h.openFile(path.Join(lockFolder, name), os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	data, err := readAtMost(f, 64)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// checkLockName keeps lock names to one flat folder, and those with a leading
// dot to the store itself.
func checkLockName(name string) error {
	if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%w: a lock's name is a plain word", fs.ErrInvalid)
	}
	return nil
}
