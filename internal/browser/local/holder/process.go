package holder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tapin/internal/guard"
	"tapin/internal/wide"
)

// process is one Chromium with its pipe and its whole tree.
type process struct {
	cmd    *exec.Cmd
	in     *os.File   // commands
	out    *os.File   // answers and events
	pen    sync.Mutex // held while something is written to the browser
	inline inline
	queued atomic.Int32 // commands that feed has to write
	writes chan command
	stderr *tail
	exited chan struct{} // closed when the main process was waited for
	state  *os.ProcessState
	once   sync.Once
}

// command is a message on its way to the browser. One whose sender was fenced
// while it waited is not sent.
type command struct {
	raw  []byte
	void func() bool // nil means that it always holds
}

// launch starts Chromium on a pipe, its network behind the proxy, in a process
// group of its own, bound to die with us.
func launch(cfg Config, proxyAddr string) (*process, error) {
	profile := filepath.Join(cfg.Dir, profileName)
	if err := os.MkdirAll(filepath.Join(profile, "Default"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(profile, "Default", "Preferences"), []byte(preferences), 0o600); err != nil {
		return nil, err
	}
	fromUs, toBrowser, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromBrowser, toUs, err := os.Pipe()
	if err != nil {
		closeAll(fromUs, toBrowser)
		return nil, err
	}
	stderr, toStderr, err := os.Pipe()
	if err != nil {
		closeAll(fromUs, toBrowser, fromBrowser, toUs)
		return nil, err
	}
	wide.Pipe(fromBrowser)
	p := &process{in: toBrowser, out: fromBrowser, inline: inlineTo(toBrowser), writes: make(chan command, 64), stderr: &tail{}, exited: make(chan struct{})}
	args := append(slices.Clone(cfg.Args),
		"--remote-debugging-pipe",
		"--user-data-dir="+profile,
		"--proxy-server=http://"+proxyAddr,
		"--proxy-bypass-list=<-loopback>",
	)
	p.cmd = exec.Command(cfg.Chromium, args...) //nolint:gosec // the browser the owner configured
	// The browser keeps settings of a crash reporter, also of one that is off, in
	// the folder of this name, which would be the owner's own.
	p.cmd.Env = append(slices.Clone(cfg.Env), "CHROME_CONFIG_HOME="+profile)
	p.cmd.Dir = cfg.Dir
	p.cmd.ExtraFiles = []*os.File{fromUs, toUs}
	// A file, not a writer: waiting for the browser must not wait for children
	// that still hold its standard error.
	p.cmd.Stderr = toStderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bindToParent(p.cmd.SysProcAttr)

	started := make(chan error)
	go func() {
		defer guard.Vital("holder")
		p.live(started)
	}()
	err = <-started
	closeAll(fromUs, toUs, toStderr)
	if err != nil {
		closeAll(toBrowser, fromBrowser, stderr)
		return nil, fmt.Errorf("%s cannot be started: %w", filepath.Base(cfg.Chromium), err)
	}
	go func() {
		defer guard.Vital("holder")
		p.feed()
	}()
	go func() {
		defer guard.Catch("holder")
		_, _ = io.Copy(p.stderr, stderr)
		_ = stderr.Close()
	}()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// live starts the process and waits for it on one thread: the kernel binds a
// child's life to the thread that forked it.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	adoptOrphans()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait()
	p.state = p.cmd.ProcessState
	close(p.exited)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// feed writes what could not be written at once: a browser that does not read
// stalls its own commands and nobody else.
func (p *process) feed() {
	for {
		select {
		case next := <-p.writes:
			err := p.send(next)
			p.queued.Add(-1)
			if err != nil {
				return
			}
		case <-p.exited:
			return
		}
	}
}

func (p *process) send(next command) error {
	p.pen.Lock()
	defer p.pen.Unlock()
	if next.void != nil && next.void() {
		return nil
	}
	_, err := p.in.Write(append(next.raw, 0))
	return err
}

// write gives the browser a command, at once if it can be, and gives up when its
// sender is gone.
func (p *process) write(raw []byte, gone <-chan struct{}, void func() bool) error {
	if bytes.IndexByte(raw, 0) >= 0 {
		return errors.New("a message holds the delimiter")
	}
	select {
	case <-gone:
		return io.ErrClosedPipe
	default:
	}
	if p.written(raw) {
		return nil
	}
	p.queued.Add(1)
	var err error
	select {
	case p.writes <- command{raw, void}:
		return nil
	case <-gone:
		err = io.ErrClosedPipe
	case <-p.exited:
		err = io.ErrClosedPipe
	}
	p.queued.Add(-1)
	return err
}

// atomically is how much a pipe takes as a whole or not at all.
const atomically = 4096

// written writes a short command if nobody is at it or waits, and the browser
// has room for it.
func (p *process) written(raw []byte) bool {
	if len(raw) >= atomically || !p.pen.TryLock() {
		return false
	}
	defer p.pen.Unlock()
	return p.queued.Load() == 0 && p.inline.write(raw, delimiter[:]) > 0
}

// delimiter is what the browser knows the end of a message by.
var delimiter = [1]byte{}

// end kills the whole tree and waits until the last of it is gone.
func (p *process) end() {
	p.once.Do(func() {
		group := -p.pid()
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-p.exited
		closeAll(p.in, p.out)
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
			reap(group)
			if errors.Is(syscall.Kill(group, syscall.SIGKILL), syscall.ESRCH) {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// reap collects the children that the browser's end left to us.
func reap(group int) {
	for {
		pid, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// cause says how the browser ended.
func (p *process) cause() string {
	select {
	case <-p.exited:
		return "the browser ended (" + p.state.String() + ")" + p.stderr.reason()
	case <-time.After(300 * time.Millisecond): // whoever waits for an answer waits for this
		return "the browser closed its pipe"
	}
}

// preferences open what a login needs: third-party cookies carry single sign-on
// and payment frames.
const preferences = `{"profile":{"cookie_controls_mode":0,"block_third_party_cookies":false,"default_content_setting_values":{}},` +
	`"credentials_enable_service":false,"autofill":{"profile_enabled":false,"credit_card_enabled":false},` +
	`"translate":{"enabled":false},"safebrowsing":{"enabled":false},"search":{"suggest_enabled":false}}`

// tail keeps the last of what the browser says on its standard error, for the
// one case in which it matters: that it does not start. It is never logged.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - 8<<10; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(b), nil
}

// reason picks the line that names the fault.
func (t *tail) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range strings.Split(string(t.buf), "\n") {
		switch {
		case strings.Contains(line, "sandbox"):
			return ": it has no usable sandbox"
		case strings.Contains(line, "error while loading shared libraries"), strings.Contains(line, "Missing X server"), strings.Contains(line, "FATAL"):
			return ": " + strings.TrimSpace(line)
		}
	}
	return ""
}
