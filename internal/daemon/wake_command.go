package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

const (
	commandFor   = 30 * time.Minute
	commandTries = 5 // a woken agent costs something; it is not started for a day
	commandEnd   = 3 * time.Second
)

// command wakes by running a program, without a shell.
type command struct {
	argv  []string
	home  string
	limit time.Duration
}

// call runs the program to its end. It has a process group of its own, which
// is ended with the daemon or when its time is over.
func (c *command) call(ctx context.Context, w wake) (again time.Duration, err error) {
	words := strings.NewReplacer("{handoff_id}", w.HandoffID, "{status}", w.Status, "{run_id}", w.RunID, "{session_id}", w.SessionID, "{wake_id}", w.ID)
	args := make([]string, 0, len(c.argv))
	for _, arg := range c.argv[1:] {
		args = append(args, words.Replace(arg))
	}
	cmd := exec.Command(c.argv[0], args...) //nolint:gosec // the owner's own program; its whole group is ended below
	cmd.Env = append(os.Environ(), "TAPIN_HOME="+c.home,
		"TAPIN_HANDOFF_ID="+w.HandoffID, "TAPIN_HANDOFF_STATUS="+w.Status, "TAPIN_RUN_ID="+w.RunID,
		"TAPIN_SESSION_ID="+w.SessionID, "TAPIN_WAKE_ID="+w.ID)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, c.failed(w, "it cannot be started: %w", plainCause(err))
	}
	ended := make(chan error, 1)
	go func() {
		defer guard.Catch("daemon")
		ended <- cmd.Wait()
	}()
	timer := time.NewTimer(c.limit)
	defer timer.Stop()
	select {
	case err = <-ended:
	case <-timer.C:
		endGroup(cmd.Process.Pid, ended)
		// It was woken, and has had its time.
		return 0, fault.New(fault.Busy, "run on_resume.command", "it had not ended after %v and was ended; %w", c.limit, errFinal)
	case <-ctx.Done():
		endGroup(cmd.Process.Pid, ended)
		return 0, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return 0, c.failed(w, "it ended with %s", exit.ProcessState)
	}
	if err != nil {
		return 0, c.failed(w, "it cannot be waited for")
	}
	return 0, nil
}

// failed is final after the last try.
func (*command) failed(w wake, format string, args ...any) error {
	f := fault.New(fault.Busy, "run on_resume.command", format, args...)
	if w.Tries+1 >= commandTries {
		f.Err = errors.Join(f.Err, errFinal)
	}
	return f
}

// plainCause is why a program cannot be started, without its name, which may
// be a path of any length.
func plainCause(err error) error {
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		return wrapped.Err
	}
	if wrapped, ok := errors.AsType[*exec.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// endGroup asks a whole process group to end, and then makes it.
func endGroup(leader int, ended <-chan error) {
	_ = syscall.Kill(-leader, syscall.SIGTERM)
	_ = syscall.Kill(-leader, syscall.SIGCONT)
	select {
	case <-ended:
		// The leader is gone; what it started may not be. The group's number
		// is not given to others while a member lives, and there is none
		// between this line and the last.
		_ = syscall.Kill(-leader, syscall.SIGKILL)
	case <-time.After(commandEnd):
		_ = syscall.Kill(-leader, syscall.SIGKILL)
		<-ended
	}
}
