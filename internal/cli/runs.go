package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) runsCommand() *cobra.Command {
	var q api.RunsQuery
	cmd := &cobra.Command{
		Use:   "runs [ID]",
		Short: "List what agents set out to do, and the evidence",
		Long: `Lists the runs that agents have started, the newest first; with an ID it tells
of one of them, with its evidence.`,
		Example: "  tapin runs\n  tapin runs --status NEEDS_HELP",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.TaskRun, error) {
					return c.Run(ctx, args[0], api.WaitQuery{})
				}, a.tellRun)
			}
			q.Status = strings.ToUpper(q.Status)
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.Runs, error) {
				return c.Runs(ctx, q)
			}, func(got *api.Runs) {
				if len(got.Runs) == 0 {
					a.printf("No runs.\n")
				}
				for _, r := range got.Runs {
					a.printf("%s  %s  %s  %s\n", clean(r.RunID), r.CreatedAt.Local().Format(time.DateTime), pad(r.Status, 10), clean(r.Goal))
				}
				a.tellNext(got.Next)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&q.Status, "status", "", "only those with this `status`")
	flags.IntVar(&q.Limit, "limit", 0, "at most `N` (50)")
	flags.StringVar(&q.Cursor, "cursor", "", "what follows the page before")
	complete(cmd, "status", func() []string { return []string{"RUNNING", "NEEDS_HELP", "COMPLETED", "FAILED", "CANCELLED"} })
	return cmd
}

func (a *app) tellRun(r *api.TaskRun) {
	rows := []row{{"run", clean(r.RunID)}, {"status", r.Status}, {"goal", clean(r.Goal)}, {"needs", clean(r.Help)}, {"summary", clean(r.Summary)}}
	for _, n := range r.Notes {
		rows = append(rows, row{"note", n.At.Local().Format(time.TimeOnly) + "  " + clean(n.Text)})
	}
	for _, e := range r.Evidence {
		rows = append(rows, row{"evidence", fmt.Sprintf("%s %s  %s", clean(e.Kind), clean(e.Ref), clean(e.Summary))})
	}
	a.rows(rows...)
}

func (a *app) todosCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "todos",
		Short:   "List what you put off",
		Long:    "Lists what an agent wanted your help with when you had no time.",
		Example: "  tapin todos\n  tapin todos done todo_06cz3qmhc04x2p5ae9gk8v71",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.Todos, error) {
				return c.Todos(ctx)
			}, func(got *api.Todos) {
				if len(got.Todos) == 0 {
					a.printf("Nothing was put off. What waits now: %s\n", a.command("handoff", "list", "--status", "RUNNING"))
				}
				for _, t := range got.Todos {
					a.printf("%s  %s  %s  %s\n", clean(t.TodoID), t.CreatedAt.Local().Format(time.DateTime), clean(bare(t.URL)), clean(t.Task))
				}
			})
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "done ID", Short: "Take one off the list", Example: "  tapin todos done todo_06cz3qmhc04x2p5ae9gk8v71", Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.TodoDone, error) {
				return c.TodoDone(ctx, args[0])
			}, func(got *api.TodoDone) { a.printf("%s is done.\n", clean(got.TodoID)) })
		},
	})
	return cmd
}
