package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/fault"
)

// pollWithin is one long-poll of wait; the server allows a minute.
const pollWithin = 55 * time.Second

func (a *app) handoffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "handoff",
		Short: "Hand the browser to a person, and back",
		Long: `Hands the browser to a person when only a person can go on. The page, the
login and the answer stay in the same live browser; the agent gets told what
changed, and nothing of what was typed.

An ID may be left out where only one hand-off is running.`,
		Example: `  tapin handoff start login "Please log in" --until-url "*/dashboard"
  tapin handoff wait
  tapin handoff finish`,
		Args: a.knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.handoffStart(), a.handoffStatus(), a.handoffWait(), a.handoffFinish(),
		a.handoffTurn("cancel [ID]", "Stop it: save the login and close the session", "stopping", (*api.Client).CancelHandoff),
		a.handoffExtend(),
		a.handoffTurn("park [ID]", "Free the browser until you have time", "saving the page", (*api.Client).ParkHandoff),
		a.handoffTurn("resume [ID]", "Bring the browser of a parked one back", "opening the browser", (*api.Client).ResumeHandoff),
		a.handoffList(),
	)
	return cmd
}

func (a *app) handoffStart() *cobra.Command {
	var req api.HandoffRequest
	var until api.Condition
	var timeout string
	var quiet bool
	reasons := []string{"login", "2fa", "captcha", "permission", "manual_recovery", "other"}
	cmd := &cobra.Command{
		Use:   "start REASON [INSTRUCTION]",
		Short: "Call a person to the page",
		Long: `Calls a person to the page that is open. REASON is one of
  ` + strings.Join(reasons, ", ") + `

The --until flags say what is so once the person is done: then it ends by itself,
and a "done" before that goes back to the person.`,
		Example: `  tapin handoff start captcha
  tapin handoff start login "Please log in" --task "pay the bill" --until-gone "#login"`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Reason = args[0]
			if len(args) > 1 {
				req.Instruction = args[1]
			}
			if quiet {
				no := false
				req.Notify = &no
			}
			for _, c := range []api.Condition{{URL: until.URL}, {Text: until.Text}, {Visible: until.Visible}, {Absent: until.Absent}} {
				if c != (api.Condition{}) {
					req.Verify = append(req.Verify, c)
				}
			}
			var err error
			if req.TimeoutMS, err = parseSpan("--timeout", timeout); err != nil {
				return err
			}
			return drive(cmd.Context(), a, "handing over", func(ctx context.Context, c *api.Client) (*api.Handoff, error) {
				return c.StartHandoff(ctx, req)
			}, func(h *api.Handoff) { a.tellHandoff(h) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&req.Task, "task", "", "what the agent goes on with, as a `text`")
	flags.StringVar(&until.URL, "until-url", "", "done when the address has this `part`; * stands for anything")
	flags.StringVar(&until.Text, "until-text", "", "done when the page shows this `text`")
	flags.StringVar(&until.Visible, "until-visible", "", "done when something under this `selector` is visible")
	flags.StringVar(&until.Absent, "until-gone", "", "done when nothing under this `selector` is visible")
	flags.StringVar(&timeout, "timeout", "", "wait for the person no longer than this `time` (30m)")
	flags.StringVar(&req.OnTimeout, "on-timeout", "", "then close the session, or return the wheel: `close|return`")
	flags.StringVar(&req.Follows, "follows", "", "the `ID` of the one before, when the same thing still blocks")
	flags.StringVar(&req.RunID, "run", "", "the `ID` of the run that gets this as evidence")
	flags.BoolVar(&req.CaptureScreenshot, "capture", false, "keep pictures of before and after")
	flags.BoolVar(&quiet, "quiet", false, "send no message: the person is here")
	complete(cmd, "on-timeout", func() []string { return []string{"close", "return"} })
	cmd.ValidArgs = reasons
	return cmd
}

func (a *app) handoffStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status [ID]", Short: "Tell how a hand-off stands",
		Example: "  tapin handoff status", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.Handoff, error) {
				id, err := a.whichHandoff(ctx, c, args)
				if err != nil {
					return nil, err
				}
				return c.Handoff(ctx, id, api.WaitQuery{})
			}, func(h *api.Handoff) { a.tellHandoff(h) })
		},
	}
}

func (a *app) handoffWait() *cobra.Command {
	var timeout string
	cmd := &cobra.Command{
		Use:   "wait [ID]",
		Short: "Wait until a hand-off is over",
		Long: `Waits until a hand-off is over, and tells what became of it. The exit code is 0
if it was finished, 4 if it was stopped or ran out of time, and 6 if it is still
running when --timeout is over.`,
		Example: "  tapin handoff wait\n  tapin handoff wait --timeout 5m", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			most, err := parseSpan("--timeout", timeout)
			if err != nil {
				return err
			}
			var last *api.Handoff
			err = drive(cmd.Context(), a, "waiting for the person", func(ctx context.Context, c *api.Client) (*api.Handoff, error) {
				id, err := a.whichHandoff(ctx, c, args)
				if err == nil {
					last, err = await(ctx, c, id, time.Duration(most)*time.Millisecond)
				}
				return last, err
			}, func(h *api.Handoff) { a.tellHandoff(h) })
			switch {
			case err != nil || last.Status == "FINISHED":
				return err
			case last.Status == "RUNNING":
				return exit(fault.ExitRetry)
			}
			return exit(fault.ExitRefused)
		},
	}
	cmd.Flags().StringVar(&timeout, "timeout", "", "wait no longer than this `time`")
	return cmd
}

// await polls until a hand-off is over, or the time is; 0 means no limit.
func await(ctx context.Context, c *api.Client, id string, most time.Duration) (*api.Handoff, error) {
	until := time.Now().Add(most)
	version := 0
	for {
		wait := pollWithin
		if most > 0 {
			wait = min(wait, max(0, time.Until(until)))
		}
		h, err := c.Handoff(ctx, id, api.WaitQuery{After: version, WaitMS: int(wait.Milliseconds())})
		if err != nil || h.Status != "RUNNING" || most > 0 && !time.Now().Before(until) {
			return h, err
		}
		version = h.Version
	}
}

func (a *app) handoffFinish() *cobra.Command {
	var anyway bool
	cmd := &cobra.Command{
		Use: "finish [ID]", Short: "Say that you are done",
		Long: `Says that the person is done. If the hand-off says what is to be so by then, and
it is not, it goes on; --anyway gives the browser back all the same.`,
		Example: "  tapin handoff finish", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			over := true
			err := a.turn(cmd.Context(), "looking at the page", args, func(ctx context.Context, c *api.Client, id string) (*api.Handoff, error) {
				h, err := c.FinishHandoff(ctx, id, api.FinishRequest{Anyway: anyway})
				over = err != nil || h.Status != "RUNNING"
				return h, err
			})
			if err == nil && !over {
				return exit(fault.ExitRefused) // it goes on, as the answer says
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&anyway, "anyway", false, "also if its conditions do not hold")
	return cmd
}

func (a *app) handoffExtend() *cobra.Command {
	return &cobra.Command{
		Use: "extend [ID] [TIME]", Short: "Take more time (15m)",
		Example: "  tapin handoff extend\n  tapin handoff extend 30m", Args: arguments(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			more := ""
			if n := len(args); n > 0 && !strings.HasPrefix(args[n-1], "hof_") {
				args, more = args[:n-1], args[n-1]
			}
			ms, err := parseSpan("TIME", more)
			if err != nil {
				return err
			}
			return a.turn(cmd.Context(), "asking", args, func(ctx context.Context, c *api.Client, id string) (*api.Handoff, error) {
				return c.ExtendHandoff(ctx, id, api.ExtendRequest{MoreMS: ms})
			})
		},
	}
}

// handoffTurn is a command that does one thing about a person's turn.
func (a *app) handoffTurn(use, short, doing string, do func(*api.Client, context.Context, string) (*api.Handoff, error)) *cobra.Command {
	name, _, _ := strings.Cut(use, " ")
	return &cobra.Command{
		Use: use, Short: short, Example: "  tapin handoff " + name, Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.turn(cmd.Context(), doing, args, func(ctx context.Context, c *api.Client, id string) (*api.Handoff, error) {
				return do(c, ctx, id)
			})
		},
	}
}

func (a *app) turn(ctx context.Context, doing string, args []string, do func(context.Context, *api.Client, string) (*api.Handoff, error)) error {
	return drive(ctx, a, doing, func(ctx context.Context, c *api.Client) (*api.Handoff, error) {
		id, err := a.whichHandoff(ctx, c, args)
		if err != nil {
			return nil, err
		}
		return do(ctx, c, id)
	}, func(h *api.Handoff) { a.tellHandoff(h) })
}

// whichHandoff is the one named, or the only one that runs.
func (a *app) whichHandoff(ctx context.Context, c *api.Client, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	running, err := c.Handoffs(ctx, api.HandoffsQuery{Status: "RUNNING"})
	if err != nil {
		return "", err
	}
	switch len(running.Handoffs) {
	case 1:
		return running.Handoffs[0].HandoffID, nil
	case 0:
		return "", fault.New(fault.NotFound, "", "no hand-off is running").WithHint("See those before with: %s", a.command("handoff", "list"))
	}
	return "", fault.New(fault.InvalidRequest, "", "%d hand-offs are running", len(running.Handoffs)).
		WithHint("Name one; see them with: %s", a.command("handoff", "list"))
}

func (a *app) handoffList() *cobra.Command {
	var q api.HandoffsQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List hand-offs, the newest first",
		Example: "  tapin handoff list\n  tapin handoff list --status TIMED_OUT", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Status = strings.ToUpper(q.Status)
			return drive(cmd.Context(), a, "asking", func(ctx context.Context, c *api.Client) (*api.Handoffs, error) {
				return c.Handoffs(ctx, q)
			}, func(got *api.Handoffs) {
				if len(got.Handoffs) == 0 {
					a.printf("No hand-offs.\n")
				}
				for _, h := range got.Handoffs {
					a.printf("%s  %s  %s  %s  %s\n", clean(h.HandoffID), h.CreatedAt.Local().Format(time.DateTime),
						pad(h.Status, 9), pad(h.Reason, 15), clean(bare(h.Before.URL)))
				}
				a.tellNext(got.Next)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&q.Status, "status", "", "only those with this `status`")
	flags.StringVar(&q.Reason, "reason", "", "only those with this `reason`")
	flags.IntVar(&q.Limit, "limit", 0, "at most `N` (50)")
	flags.StringVar(&q.Cursor, "cursor", "", "what follows the page before")
	complete(cmd, "status", func() []string { return []string{"RUNNING", "FINISHED", "CANCELLED", "TIMED_OUT"} })
	return cmd
}

// tellNext says how to see what follows a page of a list.
func (a *app) tellNext(cursor string) {
	if cursor != "" {
		a.printf("%s\n", a.paint(a.env.Stdout).dim("more with --cursor "+clean(cursor)))
	}
}

func (a *app) tellHandoff(h *api.Handoff) {
	p := a.paint(a.env.Stdout)
	status := h.Status
	switch {
	case h.Status == "FINISHED":
		status = p.green("✓") + " finished by " + h.FinishedBy
	case h.Parked:
		status = p.bang() + " parked; bring it back with: " + a.command("handoff", "resume", h.HandoffID)
	case h.Status == "RUNNING":
		status = "running; a person has the wheel"
		if h.Attempts > 1 {
			status += fmt.Sprintf(", asked %d times", h.Attempts)
		}
	default:
		status = p.bang() + " " + strings.ToLower(strings.ReplaceAll(status, "_", " "))
	}
	rows := []row{{"hand-off", clean(h.HandoffID)}, {"status", status}, {"reason", clean(h.Reason)}, {"asked", clean(h.Instruction)}, {"task", clean(h.Task)}}
	if h.Status == "RUNNING" {
		rows = append(rows, row{"until", fmt.Sprintf("%s, in %s", h.Deadline.Local().Format(time.TimeOnly), time.Until(h.Deadline).Round(time.Second))})
	}
	if v := h.Verified; v != nil {
		verdict := p.bang() + " does not hold: "
		if v.Held {
			verdict = p.green("✓") + " "
		}
		rows = append(rows, row{"verified", verdict + clean(strings.Join(v.Checked, "; "))})
		if !v.Held && h.Status == "RUNNING" {
			rows = append(rows, row{"", "It is not finished. Go on, or give it back all the same: " + a.command("handoff", "finish", "--anyway")})
		}
	}
	a.rows(append(rows, row{"page", clean(bare(h.Before.URL))}, row{"changed", clean(h.DeltaSummary)}, row{"next", clean(h.ResumeHint)}, row{"to-do", clean(h.TodoID)})...)
}

// bare is an address as people say it.
func bare(url string) string { return strings.TrimPrefix(url, "https://") }

// parseSpan reads a length of time in milliseconds; none is 0.
func parseSpan(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	var d config.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil || d.Std() < time.Second {
		return 0, fault.New(fault.InvalidRequest, "", "%s must be a length of time, not %q", name, clean(text)).WithHint("Such as 10m or 90s.")
	}
	return d.Std().Milliseconds(), nil
}
