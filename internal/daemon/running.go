package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

// The locks by which the two processes of a home are found. Never by name:
// there may be others of the same name.
const (
	daemonLock  = "daemon"
	sidecarLock = "sidecar"
	addressFile = "control.addr"
)

// Running is what of tapin runs under a home; 0 means that part does not.
type Running struct {
	Daemon  int
	Sidecar int
}

// Find looks for the processes of a home.
func Find(home *store.Home) (r Running, err error) {
	if r.Daemon, err = holder(home, daemonLock); err != nil {
		return Running{}, err
	}
	r.Sidecar, err = holder(home, sidecarLock)
	return r, err
}

// Alone keeps tapin from running under a home until unlock is called. It is
// BUSY while it runs.
func Alone(home *store.Home) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, each := range held {
			each()
		}
	}
	for _, name := range []string{daemonLock, sidecarLock} {
		each, ok, err := home.TryLock(name)
		if err == nil && !ok {
			err = fault.New(fault.Busy, "have the home alone", "tapin is running under it")
		}
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, each)
	}
	return unlock, nil
}

// Control is where the running sidecar listens, as host:port.
func Control(home *store.Home) (string, error) {
	raw, err := home.Read(addressFile)
	if err != nil {
		return "", err
	}
	address := strings.TrimSpace(string(raw))
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", fault.New(fault.Internal, "read "+addressFile, "%w", errNoAddress)
	}
	return address, nil
}

// Stop ends the daemon of a home, and with it its sidecar and every session; a
// sidecar without a daemon is ended the same way. What does not end when asked
// is killed. It returns what it ended.
func Stop(ctx context.Context, home *store.Home) (ended Running, err error) {
	if ended.Sidecar, err = holder(home, sidecarLock); err != nil {
		return Running{}, err
	}
	if ended.Daemon, err = ask(ctx, home, daemonLock, endWithin+time.Second); err != nil {
		return Running{}, err
	}
	left, err := ask(ctx, home, sidecarLock, endWithin)
	if left != 0 {
		ended.Sidecar = left
	}
	return ended, err
}

// ask sends the holder of a lock a SIGTERM and waits until it is gone. One that
// has not ended after within is killed, if the lock is still its own.
func ask(ctx context.Context, home *store.Home, lock string, within time.Duration) (pid int, err error) {
	pid, err = holder(home, lock)
	if err != nil || pid == 0 {
		return 0, err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, fault.New(fault.Forbidden, fmt.Sprintf("end process %d", pid), "%w", err).
			WithHint("It belongs to another user; end it as that user.")
	}
	_ = syscall.Kill(pid, syscall.SIGCONT) // one that was stopped could not end
	patient, cancel := context.WithTimeout(ctx, within)
	err = awaitFree(patient, home, lock, pid)
	cancel()
	if err == nil {
		awaitExit(ctx, pid)
	}
	if err == nil || ctx.Err() != nil || patient.Err() == nil {
		return pid, err
	}
	if still, err := holder(home, lock); err != nil || still != pid {
		return pid, err
	}
	kill(pid)
	return pid, awaitFree(ctx, home, lock, pid)
}

// holderPoll is also the least time between the two looks of holder.
const holderPoll = 25 * time.Millisecond

// holder is the process that holds a lock, or 0. It looks twice: between a
// process's taking of the lock and its noting of its pid, the file names the
// holder before it, and that number may be a stranger's by now.
func holder(home *store.Home, lock string) (pid int, err error) {
	for range 40 {
		first, held, err := home.LockHolder(lock)
		if err != nil || !held {
			return 0, err
		}
		time.Sleep(holderPoll)
		second, held, err := home.LockHolder(lock)
		if err != nil || !held {
			return 0, err
		}
		if first == second && first != 0 {
			return first, nil
		}
	}
	return 0, fault.New(fault.Busy, "look for tapin", "something holds the lock %s and does not say who it is", lock)
}

// awaitFree waits until pid no longer holds the lock.
func awaitFree(ctx context.Context, home *store.Home, lock string, pid int) error {
	tick := time.NewTicker(holderPoll)
	defer tick.Stop()
	for {
		now, held, err := home.LockHolder(lock)
		if err != nil {
			return err
		}
		if !held || now != 0 && now != pid {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.New(fault.Busy, "end tapin", "process %d has not ended yet", pid).
				WithHint("Wait a little; if it hangs, end it with: kill -9 %d", pid).With("pid", pid)
		}
	}
}

// awaitExit waits until a process that has let go of its lock is gone, which it
// is in a moment. Not for long: one that nobody reaps keeps its number.
func awaitExit(ctx context.Context, pid int) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for syscall.Kill(pid, 0) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
