package cli

import (
	"context"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

func (a *app) contextCheckCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "check NAME|--all", Short: "Find out whether a login still works",
		Long: `Opens the address of the login's check in a browser of its own, and looks for
what the check names. The manifest says how: check: {url: …, text: …}.

With --all it goes through every login that has a check, one after the other.`,
		Example: `  tapin context check chase
  tapin context check --all`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return fault.New(fault.InvalidRequest, "", "name one login, or say --all").WithHint("tapin context list names them.")
			}
			if all {
				return drive(cmd.Context(), a, "looking at the sites", checkAll, a.tellChecks)
			}
			return drive(cmd.Context(), a, "looking at the site", func(ctx context.Context, c *api.Client) (*api.CheckAnswer, error) {
				return c.CheckContext(ctx, args[0])
			}, func(got *api.CheckAnswer) {
				a.rows(row{"login", clean(got.Name)}, row{"result", a.verdict(got.Result) + clean(got.Result) + ": " + clean(got.Reason)})
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every login that has a check")
	return cmd
}

// checks is what came of all of them.
type checks struct {
	Checks  []api.CheckAnswer `json:"checks"`
	Without []string          `json:"without"` // logins of which nobody has said how
}

// checkAll checks one login after the other. That one cannot be checked now
// says nothing of the others.
func checkAll(ctx context.Context, c *api.Client) (*checks, error) {
	known, err := c.Contexts(ctx)
	if err != nil {
		return nil, err
	}
	out := &checks{Checks: []api.CheckAnswer{}, Without: []string{}}
	for _, login := range known.Contexts {
		if login.Check == nil {
			out.Without = append(out.Without, login.Name)
			continue
		}
		got, err := c.CheckContext(ctx, login.Name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			got = &api.CheckAnswer{Name: login.Name, ContextCheck: api.ContextCheck{Result: "unknown", Reason: fault.Of(err).Details()}}
		}
		out.Checks = append(out.Checks, *got)
	}
	return out, nil
}

func (a *app) tellChecks(all *checks) {
	rows := make([]row, 0, len(all.Checks)+len(all.Without))
	for _, got := range all.Checks {
		rows = append(rows, row{clean(got.Name), a.verdict(got.Result) + clean(got.Result) + ": " + clean(got.Reason)})
	}
	for _, name := range all.Without {
		rows = append(rows, row{clean(name), a.paint(a.env.Stdout).dim("has no check")})
	}
	if len(rows) == 0 {
		a.printf("No login is saved yet.\n")
		return
	}
	a.rows(rows...)
}
