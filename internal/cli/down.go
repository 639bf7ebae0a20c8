package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/daemon"
	"tapin/internal/store"
)

// downWithin is longer than the daemon gives its sidecar.
const downWithin = 8 * time.Second

type downAnswer struct {
	Daemon   int `json:"daemon_pid,omitempty"`
	Sidecar  int `json:"sidecar_pid,omitempty"`
	Sessions int `json:"sessions"`
}

func (a *app) downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End tapin and its browsers",
		Long: `Ends the tapin that runs under this home, with its sessions and browsers.
When nothing is running it says so, and that is fine.`,
		Example: "  tapin down",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context()) },
	}
}

func (a *app) down(ctx context.Context) error {
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	var ended daemon.Running
	sessions := 0
	if home != nil {
		defer func() { _ = home.Close() }()
		sessions = openSessions(ctx, home)
		done := a.progress("ending tapin")
		defer done()
		ctx, cancel := context.WithTimeout(ctx, downWithin)
		defer cancel()
		ended, err = daemon.Stop(ctx, home)
		done()
		if err != nil {
			return err
		}
	}
	return a.answer(downAnswer{Daemon: ended.Daemon, Sidecar: ended.Sidecar, Sessions: sessions}, func() {
		var what []string
		if ended.Daemon != 0 {
			what = append(what, fmt.Sprintf("the daemon (pid %d)", ended.Daemon))
		}
		if ended.Sidecar != 0 {
			what = append(what, fmt.Sprintf("the sidecar (pid %d)", ended.Sidecar))
		}
		switch {
		case len(what) == 0:
			a.printf("Nothing was running.\n")
			return
		case sessions == 1:
			what = append(what, "1 session")
		case sessions > 1:
			what = append(what, fmt.Sprintf("%d sessions", sessions))
		}
		a.printf("Ended %s.\n", strings.Join(what, ", "))
	})
}

// openSessions counts what is about to end; a sidecar that does not answer is
// not worth waiting for.
func openSessions(ctx context.Context, home *store.Home) int {
	address, _, err := serving(home)
	if err != nil || address == "" {
		return 0
	}
	client, err := clientAt(home, address)
	if err != nil {
		return 0
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	health, err := client.Health(ctx)
	if err != nil {
		return 0
	}
	return health.Sessions
}
