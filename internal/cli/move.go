package cli

import (
	"context"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

type move func(c *api.Client, ctx context.Context, id string, req api.MoveRequest) (*api.PageAnswer, error)

func (a *app) backCommand() *cobra.Command {
	return a.moveCommand("back", "Go one page back", (*api.Client).Back)
}

func (a *app) forwardCommand() *cobra.Command {
	return a.moveCommand("forward", "Go one page forward", (*api.Client).Forward)
}

func (a *app) reloadCommand() *cobra.Command {
	return a.moveCommand("reload", "Load the page again", (*api.Client).Reload)
}

func (a *app) moveCommand(name, short string, to move) *cobra.Command {
	return &cobra.Command{
		Use: name, Example: "  tapin " + name,
		Short: short,
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			done := a.progress("waiting for the page")
			defer done()
			none := false
			page, err := to(client, cmd.Context(), "", api.MoveRequest{Look: api.Look{Screenshot: &none}})
			done()
			if err != nil {
				return err
			}
			return a.tellPage(page)
		},
	}
}

func (a *app) stopCommand() *cobra.Command {
	var noSave, verified bool
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "End the session and its browser",
		Long:    `Ends the active session. tapin itself goes on; "tapin down" ends that too.`,
		Example: "  tapin stop",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			done := a.progress("ending the session")
			defer done()
			req := api.StopRequest{Verified: verified}
			if noSave {
				no := false
				req.SaveContext = &no
			}
			stopped, err := client.Stop(cmd.Context(), "", req)
			done()
			if err != nil {
				return err
			}
			return a.answer(stopped, func() {
				saved := ""
				if stopped.ContextSaved {
					saved = "; its login was saved"
				}
				a.printf("Session %s has ended%s.\n", clean(stopped.SessionID), saved)
			})
		},
	}
	cmd.Flags().BoolVar(&noSave, "no-save", false, "leave the saved login as it was")
	cmd.Flags().BoolVar(&verified, "verified", false, "the saved login did its work: a page that needs it was seen")
	return cmd
}
