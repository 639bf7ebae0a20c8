package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
	"tapin/internal/forget"
	"tapin/internal/sidecar"
	"tapin/internal/site"
	"tapin/internal/store"
)

func (a *app) forgetCommand() *cobra.Command {
	var force, yes, drop bool
	cmd := &cobra.Command{
		Use:   "forget SITE",
		Short: "Take everything of a site out of tapin's home",
		Long: `Removes what tapin keeps of a site and all below its domain: the saved login, the
password in the keychain, hand-offs with their pictures, payments and policies,
runs, to-dos, messages, downloads, figures, and each line of feed, journal and
log that names it. What is of other sites stays as it is. tapin must not run
meanwhile; if it is cut off, the next start finishes it.

A file that cannot be read may name the site. It is told and left, and what was
to be forgotten stays noted: the command ends with an error, every start tries
again with what is older than this, and so does the same command. --drop gives it
up instead.

It refuses while a hand-off, a payment or a session of the site is not over;
--force ends that. It asks first.`,
		Example: "  tapin down\n  tapin forget chase.com\n  tapin forget chase.com --yes",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.forget(cmd.Context(), args[0], force, yes, drop)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also what is not over")
	cmd.Flags().BoolVar(&drop, "drop", false, "give up what could not be finished; what is left stays")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// beyond is what nobody can take back from here.
const beyondForgetting = "Not taken back, because it is not here: messages and pictures in the chat, what webhooks and agents were told, what providers and the site itself keep, and backups."

func (a *app) forget(ctx context.Context, name string, force, yes, drop bool) error {
	at, err := site.Of(name)
	if err != nil {
		return err
	}
	cfg, _, err := a.settings()
	if err != nil {
		return err
	}
	home, release, err := a.homeAlone()
	if err != nil {
		return err
	}
	defer release()
	if drop {
		return a.giveUpForgetting(home, at)
	}
	if !yes {
		if !a.someoneAsks() {
			return fault.New(fault.InvalidRequest, "", "nobody is there to be asked").WithHint("With --yes it forgets without asking.")
		}
		if !a.agreed(ctx, fmt.Sprintf("Forget everything about %s? It cannot be undone.", site.Display(at))) {
			if ctx.Err() != nil {
				return a.stopped("nothing was forgotten", "Run it again when it suits.")
			}
			return exit(1)
		}
	}
	done := a.progress("forgetting " + site.Display(at))
	got, err := sidecar.ForgetSite(ctx, home, cfg, a.vaultOptions(), at, force, a.endLeftBehind(ctx, home))
	done()
	if err != nil {
		return err
	}
	var unfinished error
	if !got.Finished {
		unfinished = fault.New(fault.Unreadable, "forget "+string(at), "it may still be in %s, which cannot be read", strings.Join(forget.Matters(got.Left), ", ")).
			WithHint("See tapin doctor, then run this again. --drop gives it up.").With("left", got.Left).With("removed", got.Removed)
		if a.json {
			return unfinished
		}
	}
	err = a.answer(got, func() {
		if len(got.Removed) == 0 && got.Finished {
			a.printf("Nothing of %s was here.\n", site.Display(at))
		}
		var rows []row
		for _, kind := range slices.Sorted(maps.Keys(got.Removed)) {
			rows = append(rows, row{kind, fmt.Sprint(got.Removed[kind])})
		}
		a.rows(rows...)
		p := a.paint(a.env.Stdout)
		for _, file := range got.Left {
			a.printf("%s %s cannot be read, and may name it.\n", p.bang(), clean(file))
		}
		for _, id := range got.Remains {
			a.printf("%s Browserbase still keeps the login as context %s.\n", p.bang(), clean(id))
		}
		for _, file := range got.Yours {
			a.printf("%s %s is your own text, and may name it.\n", p.bang(), clean(file))
		}
		for _, name := range got.Set {
			a.printf("%s The credential %s is set in the environment, and is yours to take out.\n", p.bang(), clean(name))
		}
		for _, other := range got.Pending {
			a.printf("%s %s was to be forgotten before, and is not forgotten to the end yet.\n", p.bang(), clean(other))
		}
		a.printf("%s\n", beyondForgetting)
	})
	return cmp.Or(err, unfinished)
}

// giveUpForgetting takes the wish back that could not be fulfilled.
func (a *app) giveUpForgetting(home *store.Home, at site.Site) error {
	found, err := sidecar.GiveUpForgetting(home, at)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.NotFound, "", "%s is not being forgotten", site.Display(at))
	}
	return a.answer(map[string]any{"site": at, "dropped": true}, func() {
		a.printf("%s is not forgotten any further. What is gone is gone; what is left stays.\n", site.Display(at))
	})
}
