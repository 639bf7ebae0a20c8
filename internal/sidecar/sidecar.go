// Package sidecar is the root of the sidecar process: it assembles the rooms
// and serves the control listener. It owns the order in which things begin and
// end. It must never hold a rule of its own: what happens is decided in the
// rooms it wires.
package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/apiserver"
	"tapin/internal/config"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/logins"
	"tapin/internal/page"
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// AddressFile tells clients under the same home where the control listener is.
const AddressFile = "control.addr"

// endWithin bounds the orderly end; whatever is left then is ended by its own deadline.
const endWithin = 5 * time.Second

// Options are what a sidecar runs with. Home and Config are required.
type Options struct {
	Home    *store.Home
	Config  *config.Config
	Version string
	Vault   *vault.Options // where keys and credentials are; nil means the defaults
	Logger  *slog.Logger
	OnReady func(control string) // called once, when the listener serves
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

	// First the port: a second tapin elsewhere must fail before it changes anything.
	listener, err := net.Listen("tcp", o.Config.Listen.Control)
	if err != nil {
		return fault.New(fault.Busy, "start the sidecar", "%s cannot be listened on", o.Config.Listen.Control).
			WithHint("Another program uses the port. Set listen.control to another one; tapin doctor tells more.")
	}
	control := listener.Addr().String()
	s, err := assemble(ctx, o, control)
	if err != nil {
		_ = listener.Close()
		return err
	}
	return s.run(ctx, listener, control)
}

// sidecar is everything that was assembled, in the order in which it ends.
type sidecar struct {
	opts     Options
	server   *apiserver.Server
	sessions *session.Host
	schedule *event.Schedule
	pump     *event.Pump
	journal  *event.Journal
	feed     *event.Feed
	logins   *logins.Room
	warmUp   func()
}

func assemble(ctx context.Context, o Options, control string) (*sidecar, error) {
	started := time.Now()
	epoch, err := o.Home.Counter("epoch")
	if err != nil {
		return nil, err
	}
	own, err := readTokens(o.Home)
	if err != nil {
		return nil, err
	}
	var saves *logins.Room // needs the vault, which asks it only later
	keys, err := openVault(ctx, o, func(name string) (string, error) {
		login, err := saves.Get(ctx, name)
		if errors.Is(err, fault.NotFound) {
			err = nil
		}
		return login.Domain, err
	})
	if err != nil {
		return nil, err
	}
	saves = logins.New(o.Home, keys, &logins.Options{Manifest: config.Under(o.Home.Path(), o.Config.Integrations.Browserbase.ContextStore), Logger: o.Logger})
	feed, err := event.OpenFeed(o.Home, nil)
	if err != nil {
		return nil, err
	}
	s := &sidecar{
		opts: o, feed: feed, logins: saves, schedule: event.NewSchedule(),
		pump:    event.NewPump(feed, o.Home, &event.PumpOptions{Logger: o.Logger}),
		journal: event.NewJournal(o.Home, &event.JournalOptions{Days: days(o.Config.Retention.Journal)}),
	}
	registry := prometheus.NewRegistry()
	providers := newProviders(o, epoch)
	s.warmUp = providers.warmUp
	s.sessions, err = session.New(session.Deps{
		Home: o.Home, Pump: s.pump, Schedule: s.schedule, Journal: s.journal, Providers: providers.get,
		Saved: saved{saves}, Sealer: keys, Credentials: keys,
	}, &session.Options{
		Max:       o.Config.MaxSessions,
		Timeout:   o.Config.Integrations.Browserbase.DefaultTimeout.Std(),
		Policy:    policy(o.Config, control),
		Look:      page.Look{Locale: o.Config.Browser.Locale, Timezone: o.Config.Browser.Timezone},
		Downloads: filepath.Join(o.Home.Path(), "downloads"),
		Uploads:   config.Under(o.Home.Path(), o.Config.Uploads),
		OnBlock:   countBlocks(registry),
		Logger:    o.Logger,
	})
	if err != nil {
		_ = feed.Close()
		return nil, err
	}
	look := &checker{providers: providers.get, policy: policy(o.Config, control), look: page.Look{Locale: o.Config.Browser.Locale, Timezone: o.Config.Browser.Timezone}}
	s.server = apiserver.New(apiserver.Deps{
		Sessions: apiserver.From(s.sessions), Contexts: inventory{saves, look}, Live: carried{s.sessions}, Porter: keys, Feed: feed, Journal: s.journal, Cleaner: s.sessions, Tokens: &tokens{own: own, home: o.Home, log: o.Logger}, Registry: registry,
		Version: o.Version, Provider: string(o.Config.Provider), StartedAt: started, Logger: o.Logger,
	}, nil)
	return s, nil
}

func (s *sidecar) run(ctx context.Context, listener net.Listener, control string) error {
	var tasks sync.WaitGroup
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	tasks.Go(func() { s.schedule.Run(background) })
	tasks.Go(func() { s.pump.Run(background) })
	letters := event.NewLetterbox(s.opts.Home, s.opts.Logger)
	tasks.Go(func() { letters.Run(background, s.pump) })
	tasks.Go(s.warmUp)

	err := s.recover(ctx)
	failed := make(chan error, 1)
	if err == nil {
		tasks.Go(func() { failed <- s.server.Serve(listener) })
		err = s.opts.Home.Write(AddressFile, []byte(control+"\n"))
	}
	if err == nil {
		s.opts.Logger.Info("serving", "control", control, "version", s.opts.Version)
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
	err = errors.Join(err, s.sessions.Close(ending), s.server.Shutdown(ending))
	stop()
	tasks.Wait()
	_ = s.opts.Home.Remove(AddressFile)
	s.opts.Logger.Info("ended")
	return errors.Join(err, s.journal.Close(), s.feed.Close())
}

// recover takes up what an earlier sidecar left. What cannot be judged is said
// and left alone; it never keeps this one from serving.
func (s *sidecar) recover(ctx context.Context) error {
	found, err := s.sessions.Recover(ctx)
	if err != nil {
		s.opts.Logger.Warn("not everything could be recovered", "error", err)
	}
	if _, err := s.logins.Reconcile(ctx, s.sessions.IDs()); err != nil {
		s.opts.Logger.Warn("the saved logins could not be put in order", "error", err)
	}
	for what, ids := range map[string][]string{"picked up again": found.Reconnected, "closed": found.Closed, "left alone": found.LeftAlone} {
		if len(ids) > 0 {
			s.opts.Logger.Info("sessions of an earlier run were "+what, "sessions", ids)
		}
	}
	return ctx.Err()
}

// openVault finds the key of this home. A login's credential may be used on the
// site that the saved login of that name is for.
func openVault(ctx context.Context, o Options, domainOf func(login string) (string, error)) (*vault.Vault, error) {
	var opts vault.Options
	if o.Vault != nil {
		opts = *o.Vault
	}
	if opts.Logger == nil {
		opts.Logger = o.Logger
	}
	opts.Saved = domainOf
	return vault.Open(ctx, o.Home, &opts)
}

// policy is what pages may reach: as configured, and never ourselves.
func policy(c *config.Config, control string) egress.Policy {
	p := egress.Policy{BlockPrivate: c.Egress.BlockPrivate, Allow: c.Egress.Allow}
	for _, address := range []string{control, c.Listen.Public} {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n != 0 {
			p.OwnPorts = append(p.OwnPorts, uint16(n))
		}
	}
	return p
}

// days is a time in whole days, rounded up; 0 means for ever and is less than none.
func days(d config.Duration) int {
	const day = 24 * time.Hour
	if d <= 0 {
		return -1
	}
	return int((d.Std() + day - 1) / day)
}
