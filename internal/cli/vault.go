package cli

import (
	"context"

	"github.com/spf13/cobra"

	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

type rekeyAnswer struct {
	Key     vault.Source `json:"key"`
	Files   int          `json:"files"`
	Strange []string     `json:"strange,omitempty"`
	Resumed bool         `json:"resumed,omitempty"`
	KeptOld string       `json:"kept_old,omitempty"`
}

func (a *app) vaultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "vault", Short: "Look after the key that seals saved logins", Example: "  tapin vault rekey", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	keepOld := false
	rekey := &cobra.Command{
		Use:   "rekey",
		Short: "Change the key, and seal everything anew",
		Long: `Makes a new key where the old one is, seals every saved login and every other
sealed file anew with it, and does away with the old key. tapin must not run
meanwhile. If it is cut off, everything can still be opened; run it again, or
start tapin, and it goes on.

Where the key comes from TAPIN_VAULT_KEY the new one is asked for, or read from
standard input; from then on set the variable to that. Backups and files that
were exported before are still sealed as they were.

The keychain has one first key for all homes of a user. If another home uses it
too, --keep-old leaves it there; without it that home could not be opened again.`,
		Example: "  tapin down\n  tapin vault rekey\n  tapin up --background",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.rekey(cmd.Context(), keepOld) },
	}
	rekey.Flags().BoolVar(&keepOld, "keep-old", false, "leave the old key in the keychain, for another home that uses it")
	cmd.AddCommand(rekey)
	return cmd
}

func (a *app) rekey(ctx context.Context, keepOld bool) error {
	home, release, err := a.homeAlone(ctx)
	if err != nil {
		return err
	}
	defer release()
	opts := a.vaultOptions()
	v, err := vault.Open(ctx, home, opts)
	if err != nil {
		return err
	}
	key := secret.Text{}
	if v.Source() == vault.FromEnvironment {
		if key, err = a.secrets().rest(ctx, "New key"); err != nil {
			return err
		}
	}
	done := a.progress("sealing everything anew")
	got, err := vault.Rekey(ctx, home, opts, &vault.RekeyOptions{Key: key, KeepOld: keepOld})
	done()
	if err != nil {
		return err
	}
	return a.answer(rekeyAnswer{got.Source, got.Files, got.Strange, got.Resumed, got.KeptOld}, func() {
		p := a.paint(a.env.Stdout)
		a.printf("Sealed %s anew. The key is in the %s.\n", count(got.Files, "file"), got.Source)
		if got.KeptOld != "" {
			a.printf("%s The old key is still in the keychain, as %s.\n", p.bang(), got.KeptOld)
		} else {
			a.printf("The old key is gone.\n")
		}
		if got.Source == vault.FromEnvironment {
			a.printf("%s Set TAPIN_VAULT_KEY to the new key before tapin is started.\n", p.bang())
		}
		for _, name := range got.Strange {
			a.printf("%s %s could not be opened with the old key either, and is as it was.\n", p.bang(), clean(name))
		}
	})
}

// homeAlone opens a home that exists for this process alone: tapin does not run
// under it, and cannot be started until release is called.
func (a *app) homeAlone(ctx context.Context) (home *store.Home, release func(), err error) {
	home, err = a.existingHome()
	if err == nil && home == nil {
		err = a.noHome()
	}
	if err != nil {
		return nil, nil, err
	}
	unlock, err := a.keepAlone(home)
	if err != nil {
		_ = home.Close()
		return nil, nil, err
	}
	release = func() { unlock(); _ = home.Close() }
	// What a kill left running holds pages and files of this home.
	if _, err := endBrowsersAlone(ctx, home); err != nil {
		release()
		return nil, nil, err
	}
	return home, release, nil
}

func (a *app) keepAlone(home *store.Home) (unlock func(), err error) {
	unlock, err = daemon.Alone(home)
	if held := fault.Of(err); err != nil && held.Code == fault.Busy {
		return nil, held.WithHint("End it with %s, then run this again.", a.command("down"))
	}
	return unlock, err
}
