package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tapin/internal/chat"
	"tapin/internal/sidecar"
)

// orphans kills the sidecar of a session that was last used long ago, and waits
// for the next one. Whoever works on it is told only if it took over five
// seconds.
func (k *talk) orphans(session string) {
	k.t.Helper()
	daemon, before, told := k.pids("daemon")[0], k.pids("sidecar"), k.counted(chat.BackInAMoment)
	// The daemon must not be quicker than the passing of five minutes.
	k.signal(syscall.SIGSTOP, daemon)
	k.kill(before...)
	k.age(session)
	began := time.Now()
	k.signal(syscall.SIGCONT, daemon)
	k.serving(before...)
	if took := time.Since(began); took < 5*time.Second && k.counted(chat.BackInAMoment) > told { // short: what takes longer may be told
		k.t.Errorf("the owner was told of a stop of %v", took)
	}
}

// holdsBack kills the sidecar and keeps the next one from serving, until the
// function is called that it returns: that one says for how long.
func (k *talk) holdsBack() func() time.Duration {
	k.t.Helper()
	if err := os.WriteFile(k.hold(), nil, 0o600); err != nil {
		k.t.Fatal(err)
	}
	before, began := k.pids("sidecar"), time.Now()
	k.kill(before...)
	k.within("the next sidecar, held back", func() bool {
		_, err := os.Stat(filepath.Join(k.home, sidecar.AddressFile))
		return errors.Is(err, fs.ErrNotExist)
	})
	return func() time.Duration {
		took := time.Since(began)
		if err := os.Remove(k.hold()); err != nil {
			k.t.Fatal(err)
		}
		k.serving(before...)
		return took
	}
}

func (k *talk) hold() string { return k.home + ".hold" }

func (k *talk) signal(what syscall.Signal, pid int) {
	k.t.Helper()
	if err := syscall.Kill(pid, what); err != nil {
		k.t.Fatal(err)
	}
}

// gone waits for the end of processes.
func (k *talk) gone(pids ...int) {
	k.t.Helper()
	if len(pids) == 0 {
		k.t.Fatal("there was nothing that could end")
	}
	for _, pid := range pids {
		k.within("the end of the browser", func() bool {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
		})
	}
}
