package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/vault"
)

func (a *app) credentialCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Keep logins that the agent can use and not read",
		Long: `Keeps passwords and one-time codes in this system's keychain. The agent fills
them in by name, on the site they belong to and nowhere else, and cannot read
them back. These commands are the owner's; tapin need not be running.`,
		Example: `  tapin credential set chase.com --username ada
  tapin credential set chase.com --totp
  tapin credential list
  tapin credential delete chase.com`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.credentialSetCommand(),
		&cobra.Command{
			Use: "list", Short: "List which there are, by name", Example: "  tapin credential list", Args: arguments(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error { return a.credentialList(cmd.Context()) },
		},
		&cobra.Command{
			Use: "delete SITE", Short: "Take a login and its codes out of the keychain", Example: "  tapin credential delete chase.com", Args: arguments(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				err := a.credentials(func(c *vault.Credentials) error { return c.Delete(cmd.Context(), args[0]) })
				if err != nil {
					return err
				}
				return a.answer(map[string]string{"deleted": args[0]}, func() { a.printf("%s is deleted.\n", clean(args[0])) })
			},
		})
	return cmd
}

func (a *app) credentialSetCommand() *cobra.Command {
	var login struct{ username, domain string }
	var totp bool
	cmd := &cobra.Command{
		Use:   "set SITE",
		Short: "Keep a password, or with --totp the secret of one-time codes",
		Long: `Asks for the password without showing it, or reads it from standard input. It
is never taken from the command line. SITE is the name the agent uses; where it
is no domain, --domain says where the login may be typed. A username or domain
that is not given stays as it was.

With --totp it asks for what the site shows when a second factor is set up: the
secret, or an otpauth:// address.`,
		Example: `  tapin credential set chase.com --username ada
  tapin credential set work --domain login.example.com
  pass show bank | tapin credential set bank.example
  tapin credential set chase.com --totp`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if totp && (login.username != "" || login.domain != "") {
				return fault.New(fault.InvalidRequest, "", "--totp goes without --username and --domain").
					WithHint("The codes go where the login of that name goes.")
			}
			what := "Password of " + args[0]
			if totp {
				what = "Secret of the one-time codes of " + args[0]
			}
			value, err := a.secrets().rest(cmd.Context(), what)
			if err != nil {
				return err
			}
			return a.credentials(func(c *vault.Credentials) error {
				ctx := cmd.Context()
				if totp {
					err = c.SaveTOTP(ctx, args[0], value)
				} else {
					err = saveLogin(ctx, c, args[0], vault.Login{Username: secret.New(login.username), Password: value, Domain: login.domain})
				}
				if err != nil {
					return err
				}
				return a.tellKept(ctx, c, args[0])
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&login.username, "username", "", "who signs in")
	flags.StringVar(&login.domain, "domain", "", "the `domain` that the login belongs to (default SITE)")
	flags.BoolVar(&totp, "totp", false, "keep the secret of one-time codes")
	return cmd
}

// saveLogin keeps a login; what it does not say stays as it was.
func saveLogin(ctx context.Context, c *vault.Credentials, site string, l vault.Login) error {
	if l.Username.IsEmpty() || l.Domain == "" {
		old, err := c.Login(ctx, site)
		if err != nil && !errors.Is(err, fault.NotFound) && !errors.Is(err, fault.InvalidRequest) {
			return err
		}
		if l.Username.IsEmpty() {
			l.Username = old.Username
		}
		if l.Domain == "" {
			l.Domain = old.Domain
		}
	}
	return c.SaveLogin(ctx, site, l)
}

// tellKept says what there is of a site now, and where it would be used.
func (a *app) tellKept(ctx context.Context, c *vault.Credentials, site string) error {
	_, only, err := c.Fill(ctx, site, vault.Password)
	if err != nil && !errors.Is(err, fault.NotFound) {
		return err
	}
	if only == "" {
		if _, only, err = c.Fill(ctx, site, vault.TOTP); err != nil {
			return err
		}
	}
	return a.answer(map[string]string{"kept": site, "domain": only}, func() {
		a.printf("%s is kept in the keychain, for %s alone.\n", clean(site), clean(only))
	})
}

func (a *app) credentialList(ctx context.Context) error {
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	kept := []vault.Kept{}
	if home != nil {
		defer func() { _ = home.Close() }()
		if kept, err = vault.NewCredentials(home, a.vaultOptions()).List(ctx); err != nil {
			return err
		}
	}
	answer := struct {
		Credentials []vault.Kept `json:"credentials"`
	}{kept}
	return a.answer(answer, func() {
		if len(kept) == 0 {
			a.printf("No credentials are kept. %s keeps one.\n", a.command("credential", "set", "SITE"))
		}
		var rows []row
		for _, k := range kept {
			rows = append(rows, row{clean(k.Site), parts(k)})
		}
		a.rows(rows...)
	})
}

// parts says which parts there are, and of which not from the keychain.
func parts(k vault.Kept) string {
	var text string
	for _, part := range []struct {
		name  string
		where vault.Source
	}{{"login", k.Login}, {"one-time codes", k.TOTP}} {
		if part.where == "" {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += part.name
		if part.where != vault.FromKeychain {
			text += " (from the " + string(part.where) + ")"
		}
	}
	return text
}

// credentials opens the home's credentials for fn.
func (a *app) credentials(fn func(*vault.Credentials) error) error {
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	return fn(vault.NewCredentials(home, a.vaultOptions()))
}

// unlockWithin is how long a person may take to unlock the keychain.
const unlockWithin = time.Minute

func (a *app) vaultOptions() *vault.Options {
	o := &vault.Options{Getenv: a.getenv, Keyring: a.env.Keyring, Logger: a.logger()}
	if a.env.IsTerminal(a.env.Stderr) {
		o.KeyringTimeout = unlockWithin
	}
	return o
}
