package cli

import (
	"context"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) clickCommand() *cobra.Command {
	var at targetFlags
	var wait patience
	var req api.ClickRequest
	var double bool
	cmd := &cobra.Command{
		Use:   "click [TARGET]",
		Short: "Click something on the page",
		Long: `Clicks an element as soon as a person could: when it is in view, holds still,
is enabled and nothing covers it.

` + targetHelp,
		Example: `  tapin click "Sign in"
  tapin click --css "button[type=submit]"
  tapin click --ref e12 --double
  tapin click --at 120,64`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, rest, err := at.pick(args, false)
			if err == nil {
				err = noWords(cmd, rest)
			}
			if err == nil {
				req.TimeoutMS, err = wait.milliseconds()
			}
			if err != nil {
				return err
			}
			req.Target, req.Look = to, noPicture()
			if double {
				req.Count = 2
			}
			return drive(cmd.Context(), a, "clicking", func(ctx context.Context, c *api.Client) (*api.ClickAnswer, error) {
				return c.Click(ctx, "", req)
			}, func(got *api.ClickAnswer) { a.tellActed(&got.Acted, row{"clicked", effect(got.Effect)}) })
		},
	}
	at.add(cmd, true)
	flags := cmd.Flags()
	flags.StringVar(&req.Button, "button", "", "which mouse `button`: left, right or middle (left)")
	flags.BoolVar(&double, "double", false, "click twice, as for a double click")
	wait.add(cmd, elementPatience)
	complete(cmd, "button", func() []string { return []string{"left", "right", "middle"} })
	return cmd
}

func effect(effect string) string {
	switch effect {
	case "confirmed":
		return "the page took notice"
	case "none":
		return "the page took no notice"
	}
	return "nobody saw whether the page took notice"
}

func (a *app) hoverCommand() *cobra.Command {
	var at targetFlags
	var wait patience
	cmd := &cobra.Command{
		Use:     "hover [TARGET]",
		Short:   "Move the pointer over something",
		Long:    "Moves the pointer over an element, as to open a menu.\n\n" + targetHelp,
		Example: "  tapin hover Products\n  tapin hover --css nav",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, rest, err := at.pick(args, false)
			if err == nil {
				err = noWords(cmd, rest)
			}
			req := api.HoverRequest{Target: to, Look: noPicture()}
			if err == nil {
				req.TimeoutMS, err = wait.milliseconds()
			}
			if err != nil {
				return err
			}
			return drive(cmd.Context(), a, "moving the pointer", func(ctx context.Context, c *api.Client) (*api.HoverAnswer, error) {
				return c.Hover(ctx, "", req)
			}, func(got *api.HoverAnswer) { a.tellActed(&got.Acted, row{"hovered", effect(got.Effect)}) })
		},
	}
	at.add(cmd, true)
	wait.add(cmd, elementPatience)
	return cmd
}

func (a *app) dragCommand() *cobra.Command {
	var wait patience
	cmd := &cobra.Command{
		Use:     "drag TARGET TARGET",
		Short:   "Drag something somewhere",
		Long:    "Drags the first element onto the second.\n\n" + targetHelp,
		Example: `  tapin drag "Card 3" Done` + "\n  tapin drag css:#handle at:400,20",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := target(args[0], false)
			if err != nil {
				return err
			}
			to, err := target(args[1], false)
			if err != nil {
				return err
			}
			req := api.DragRequest{Target: from, To: &to, Look: noPicture()}
			if req.TimeoutMS, err = wait.milliseconds(); err != nil {
				return err
			}
			return drive(cmd.Context(), a, "dragging", func(ctx context.Context, c *api.Client) (*api.DragAnswer, error) {
				return c.Drag(ctx, "", req)
			}, func(got *api.DragAnswer) { a.tellActed(&got.Acted, row{"dragged", effect(got.Effect)}) })
		},
	}
	wait.add(cmd, elementPatience)
	return cmd
}
