package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// keepAwake has no processor sleep until stop is called, or the bench ends.
//
// A virtual processor that has nothing to do is given away by its host, and waited for
// when there is something again: for less than a millisecond, or for many, as its
// neighbours please. Nearly everything here waits for an answer most of the time, so
// that is what would be measured. What runs where nobody else wants to keeps them, and
// makes way at once.
func keepAwake(ctx context.Context) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-awake") //nolint:gosec // ourselves
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // sessions are given a share each, and its own is a small one
	line, err := cmd.StdinPipe()                         // its end is how it learns of ours
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("keep the processors awake: %w", err)
	}
	return func() {
		_ = line.Close()
		_ = cmd.Wait()
	}, nil
}
