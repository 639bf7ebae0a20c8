package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/browser/local"
	"tapin/internal/daemon"
	"tapin/internal/store"
)

const (
	// downWithin is longer than a daemon and a sidecar are given one after the
	// other, each to end when asked and then to be killed.
	downWithin = 16 * time.Second
	// browsersWithin bounds the end of the browsers that were left.
	browsersWithin = 10 * time.Second
)

type downAnswer struct {
	Daemon   int `json:"daemon_pid,omitempty"`
	Sidecar  int `json:"sidecar_pid,omitempty"`
	Sessions int `json:"sessions"`
	Browsers int `json:"browsers"` // those that were left without a sidecar
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
	home, trouble, err := a.runningHome()
	if err != nil {
		return err
	}
	var answer downAnswer
	if home != nil {
		defer func() { _ = home.Close() }()
		if trouble == nil {
			answer.Sessions = openSessions(ctx, home)
		}
		done := a.progress("ending tapin")
		defer done()
		err = answer.end(ctx, home)
		done()
		if err != nil {
			return err
		}
	}
	if answer == (downAnswer{}) && trouble != nil {
		return trouble
	}
	return a.answer(answer, func() { a.printf("%s\n", answer.sentence()) })
}

// end ends what runs under a home: the daemon, the sidecar, and the browsers
// that they may have left because they were killed.
func (d *downAnswer) end(ctx context.Context, home *store.Home) error {
	stopping, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	ended, err := daemon.Stop(stopping, home)
	d.Daemon, d.Sidecar = ended.Daemon, ended.Sidecar
	if err != nil {
		return err
	}
	if home.Private() != nil {
		return nil // its folders may be anybody's, and ending a browser removes one
	}
	d.Browsers, err = endBrowsers(ctx, home)
	return err
}

func (d *downAnswer) sentence() string {
	var what []string
	if d.Daemon != 0 {
		what = append(what, fmt.Sprintf("the daemon (pid %d)", d.Daemon))
	}
	if d.Sidecar != 0 {
		what = append(what, fmt.Sprintf("the sidecar (pid %d)", d.Sidecar))
	}
	if d.Sessions > 0 && len(what) > 0 {
		what = append(what, count(d.Sessions, "session"))
	}
	if d.Browsers > 0 {
		what = append(what, count(d.Browsers, "browser")+" left behind")
	}
	if len(what) == 0 {
		return "Nothing was running."
	}
	return "Ended " + strings.Join(what, ", ") + "."
}

// endBrowsers ends the browsers that no sidecar looks after any more. A holder
// keeps its browser for a sidecar to come; after down there is none.
func endBrowsers(ctx context.Context, home *store.Home) (ended int, err error) {
	if _, held, err := home.LockHolder("sidecar"); err != nil || held {
		return 0, err // somebody starts tapin meanwhile, and goes on with them
	}
	return endBrowsersAlone(ctx, home)
}

// endBrowsersAlone is endBrowsers for who keeps sidecars from starting.
func endBrowsersAlone(ctx context.Context, home *store.Home) (ended int, err error) {
	const run = "run"
	if names, err := home.List(run); err != nil || len(names) == 0 {
		return 0, err
	}
	epoch, err := home.Counter("epoch")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, browsersWithin)
	defer cancel()
	provider := local.New(filepath.Join(home.Path(), run), epoch, nil)
	own, err := provider.Own(ctx, nil)
	for _, ref := range own {
		if e := provider.End(ctx, ref); e != nil {
			err = errors.Join(err, fmt.Errorf("browser %s: %w", ref.ID, e))
			continue
		}
		ended++
	}
	return ended, err
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
