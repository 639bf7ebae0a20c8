package sidecar

import (
	"context"
	"strconv"
	"time"

	"tapin/internal/chat/miniapp"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// botToken is the keychain entry of the bot, whose token signs what Telegram
// hands to the live view.
const botToken = "credential-telegram-bot-token" //nolint:gosec // a name, not a value

// credentials fetch what the owner keeps in the keychain.
type credentials interface {
	Credential(ctx context.Context, name string) (secret.Text, error)
}

// miniApp lets an owner in who opened a link from the chat. The token is asked
// for each time: it may have been set or changed meanwhile.
func (s *sidecar) miniApp(keys credentials) func(ctx context.Context, id string, data secret.Text) (secret.Text, error) {
	return func(ctx context.Context, id string, data secret.Text) (secret.Text, error) {
		token, err := keys.Credential(ctx, botToken)
		if err != nil {
			return secret.Text{}, fault.New(fault.Unauthorized, "open the live view from Telegram", "no bot is set up here")
		}
		user, err := miniapp.Verify(data, token, time.Now())
		if err != nil {
			return secret.Text{}, err
		}
		if !s.owners.Is(user) {
			return secret.Text{}, fault.New(fault.Forbidden, "open the live view from Telegram", "only an owner may open it").
				WithHint("Run tapin pair to become one.")
		}
		return s.links.AdmitAs(ctx, id, chatOf+strconv.FormatInt(user, 10))
	}
}
