package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// botToken is the keychain entry of the bot.
const botToken = "credential-telegram-bot-token" //nolint:gosec // a name, not a value

// telegram is how the owner is written to; nil without a bot.
func (a *app) telegram(ctx context.Context, home *store.Home, cfg *config.Config) (*daemon.Telegram, error) {
	token, err := vault.NewCredentials(home, a.vaultOptions()).Credential(ctx, botToken)
	if errors.Is(err, fault.NotFound) {
		return nil, nil //nolint:nilnil // without a bot there is no chat
	}
	if err != nil {
		return nil, err
	}
	return &daemon.Telegram{Token: token, APIURL: cfg.Telegram.APIURL, Screenshot: cfg.Notify.Screenshot}, nil
}

func (a *app) pairCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pair",
		Short: "Become an owner in Telegram",
		Long: `Shows a code, and the same as a QR code, by which a person in Telegram becomes
an owner: who is written to when the agent needs help, and who may answer.
A further owner is confirmed by one who is there already.`,
		Example: "  tapin pair",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.pair(cmd.Context()) },
	}
}

// pairAnswer is what pair says in JSON. The code is a secret for ten minutes,
// so it is printed to a terminal alone.
type pairAnswer struct {
	ID      int64  `json:"owner_id"`
	Name    string `json:"name,omitempty"`
	Outcome string `json:"outcome"`
}

func (a *app) pair(ctx context.Context) error {
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	cfg, _, err := a.settings()
	if err != nil {
		return err
	}
	if !a.env.IsTerminal(a.env.Stdout) {
		return fault.New(fault.Forbidden, "pair", "a pairing code is shown on a terminal alone").WithHint("Run tapin pair in a terminal of yours.")
	}
	bot, err := a.telegram(ctx, home, cfg)
	if err != nil {
		return err
	}
	if bot == nil {
		return fault.New(fault.ProviderNotConfigured, "pair", "no Telegram bot is set up").
			WithHint("Make one with @BotFather, set TELEGRAM_BOT_TOKEN (or the keychain entry %s), and start tapin again.", botToken)
	}
	name, err := daemon.BotName(ctx, *bot)
	if err != nil {
		return err
	}
	client, err := a.clientOf(ctx, home, checkLock)
	if err != nil {
		return err
	}
	defer client.Close()
	before, err := client.Owners(ctx)
	if err != nil {
		return err
	}
	made, err := client.PairOwner(ctx)
	if err != nil {
		return err
	}
	deep := "https://t.me/" + name + "?start=" + made.Code.Reveal()
	drawn, err := qrLines(secret.New(deep), a.paint(a.env.Stdout))
	if err != nil {
		return err
	}
	a.printf("  Open this on the phone, or scan it:\n\n    %s\n\n    %s\n\n  Or write to @%s:\n\n    /start %s\n\n  The code counts once, for %s.\n", deep, strings.Join(drawn, "\n    "),
		name, made.Code.Reveal(), time.Until(made.ExpiresAt).Round(time.Minute))
	return a.awaitOwner(ctx, client, before, made.ExpiresAt)
}

// awaitOwner waits until somebody new is paired, or waits for a word.
func (a *app) awaitOwner(ctx context.Context, client *api.Client, before *api.Owners, until time.Time) error {
	done := a.progress("waiting for you in Telegram")
	defer done()
	known := map[int64]bool{}
	for _, o := range before.Owners {
		known[o.ID] = true
	}
	for time.Now().Before(until) {
		now, err := client.Owners(ctx)
		if err != nil {
			return err
		}
		for _, o := range now.Owners {
			if !known[o.ID] {
				done()
				return a.answer(pairAnswer{o.ID, o.Name, "paired"}, func() { a.printf("  %s is an owner now.\n", clean(shownName(o.Name, o.ID))) })
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fault.New(fault.WaitTimeout, "pair", "nobody came in time").WithHint("Run tapin pair again for a new code.")
}

func shownName(name string, id int64) string {
	if name == "" {
		return fmt.Sprint("number ", id)
	}
	return name
}

func (a *app) ownersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "owners",
		Short:   "List who may speak for the owner in Telegram",
		Example: "  tapin owners\n  tapin owners remove 123456789",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listOwners(cmd.Context()) },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "remove ID", Short: "Take an owner off the list", Example: "  tapin owners remove 123456789", Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.removeOwner(cmd.Context(), args[0]) },
	})
	return cmd
}

func (a *app) listOwners(ctx context.Context) error {
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	client, err := a.clientOf(ctx, home, checkLock)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Owners(ctx)
	if err != nil {
		return err
	}
	return a.answer(list, func() {
		if len(list.Owners) == 0 {
			a.printf("Nobody yet. Run tapin pair.\n")
		}
		for _, o := range list.Owners {
			how := "paired " + o.PairedAt.Local().Format(time.DateOnly)
			if o.Fixed {
				how = "by configuration"
			}
			a.printf("%d  %s  %s\n", o.ID, clean(shownName(o.Name, o.ID)), how)
		}
		for _, w := range list.Waiting {
			a.printf("%d  %s  waits for an owner's word in Telegram\n", w.ID, clean(shownName(w.Name, w.ID)))
		}
	})
}

func (a *app) removeOwner(ctx context.Context, text string) error {
	var id int64
	if _, err := fmt.Sscan(text, &id); err != nil || id <= 0 {
		return fault.New(fault.InvalidRequest, "remove an owner", "%q is no id", clean(text)).WithHint("tapin owners lists them.")
	}
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	client, err := a.clientOf(ctx, home, checkLock)
	if err != nil {
		return err
	}
	defer client.Close()
	gone, err := client.RemoveOwner(ctx, id)
	if err != nil {
		return err
	}
	return a.answer(gone, func() { a.printf("%d is no longer an owner.\n", id) })
}
