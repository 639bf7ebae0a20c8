package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/daemon"
	"tapin/internal/fault"
)

// logPoll is how soon a new line is shown.
const logPoll = 250 * time.Millisecond

type logsOptions struct {
	follow bool
	since  string
	last   int
	crash  bool
	all    bool
}

func (a *app) logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show what tapin's processes say",
		Long: `Shows the logs of the daemon and the sidecar as one, oldest line first. They
tell of tapin's own doings; what was done in the browser is in the journal.

With --crash it shows the newest crash report instead, and with --all a line for
each that is kept. A report holds functions and lines of tapin's own program,
versions, and the names of the last operations: no argument, and nothing of a page.`,
		Example: "  tapin logs\n  tapin logs -f\n  tapin logs --since 2h\n  tapin logs --crash",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.all && !o.crash {
				return fault.New(fault.InvalidRequest, "", "--all goes with --crash").WithHint("All lines of the logs: --lines 0.")
			}
			if o.crash {
				return a.crashes(o.all)
			}
			return a.logs(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with new lines until Ctrl-C")
	cmd.Flags().StringVar(&o.since, "since", "", "only lines since a `time`: 2h, 7d or 2026-01-31T09:00:00Z")
	cmd.Flags().IntVarP(&o.last, "lines", "n", 200, "how many of the newest `lines`; 0 means all")
	cmd.Flags().BoolVar(&o.crash, "crash", false, "show the newest crash report")
	cmd.Flags().BoolVar(&o.all, "all", false, "with --crash: list all reports that are kept")
	return cmd
}

func (a *app) logs(ctx context.Context, o logsOptions) error {
	since, err := api.Since(o.since, time.Now())
	if err != nil {
		return err
	}
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	if home == nil {
		return a.notRunning()
	}
	defer func() { _ = home.Close() }()
	tail := daemon.OpenTail(home)
	defer func() { _ = tail.Close() }()
	lines, err := tail.Read()
	if err != nil {
		return err
	}
	for len(lines) > 0 && lines[0].At.Before(since) {
		lines = lines[1:]
	}
	if o.last > 0 {
		lines = lines[max(0, len(lines)-o.last):]
	}
	if err := a.tellLines(lines); err != nil || !o.follow {
		return err
	}
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how following ends
		case <-tick.C:
		}
		if lines, err = tail.Read(); err != nil {
			return err
		}
		if err := a.tellLines(lines); err != nil {
			return err
		}
	}
}

func (a *app) tellLines(lines []daemon.Line) error {
	p := a.paint(a.env.Stdout)
	for _, l := range lines {
		if a.json {
			raw, err := json.Marshal(l)
			if err != nil {
				return err
			}
			a.printf("%s\n", raw)
			continue
		}
		a.printf("%s %s\n", p.dim(pad(l.Part, 7)), harmless(l.Text))
	}
	return nil
}
