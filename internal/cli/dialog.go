package cli

import (
	"context"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

func (a *app) dialogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dialog accept|dismiss [TEXT]",
		Short: "Answer a dialog of the page",
		Long: `Answers the alert, question or prompt that the page has open. TEXT is the
answer to a prompt; a TEXT of - is read from standard input.`,
		Example: "  tapin dialog accept\n  tapin dialog dismiss\n  tapin dialog accept \"Ada\"",
		Args:    arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			accept := args[0] == "accept"
			if !accept && (args[0] != "dismiss" || len(args) > 1) {
				return fault.New(fault.InvalidRequest, "", "a dialog is answered with accept or dismiss").WithHint("It is used as: %s", cmd.UseLine())
			}
			req := api.DialogRequest{Accept: &accept, Look: noPicture()}
			if len(args) > 1 {
				req.Text = secret.New(args[1])
				if args[1] == "-" {
					var err error
					if req.Text, err = a.secrets().ask(cmd.Context(), "Text"); err != nil {
						return err
					}
				}
			}
			return drive(cmd.Context(), a, "answering the dialog", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				return c.Dialog(ctx, "", req)
			}, func(got *api.Acted) { a.tellActed(got) })
		},
	}
	cmd.ValidArgs = []cobra.Completion{"accept", "dismiss"}
	return cmd
}

func (a *app) permissionCommand() *cobra.Command {
	var origin string
	cmd := &cobra.Command{
		Use:   "permission grant|deny NAME",
		Short: "Allow a site something, or not",
		Long: `Answers what sites ask the person at the browser for: geolocation,
notifications, camera, microphone, clipboard-read and the like.`,
		Example: "  tapin permission grant geolocation\n  tapin permission deny notifications --origin https://example.com",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			grant := args[0] == "grant"
			if !grant && args[0] != "deny" {
				return fault.New(fault.InvalidRequest, "", "a permission is answered with grant or deny").WithHint("It is used as: %s", cmd.UseLine())
			}
			return drive(cmd.Context(), a, "answering", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				return c.Permission(ctx, "", api.PermissionRequest{Name: args[1], Grant: &grant, Origin: origin, Look: noPicture()})
			}, func(got *api.Acted) { a.tellActed(got) })
		},
	}
	cmd.Flags().StringVar(&origin, "origin", "", "the `site` it is for (the one of the page)")
	cmd.ValidArgs = []cobra.Completion{"grant", "deny"}
	return cmd
}

func (a *app) authCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "auth USERNAME",
		Short: "Answer a site that asks for a password",
		Long: `Answers a site that asks for a name and a password before it shows its page.
The password is read from standard input, and at a terminal asked for without
showing it.`,
		Example: "  tapin auth ada",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := a.secrets().ask(cmd.Context(), "Password")
			if err != nil {
				return err
			}
			return drive(cmd.Context(), a, "waiting for the page", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				return c.Auth(ctx, "", api.AuthRequest{Username: args[0], Password: password, Look: noPicture()})
			}, func(got *api.Acted) { a.tellActed(got) })
		},
	}
}
