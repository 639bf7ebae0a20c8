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
	Back    bool         `json:"back,omitempty"`
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
standard input; from then on set the variable to that. If it is cut off there,
either key opens everything until the same new one is given again, or tapin is
started with it; the old one, given as the new one, takes the change back.

Backups and files that were exported before are still sealed as they were.

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
	home, release, err := a.homeAlone()
	if err != nil {
		return err
	}
	defer release()
	opts := a.vaultOptions()
	got, err := a.rekeyIn(ctx, home, opts, keepOld)
	if err != nil && ctx.Err() != nil {
		return a.rekeyStopped(ctx, home, opts)
	}
	if err != nil {
		return err
	}
	return a.answer(rekeyAnswer{got.Source, got.Files, got.Strange, got.Resumed, got.Back, got.KeptOld}, func() {
		p := a.paint(a.env.Stdout)
		if got.Resumed {
			a.printf("The change had begun before and was cut off; it is at its end now.\n")
		}
		a.printf("Sealed %s anew. The key is in the %s.\n", count(got.Files, "file"), got.Source)
		switch {
		case got.Back:
			a.printf("The change that had begun before is taken back: the old key is the key, and the new one is none.\n")
		case got.KeptOld != "":
			a.printf("%s The old key is still in the keychain, as %s.\n", p.bang(), got.KeptOld)
		default:
			a.printf("The old key is gone.\n")
		}
		switch {
		case got.Back:
			a.printf("%s TAPIN_VAULT_KEY has to be the old key when tapin is started.\n", p.bang())
		case got.Source == vault.FromEnvironment:
			a.printf("%s Set TAPIN_VAULT_KEY to the new key before tapin is started.\n", p.bang())
		}
		for _, name := range got.Strange {
			a.printf("%s %s could not be opened with the old key either, and is as it was.\n", p.bang(), clean(name))
		}
	})
}

func (a *app) rekeyIn(ctx context.Context, home *store.Home, opts *vault.Options, keepOld bool) (vault.Rekeyed, error) {
	v, err := vault.Open(ctx, home, opts)
	if err != nil {
		return vault.Rekeyed{}, err
	}
	key := secret.Text{}
	if v.Source() == vault.FromEnvironment {
		if key, err = a.secrets().rest(ctx, "New key"); err != nil {
			return vault.Rekeyed{}, err
		}
	}
	done := a.progress("sealing everything anew")
	defer done()
	return vault.Rekey(ctx, home, opts, &vault.RekeyOptions{Key: key, KeepOld: keepOld, Begin: a.endLeftBehind(ctx, home)})
}

// rekeyStopped tells how the key stands after a Ctrl-C.
func (a *app) rekeyStopped(ctx context.Context, home *store.Home, opts *vault.Options) error {
	begun, err := vault.Changing(home)
	if err != nil {
		return err
	}
	if !begun {
		return a.stopped("the key was not changed", "Run it again when it suits.")
	}
	const state = "the change of the key has begun, and everything can still be opened"
	if v, err := vault.Open(context.WithoutCancel(ctx), home, opts); err == nil && v.Source() == vault.FromEnvironment {
		return a.stopped(state, "Run it again with the same new key, or start tapin with that in TAPIN_VAULT_KEY: it goes on. Until then either key opens everything.")
	}
	return a.stopped(state, "Run it again, or start tapin: it goes on.")
}

// homeAlone opens a home that exists for this process alone: tapin does not run
// under it, and cannot be started until release is called.
func (a *app) homeAlone() (home *store.Home, release func(), err error) {
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
	return home, func() { unlock(); _ = home.Close() }, nil
}

// endLeftBehind ends what a kill left running, which holds pages and files of a
// home. It is done last before the home is changed: who is refused, or says no,
// has the next start take those browsers up again.
func (a *app) endLeftBehind(ctx context.Context, home *store.Home) func() error {
	return func() error {
		_, err := endBrowsersAlone(ctx, home)
		return err
	}
}

func (a *app) keepAlone(home *store.Home) (unlock func(), err error) {
	unlock, err = daemon.Alone(home)
	if held := fault.Of(err); err != nil && held.Code == fault.Busy {
		return nil, held.WithHint("End it with %s, then run this again.", a.command("down"))
	}
	return unlock, err
}
