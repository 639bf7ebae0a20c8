package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tapin/internal/api"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// backgroundWithin is longer than the daemon gives its sidecar, so that the
// inner bound ends first.
const backgroundWithin = 70 * time.Second

// background leaves a daemon running and returns once it is ready.
func (s *screen) background(ctx context.Context) error {
	running, err := daemon.Find(s.home)
	if err != nil {
		return err
	}
	if running.Daemon != 0 {
		return s.alreadyRunning(ctx, running.Daemon)
	}
	done := s.app.progress("starting")
	defer done()
	s.pid, err = s.detach(ctx)
	done()
	if ctx.Err() != nil {
		return s.takeBack(ctx)
	}
	if errors.Is(err, fault.Busy) {
		// Somebody else was faster, and what was asked for is the case.
		if other, e := daemon.Find(s.home); e == nil && other.Daemon != 0 {
			return s.alreadyRunning(ctx, other.Daemon)
		}
	}
	if err != nil {
		return err
	}
	control, err := daemon.Control(s.home)
	if err != nil {
		return err
	}
	err = s.show(ctx, control)
	if ctx.Err() != nil {
		return s.takeBack(ctx)
	}
	if err != nil {
		return err
	}
	if !s.app.json {
		s.app.printf("  Running in the background (pid %d). End it with: %s\n", s.pid, s.app.command("down"))
	}
	return nil
}

// interrupted is the exit code of what a Ctrl-C ended.
const interrupted = 130

// takeBack ends what was started, after a Ctrl-C; what others have started
// meanwhile is theirs.
func (s *screen) takeBack(ctx context.Context) error {
	done := s.app.progress("ending what was started")
	defer done()
	running, err := daemon.Find(s.home)
	if err == nil && s.pid != 0 && running.Daemon == s.pid {
		err = new(downAnswer).end(context.WithoutCancel(ctx), s.home)
	}
	done()
	if err != nil {
		return err
	}
	const details = "interrupted; what was started has been ended again"
	if s.app.json {
		if err := s.app.object(false, api.Problem{Error: string(fault.Busy), Details: details, Hint: "Start it with: " + s.app.command("up", "--background")}); err != nil {
			return err
		}
		return exit(interrupted)
	}
	s.app.errorf("tapin: %s.\n", details)
	return exit(interrupted)
}

// detach starts the daemon in a session of its own, away from this terminal,
// and waits for its word.
func (s *screen) detach(ctx context.Context) (pid int, err error) {
	command, input, err := s.app.self(s.home, "daemon")
	if err != nil {
		return 0, err
	}
	// The daemon's log is its own; here ends only what Go prints when it dies.
	last := filepath.Join(s.home.Path(), "logs", "daemon.stderr")
	if err := s.home.Folder("logs"); err != nil {
		return 0, err
	}
	if err := s.home.NoFolder("logs/daemon.stderr"); err != nil {
		return 0, err
	}
	if err := daemon.Bury(s.home, buildVersion()); err != nil {
		return 0, err
	}
	stderr, err := os.OpenFile(last, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // under our own home
	if err != nil {
		return 0, err
	}
	defer func() { _ = stderr.Close() }()
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // ourselves
	cmd.Env, cmd.Dir, cmd.Stderr = s.app.env.Environ, s.home.Path(), stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	words, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	heard := make(chan error, 1)
	go func() {
		defer guard.Catch("command line")
		heard <- hear(words)
	}()
	ctx, cancel := context.WithTimeout(ctx, backgroundWithin)
	defer cancel()
	select {
	case err = <-heard:
		if err == nil {
			pid = cmd.Process.Pid
			return pid, cmd.Process.Release()
		}
	case <-ctx.Done():
		err = fault.New(fault.Busy, "start tapin", "it was not ready within %v", backgroundWithin).
			WithHint("See logs/daemon.log and logs/sidecar.log in tapin's home.")
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	_ = cmd.Wait()
	return 0, err
}

// hear waits for the word of a process, or for the error body it says instead.
func hear(words io.Reader) error {
	lines := bufio.NewScanner(words)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if string(line) == readyWord {
			return nil
		}
		var p api.Problem
		if json.Unmarshal(line, &p) == nil && p.Error != "" {
			return &fault.Error{Code: fault.Code(p.Error), Err: errors.New(p.Details), Hint: p.Hint}
		}
	}
	return fault.New(fault.Internal, "start tapin", "it ended before it was ready").
		WithHint("See logs/daemon.log and logs/daemon.stderr in tapin's home.")
}
