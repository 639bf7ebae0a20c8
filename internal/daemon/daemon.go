// Package daemon is the root of the daemon process: it starts the sidecar as a
// process of its own, watches it, and starts it again when it ends or hangs.
// It owns the home's daemon lock and the sidecar's log. It must never reach a
// browser itself: what a fault in the engine can take down is the sidecar alone.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	// readyWithin bounds the start, which reconnects to the browsers of an
	// earlier run before it serves.
	readyWithin = 60 * time.Second
	// endWithin is longer than the five seconds that the sidecar gives itself,
	// so that the inner bound ends first.
	endWithin = 6 * time.Second
)

// Options are what a daemon runs with. Home and Command are required.
type Options struct {
	Home     *store.Home
	Command  []string      // the program that runs a sidecar, with its arguments
	Input    []byte        // what each sidecar reads from its standard input; nil means nothing
	KeepLogs time.Duration // how long old log files are kept; 0 means for ever
	Logger   *slog.Logger  // nil discards
	// OnState is told of every change, one at a time; nil means nobody is.
	OnState func(State)
}

// Phase is what the sidecar is doing, as its daemon sees it.
type Phase string

// The phases, in the order in which they usually come.
const (
	Starting   Phase = "starting"
	Ready      Phase = "ready"
	Restarting Phase = "restarting"
	Ending     Phase = "ending"
)

// State is a change that people may want to hear of.
type State struct {
	Phase    Phase
	PID      int           // of the sidecar; 0 when there is none
	Control  string        // where it listens, when it is ready: "127.0.0.1:3849"
	Restarts int           // how often it was started again
	Cause    error         // why it ended, when it is restarting
	Pause    time.Duration // how long until it is started again
}

// Run keeps a sidecar running until ctx ends, and then ends it. It returns nil
// on an orderly end, and fault.Busy if another daemon has the home. A sidecar
// that cannot even start the first time is not tried again: what it said is
// the error.
func Run(ctx context.Context, o Options) error {
	d := &daemon{opts: o, log: o.Logger}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	unlock, ok, err := o.Home.TryLock(daemonLock)
	if err != nil {
		return err
	}
	if !ok {
		pid, _, _ := o.Home.LockHolder(daemonLock)
		return fault.New(fault.Busy, "start tapin", "it is running already (pid %d)", pid).
			WithHint("Use it as it is, or end it with tapin down.").With("pid", pid)
	}
	defer unlock()
	log, err := OpenLog(o.Home, "sidecar.log", &LogOptions{Keep: o.KeepLogs})
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if err := d.takeOver(ctx); err != nil {
		return err
	}
	return d.supervise(ctx, log)
}

type daemon struct {
	opts     Options
	log      *slog.Logger
	restarts int
	served   bool // whether any sidecar ever became ready
}

// takeOver ends a sidecar whose daemon was killed. It is killed, not asked: one
// that is asked ends its sessions, while the browsers of one that is killed go
// on in their holders and are picked up by the next sidecar a moment later.
func (d *daemon) takeOver(ctx context.Context) error {
	pid, err := holder(d.opts.Home, sidecarLock)
	if err != nil || pid == 0 {
		return err
	}
	d.log.Info("taking over from a sidecar without a daemon", "pid", pid)
	kill(pid)
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	return awaitFree(ctx, d.opts.Home, sidecarLock, pid)
}

func (d *daemon) supervise(ctx context.Context, log io.Writer) error {
	var pace pacer
	for {
		healthy, err := d.serve(ctx, log)
		if ctx.Err() != nil {
			d.log.Info("ended")
			return nil
		}
		if !d.served {
			return err
		}
		d.restarts++
		pause := pace.next(healthy)
		d.log.Warn("the sidecar ended", "cause", err, "after", healthy, "restart_in", pause)
		d.tell(State{Phase: Restarting, Cause: err, Pause: pause})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// serve runs one sidecar from its start to its end. It returns how long that
// one was healthy, and why it ended.
func (d *daemon) serve(ctx context.Context, log io.Writer) (healthy time.Duration, err error) {
	// The address of an earlier sidecar may be somebody else's by now, and
	// clients send a token there.
	if err := d.opts.Home.RemoveAll(addressFile); err != nil {
		return 0, err
	}
	c, err := start(d.opts.Command, d.opts.Input, log)
	if err != nil {
		return 0, err
	}
	d.log.Info("started a sidecar", "pid", c.pid())
	d.tell(State{Phase: Starting, PID: c.pid()})

	starting, cancel := context.WithTimeout(ctx, readyWithin)
	err = c.awaitReady(starting)
	cancel()
	var control string
	if err == nil {
		control, err = Control(d.opts.Home)
	}
	if err == nil {
		d.served = true
		began := time.Now()
		d.log.Info("the sidecar is ready", "pid", c.pid(), "control", control)
		d.tell(State{Phase: Ready, PID: c.pid(), Control: control})
		err = d.watch(ctx, c, control)
		healthy = time.Since(began)
	}
	switch {
	case ctx.Err() != nil:
		d.tell(State{Phase: Ending, PID: c.pid()})
		if !c.end(endWithin) {
			d.log.Warn("the sidecar did not end in time and was killed", "pid", c.pid())
		}
	default:
		c.kill()
	}
	return healthy, err
}

// watch returns why the sidecar can no longer be relied on.
func (d *daemon) watch(ctx context.Context, c *child, control string) error {
	client, err := api.NewClient("http://"+control, secret.Text{}, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	watching, cancel := context.WithCancel(ctx)
	silent := make(chan error, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		silent <- watchHealth(watching, func(ctx context.Context) error {
			_, err := client.Health(ctx)
			return err
		})
	})
	defer asking.Wait()
	defer cancel()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return c.cause()
	case err := <-silent:
		return err
	}
}

func (d *daemon) tell(s State) {
	s.Restarts = d.restarts
	if d.opts.OnState != nil {
		d.opts.OnState(s)
	}
}

// The rhythm of looking after a sidecar. One that does not answer for
// silentFor is given up: its browsers go on without it.
const (
	pollEvery   = 3 * time.Second
	pollTimeout = 4 * time.Second
	silentFor   = 15 * time.Second
)

// watchHealth returns when the sidecar has not answered for silentFor. The time
// runs from the first question without an answer, not from the last answer: a
// machine that was asleep must not cost a healthy sidecar its life.
func watchHealth(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		asked := time.Now()
		asking, cancel := context.WithTimeout(ctx, pollTimeout)
		err := ask(asking)
		cancel()
		switch {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = asked
		case time.Since(since) >= silentFor:
			return fmt.Errorf("it did not answer for %v", silentFor)
		}
	}
}

// pauses are how long to wait before each start after the one before failed.
var pauses = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

// steady is how long a sidecar must have been healthy to begin at the first pause again.
const steady = time.Minute

// pacer decides how soon to start again.
type pacer struct{ tries int }

func (p *pacer) next(healthy time.Duration) time.Duration {
	if healthy >= steady {
		p.tries = 0
	}
	pause := pauses[min(p.tries, len(pauses)-1)]
	p.tries++
	return pause
}

var errNoAddress = errors.New("it does not say where it listens")
