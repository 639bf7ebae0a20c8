// Package local makes browsers on this machine: one Chromium each, held by a
// process of its own. It owns the run folder under the home, the flags, and the
// finding of browsers again after a restart. It must never leave a process or a
// folder behind, and never open a debugging port.
package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/local/holder"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// Name is the provider's name.
const Name = "local"

const startOp = "start a local browser"

// startWithin bounds the holder's first word; a cold disk is slow.
const startWithin = 20 * time.Second

var _ browser.Provider = (*Provider)(nil)

// Options tune the provider; nil means the defaults.
type Options struct {
	Chromium string      // path of the browser; empty means found by Find
	Headful  bool        // show a window
	Args     []string    // further flags, the owner's own
	Locale   string      // empty means the system's
	Upstream secret.Text // a proxy behind the guard
	Cache    string      // file that remembers the browser's version; empty means to ask each time
	// Holder is the command that runs a holder; default this program with the
	// argument "holder".
	Holder []string
	Logger *slog.Logger
}

// Provider makes local browsers.
type Provider struct {
	run   string // folder of the running browsers
	epoch uint64
	opts  Options
	log   *slog.Logger

	spares spares

	findOnce sync.Once
	found    Chromium
	findErr  error
}

// New makes a provider that keeps its browsers under run. The epoch must be
// higher than that of every earlier process with the same folder: it is what
// locks a predecessor out that was only asleep.
func New(run string, epoch uint64, opts *Options) *Provider {
	p := &Provider{run: run, epoch: epoch}
	if opts != nil {
		p.opts = *opts
	}
	p.log = p.opts.Logger
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p
}

// Name is "local".
func (p *Provider) Name() string { return Name }

// Traits are that each browser has a folder of ours, by which it is found.
func (p *Provider) Traits() browser.Traits { return browser.Traits{Found: true} }

// Chromium is the browser this provider starts.
func (p *Provider) Chromium() (Chromium, error) {
	p.findOnce.Do(func() { p.found, p.findErr = find(p.opts.Chromium, p.opts.Cache) })
	return p.found, p.findErr
}

// Create starts a browser and its holder, or takes one that was kept ready.
func (p *Provider) Create(ctx context.Context, spec browser.Spec) (browser.Instance, error) {
	var inst *instance
	if spec.Ahead {
		inst = p.takeSpare(ctx, spec)
	}
	if inst == nil {
		var err error
		if inst, err = p.start(ctx, spec); err != nil {
			if spec.Ahead {
				p.spares.vacate() // whoever failed to begin tries again
			}
			return nil, err
		}
	}
	if spec.Ahead {
		p.spares.give(inst.ref.ID)
	}
	return inst, nil
}

// start starts a browser and its holder, and makes a private context in it.
func (p *Provider) start(ctx context.Context, spec browser.Spec) (*instance, error) {
	if p.opts.Headful && !HasDisplay(p.opts.Args) {
		return nil, fault.New(fault.SessionCreateFailed, startOp, "browser.headful is true, and there is no display to show a window on").
			WithHint("Leave browser.headful out, or start tapin where DISPLAY or WAYLAND_DISPLAY is set.")
	}
	return p.begin(ctx, spec, func(inst *instance) (err error) {
		inst.unused = true
		inst.ref.Context, err = browser.PrivateContext(ctx, inst.conn, spec)
		return err
	})
}

// begin starts a browser and has it furnished. When either fails, nothing is
// left behind.
func (p *Provider) begin(ctx context.Context, spec browser.Spec, furnish func(*instance) error) (*instance, error) {
	chromium, err := p.Chromium()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(fault.SessionCreateFailed, startOp, err)
	}
	dir, lock, err := p.claim(spec.ID)
	if err != nil {
		return nil, fault.Wrap(fault.SessionCreateFailed, startOp, err)
	}
	err = p.spawn(ctx, dir, lock, chromium, spec)
	_ = lock.Close() // the holder has it now
	if err == nil {
		var inst *instance
		if inst, err = p.connect(ctx, spec.ID, dir); err == nil {
			if err = furnish(inst); err == nil {
				return inst, nil
			}
			_ = inst.End(context.WithoutCancel(ctx))
		} else {
			// The holder is ready, and nobody has told it to end: who asked for it is gone.
			_ = p.End(context.WithoutCancel(ctx), browser.Ref{Provider: Name, ID: spec.ID})
		}
	}
	p.clear(context.WithoutCancel(ctx), dir)
	if lost, ok := cdp.IsLost(err); ok {
		err = lost
	}
	return nil, &fault.Error{Code: fault.SessionCreateFailed, Op: startOp, Err: err}
}

// claim makes the browser's folder and takes its lock. The lock is handed to
// the holder as an open file: it is held exactly as long as the holder lives.
func (p *Provider) claim(id string) (dir string, lock *os.File, err error) {
	if id == "" || strings.ContainsAny(id, `/\.`) {
		return "", nil, fmt.Errorf("%q is no name for a browser", id)
	}
	if err := os.MkdirAll(p.run, 0o700); err != nil {
		return "", nil, err
	}
	defer p.still()()
	dir = filepath.Join(p.run, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // under our own folder
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return "", nil, err
	}
	return dir, lock, nil
}

// spawn starts the holder, detached, and waits for its word.
func (p *Provider) spawn(ctx context.Context, dir string, lock *os.File, chromium Chromium, spec browser.Spec) error {
	command := p.opts.Holder
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command = []string{self, "holder"}
	}
	cfg, err := json.Marshal(holder.Config{
		Protocol: holder.Protocol, Mark: spec.ID, Dir: dir,
		Chromium: chromium.Path, Args: p.flags(chromium), Env: environment(),
		Policy: spec.Policy, Upstream: p.opts.Upstream.Reveal(), KeepUntil: spec.KeepUntil,
	})
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], append(command[1:], spec.ID)...) //nolint:gosec // ourselves
	cmd.Stdin = bytes.NewReader(cfg)
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = environment()
	word, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer guard.Catch("local browsers")
		_ = cmd.Wait()
	}()

	type result struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	said := make(chan result, 1)
	go func() {
		defer guard.Catch("local browsers")
		var r result
		if err := json.NewDecoder(word).Decode(&r); err != nil {
			r.Error = "the holder ended before it was ready"
		}
		said <- r
		_, _ = io.Copy(io.Discard, word)
	}()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	select {
	case r := <-said:
		if !r.OK {
			return errors.New(r.Error)
		}
		return nil
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		return fmt.Errorf("the holder was not ready in time: %w", ctx.Err())
	}
}

func (p *Provider) connect(ctx context.Context, id, dir string) (*instance, error) {
	client, err := holder.Connect(ctx, dir, id, p.epoch)
	if err != nil {
		return nil, err
	}
	conn := cdp.New(client, &cdp.Options{FirstID: client.FirstID()})
	return &instance{provider: p, dir: dir, client: client, conn: conn, ref: browser.Ref{Provider: Name, ID: id}}, nil
}

// Reconnect goes on with a browser that an earlier process left.
func (p *Provider) Reconnect(ctx context.Context, ref browser.Ref) (browser.Instance, error) {
	dir, err := p.dir(ref)
	if err != nil {
		return nil, err
	}
	inst, err := p.connect(ctx, ref.ID, dir)
	if err != nil {
		return nil, err
	}
	inst.ref.Context = ref.Context
	p.spares.give(ref.ID)
	return inst, nil
}

// dir is where a browser lives, if it does.
func (p *Provider) dir(ref browser.Ref) (string, error) {
	if ref.ID == "" || strings.ContainsAny(ref.ID, `/\.`) {
		return "", fault.New(fault.BrowserLost, "find a local browser", "%q is no name for a browser", ref.ID)
	}
	return filepath.Join(p.run, ref.ID), nil
}

// Own lists the browsers whose holders live, and clears away what dead ones left.
func (p *Provider) Own(ctx context.Context, known []browser.Ref) ([]browser.Ref, error) {
	entries, err := os.ReadDir(p.run)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list local browsers: %w", err)
	}
	contexts := map[string]browser.Ref{}
	for _, ref := range known {
		contexts[ref.ID] = ref
	}
	var own []browser.Ref
	for _, e := range entries {
		dir := filepath.Join(p.run, e.Name())
		if !e.IsDir() || p.sweep(ctx, dir) {
			continue
		}
		ref, ok := contexts[e.Name()]
		if !ok {
			ref = browser.Ref{Provider: Name, ID: e.Name()}
		}
		own = append(own, ref)
	}
	return own, nil
}

// End ends a browser that nobody is connected to.
func (p *Provider) End(ctx context.Context, ref browser.Ref) error {
	dir, err := p.dir(ref)
	if err != nil {
		return err
	}
	if p.sweep(ctx, dir) {
		p.spares.ended(ref.ID)
		return nil
	}
	inst, err := p.connect(ctx, ref.ID, dir)
	if err != nil {
		// It may be on its way out.
		if p.clear(ctx, dir) {
			p.spares.ended(ref.ID)
			return nil
		}
		return err
	}
	return inst.End(ctx)
}
