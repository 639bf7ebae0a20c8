package cli

import (
	"context"

	"tapin/internal/api"
	"tapin/internal/daemon"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

// troubleLines is one thing that does not work, for a person: what, and below
// it what to do.
func troubleLines(t trouble.Trouble) []string {
	lines := []string{clean(t.What) + " " + troubleWords[t.State] + ": " + clean(t.Details)}
	if t.Hint != "" {
		lines = append(lines, clean(t.Hint))
	}
	return lines
}

// troubleWords are the states as a sentence goes on with them.
var troubleWords = map[trouble.State]string{
	trouble.Restarting: "failed and is started again",
	trouble.GivenUp:    "failed too often and is off",
	trouble.LeftOut:    "is left out",
	trouble.SetAside:   "was put aside and made anew",
	trouble.Unreadable: "cannot be read",
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

// examineTroubles asks the sidecar that runs what does not work there.
func examineTroubles(ctx context.Context, home *store.Home, sidecar int) []finding {
	if sidecar == 0 {
		return nil
	}
	control, err := daemon.Control(home)
	if err != nil {
		return nil // it is only just starting
	}
	client, err := api.NewClient("http://"+control, secret.Text{}, nil)
	if err != nil {
		return nil
	}
	defer client.Close()
	health, err := client.Health(ctx)
	if err != nil {
		return []finding{findingOf("running", warn, err)}
	}
	var found []finding
	for _, t := range health.Troubles {
		f := finding{Name: "trouble", Verdict: warn, Text: troubleLines(trouble.Trouble{What: t.What, State: t.State, Details: t.Details})[0], Fix: clean(t.Hint)}
		if t.State == trouble.Restarting {
			f.Verdict = note
		}
		found = append(found, f)
	}
	return found
}
