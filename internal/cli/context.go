package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "context",
		Aliases: []string{"contexts"},
		Short:   "Show and carry the saved logins",
		Long: `A saved login is what makes a browser logged in: its cookies and storages, kept
sealed under a name. A session that is started with one needs nobody to log in.`,
		Example: `  tapin context list
  tapin context show chase
  tapin context check chase
  tapin context export chase --to age1… -o chase.json
  tapin context import chase chase.json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List every login, and how fresh it is", Example: "  tapin context list", Args: arguments(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return drive(cmd.Context(), a, "reading the logins", func(ctx context.Context, c *api.Client) (*api.Contexts, error) {
					return c.Contexts(ctx)
				}, a.tellContexts)
			},
		},
		&cobra.Command{
			Use: "show NAME", Short: "Show what is known of a login", Example: "  tapin context show chase", Args: arguments(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				return drive(cmd.Context(), a, "reading the login", func(ctx context.Context, c *api.Client) (*api.Context, error) {
					return c.Context(ctx, args[0])
				}, a.tellContext)
			},
		},
		a.contextCheckCommand(),
		&cobra.Command{
			Use: "rename NAME NEW", Short: "Give a login another name", Example: "  tapin context rename chase bank", Args: arguments(cobra.ExactArgs(2)),
			RunE: func(cmd *cobra.Command, args []string) error {
				return drive(cmd.Context(), a, "renaming", func(ctx context.Context, c *api.Client) (*api.RenameAnswer, error) {
					return c.RenameContext(ctx, args[0], api.RenameRequest{To: args[1]})
				}, func(got *api.RenameAnswer) { a.rows(row{"login", clean(got.Name)}, row{"was", clean(got.Was)}) })
			},
		},
		&cobra.Command{
			Use: "delete NAME", Short: "Delete a login wherever tapin keeps it", Example: "  tapin context delete chase", Args: arguments(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				return drive(cmd.Context(), a, "deleting", func(ctx context.Context, c *api.Client) (*api.DeletedContext, error) {
					return c.DeleteContext(ctx, args[0])
				}, a.tellDeleted)
			},
		},
		a.contextExportCommand(), a.contextImportCommand(),
	)
	return cmd
}

func (a *app) verdict(result string) string {
	p := a.paint(a.env.Stdout)
	switch result {
	case "valid":
		return p.green("✓") + " "
	case "expired":
		return p.red("✗") + " "
	}
	return p.bang() + " "
}

func (a *app) tellContexts(all *api.Contexts) {
	if len(all.Contexts) == 0 {
		a.printf("No login is saved yet.\n")
		return
	}
	p := a.paint(a.env.Stdout)
	lines := [][]string{{"NAME", "SITE", "LAST USED", "VERIFIED", ""}}
	for _, c := range all.Contexts {
		lines = append(lines, []string{clean(c.Name), clean(c.Domain), day(c.LastUsed), day(c.LastVerified), p.dim(freshness(c))})
	}
	widths := make([]int, 4)
	for _, line := range lines {
		for i := range widths {
			widths[i] = max(widths[i], len([]rune(line[i])))
		}
	}
	for i, line := range lines {
		out := ""
		for j, width := range widths {
			out += pad(line[j], width) + "  "
		}
		out = strings.TrimRight(out+line[4], " ")
		if i == 0 {
			out = p.dim(out)
		}
		a.printf("%s\n", out)
	}
}

// freshness says in a few words what matters most about a login now.
func freshness(c api.Context) string {
	switch {
	case c.Problem != nil:
		return "cannot be used: " + clean(c.Problem.Details)
	case c.InUseBy != "":
		return "in use by " + clean(c.InUseBy)
	case !c.StaleSince.IsZero():
		return "stale since " + c.StaleSince.Local().Format(time.DateOnly)
	case !c.Saved && c.BrowserbaseContextID == "":
		return "nothing saved yet"
	case c.LastVerified == "":
		return "not verified"
	}
	return ""
}

func day(s string) string {
	if s == "" {
		return "-"
	}
	return clean(s[:min(len(s), len(time.DateOnly))])
}

func (a *app) tellContext(c *api.Context) {
	p := a.paint(a.env.Stdout)
	rows := []row{
		{"login", clean(c.Name)}, {"site", clean(c.Domain)}, {"notes", clean(c.Notes)}, {"provider", clean(c.Provider)}, {"browserbase", clean(c.BrowserbaseContextID)},
		{"last used", clean(c.LastUsed)},
		{"verified", verified(c)},
	}
	if c.Saved {
		rows = append(rows, row{"saved", fmt.Sprintf("%s, %s, %s", c.SavedAt.Local().Format("2006-01-02 15:04"), count(c.Cookies, "cookie"), size(int(c.Bytes)))})
	}
	for _, origin := range c.Origins {
		rows = append(rows, row{"storage of", clean(origin)})
	}
	if !c.StaleSince.IsZero() {
		rows = append(rows, row{"stale", p.bang() + " since " + c.StaleSince.Local().Format("2006-01-02 15:04")})
	}
	if l := c.Lifetime; l != nil && l.Count > 0 {
		rows = append(rows, row{"lasts", fmt.Sprintf("%s (median of %d), %s the last time", span(l.MedianS), l.Count, span(l.LastS))})
	}
	if c.LastCheck != nil {
		rows = append(rows, row{"last check", fmt.Sprintf("%s%s, %s", a.verdict(c.LastCheck.Result), clean(c.LastCheck.Result), c.LastCheck.At.Local().Format("2006-01-02 15:04"))})
	}
	if c.InUseBy != "" {
		rows = append(rows, row{"in use by", clean(c.InUseBy)})
	}
	if pay := c.PaymentApproval; pay != nil {
		rows = append(rows, row{"payments", policy(pay)})
	}
	for _, file := range c.Damaged {
		rows = append(rows, row{"damaged", p.bang() + " " + clean(file) + " was set aside"})
	}
	if c.Problem != nil {
		rows = append(rows, row{"problem", p.bang() + " " + clean(c.Problem.Details)}, row{"", clean(c.Problem.Hint)})
	}
	a.rows(rows...)
}

func verified(c *api.Context) string {
	if c.LastVerified == "" {
		return "never"
	}
	how := map[string]string{"check": "by its check", "handoff": "in a hand-off", "owner": "by the owner"}[c.VerifiedBy]
	return strings.TrimSpace(clean(c.LastVerified) + " " + how)
}

func policy(pay *api.PaymentApproval) string {
	out := "up to " + clean(strings.TrimSpace(pay.MaxAmount+" "+pay.Currency))
	if !pay.AutoApprove {
		out += ", each one asked for"
	}
	if pay.MonthlyBudget != "" {
		out += ", " + clean(pay.MonthlyBudget) + " a month"
	}
	if pay.Expires != "" {
		out += ", until " + clean(pay.Expires)
	}
	return out
}

// span is a length of time in the unit that a person would use.
func span(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	for _, u := range []struct {
		from, of time.Duration
		name     string
	}{{48 * time.Hour, 24 * time.Hour, "day"}, {2 * time.Hour, time.Hour, "hour"}, {100 * time.Second, time.Minute, "minute"}} {
		if d >= u.from {
			return count(int(d.Round(u.of)/u.of), u.name)
		}
	}
	return count(int(seconds), "second")
}

func (a *app) tellDeleted(gone *api.DeletedContext) {
	var what []string
	for _, part := range []struct {
		gone bool
		name string
	}{
		{gone.State, "its state"}, {gone.Previous, "the state before"}, {gone.Damaged > 0, count(gone.Damaged, "damaged file")},
		{gone.Entry, "its lines in the manifest"}, {gone.History, "its history"},
	} {
		if part.gone {
			what = append(what, part.name)
		}
	}
	a.rows(row{"deleted", clean(gone.Name)}, row{"gone", strings.Join(what, ", ")})
	if gone.Remains != "" {
		p := a.paint(a.env.Stdout)
		a.printf("%s The Browserbase context %s is still there; delete it at Browserbase.\n", p.bang(), clean(gone.Remains))
	}
}
