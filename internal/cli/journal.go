package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) journalCommand() *cobra.Command {
	var q api.JournalQuery
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Show what was done in the browser, and by whom",
		Long: `Shows the journal: one line for each operation, with who did what on which
site, how long it took and what came of it. What was typed or read is never in it.
With --json each entry is one line of JSON.`,
		Example: "  tapin journal -n 20\n  tapin journal --since 24h --outcome failed\n  tapin journal --summary",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.journal(cmd.Context(), q) },
	}
	f := cmd.Flags()
	f.IntVarP(&q.Recent, "recent", "n", 0, "how many of the newest `entries` (default 100)")
	f.StringVar(&q.Since, "since", "", "only entries since a `time`: 2h, 7d or 2026-01-31T09:00:00Z")
	f.BoolVar(&q.Summary, "summary", false, "count them instead")
	f.StringVar(&q.Who, "who", "", "only those of `agent`, owner or tapin")
	f.StringVar(&q.What, "what", "", "only this `operation`, or family of them: session.click, session")
	f.StringVar(&q.SessionID, "session", "", "only those of one session, by its `id`")
	f.StringVar(&q.Outcome, "outcome", "", "only those with this `outcome`: ok, a code, or failed")
	return cmd
}

func (a *app) journal(ctx context.Context, q api.JournalQuery) error {
	if _, err := api.Since(q.Since, time.Now()); err != nil {
		return err
	}
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.Journal(ctx, q)
	if err != nil {
		return err
	}
	if a.json {
		if answer.Summary != nil {
			return a.object(true, answer)
		}
		for _, e := range answer.Entries {
			raw, err := json.Marshal(e)
			if err != nil {
				return err
			}
			a.printf("%s\n", raw)
		}
		return nil
	}
	a.tellEntries(answer)
	if answer.Summary != nil {
		a.tellSummary(answer.Summary)
	}
	return nil
}

func (a *app) tellEntries(answer *api.JournalAnswer) {
	p := a.paint(a.env.Stdout)
	if len(answer.Entries) == 0 && answer.Summary == nil {
		a.printf("Nothing is in the journal that fits.\n")
	}
	for _, e := range answer.Entries {
		outcome := p.green(clean(e.Outcome))
		if e.Outcome != "ok" {
			outcome = p.red(clean(e.Outcome))
		}
		line := fmt.Sprintf("%s  %s  %s  %s", p.dim(e.At.Local().Format("2006-01-02 15:04:05")), pad(clean(e.Who), 5), pad(clean(e.What), 20), outcome)
		if e.Origin != "" {
			line += "  " + clean(e.Origin)
		}
		a.printf("%s  %s\n", line, p.dim(took(e.TookMS)))
	}
	if answer.More {
		a.printf("%s\n", p.dim("There are older ones; ask for more with -n."))
	}
}

func (a *app) tellSummary(s *api.JournalSummary) {
	if s.Entries == 0 {
		a.printf("Nothing is in the journal that fits.\n")
		return
	}
	a.printf("%s in %s, %d failed, from %s to %s\n", count(s.Entries, "operation"), count(s.Sessions, "session"), s.Failed,
		s.First.Local().Format("2006-01-02 15:04"), s.Last.Local().Format("2006-01-02 15:04"))
	p := a.paint(a.env.Stdout)
	for _, part := range []struct {
		title string
		rows  []api.JournalTally
	}{{"What", s.ByWhat}, {"Who", s.ByWho}, {"Outcome", s.Outcomes}} {
		a.printf("\n%s\n", p.bold(part.title))
		for _, t := range part.rows {
			failed := ""
			if t.Failed > 0 {
				failed = p.red(fmt.Sprintf("  %d failed", t.Failed))
			}
			a.printf("  %s %6d  %s%s\n", pad(clean(t.Name), 24), t.Count, p.dim(took(t.TookMS/float64(t.Count))+" each"), failed)
		}
	}
}

// took writes milliseconds for people.
func took(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

func (a *app) cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "End what sessions left behind",
		Long: `Ends browsers that tapin started and that no session uses any more, and takes
up again what can be. A live session is never touched, nor a browser that tapin
did not start. What cannot be judged is left alone and named.`,
		Example: "  tapin cleanup",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			done := a.progress("cleaning up")
			defer done()
			answer, err := client.Cleanup(cmd.Context())
			done()
			if err != nil {
				return err
			}
			return a.answer(answer, func() { a.tellCleanup(answer) })
		},
	}
}

func (a *app) tellCleanup(c *api.Cleanup) {
	if len(c.Closed)+len(c.Reconnected)+len(c.LeftAlone) == 0 {
		a.printf("Nothing was left behind.\n")
		return
	}
	p := a.paint(a.env.Stdout)
	for _, part := range []struct {
		title string
		ids   []string
	}{{"closed", c.Closed}, {"picked up again", c.Reconnected}, {p.bang() + " left alone, could not be judged", c.LeftAlone}} {
		for _, id := range part.ids {
			a.printf("%s  %s\n", clean(id), part.title)
		}
	}
}
