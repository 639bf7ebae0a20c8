// Package sidecar is the root of the sidecar process: it assembles the rooms
// and serves the control and the public listener. It owns the order in which things begin and
// end. It must never hold a rule of its own: what happens is decided in the
// rooms it wires.
package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// AddressFile tells clients under the same home where the control listener is.
const AddressFile = "control.addr"

// endWithin bounds the orderly end; whatever is left then is ended by its own deadline.
const endWithin = 5 * time.Second

var errListener = errors.New("a listener panicked")

// Options are what a sidecar runs with. Home and Config are required.
type Options struct {
	Home    *store.Home
	Config  *config.Config
	Version string
	Vault   *vault.Options // where keys and credentials are; nil means the defaults
	Logger  *slog.Logger
	OnReady func(control string) // called once, when the listener serves
	// OnBegin is told when a room begins that a start can do without, and when it
	// has; it must be quick. nil means that nobody is.
	OnBegin func(room string, begun bool)
	Guarded bool // this process is the sidecar: what panics in it is reported, and falls alone where it can
	// Plant and Planted are for tests: see guard.
	Plant   func(name string) bool
	Planted func(room string) <-chan struct{}
}

// Run serves until ctx ends, then ends everything within five seconds.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	unlock, ok, err := o.Home.TryLock("sidecar")
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.Busy, "start the sidecar", "another sidecar uses this home").
			WithHint("End it with tapin down, or choose another home with --home.")
	}
	defer unlock()
	// One that was killed left its address, where a stranger may listen by now.
	if err := o.Home.RemoveAll(AddressFile); err != nil {
		return err
	}

	// First the ports: a second tapin elsewhere must fail before it changes anything.
	control, err := listen("listen.control", o.Config.Listen.Control)
	if err != nil {
		return err
	}
	public, err := listen("listen.public", o.Config.Listen.Public)
	if err != nil {
		_ = control.Close()
		return err
	}
	defer func() { _, _ = control.Close(), public.Close() }() // for an end before they serve
	if o.Guarded {
		defer o.install()()
	}
	s, err := assemble(ctx, o, control.Addr().String(), public.Addr().String())
	if err != nil {
		return err
	}
	return s.run(ctx, control, public)
}

func (s *sidecar) run(ctx context.Context, listener, public net.Listener) error {
	control := listener.Addr().String()
	var tasks sync.WaitGroup
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	room := func(ctx context.Context, name string, run func(context.Context)) {
		tasks.Go(func() { s.house.Room(ctx, name, run) })
	}
	// What promises hang on stops the process; the next one goes on from the disk.
	tasks.Go(func() {
		defer guard.Vital(guard.Deadlines)
		s.schedule.Run(background)
	})
	tasks.Go(func() {
		defer guard.Vital("feed")
		s.pump.Run(background)
	})
	room(background, guard.Damages, s.tellDamages)
	letters := event.NewLetterbox(s.opts.Home, s.opts.Logger)
	room(background, guard.Letters, func(ctx context.Context) { letters.Run(ctx, s.pump) })
	room(background, guard.Sweeps, s.handoffs.Run)
	room(background, guard.RunSweeps, s.runs.Run)
	room(background, guard.Address, s.followNames)
	room(background, guard.Console, func(ctx context.Context) { guard.Parts(ctx, s.view.follow, s.console.Run) })
	room(background, guard.Surprises, s.sessions.Run)
	room(background, guard.Figures, s.insight.Run)

	err := s.recover(ctx)
	room(background, guard.LaterWork, s.recoverLater)
	s.oneshots.Begin()
	expecting, expectNobody := context.WithCancel(background)
	defer expectNobody()
	room(expecting, guard.Spares, s.keepSpares) // only now: what nobody knows of was ended
	failed := make(chan error, 2)
	if err == nil {
		tasks.Go(func() {
			failed <- guard.Call("control listener", func() error { return s.server.Serve(listener) }, errListener)
		})
		tasks.Go(func() {
			failed <- guard.Call("public listener", func() error { return s.door.Serve(public) }, errListener)
		})
		room(background, guard.Nearby, func(ctx context.Context) { s.serveNear(ctx, public) })
		err = s.opts.Home.Write(AddressFile, []byte(control+"\n"))
	}
	if err == nil {
		s.opts.Logger.Info("serving", "control", control, "public", public.Addr().String(), "version", s.opts.Version)
		if s.opts.OnReady != nil {
			s.opts.OnReady(control)
		}
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	expectNobody()
	s.handoffs.ParkAll(ending) // whoever was asked for help can still give it when tapin is back
	s.mcp.Close()
	err = errors.Join(err, s.console.Close(ending), s.oneshots.Close(ending), s.sessions.Close(ending), s.server.Shutdown(ending), s.door.Shutdown(ending))
	stop()
	tasks.Wait()
	_ = s.opts.Home.Remove(AddressFile)
	s.opts.Logger.Info("ended")
	return errors.Join(err, s.close())
}

// recover takes up what an earlier sidecar left. What cannot be judged is said
// and left alone; it never keeps this one from serving.
func (s *sidecar) recover(ctx context.Context) error {
	if err := s.runs.Recover(ctx); err != nil {
		s.opts.Logger.Warn("the news of task runs are told later", "error", err)
	}
	found, err := s.sessions.Recover(ctx)
	if err != nil {
		s.opts.Logger.Warn("not everything could be recovered", "error", err)
		s.unfinished = true
	}
	if _, err := s.logins.Reconcile(ctx, s.sessions.IDs()); err != nil {
		s.opts.Logger.Warn("the saved logins could not be put in order", "error", err)
	}
	s.handoffs.Recover(ctx)
	s.approvals.Recover(ctx)
	s.owners.Recover(ctx)
	s.sweepViews(ctx)
	for what, ids := range map[string][]string{"picked up again": found.Reconnected, "closed": found.Closed, "left alone": found.LeftAlone} {
		if len(ids) > 0 {
			s.opts.Logger.Info("sessions of an earlier run were "+what, "sessions", ids)
		}
	}
	return ctx.Err()
}
