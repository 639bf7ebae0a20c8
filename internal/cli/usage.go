package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) usageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "usage",
		Short: "Show what billed browsers came to this month",
		Long: `Tells how many minutes of billed browsers this calendar month (in UTC) came to,
and which of them run now. Local browsers cost nothing and are not counted. The
limit is usage.cap_minutes in config.yaml.`,
		Example: "  tapin usage\n  tapin usage --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.Usage, error) {
				return c.Usage(ctx)
			}, a.tellUsage)
		},
	}
}

func (a *app) tellUsage(u *api.Usage) {
	total := fmt.Sprintf("%d minutes", u.Minutes)
	if u.CapMinutes > 0 {
		total += fmt.Sprintf(" of %d", u.CapMinutes)
	}
	rows := []row{{"month", clean(u.Month)}, {"used", total}}
	for _, p := range u.Providers {
		rows = append(rows, row{clean(p.Provider), fmt.Sprintf("%d sessions, %s", p.Sessions, time.Duration(p.Seconds)*time.Second)})
	}
	for _, b := range u.Running {
		rows = append(rows, row{"running", fmt.Sprintf("%s since %s, until %s at the latest", clean(b.BrowserID), b.Since.Local().Format(time.TimeOnly), b.Until.Local().Format(time.TimeOnly))})
	}
	a.rows(rows...)
}
