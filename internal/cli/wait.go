package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

func (a *app) waitCommand() *cobra.Command {
	var at targetFlags
	var wait patience
	var req api.WaitRequest
	cmd := &cobra.Command{
		Use:   "wait [TEXT]",
		Short: "Wait for something on the page",
		Long: `Waits until the page shows a text, has an element, is at an address, or has
come to a state. With --state hidden it waits until the text or element is gone.`,
		Example: `  tapin wait "Order complete"
  tapin wait --css ".spinner" --state hidden
  tapin wait --url "**/checkout/**" --timeout 1m
  tapin wait --state networkidle`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at.given() {
				to, _, err := at.pick(nil, false)
				if err != nil {
					return err
				}
				req.Element = to.Element
			}
			if len(args) > 0 {
				req.Text = args[0]
			}
			var err error
			if req.TimeoutMS, err = wait.milliseconds(); err != nil {
				return err
			}
			if err := req.Check(); err != nil {
				return err
			}
			req.Look = noPicture()
			return drive(cmd.Context(), a, "waiting", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				return c.Wait(ctx, "", req)
			}, func(got *api.Acted) { a.tellActed(got, row{"waited", strconv.FormatInt(got.TookMS, 10) + " ms"}) })
		},
	}
	at.add(cmd, false)
	flags := cmd.Flags()
	flags.StringVar(&req.URL, "url", "", "an address with this `part`, or like a pattern with * and **")
	flags.StringVar(&req.State, "state", "", "visible, hidden, attached, load, domcontentloaded or networkidle: the `state` to reach")
	wait.add(cmd, "wait no longer than this `time` (10s)")
	complete(cmd, "state", func() []string {
		return []string{"visible", "hidden", "attached", "load", "domcontentloaded", "networkidle"}
	})
	return cmd
}

func (a *app) scrollCommand() *cobra.Command {
	var at targetFlags
	var wait patience
	cmd := &cobra.Command{
		Use:   "scroll [up|down|left|right|top|bottom] [PIXELS]",
		Short: "Scroll the page",
		Long: `Scrolls the page, by a screenful unless told how far. With a flag that names an
element and no direction, it brings that element into view.`,
		Example: "  tapin scroll down\n  tapin scroll down 400\n  tapin scroll --css footer",
		Args:    arguments(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := api.ScrollRequest{Look: noPicture()}
			if at.given() {
				to, _, err := at.pick(nil, false)
				if err != nil {
					return err
				}
				req.Target = to
			}
			if len(args) > 0 {
				req.Direction = args[0]
			}
			if len(args) > 1 {
				pixels, err := strconv.Atoi(args[1])
				if err != nil || pixels < 1 {
					return fault.New(fault.InvalidRequest, "", "%q is no number of pixels", clean(args[1])).WithHint("It is used as: %s", cmd.UseLine())
				}
				req.Amount = pixels
			}
			var err error
			if req.TimeoutMS, err = wait.milliseconds(); err != nil {
				return err
			}
			if err := req.Check(); err != nil {
				return err
			}
			return drive(cmd.Context(), a, "scrolling", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				return c.Scroll(ctx, "", req)
			}, func(got *api.Acted) { a.tellActed(got) })
		},
	}
	at.add(cmd, true)
	wait.add(cmd, elementPatience)
	cmd.ValidArgs = []cobra.Completion{"up", "down", "left", "right", "top", "bottom"}
	return cmd
}
