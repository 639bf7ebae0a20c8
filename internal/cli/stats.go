package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) statsCommand() *cobra.Command {
	days := 30
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show how asking you went: how fast, how often it helped, where",
		Long: `Tells how hand-offs went over the last days: how long until somebody came and
until the agent could go on, how often that worked, which sites ask most and what
would help there, how long saved logins last, what was paid, and what billed
browsers came to.

The figures are counted from tapin's own records. Sites are named by their domain;
no page, no text and no single payment is in them.`,
		Example: "  tapin stats\n  tapin stats --days 7\n  tapin stats --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "counting", func(ctx context.Context, c *api.Client) (*api.Analytics, error) {
				return c.Analytics(ctx, days)
			}, a.tellStats)
		},
	}
	cmd.Flags().IntVar(&days, "days", days, "how far back, in `days`; 90 at most")
	return cmd
}

func (a *app) tellStats(s *api.Analytics) {
	p := a.paint(a.env.Stdout)
	if s.Counting {
		a.printf("%s hand-offs of before are still being counted; ask again in a moment\n\n", p.bang())
	}
	h := s.Handoffs
	if h.Asked+s.Takeovers+s.Approvals.Asked+len(s.Logins) == 0 {
		a.printf("Nothing yet: no agent has asked for you in %s.\n", count(s.Days, "day"))
		return
	}
	a.printf("%s\n", p.bold(fmt.Sprintf("Hand-offs, %s to %s", s.From, s.To)))
	a.rows(
		row{"asked", strings.TrimSuffix(fmt.Sprintf("%d, %d running", h.Asked, h.Running), ", 0 running")},
		row{"unblocked", helped(h)},
		row{"otherwise", otherEnds(h)},
		row{"until you came", spreadWords(h.TimeToHuman)},
		row{"until done", spreadWords(h.TimeToDone)},
		row{"took over", timesIf(s.Takeovers)},
	)
	a.tellReasons(p, s.Reasons)
	a.tellSites(p, s)
	a.tellLifetimes(p, s.Logins)
	a.tellPaid(p, s.Approvals)
	a.tellCost(p, s.Cost)
	if s.KeptDays < s.Days {
		a.printf("\n%s\n", p.dim(fmt.Sprintf("Figures go back %s: retention.handoffs keeps no more.", count(s.KeptDays, "day"))))
	}
}

func (a *app) tellReasons(p paint, reasons []api.ReasonFigures) {
	if len(reasons) < 2 {
		return
	}
	a.printf("\n%s\n", p.bold("By reason"))
	for _, r := range reasons {
		a.printf("  %s %4d  %s  %s\n", pad(clean(r.Reason), 16), r.Asked, pad(helped(r.HandoffFigures), 14), p.dim("you came: "+cmp.Or(spreadWords(r.TimeToHuman), "not known")))
	}
}

func (a *app) tellSites(p paint, s *api.Analytics) {
	if len(s.Sites) == 0 {
		return
	}
	a.printf("\n%s\n", p.bold("By site"))
	for _, site := range s.Sites {
		var why []string
		for _, r := range site.Reasons {
			why = append(why, fmt.Sprintf("%s %d", clean(r.Reason), r.Count))
		}
		a.printf("  %s %4d  %s  %s\n", pad(clean(site.Site), 24), site.Asked, pad(medianWords(site.TimeToDone), 8), p.dim(strings.Join(why, ", ")))
		if site.Advice != "" {
			a.printf("    %s %s\n", p.bang(), clean(site.Advice))
		}
	}
	if s.MoreSites > 0 {
		a.printf("  %s\n", p.dim(fmt.Sprintf("and %s more", count(s.MoreSites, "site"))))
	}
}

func (a *app) tellLifetimes(p paint, logins []api.LoginFigures) {
	if len(logins) == 0 {
		return
	}
	a.printf("\n%s\n", p.bold("Saved logins"))
	for _, l := range logins {
		text := "has not been seen to end"
		if l.Ended > 0 {
			text = fmt.Sprintf("lasts %s, %s to %s over %s", span(l.MedianS), span(l.ShortestS), span(l.LongestS), count(l.Ended, "time"))
		}
		if !l.AliveSince.IsZero() {
			text += ", works since " + l.AliveSince.Local().Format(time.DateOnly)
		}
		if l.Stale > 0 {
			text += ", signed out now"
		}
		a.printf("  %s %s\n", pad(clean(l.Site), 24), text)
	}
}

func (a *app) tellPaid(p paint, f api.ApprovalFigures) {
	if f.Asked == 0 {
		return
	}
	a.printf("\n%s\n", p.bold("Payments"))
	a.rows(
		row{"asked", fmt.Sprint(f.Asked)},
		row{"approved", fmt.Sprintf("%d by you, %d by policy", f.ByOwner, f.ByPolicy)},
		row{"denied", timesIf(f.Denied)},
		row{"not answered", timesIf(f.Expired)},
		row{"not used", timesIf(f.Unused)},
		row{"open", timesIf(f.Open)},
		row{"paid", sums(f.Paid)},
		row{"perhaps paid", sums(f.Uncertain)},
	)
}

func (a *app) tellCost(p paint, months []api.MonthOfBrowsers) {
	var rows []row
	for _, m := range months {
		if len(m.Providers) == 0 {
			continue
		}
		text := count(m.Minutes, "minute")
		if m.CapMinutes > 0 {
			text += fmt.Sprintf(" of %d", m.CapMinutes)
		}
		rows = append(rows, row{clean(m.Month), text})
	}
	if len(rows) > 0 {
		a.printf("\n%s\n", p.bold("Billed browsers"))
		a.rows(rows...)
	}
}

func helped(h api.HandoffFigures) string {
	if h.UnblockRate == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d, %.0f %%", h.Unblocked, h.Ended, 100**h.UnblockRate)
}

func otherEnds(h api.HandoffFigures) string {
	var parts []string
	for _, one := range []struct {
		n    int
		text string
	}{{h.Expired, "nobody came"}, {h.Aborted, "you declined"}, {h.Abandoned, "the agent went on"}, {h.Lost, "the browser was lost"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d×", one.text, one.n))
		}
	}
	return strings.Join(parts, ", ")
}

func timesIf(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func sums(all []api.PaidSum) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", clean(s.Amount), clean(s.Currency), count(s.Payments, "payment")))
	}
	return strings.Join(parts, ", ")
}

func spreadWords(s api.Spread) string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("half within %s, nine of ten within %s", span(s.MedianS), span(s.P90S))
}

func medianWords(s api.Spread) string {
	if s.Count == 0 {
		return "–"
	}
	return span(s.MedianS)
}
