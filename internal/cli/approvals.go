package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

func (a *app) approvalsCommand() *cobra.Command {
	var q api.ApprovalsQuery
	var export bool
	cmd := &cobra.Command{
		Use: "approvals", Short: "List payments that were asked for",
		Long: `Lists the payments that agents asked for, the newest first: what the agent said,
what the page showed, who decided, and what became of the click.

With --export all of them are written as CSV, for your books.`,
		Example: "  tapin approvals --status pending\n  tapin approvals --export > payments.csv", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if export {
				return a.exportApprovals(cmd.Context(), q)
			}
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.Approvals, error) {
				return c.Approvals(ctx, q)
			}, func(got *api.Approvals) {
				if len(got.Approvals) == 0 {
					a.printf("No payments.\n")
				}
				for _, one := range got.Approvals {
					a.printf("%s  %s  %s  %s %s  %s  %s\n", clean(one.ApprovalID), one.CreatedAt.Local().Format(time.DateTime),
						pad(one.Status, 8), clean(one.Amount), clean(one.Currency), clean(one.Site), clean(one.Payee))
					for _, d := range one.Differs {
						a.printf("    %s %s\n", a.paint(a.env.Stdout).bang(), clean(d))
					}
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
	flags.BoolVar(&export, "export", false, "write all of them as CSV")
	complete(cmd, "status", func() []string { return []string{"pending", "approved", "denied", "expired", "used"} })
	return cmd
}

// exportApprovals writes every payment as a line of CSV.
func (a *app) exportApprovals(ctx context.Context, q api.ApprovalsQuery) error {
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	out := csv.NewWriter(a.env.Stdout)
	rows := [][]string{{"approval_id", "created_at", "status", "site", "payee", "description", "amount", "currency", "page_origin", "page_amount", "page_currency", "differs", "decided_by", "decided_at", "used_at", "outcome"}}
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	q.Limit = 200
	for {
		page, err := client.Approvals(ctx, q)
		if err != nil {
			return err
		}
		for _, p := range page.Approvals {
			total := api.Money{}
			if p.Reading.Total != nil {
				total = *p.Reading.Total
			}
			row := []string{
				p.ApprovalID, moment(p.CreatedAt), p.Status, p.Site, p.Payee, p.Description, p.Amount, p.Currency, p.Reading.Origin, total.Amount, total.Currency,
				strings.Join(p.Differs, " "), p.DecidedBy, moment(p.DecidedAt), moment(p.UsedAt), p.Outcome,
			}
			for i, cell := range row {
				row[i] = harmlessCell(clean(cell))
			}
			rows = append(rows, row)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	return out.WriteAll(rows)
}

// harmlessCell keeps what an agent wrote from being a formula in a spreadsheet.
func harmlessCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func (a *app) approveCommand() *cobra.Command {
	var amount string
	cmd := &cobra.Command{
		Use: "approve [ID]", Short: "Allow a payment, once",
		Long: `Allows one payment: one click, in this session, on this site, of this amount.
Where the agent says one sum and the page shows another, name the page's with --amount.

An ID may be left out where only one payment waits.`,
		Example: "  tapin approve", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, api.DecideRequest{Decision: "approve", Amount: amount})
		},
	}
	cmd.Flags().StringVar(&amount, "amount", "", "the `sum` that the page shows, such as 142.50")
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny [ID]", Short: "Refuse a payment, or take an approval back",
		Example: "  tapin deny", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, api.DecideRequest{Decision: "deny"})
		},
	}
}

func (a *app) decide(ctx context.Context, args []string, req api.DecideRequest) error {
	return drive(ctx, a, "deciding", func(ctx context.Context, c *api.Client) (*api.Approval, error) {
		if len(args) > 0 {
			return c.Decide(ctx, args[0], req)
		}
		waiting, err := c.Approvals(ctx, api.ApprovalsQuery{Status: "pending"})
		if err != nil {
			return nil, err
		}
		if n := len(waiting.Approvals); n != 1 {
			return nil, fault.New(fault.InvalidRequest, "decide", "%d payments wait", n).WithHint("Name one: %s", a.command("approvals", "--status", "pending"))
		}
		return c.Decide(ctx, waiting.Approvals[0].ApprovalID, req)
	}, func(got *api.Approval) {
		rows := []row{{"payment", fmt.Sprintf("%s %s to %s", clean(got.Amount), clean(got.Currency), clean(got.Payee))}, {"status", got.Status}}
		if got.Granted != nil {
			rows = append(rows, row{"granted", clean(got.Granted.Amount + " " + got.Granted.Currency)}, row{"until", got.Deadline.Local().Format(time.DateTime)})
		}
		a.rows(rows...)
	})
}

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy [SENTENCE]", Short: "Say what may be paid without asking",
		Long: `Tells what is approved without asking, or takes a sentence about it:

  auto-approve verizon under $200
  auto-approve verizon up to $300 a month until March
  stop auto-approving verizon

What allows more is read back, and is in force once you confirm it.`,
		Example: "  tapin policy\n  tapin policy 'auto-approve verizon under $200'", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listPolicies(cmd.Context())
			}
			return drive(cmd.Context(), a, "listening", func(ctx context.Context, c *api.Client) (*api.SayAnswer, error) {
				got, err := c.SayPolicy(ctx, strings.Join(args, " "))
				if err == nil && !got.Understood {
					err = fault.New(fault.InvalidRequest, "policy", "that is no sentence about payments").WithHint("Say for example: auto-approve verizon under $200.")
				}
				return got, err
			}, func(got *api.SayAnswer) {
				a.printf("%s\n", clean(got.Sentence))
				if got.Proposal != nil {
					a.printf("confirm it with: %s\n", a.command("policy", "confirm", got.Proposal.ProposalID))
				}
			})
		},
	}
	answer := func(use, short string, do func(*api.Client, context.Context, string) (*api.PolicyAnswer, error)) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Example: "  tapin policy " + use, Args: arguments(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				return drive(cmd.Context(), a, "deciding", func(ctx context.Context, c *api.Client) (*api.PolicyAnswer, error) {
					return do(c, ctx, args[0])
				}, func(got *api.PolicyAnswer) { a.printf("%s\n", clean(got.Sentence)) })
			},
		}
	}
	cmd.AddCommand(
		answer("confirm ID", "Put a proposal into force", (*api.Client).ConfirmPolicy),
		answer("deny ID", "Take a proposal back", (*api.Client).DenyPolicy),
		a.policyClear(),
	)
	return cmd
}

func (a *app) policyClear() *cobra.Command {
	var req api.ClearRequest
	cmd := &cobra.Command{
		Use: "clear SITE", Short: "Say that a button of a site is no payment",
		Long: `The guard takes some buttons for payments that are none. This clears one on a
site, or all of them there; --undo has the site guarded again.`,
		Example: "  tapin policy clear example.com --button \"Confirm\"", Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Site = args[0]
			return drive(cmd.Context(), a, "noting", func(ctx context.Context, c *api.Client) (*api.Policies, error) {
				return c.ClearButton(ctx, req)
			}, a.tellPolicies)
		},
	}
	cmd.Flags().StringVar(&req.Label, "button", "", "what the button `says`; all buttons of the site without it")
	cmd.Flags().BoolVar(&req.Undo, "undo", false, "guard the site again")
	return cmd
}

func (a *app) listPolicies(ctx context.Context) error {
	return drive(ctx, a, "asking", func(ctx context.Context, c *api.Client) (*api.Policies, error) { return c.Policies(ctx) }, a.tellPolicies)
}

func (a *app) tellPolicies(got *api.Policies) {
	if len(got.Policies)+len(got.Proposals) == 0 {
		a.printf("Nothing is approved without asking.\n")
	}
	for _, p := range got.Policies {
		left := ""
		if p.Left != nil {
			left = fmt.Sprintf(" (%s %s left this month)", p.Left.Amount, p.Left.Currency)
		}
		a.printf("%s%s\n", clean(p.Sentence), left)
	}
	for _, p := range got.Proposals {
		a.printf("%s waits for your yes: %s\n    %s\n", a.paint(a.env.Stdout).bang(), clean(p.Policy.Sentence), a.command("policy", "confirm", p.ProposalID))
	}
	for _, b := range got.Cleared {
		what := "every button"
		if b.Label != "" {
			what = fmt.Sprintf("%q", clean(b.Label))
		}
		a.printf("no payment: %s on %s\n", what, clean(b.Site))
	}
}
