package cli

import (
	"context"
	"fmt"

	"tapin/internal/api"
	"tapin/internal/daemon"
	"tapin/internal/guard"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

// troubleLines is one thing that does not work, for a person: what, and below
// it what to do.
func troubleLines(t trouble.Trouble) []string {
	lines := []string{clean(t.Sentence())}
	if t.Hint != "" {
		lines = append(lines, clean(t.Hint))
	}
	return lines
}

// first is the text of the first line of several; the others have the second
// text, or none.
func first(i int, text string, others ...string) string {
	if i == 0 {
		return text
	}
	if len(others) > 0 {
		return others[0]
	}
	return ""
}

// troubles says on the first screen what does not work.
func (s *screen) troubles(ctx context.Context) {
	client, err := s.app.clientOf(ctx, s.home)
	if err != nil {
		return
	}
	defer client.Close()
	health, err := client.Health(ctx)
	if err != nil {
		return
	}
	p := s.app.paint(s.app.env.Stdout)
	for _, t := range health.Troubles {
		for i, line := range troubleLines(t) {
			s.line(first(i, "trouble"), first(i, p.bang()+" ", "  ")+line)
		}
	}
}

// examineTroubles asks the sidecar that runs what does not work there, and looks
// at what the next start would leave out.
func (a *app) examineTroubles(ctx context.Context, home *store.Home, running daemon.Running) (found []finding) {
	for _, t := range a.troublesNow(ctx, home, running) {
		f := finding{Name: "trouble", Verdict: warn, Text: troubleLines(t)[0], Fix: clean(t.Hint)}
		switch t.State {
		case trouble.Restarting:
			f.Verdict = note
		case trouble.LeftOut:
			continue // said below, where it can be mended
		case trouble.GivenUp, trouble.SetAside, trouble.Unreadable, trouble.Unfinished:
		}
		found = append(found, f)
	}
	out := guard.OpenLeftOut(home.Path(), buildVersion())
	for _, one := range out.List() {
		if one.Tried {
			continue
		}
		found = append(found, finding{
			Name: "trouble", Verdict: warn,
			Text: clean(trouble.Trouble{
				What: one.Room, State: trouble.LeftOut,
				Details: fmt.Sprintf("it took tapin down again and again (%s). It is tried again after %s.", one.Report, one.Until().Local().Format("2006-01-02 15:04 MST")),
			}.Sentence()),
			Fix: a.command("logs", "--crash") + " shows the report; " + a.command("doctor", "--fix") + " has the next start try it again.",
			mend: &mend{does: "have the next start try " + clean(one.Room) + " again", do: func(context.Context) (string, error) {
				return "The next start tries everything again: " + a.command("down") + ", then " + a.command("up") + ".", out.Clear()
			}},
		})
	}
	return found
}

// troublesNow is the one list: of the sidecar, or of the daemon that has none.
func (a *app) troublesNow(ctx context.Context, home *store.Home, running daemon.Running) []trouble.Trouble {
	control, err := daemon.Control(home)
	if running.Sidecar != 0 && err == nil {
		if client, err := api.NewClient("http://"+control, secret.Text{}, nil); err == nil {
			defer client.Close()
			if health, err := client.Health(ctx); err == nil {
				return health.Troubles
			}
		}
	}
	if running.Daemon != 0 {
		return guard.ReadBoard(home.Path())
	}
	return nil
}
