package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

type upOptions struct {
	background, allowPrivate, noCheck bool
}

func (a *app) upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start tapin",
		Long: `Starts tapin and shows what runs where. It stays in the foreground until
Ctrl-C, which also ends its browsers; with --background it returns once
everything is ready.`,
		Example: `  tapin up
  tapin up --background
  tapin up --allow-private          for pages on your own machine or network
  tapin up --set browser.headful=true`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.background, "background", false, "return once it is ready, and leave it running")
	cmd.Flags().BoolVar(&o.allowPrivate, "allow-private", false, "let pages reach private addresses, for local development")
	cmd.Flags().BoolVar(&o.noCheck, "no-check", false, "do not try out the browser at the start")
	return cmd
}

func (a *app) up(ctx context.Context, o upOptions) error {
	if o.allowPrivate {
		a.set = append(a.set, "egress.block_private=false")
	}
	cfg, _, err := a.settings() // a mistake in it is best told before anything starts
	if err != nil {
		return err
	}
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	used, err := home.Exists(sidecar.AgentTokenFile)
	if err != nil {
		return err
	}
	s := &screen{app: a, home: home, config: cfg, options: o, checked: func() {}, first: !used}
	s.lookForBrowser()
	if !o.noCheck {
		// From before the sidecar serves until the check is over. Whoever else
		// holds it is starting tapin too, and one of the two will be refused.
		if unlock, ok, err := home.TryLock(checkLock); err != nil {
			return err
		} else if ok {
			s.checked = unlock
			defer unlock()
		}
	}
	start := s.foreground
	if o.background {
		start = s.background
	}
	err = start(ctx)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Busy && len(a.set) > 0 {
		key, _, _ := strings.Cut(a.set[0], "=") // its value may be a secret
		return f.WithHint("To change what runs: %s, then %s and %s.", a.command("config", "set")+" "+shellWord(key)+"=…", a.command("down"), a.command("up"))
	}
	return err
}

// foreground runs the daemon here and shows what becomes of it.
func (s *screen) foreground(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	states, reaches := make(chan daemon.State, 16), make(chan daemon.Reach, 1)
	ended := make(chan error, 1)
	go func() {
		defer guard.Catch("command line")
		ended <- s.app.runDaemon(running, s.home, s.config, func(st daemon.State) {
			select {
			case states <- st:
			case <-running.Done(): // nobody reads any more
			}
		}, func(r daemon.Reach) {
			select { // the latest counts, and nobody waits for the screen
			case <-reaches:
			default:
			}
			reaches <- r
		})
	}()
	done := s.app.progress("starting")
	defer done()
	for shown := false; ; {
		select {
		case err := <-ended:
			done()
			return s.goodbye(err)
		case <-ctx.Done():
			done()
			s.ending()
			return s.goodbye(<-ended)
		case st := <-states:
			done()
			if st.Phase == daemon.Ready && !shown {
				shown = true
				// A failed check is on the screen; here it does not end what runs.
				_ = s.show(ctx, st.Control)
				s.running()
				continue
			}
			if shown || st.Phase == daemon.Restarting {
				s.change(st)
			}
		case r := <-reaches:
			if shown {
				s.reached(r)
			}
		}
	}
}

// outcome is what the self-check found out.
type outcome struct {
	active string // a session that was there already, which is left alone
	took   time.Duration
	err    error
}

// check drives a first page, so that the first thing a person or an agent asks
// for is known to work.
func check(ctx context.Context, client *api.Client) outcome {
	health, err := client.Health(ctx)
	if err != nil {
		return outcome{err: err}
	}
	if health.Active != nil {
		return outcome{active: health.Active.SessionID}
	}
	began, none := time.Now(), false
	started, err := client.Start(ctx, api.StartRequest{Look: api.Look{Screenshot: &none}})
	if err != nil {
		if active, ok := fault.Of(err).Data["session_id"].(string); ok && fault.Of(err).Code == fault.SessionActive {
			return outcome{active: active} // somebody was faster
		}
		return outcome{err: err}
	}
	shot, err := client.Screenshot(ctx, started.SessionID, api.ScreenshotQuery{})
	if err == nil && len(shot.Bytes) == 0 {
		err = fault.New(fault.Internal, "photograph a page", "the picture is empty")
	}
	took := time.Since(began)
	// Also when the person gives up in between, nothing may be left.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, stopErr := client.Stop(ending, started.SessionID, api.StopRequest{}); err == nil {
		err = stopErr
	}
	return outcome{took: took, err: err}
}

// upAnswer is what up says in JSON, once it is ready.
type upAnswer struct {
	PID      int    `json:"pid,omitempty"`
	Home     string `json:"home"`
	Control  string `json:"control"`
	Provider string `json:"provider"`
	Browser  string `json:"browser,omitempty"`
	Sandbox  bool   `json:"sandbox"`
	CheckMS  int64  `json:"check_ms,omitempty"`
	Session  string `json:"active_session,omitempty"`
	Already  bool   `json:"already_running,omitempty"`
	Phone    *phone `json:"phone,omitempty"`
	// Troubles are what does not work although tapin serves.
	Troubles []trouble.Trouble `json:"troubles,omitempty"`
}

// screen is what up shows.
type screen struct {
	app     *app
	home    *store.Home
	config  *config.Config
	options upOptions
	pid     int // of the daemon in the background
	found   chan foundBrowser
	checked func() // lets other commands at the browser
	began   time.Time
	first   bool         // tapin has never run under this home
	shown   daemon.Stand // of the way from a phone, as the screen says it
}

// goodbye is the last line of an orderly end.
func (s *screen) goodbye(err error) error {
	if err == nil && !s.app.json {
		s.app.printf("  Goodbye. Nothing of tapin is running any more.\n")
	}
	return err
}

func (s *screen) ending() {
	if !s.app.json {
		s.app.printf("\n  Ending the browsers …\n")
	}
}

func (s *screen) running() {
	if !s.app.json {
		s.app.printf("  %s\n", s.app.paint(s.app.env.Stdout).dim("Running. Ctrl-C ends tapin and its browsers."))
	}
}

// change tells what happened to the sidecar after the first screen.
func (s *screen) change(st daemon.State) {
	if s.app.json {
		return
	}
	p := s.app.paint(s.app.env.Stdout)
	at := p.dim(time.Now().Format("15:04:05"))
	switch st.Phase {
	case daemon.Restarting:
		s.began = time.Now()
		cause := "it ended"
		if st.Cause != nil {
			cause = clean(st.Cause.Error())
		}
		s.app.printf("  %s %s %s; starting it again in %s\n", at, p.bang(), cause, seconds(st.Pause))
	case daemon.Ready:
		s.app.printf("  %s %s ready again after %s; browsers in use were kept\n", at, p.green("✓"), seconds(time.Since(s.began)))
	case daemon.Starting, daemon.Ending:
	}
}

// alreadyRunning says so, and is no error: what was asked for is the case.
func (s *screen) alreadyRunning(ctx context.Context, pid int) error {
	control := ""
	if client, err := s.app.clientOf(ctx, s.home); err == nil {
		client.Close()
		control, _ = daemon.Control(s.home)
	}
	return s.app.answer(upAnswer{PID: pid, Home: s.home.Path(), Control: control, Provider: string(s.config.Provider), Already: true}, func() {
		where := ""
		if control != "" {
			where = fmt.Sprintf(" at http://%s", control)
		}
		s.app.printf("tapin is running already%s (pid %d).\n", where, pid)
	})
}
