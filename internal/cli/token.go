package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
	"tapin/internal/sidecar"
	"tapin/internal/store"
)

type tokenAnswer struct {
	Name      string    `json:"name"`
	File      string    `json:"file"`
	CreatedAt time.Time `json:"created_at"`
}

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and revoke tokens for further agents",
		Long: `Gives an agent a token of its own, which can be taken from it alone. A token
lets its agent drive, ask and wait; what only the owner may do it does not. The
token itself is never shown: it is in a file that only this user can read.`,
		Example: "  tapin token new claude\n  tapin token list\n  tapin token revoke claude",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "new NAME", Short: "Make a token", Example: "  tapin token new claude", Args: arguments(cobra.ExactArgs(1)),
			RunE: func(_ *cobra.Command, args []string) error { return a.newToken(args[0]) },
		},
		&cobra.Command{
			Use: "list", Short: "List the tokens", Example: "  tapin token list", Args: arguments(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return a.listTokens() },
		},
		&cobra.Command{
			Use: "revoke NAME", Short: "Take a token back, at once", Example: "  tapin token revoke claude", Args: arguments(cobra.ExactArgs(1)),
			RunE: func(_ *cobra.Command, args []string) error { return a.revokeToken(args[0]) },
		},
	)
	return cmd
}

func (a *app) newToken(name string) error {
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	made, err := sidecar.NewToken(home, name)
	if err != nil {
		return err
	}
	answer := a.tokenOf(home, made)
	return a.answer(answer, func() {
		a.printf("Made a token for %s, in %s\n", name, a.tilde(answer.File))
		a.printf("Its agent sends it as: Authorization: Bearer $(cat %s)\n", shellWord(a.tilde(answer.File)))
		a.printf("Take it back with: %s\n", a.command("token", "revoke", name))
	})
}

func (a *app) listTokens() error {
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	answer := struct {
		Tokens []tokenAnswer `json:"tokens"`
	}{[]tokenAnswer{}}
	if home != nil {
		defer func() { _ = home.Close() }()
		found, err := sidecar.ListTokens(home)
		if err != nil {
			return err
		}
		for _, t := range found {
			answer.Tokens = append(answer.Tokens, a.tokenOf(home, t))
		}
	}
	return a.answer(answer, func() {
		if len(answer.Tokens) == 0 {
			a.printf("There are no tokens but tapin's own; make one with: %s\n", a.command("token", "new", "NAME"))
		}
		for _, t := range answer.Tokens {
			a.printf("%s  %s  %s\n", pad(t.Name, 16), t.CreatedAt.Local().Format("2006-01-02 15:04"), a.tilde(t.File))
		}
	})
}

func (a *app) revokeToken(name string) error {
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	if home == nil {
		return fault.New(fault.NotFound, "", "there is no token named %q", clean(name))
	}
	defer func() { _ = home.Close() }()
	if err := sidecar.RevokeToken(home, name); err != nil {
		return err
	}
	return a.answer(struct {
		Revoked string `json:"revoked"`
	}{name}, func() { a.printf("%s\n", fmt.Sprintf("Revoked the token of %s; it opens nothing from now on.", name)) })
}

func (*app) tokenOf(home *store.Home, t sidecar.NamedToken) tokenAnswer {
	return tokenAnswer{t.Name, filepath.Join(home.Path(), t.File), t.CreatedAt}
}
