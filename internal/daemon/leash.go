package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"tapin/internal/guard"
)

// leashEnd is how long what is on a leash has to end when it is asked to.
const leashEnd = 3 * time.Second

// Leash runs a program of somebody else for as long as hold can be read, or
// until ctx ends, and then ends it with all that it has started. The daemon has
// the other end of hold: however it dies, the kernel closes that end, and
// nothing of the program outlives it. It returns the program's exit code.
func Leash(ctx context.Context, hold io.Reader, argv []string, out io.Writer) (code int, err error) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec // the owner chose it
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own, so that all of it can be ended and the leash is not.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		defer guard.Catch("daemon")
		// The kernel binds a child's life to the thread that made it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return 0, plainCause(err)
	}
	cut := make(chan struct{})
	go func() {
		defer guard.Catch("daemon")
		defer close(cut)
		_, _ = io.Copy(io.Discard, hold)
	}()
	select {
	case err = <-ended:
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	case <-cut:
		err = endLeashed(cmd.Process.Pid, ended)
	case <-ctx.Done():
		err = endLeashed(cmd.Process.Pid, ended)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// endLeashed asks a group to end, and makes it.
func endLeashed(leader int, ended <-chan error) (err error) {
	_ = syscall.Kill(-leader, syscall.SIGTERM)
	_ = syscall.Kill(-leader, syscall.SIGCONT)
	select {
	case err = <-ended:
	case <-time.After(leashEnd):
		_ = syscall.Kill(-leader, syscall.SIGKILL)
		return <-ended
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	return err
}

// leashed is a program on a leash, as the daemon holds it.
type leashed struct {
	cmd   *exec.Cmd
	hold  *os.File // closing it ends the program
	words *os.File // what it says
	ended chan error
}

// leash starts a program by way of the command that runs Leash.
func leash(command, argv, env []string) (*leashed, error) {
	held, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	words, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, held.Close(), hold.Close())
	}
	all := append(append([]string{}, command...), argv...)
	cmd := exec.Command(all[0], all[1:]...) //nolint:gosec // ourselves
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = held, out, out, env
	// A Ctrl-C in the terminal is for the daemon, which ends it in its own order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = held.Close(), out.Close()
	if err != nil {
		_, _ = hold.Close(), words.Close()
		return nil, plainCause(err)
	}
	l := &leashed{cmd: cmd, hold: hold, words: words, ended: make(chan error, 1)}
	go func() {
		defer guard.Catch("daemon")
		l.ended <- cmd.Wait()
	}()
	return l, nil
}

// end lets go, and returns once nothing of the program is left.
func (l *leashed) end() {
	_ = l.hold.Close()
	select {
	case <-l.ended:
	case <-time.After(leashEnd + time.Second):
		_ = l.cmd.Process.Kill()
		<-l.ended
	}
	_ = l.words.Close()
}
