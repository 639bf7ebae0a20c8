package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// readyWord is what a sidecar says once it serves.
const readyWord = "READY"

// child is one sidecar process.
type child struct {
	cmd   *exec.Cmd
	last  *guard.Last   // what it says on its way into the log
	ready chan struct{} // closed at its word
	ended chan struct{} // closed when it is gone and reaped

	mu   sync.Mutex
	err  error // how it ended
	said error // what it gave as its reason
	// begun are the rooms that it has said are beginning, and not yet that they have.
	begun map[string]bool
}

// start runs a command as a sidecar, in a process group of its own: a Ctrl-C in
// the terminal is for the daemon, which ends the sidecar in its own order.
func start(command []string, input []byte, log io.Writer) (*child, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // ourselves
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	last := guard.NewLast(lossy{log})
	cmd.Stderr = last
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Its log is read until its end, and no longer: a stray process that
	// inherited the pipe must not hold up the restart.
	cmd.WaitDelay = time.Second
	words, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the sidecar: %w", err)
	}
	cmd.Stdout = out
	err = cmd.Start()
	_ = out.Close()
	if err != nil {
		_ = words.Close()
		return nil, fmt.Errorf("start the sidecar: %w", err)
	}
	c := &child{cmd: cmd, last: last, ready: make(chan struct{}), ended: make(chan struct{})}
	heard := make(chan struct{})
	go func() {
		defer guard.Catch("daemon")
		defer close(heard)
		c.listen(words)
	}()
	go func() {
		defer guard.Vital("daemon") // whoever waits for its end would wait for ever
		err := cmd.Wait()
		// Its last words are in the pipe already; a stray writer is not waited for.
		_ = words.SetReadDeadline(time.Now().Add(cmd.WaitDelay))
		<-heard
		_ = words.Close()
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.ended)
	}()
	return c, nil
}

// listen reads the sidecar's word, or the error body that it gives instead.
func (c *child) listen(words io.Reader) {
	lines := bufio.NewScanner(words)
	told := false
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		var p api.Problem
		var b Beginning
		switch {
		case string(line) == readyWord && !told:
			told = true
			close(c.ready)
		case json.Unmarshal(line, &b) == nil && guard.CanDoWithout(b.Room):
			c.note(b)
		case json.Unmarshal(line, &p) == nil && p.Error != "":
			c.mu.Lock()
			c.said = &fault.Error{Code: fault.Code(p.Error), Err: errors.New(p.Details), Hint: p.Hint}
			c.mu.Unlock()
		}
	}
}

// Beginning is the word of a sidecar about a room that it can do without: it
// begins now, or it has begun. A process that is killed says nothing any more.
type Beginning struct {
	Room  string `json:"beginning"`
	Begun bool   `json:"begun,omitempty"`
}

func (c *child) note(b Beginning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun == nil {
		c.begun = map[string]bool{}
	}
	if c.begun[b.Room] = true; b.Begun {
		delete(c.begun, b.Room)
	}
}

// beginning is the room that was beginning when the sidecar ended. Where it was
// none, or several, nobody knows.
func (c *child) beginning() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for room := range c.begun {
		if len(c.begun) == 1 {
			return room
		}
	}
	return ""
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// awaitReady returns nil once the sidecar serves, or why it does not.
func (c *child) awaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return c.cause()
	case <-ctx.Done():
		return fault.New(fault.Busy, "start the sidecar", "it was not ready in time: %w", ctx.Err()).
			WithHint("See logs/sidecar.log in tapin's home.")
	}
}

// gaveReason reports whether the sidecar said itself why it cannot serve.
func (c *child) gaveReason() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said != nil
}

// cause is why the sidecar ended, in its own words where it had any.
func (c *child) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.said != nil:
		return c.said
	case c.err != nil:
		return fault.New(fault.Internal, "the sidecar", "it ended unexpectedly: %w", c.err)
	}
	return fault.New(fault.Internal, "the sidecar", "it ended by itself")
}

// end asks the sidecar to end, and kills it when it has not after within. It
// reports whether asking was enough.
func (c *child) end(within time.Duration) bool {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.cmd.Process.Signal(syscall.SIGCONT) // one that was stopped could not end
	select {
	case <-c.ended:
		return true
	case <-time.After(within):
		c.kill()
		return false
	}
}

// kill ends the sidecar at once. Its browsers live on in their holders.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// lossy is a log that never fails: a full disk costs lines, and must not cost
// the sidecar that writes them.
type lossy struct{ to io.Writer }

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.to.Write(p)
	return len(p), nil
}
