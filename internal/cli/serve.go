package cli

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tapin/internal/browser/local/holder"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// readyWord is what a process that was started by another says once it serves.
const readyWord = "READY"

func (a *app) sidecarCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sidecar",
		Short: "Run the part that drives browsers, by itself",
		Long: `Runs the sidecar in the foreground: the sessions and their API, without the
daemon that would start it again. "tapin up" is what you want; this is for
process managers of your own. It prints READY once it serves.`,
		Example: "  tapin sidecar",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runSidecar(cmd.Context()) },
	}
	a.handedFlag(cmd)
	return cmd
}

func (a *app) runSidecar(ctx context.Context) error {
	// Its stderr is a pipe to the daemon. When the daemon is killed, a line for
	// the log must not end the sidecar too. Caught, not ignored: browsers would
	// inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer lean()()
	cfg, err := a.handedSettings()
	if err != nil {
		return err
	}
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	return sidecar.Run(ctx, sidecar.Options{
		Home: home, Config: cfg, Version: buildVersion(), Logger: a.processLogger(a.env.Stderr),
		Vault:   &vault.Options{Getenv: a.getenv, Keyring: a.env.Keyring},
		OnReady: func(string) { a.printf("%s\n", readyWord) },
		OnBegin: a.sayBeginning(),
		Guarded: true, Plant: a.env.Plant, Planted: a.env.Planted,
	})
}

// sayBeginning tells the daemon which room begins; a person would not care.
func (a *app) sayBeginning() func(room string, begun bool) {
	if !a.json {
		return nil
	}
	return func(room string, begun bool) {
		if raw, err := json.Marshal(daemon.Beginning{Room: room, Begun: begun}); err == nil {
			a.printf("%s\n", raw)
		}
	}
}

func (a *app) holderCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "holder [NAME]",
		Short:  "Hold one browser",
		Hidden: true,
		Args:   arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer lean()()
			return holder.Main(cmd.Context(), a.env.Stdin, a.env.Stdout, &holder.Options{Guarded: true, Version: buildVersion()})
		},
	}
}

// daemonCommand is what up --background leaves running.
func (a *app) daemonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "daemon",
		Short:  "Run the daemon without a screen",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // whoever started it has gone
			cfg, err := a.handedSettings()
			if err != nil {
				return err
			}
			home, err := a.openHome()
			if err != nil {
				return err
			}
			defer func() { _ = home.Close() }()
			said := false
			return a.runDaemon(cmd.Context(), home, cfg, func(s daemon.State) {
				if s.Phase == daemon.Ready && !said {
					said = true
					a.printf("%s\n", readyWord)
				}
			}, nil)
		},
	}
	a.handedFlag(cmd)
	return cmd
}

// runDaemon runs the daemon with a sidecar made of this same program.
func (a *app) runDaemon(ctx context.Context, home *store.Home, cfg *config.Config, onState func(daemon.State), onReach func(daemon.Reach)) error {
	defer lean()()
	log, err := daemon.OpenLog(home, "daemon.log", &daemon.LogOptions{Keep: cfg.Retention.Logs.Std()})
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command, input, err := a.self(home, "sidecar")
	if err != nil {
		return err
	}
	leash := []string{command[0], "leash"}
	var people *daemon.Telegram
	if !a.noChat {
		if people, err = a.telegram(ctx, home, cfg); err != nil {
			return err
		}
	}
	return daemon.Run(ctx, daemon.Options{
		Telegram: people,
		Home:     home, Command: command, Input: input, KeepLogs: cfg.Retention.Logs.Std(),
		OnResume: cfg.OnResume, Logger: a.processLogger(log), OnState: onState, OnReach: onReach,
		Version: buildVersion(), Guarded: true, Plant: a.env.Plant, Planted: a.env.Planted,
		Tunnel: daemon.TunnelOptions{Kind: cfg.Tunnel, Leash: leash, PublicURL: strings.TrimRight(cfg.PublicURL, "/")},
	})
}

// processLogger is the log of a process that runs for long.
func (a *app) processLogger(w io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// self is the command that runs another part of tapin on the same home, and the
// settings given by flags, which are for its standard input: a command line is
// for every user of the machine to read. It answers in JSON, so that its
// failure can be told as it is.
func (a *app) self(home *store.Home, part string) (command []string, input []byte, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	command = []string{program, "--json", "--home", home.Path()}
	if a.verbose {
		command = append(command, "--verbose")
	}
	command = append(command, part)
	if len(a.set) == 0 {
		return command, nil, nil
	}
	input, err = json.Marshal(a.set)
	return append(command, "--"+handedFlag), input, err
}

const handedFlag = "settings-from-stdin"

func (a *app) handedFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.handed, handedFlag, false, "read further settings from standard input, as a JSON list of key=value")
	if err := cmd.Flags().MarkHidden(handedFlag); err != nil {
		panic(err) // a flag that does not exist: a mistake in this package
	}
}

// maxHanded is more than a command line can hold.
const maxHanded = 4 << 20

// handedSettings are the settings with those that self handed over.
func (a *app) handedSettings() (*config.Config, error) {
	if a.handed {
		var set []string
		if err := json.NewDecoder(io.LimitReader(a.env.Stdin, maxHanded)).Decode(&set); err != nil {
			return nil, fault.New(fault.InvalidRequest, "read settings", "standard input holds no JSON list of key=value")
		}
		a.set = append(a.set, set...)
	}
	cfg, _, err := a.settings()
	return cfg, err
}
