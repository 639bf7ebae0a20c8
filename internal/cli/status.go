package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/store"
)

type statusAnswer struct {
	Daemon  int         `json:"daemon_pid,omitempty"`
	Sidecar int         `json:"sidecar_pid"`
	Control string      `json:"control"`
	Home    string      `json:"home"`
	Health  *api.Health `json:"health"`
	Session *api.Status `json:"session"`
	Phone   phone       `json:"phone"`
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show what runs, and what the browser shows",
		Example: "  tapin status\n  tapin status --json",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

func (a *app) status(ctx context.Context) error {
	home, trouble, err := a.runningHome()
	if err != nil {
		return err
	}
	if home == nil {
		return a.notRunning()
	}
	defer func() { _ = home.Close() }()
	if trouble != nil && (home.Private() != nil || !isRunning(home)) {
		return a.statusInTrouble(home, trouble)
	}
	client, err := a.clientOf(ctx, home, checkLock)
	if err != nil {
		return err
	}
	defer client.Close()
	answer := statusAnswer{Home: home.Path()}
	if answer.Health, err = client.Health(ctx); err != nil {
		return err
	}
	if answer.Session, err = client.Status(ctx, ""); err != nil {
		return err
	}
	running, err := daemon.Find(home)
	if err != nil {
		return err
	}
	answer.Daemon, answer.Sidecar = running.Daemon, running.Sidecar
	if answer.Control, err = daemon.Control(home); err != nil {
		return err
	}
	answer.Phone = a.phoneNow(ctx, home, client)
	return a.answer(answer, func() { a.tellStatus(answer) })
}

func isRunning(home *store.Home) bool {
	running, err := daemon.Find(home)
	return err == nil && running != daemon.Running{}
}

// statusInTrouble tells what runs in a home that others can write to. Nothing
// is asked of it: an address found there may be a stranger's, who would be sent
// the token.
func (a *app) statusInTrouble(home *store.Home, trouble error) error {
	running, err := daemon.Find(home)
	if err != nil || running == (daemon.Running{}) {
		return trouble
	}
	answer := struct {
		Daemon  int    `json:"daemon_pid,omitempty"`
		Sidecar int    `json:"sidecar_pid,omitempty"`
		Home    string `json:"home"`
		Trouble string `json:"trouble"`
		Hint    string `json:"hint"`
	}{running.Daemon, running.Sidecar, home.Path(), fault.Of(trouble).Details(), fault.Of(trouble).Advice()}
	return a.answer(answer, func() {
		p := a.paint(a.env.Stdout)
		a.rows(row{"tapin", fmt.Sprintf("%s daemon %d, sidecar %d; nothing more is asked of it", p.bang(), running.Daemon, running.Sidecar)},
			row{"home", p.bang() + " " + clean(answer.Trouble)}, row{"", clean(answer.Hint)})
	})
}

func (a *app) tellStatus(s statusAnswer) {
	p := a.paint(a.env.Stdout)
	up := time.Duration(s.Health.UptimeS) * time.Second
	mark := p.green("✓")
	if len(s.Health.Troubles) > 0 {
		mark = p.bang()
	}
	rows := []row{
		{"tapin", fmt.Sprintf("%s %s at http://%s, up %s", mark, clean(s.Health.Version), clean(s.Control), up)},
		{"home", a.tilde(s.Home)},
	}
	if s.Daemon == 0 {
		rows = append(rows, row{"daemon", p.bang() + " none: a sidecar that ends is not started again"})
	}
	for _, t := range s.Health.Troubles {
		for i, line := range troubleLines(t) {
			rows = append(rows, row{first(i, "trouble"), first(i, p.bang()+" ", "  ") + line})
		}
	}
	for i, line := range s.Phone.words(a) {
		label := "phone"
		if i > 0 {
			label = ""
		}
		rows = append(rows, row{label, line})
	}
	if !s.Session.Active {
		a.rows(append(rows, row{"session", "none; open one with: " + a.command("open", "https://example.com")})...)
		return
	}
	driver := "the agent drives"
	if s.Session.Driver == "human" {
		driver = "a person drives"
	}
	rows = append(rows,
		row{"session", fmt.Sprintf("%s, %s, %s", clean(s.Session.SessionID), clean(s.Session.Provider), driver)},
		row{"url", clean(s.Session.URL)},
		row{"title", clean(s.Session.Title)},
	)
	if len(s.Session.Tabs) > 1 {
		rows = append(rows, row{"tabs", fmt.Sprint(len(s.Session.Tabs))})
	}
	for _, d := range s.Session.Dialogs {
		rows = append(rows, row{"dialog", p.bang() + " " + clean(d.Kind) + ": " + clean(d.Message)})
	}
	for _, q := range s.Session.Questions {
		rows = append(rows, row{"asks for", p.bang() + " " + clean(strings.TrimSpace(strings.ReplaceAll(q.Kind, "_", " ")+" "+q.Name))})
	}
	if !s.Session.Deadline.IsZero() {
		rows = append(rows, row{"ends", "in " + time.Until(s.Session.Deadline).Round(time.Second).String()})
	}
	a.rows(rows...)
}
