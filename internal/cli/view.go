package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

func (a *app) snapshotCommand() *cobra.Command {
	var q api.SnapshotQuery
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Show the page as an outline",
		Long: `Shows what is on the page as an outline: a line for each element, with its
role, its name and a ref by which other commands can name it.`,
		Example: "  tapin snapshot\n  tapin snapshot --interactive\n  tapin click --ref e12",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "reading the page", func(ctx context.Context, c *api.Client) (*api.SnapshotAnswer, error) {
				return c.Snapshot(ctx, "", q)
			}, func(got *api.SnapshotAnswer) { a.tellText(got.Snapshot, got.Truncated) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&q.Interactive, "interactive", false, "only what can be acted on")
	flags.IntVar(&q.MaxChars, "max-chars", 0, "cut after `N` characters")
	return cmd
}

func (a *app) textCommand() *cobra.Command {
	var q api.TextQuery
	cmd := &cobra.Command{
		Use:     "text",
		Short:   "Show what the page says",
		Example: "  tapin text\n  tapin text --max-chars 2000",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "reading the page", func(ctx context.Context, c *api.Client) (*api.TextAnswer, error) {
				return c.Text(ctx, "", q)
			}, func(got *api.TextAnswer) { a.tellText(got.Text, got.Truncated) })
		},
	}
	cmd.Flags().IntVar(&q.MaxChars, "max-chars", 0, "cut after `N` characters")
	return cmd
}

func (a *app) tellText(text string, truncated bool) {
	a.printf("%s\n", cleanLines(text))
	if truncated {
		p := a.paint(a.env.Stderr)
		a.errorf("%s There is more; --max-chars says how much of it to show.\n", p.bang())
	}
}

func (a *app) tabsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "tabs",
		Short:   "List the tabs",
		Long:    "Lists the tabs and popups. Actions go to the one marked with *.",
		Example: "  tapin tabs",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "listing the tabs", func(ctx context.Context, c *api.Client) (*api.TabsAnswer, error) {
				return c.Tabs(ctx, "")
			}, func(got *api.TabsAnswer) {
				p := a.paint(a.env.Stdout)
				for _, t := range got.Tabs {
					mark := " "
					if t.Active {
						mark = "*"
					}
					a.printf("%s %s  %s  %s\n", mark, clean(t.TabID), clean(t.Title), p.dim(clean(t.URL)))
				}
			})
		},
	}
}

func (a *app) tabCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tab switch|close TAB",
		Short:   "Switch to a tab, or close one",
		Long:    `Brings a tab to the front, where actions go, or closes it. "tapin tabs" lists them.`,
		Example: "  tapin tab switch 5C1B\n  tapin tab close 5C1B",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "switch" && args[0] != "close" {
				return fault.New(fault.InvalidRequest, "", "%q cannot be done to a tab", clean(args[0])).WithHint("It is used as: %s", cmd.UseLine())
			}
			return drive(cmd.Context(), a, "changing the tab", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				id, err := fullTabID(ctx, c, args[1])
				if err != nil {
					return nil, err
				}
				return c.Tab(ctx, "", api.TabRequest{TabID: id, Action: args[0], Look: noPicture()})
			}, func(got *api.Acted) { a.tellActed(got) })
		},
	}
	cmd.ValidArgs = []cobra.Completion{"switch", "close"}
	return cmd
}

// fullTabID is the one tab whose id begins with these letters.
func fullTabID(ctx context.Context, c *api.Client, beginning string) (string, error) {
	open, err := c.Tabs(ctx, "")
	if err != nil {
		return "", err
	}
	var found []string
	for _, t := range open.Tabs {
		if len(beginning) > 0 && len(t.TabID) >= len(beginning) && t.TabID[:len(beginning)] == beginning {
			found = append(found, t.TabID)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return "", fault.New(fault.NotFound, "", "%d tabs have an id that begins with %q", len(found), clean(beginning)).
		WithHint("List them with tapin tabs.")
}

func (a *app) downloadsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "downloads",
		Short:   "List the files that pages sent",
		Example: "  tapin downloads",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drive(cmd.Context(), a, "listing the downloads", func(ctx context.Context, c *api.Client) (*api.Downloads, error) {
				return c.Downloads(ctx, "")
			}, func(got *api.Downloads) {
				if len(got.Downloads) == 0 {
					a.printf("No page has sent a file.\n")
				}
				p := a.paint(a.env.Stdout)
				for _, d := range got.Downloads {
					where := clean(d.Name)
					if d.Path != "" {
						where = a.tilde(clean(d.Path))
					}
					a.printf("%s  %s\n", where, p.dim(fmt.Sprintf("%s, %s", clean(d.State), size(int(d.Bytes)))))
				}
			})
		},
	}
}
