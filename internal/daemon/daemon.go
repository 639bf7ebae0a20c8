// Package daemon is the root of the daemon process: it starts the sidecar and the
// tunnel as processes of their own, watches them, starts them again when they end
// or hang, and wakes agents whose hand-offs are over. It owns the home's daemon lock,
// their logs and the wakes that are still to be delivered. It must never reach a
// browser itself: what a fault in the engine can take down is the sidecar alone.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/chat/telegram"
	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

// Options are what a daemon runs with. Home and Command are required.
type Options struct {
	Home     *store.Home
	Command  []string        // the program that runs a sidecar, with its arguments
	Input    []byte          // what each sidecar reads from its standard input; nil means nothing
	KeepLogs time.Duration   // how long old log files are kept; 0 means for ever
	OnResume config.OnResume // how a stopped agent is woken when its hand-off is over
	Telegram *Telegram       // nil: there is no chat
	Logger   *slog.Logger    // nil discards
	Version  string          // of tapin: what another one left out means nothing
	Guarded  bool            // this process is the daemon: what panics in it is reported, and falls alone where it can
	// Plant and Planted are for tests: see guard.
	Plant   func(name string) bool
	Planted func(room string) <-chan struct{}
	Tunnel  TunnelOptions // how phones get to this machine
	// OnState is told of every change, one at a time; nil means nobody is.
	OnState func(State)
	// OnReach is told of every change in how phones get here, one at a time; nil
	// means nobody is.
	OnReach func(Reach)
}

// TunnelOptions are how phones get to this machine; the zero value means that
// they do not.
type TunnelOptions struct {
	Kind      config.Tunnel
	Program   string   // empty means the one of that name in the PATH
	Leash     []string // the command that runs Leash on the arguments after it
	PublicURL string   // the owner's own address, which wins over a tunnel's
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
// that says why it cannot start the first time is not tried again: its reason
// is the error. One that crashes again and again goes on without the room that it
// crashes in, where it can do without; else it is tried for ever, ever more
// seldom. The owner is told when the next one serves.
func Run(ctx context.Context, o Options) error { return newDaemon(o).run(ctx) }

func newDaemon(o Options) *daemon {
	d := &daemon{opts: o, log: o.Logger, rhythm: usual(), outlook: usualOutlook()}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.letters = event.NewLetterbox(o.Home, d.log)
	d.openHouse()
	return d
}

func (d *daemon) run(ctx context.Context) error {
	o := d.opts
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
	if o.Guarded {
		defer d.install()()
		// Without whoever watches over the sidecar nothing is promised any more.
		defer guard.Vital("daemon")
	}
	if err := errors.Join(o.Home.MakeRoom(), o.Home.NoFolder(guard.BoardFile)); err != nil {
		d.log.Warn("not everything in the home that is in the way could be put aside", "error", err)
	}
	defer func() { _ = guard.WriteBoard(o.Home.Path(), nil) }()
	d.damages = event.WatchDamages(o.Home, d.board, d.log)
	d.showTroubles()
	if o.Guarded {
		bury(o.Home.Path(), d.reports("daemon"))
	}
	log, err := OpenLog(o.Home, "sidecar.log", &LogOptions{Keep: o.KeepLogs})
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if d.waker, err = newWaker(o.Home, o.OnResume, d.log, d.leave); err != nil {
		return err
	}
	if err := d.openChat(); err != nil {
		return err
	}
	if err := d.takeOver(ctx); err != nil {
		return err
	}
	words, err := OpenLog(o.Home, "tunnel.log", &LogOptions{Keep: o.KeepLogs})
	if err != nil {
		return err
	}
	defer func() { _ = words.Close() }()
	d.reach = newReach(o.Home, o.Tunnel.Kind, o.Tunnel.PublicURL, o.OnReach)
	defer d.reach.forget()
	d.reach.set(func(*Reach) {}) // so that it can be read from the beginning
	d.tunnel = newTunnel(o, d.reach, d.log, lossy{words}, d.leave)
	beside, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	room := func(name string, run func(context.Context)) {
		others.Go(func() { d.house.Room(beside, name, run) })
	}
	room(guard.Damages, func(ctx context.Context) {
		d.damages.Run(ctx, func(_ context.Context, e event.Event) error { return d.letters.Leave(e) }, d.showTroubles)
	})
	room(guard.Wakes, d.waker.run)
	room(guard.Tunnel, d.tunnel.run)
	if d.chat != nil {
		room(guard.Chat, d.chat.Run)
	}
	defer others.Wait()
	defer stop()
	return d.supervise(ctx, log)
}

type daemon struct {
	opts     Options
	log      *slog.Logger
	letters  *event.Letterbox
	waker    *waker
	reach    *reach
	tunnel   *tunnel
	outlook  outlook
	chat     *telegram.Room // nil: there is none
	rhythm   rhythm
	house    *guard.House // of the background rooms
	board    *trouble.Board
	damages  *event.Damages
	showing  sync.Mutex
	leftOut  *guard.LeftOut
	blamed   map[string][]time.Time // when a sidecar died of which room
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
	pace := pacer{rhythm: d.rhythm}
	for {
		was, err := d.serve(ctx, log)
		if ctx.Err() != nil {
			d.log.Info("ended")
			return nil
		}
		if was.final && !d.served {
			return err
		}
		if refused := d.opts.Home.Refused(); refused != nil {
			return refused // while it ran the home became one that no sidecar starts in
		}
		d.restarts++
		if was.crash != nil && d.leaveOut(*was.crash) {
			pace = pacer{rhythm: d.rhythm} // the next one is another one
		}
		pause, failures := pace.next(was, time.Now())
		if pace.many > 0 {
			d.showLoop(pace.many, was)
		}
		if failures > 0 {
			d.tellOfLoop(failures, was, err)
		}
		d.log.Warn("the sidecar ended", "cause", err, "after", was.healthy, "restart_in", pause)
		d.tell(State{Phase: Restarting, Cause: err, Pause: pause})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// leave tells the feed something by letter.
func (d *daemon) leave(kind, id string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return d.letters.Leave(event.Event{ID: id, Version: 1, Type: kind, Data: raw})
}

// life is how one sidecar fared.
type life struct {
	ready   bool
	healthy time.Duration // since it was ready
	final   bool          // trying again would only fail again
	crash   *guard.Kept   // what is known of why it died, if it did
	// panicked says that it died of itself, and not of a signal from outside.
	panicked bool
}

// serve runs one sidecar from its start to its end, and says why it ended.
func (d *daemon) serve(ctx context.Context, log io.Writer) (was life, err error) {
	// The address of an earlier sidecar may be somebody else's by now, and
	// clients send a token there.
	if err := d.opts.Home.RemoveAll(addressFile); err != nil {
		return life{final: true}, err
	}
	c, err := start(d.opts.Command, d.opts.Input, log)
	if err != nil {
		return life{final: true}, err
	}
	born := time.Now()
	d.log.Info("started a sidecar", "pid", c.pid())
	d.tell(State{Phase: Starting, PID: c.pid()})

	starting, cancel := context.WithTimeout(ctx, d.rhythm.ready)
	err = c.awaitReady(starting)
	cancel()
	var control string
	if err == nil {
		control, err = Control(d.opts.Home)
	}
	if err == nil {
		d.served, was.ready = true, true
		began := time.Now()
		d.log.Info("the sidecar is ready", "pid", c.pid(), "control", control)
		d.tell(State{Phase: Ready, PID: c.pid(), Control: control})
		err = d.watch(ctx, c, control)
		was.healthy = time.Since(began)
	}
	switch {
	case ctx.Err() != nil:
		d.tell(State{Phase: Ending, PID: c.pid()})
		if !c.end(endWithin) {
			d.log.Warn("the sidecar did not end in time and was killed", "pid", c.pid())
		}
	case c.isOver():
		was.crash, was.panicked = d.postMortem(c, born)
	default:
		c.kill()
	}
	was.final = c.gaveReason()
	return was, err
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
	room := func(name string, run func(context.Context)) {
		asking.Go(func() { d.house.Room(watching, name, run) })
	}
	room(guard.Watch, func(ctx context.Context) {
		err := d.rhythm.watchHealth(ctx, func(ctx context.Context) error {
			_, err := client.Health(ctx)
			return err
		})
		if ctx.Err() == nil {
			silent <- err
		}
	})
	room(guard.WakeNews, func(ctx context.Context) { d.waker.follow(ctx, control) })
	room(guard.Discovered, func(ctx context.Context) { d.announce(ctx, control) })
	room(guard.ChatNews, func(following context.Context) { d.converse(following, ctx, control) })
	defer asking.Wait()
	defer cancel()
	steady := time.NewTimer(d.rhythm.steady)
	defer steady.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ended:
			return c.cause()
		case err := <-silent:
			return err
		case <-steady.C: // only now: a loop may be ready each time
			d.well()
		}
	}
}

func (d *daemon) tell(s State) {
	s.Restarts = d.restarts
	if d.opts.OnState != nil {
		d.opts.OnState(s)
	}
}

var errNoAddress = errors.New("it does not say where it listens")
