package sidecar

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/apiserver"
	"tapin/internal/approval"
	"tapin/internal/config"
	"tapin/internal/console"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/handoff"
	"tapin/internal/inbox"
	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/internal/logins"
	"tapin/internal/mcpserver"
	"tapin/internal/oneshot"
	"tapin/internal/owners"
	"tapin/internal/page"
	"tapin/internal/reach"
	"tapin/internal/session"
	"tapin/internal/taskrun"
	"tapin/internal/trouble"
	"tapin/internal/vault"
)

// sidecar is everything that was assembled.
type sidecar struct {
	opts       Options
	board      *trouble.Board // what does not work although we serve
	damages    *event.Damages
	server     *apiserver.Server
	mcp        *mcpserver.Door
	door       *liveview.Door
	console    *console.Door
	view       *overview
	links      *link.Room
	address    *link.Address
	sessions   *session.Host
	handoffs   *handoff.Room
	approvals  *approval.Room
	runs       *taskrun.Room
	owners     *owners.Room
	inbox      *inbox.Room
	logins     *logins.Room
	oneshots   *oneshot.Room
	insight    *counting
	house      *guard.House // of the background rooms
	figures    figures
	schedule   *event.Schedule
	pump       *event.Pump
	journal    *event.Journal
	feed       *event.Feed
	prober     *reach.Prober
	near       *near
	keepSpares func(context.Context)

	unfinished bool // something of an earlier sidecar could not be judged

	closers []func() error // of what was opened, in that order
}

// close closes what was opened, the last first.
func (s *sidecar) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// assemble makes the rooms and shows them to each other. When it fails nothing
// is left open.
func assemble(ctx context.Context, o Options, control, public string) (*sidecar, error) {
	s := &sidecar{opts: o, board: &trouble.Board{}, schedule: event.NewSchedule(), prober: reach.New(nil), near: &near{}}
	s.openHouse()
	s.watchFiles()
	if err := o.Home.MakeRoom(); err != nil {
		o.Logger.Warn("not everything in the home that is in the way could be put aside", "error", err)
	}
	if err := s.build(ctx, control, public); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *sidecar) build(ctx context.Context, control, public string) error {
	o, started := s.opts, time.Now()
	epoch, err := o.Home.Counter("epoch")
	if err != nil {
		return err
	}
	own, err := readTokens(o.Home)
	if err != nil {
		return err
	}
	providers := newProviders(o, epoch)
	s.findBrowser(providers)
	rules, look := policy(o.Config, control, public), page.Look{Locale: o.Config.Browser.Locale, Timezone: o.Config.Browser.Timezone}
	s.keepSpares = func(ctx context.Context) {
		providers.keepSpares(ctx, len(s.sessions.IDs()) == 0, rules, s.sessions.OpenAhead)
	}
	keys, err := s.openLogins(ctx, &checker{providers: providers.get, policy: rules, look: look}, forgetKept(providers))
	if err != nil {
		return err
	}
	s.showForgetting(finishForgetting(ctx, o.Home, o.Config, o.Vault)) // before anybody is told anything of it
	book, err := s.openCloud(providers, keys)
	if err != nil {
		return err
	}
	if err := s.openFeed(); err != nil {
		return err
	}
	s.openLinks(public)
	at, changes := &stage{presence: s.presence, parted: s.forgetSession}, &changes{}
	if err := s.openHandoffs(at, keys, changes); err != nil {
		return err
	}
	if err := s.openPeople(); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	pay := &till{}
	if err := s.openApprovals(pay, keys, registry); err != nil {
		return err
	}
	countMinutes(registry, book)
	countReady(registry, providers.local)
	s.openInsight(registry)
	s.figures = figures{s.insight, s.logins, book}
	s.sessions, err = session.New(session.Deps{
		Home: o.Home, Pump: s.pump, Schedule: s.schedule, Journal: s.journal, Providers: providers.get,
		Claims: s.handoffs, Saved: saved{s.logins}, Sealer: keys, Credentials: keys, Guard: s.paymentGuard(),
	}, &session.Options{
		PaymentPatterns: o.Config.PaymentGuardPatterns,
		Max:             o.Config.MaxSessions,
		Timeout:         o.Config.Integrations.Browserbase.DefaultTimeout.Std(),
		Policy:          rules,
		Look:            look,
		Sweep:           sweeps(o.Config, book),
		TellFront:       o.Config.LiveView == config.LiveViewProvider,
		Downloads:       filepath.Join(o.Home.Path(), "downloads"),
		Uploads:         config.Under(o.Home.Path(), o.Config.Uploads),
		OnBlock:         countBlocks(registry),
		OnEnd: func(id, _, reason string) {
			// First what takes time: whoever hears of the end may act at once.
			s.forgetSession(id)
			s.handoffs.SessionEnded(context.WithoutCancel(ctx), id, reason)
			s.handoffs.Forget(id)
		},
		OnReplace: func(id string, generation int) {
			s.handoffs.BrowserReplaced(context.WithoutCancel(ctx), id, generation)
		},
		OnChange: changes.tell,
		Logger:   o.Logger,
	})
	if err != nil {
		return err
	}
	at.sessions, pay.sessions = s.sessions, s.sessions
	if s.oneshots, err = newOneShots(o, s.house.Without(guard.OneShots), providers, rules, look, s.journal, registry); err != nil {
		return err
	}
	begun := s.begin(guard.Console)
	s.openConsole(ctx)
	begun()
	s.openDoor(changes, keys)
	if s.mcp, err = newMCP(o, control); err != nil {
		return err
	}
	mcp := http.Handler(s.mcp)
	if s.house.Without(guard.MCP) {
		mcp = leftOut(guard.MCP)
	}
	s.server = apiserver.New(apiserver.Deps{
		Sessions: apiserver.From(s.sessions), Handoffs: s.handoffs, Approvals: s.approvals, Runs: s.runs,
		Links: s.links, Address: s.address, Prober: s.prober, Nearby: s.near.addresses,
		Theirs:  providerView(o.Config, s.sessions),
		Console: consoleRoom{s.console},
		Owners:  guests{s.owners, s.links}, Inbox: s.inbox,
		OneShots: s.oneshots,
		Contexts: s.logins, Live: carried{s.sessions}, Porter: keys,
		Usage: book, Analytics: s.figures,
		Feed: s.feed, Journal: s.journal, Cleaner: s.sessions,
		Tokens: &tokens{own: own, home: o.Home, log: o.Logger}, MCP: mcp, Registry: registry,
		Version: o.Version, Provider: string(o.Config.Provider), StartedAt: started, Troubles: s.troubles, Logger: o.Logger,
	}, nil)
	return nil
}

// findBrowser asks for the browser while everything else is opened: to say its
// version takes one as long as all of that.
func (s *sidecar) findBrowser(providers *providers) {
	found := make(chan struct{})
	done := func() { close(found) } // whoever closes waits for it, and for the report of a panic
	go func() {
		defer guard.Catch("sidecar", done)
		providers.warmUp()
		done()
	}()
	s.closers = append(s.closers, func() error { <-found; return nil })
}

func (s *sidecar) openFeed() (err error) {
	if s.feed, err = event.OpenFeed(s.opts.Home, nil); err != nil {
		return err
	}
	s.closers = append(s.closers, s.feed.Close)
	s.pump = event.NewPump(s.feed, s.opts.Home, &event.PumpOptions{Logger: s.opts.Logger})
	s.journal = event.NewJournal(s.opts.Home, &event.JournalOptions{Days: days(s.opts.Config.Retention.Journal)})
	s.closers = append(s.closers, s.journal.Close)
	return nil
}

// openLogins opens the vault and what it keeps. Each asks the other: the logins
// are sealed, and a credential may be used on the site that, as the owner has
// written, the saved login of its name is for.
func (s *sidecar) openLogins(ctx context.Context, look logins.Checker, forget func(context.Context, string) (bool, error)) (*vault.Vault, error) {
	var opts vault.Options
	if s.opts.Vault != nil {
		opts = *s.opts.Vault
	}
	if opts.Logger == nil {
		opts.Logger = s.opts.Logger
	}
	opts.Saved = func(name string) (string, error) {
		login, err := s.logins.Get(context.WithoutCancel(ctx), name)
		switch {
		case errors.Is(err, fault.NotFound):
			return "", nil
		case login.DomainNoticed:
			return "", nil // the agent took the browser there
		}
		return login.Domain, err
	}
	if err := vault.Finish(ctx, s.opts.Home, &opts); err != nil {
		s.opts.Logger.Warn("a change of the sealing key could not be brought to its end yet", "error", err)
	}
	keys, err := vault.OpenLater(ctx, s.opts.Home, &opts)
	if err != nil {
		return nil, err
	}
	manifest := config.Under(s.opts.Home.Path(), s.opts.Config.Integrations.Browserbase.ContextStore)
	s.logins = logins.New(s.opts.Home, keys, &logins.Options{Manifest: manifest, Checker: look, Forget: forget, Logger: s.opts.Logger})
	return keys, nil
}

func (s *sidecar) openHandoffs(at handoff.Stage, keys handoff.Sealer, changes *changes) (err error) {
	timers := s.opts.Config.Integrations.Browserbase
	keep := s.opts.Config.Retention.Handoffs.Std()
	if s.runs, err = taskrun.New(s.opts.Home, s.pump, &taskrun.Options{Keep: keep, Logger: s.opts.Logger}); err != nil {
		return err
	}
	s.closers = append(s.closers, s.runs.Close)
	remind := []time.Duration{timers.IdleWarning.Std()}
	if given := s.opts.Config.Notify.RemindAt; given != nil {
		remind = make([]time.Duration, 0, len(given))
		for _, d := range given {
			remind = append(remind, d.Std())
		}
	}
	s.handoffs, err = handoff.New(handoff.Deps{
		Home: s.opts.Home, Pump: s.pump, Schedule: s.schedule, Journal: s.journal, Stage: at, Evidence: s.runs, Sealer: keys,
	}, &handoff.Options{Timeout: timers.HandoffTimeout.Std(), RemindAt: remind, Keep: keep, OnChange: changes.tell, Logger: s.opts.Logger})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.handoffs.Close)
	return nil
}

// policy is what pages may reach: as configured, and never ourselves.
func policy(c *config.Config, listeners ...string) egress.Policy {
	p := egress.Policy{BlockPrivate: c.Egress.BlockPrivate, Allow: c.Egress.Allow}
	for _, address := range listeners {
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
