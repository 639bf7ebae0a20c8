package daemon

import (
	"context"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/chat/telegram"
	"tapin/internal/config"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// Telegram is how the owner is written to.
type Telegram struct {
	Token      secret.Text // of the bot
	APIURL     string
	Screenshot config.Screenshot
}

// openChat opens the conversation with the owner, if there is one to be had.
func (d *daemon) openChat() (err error) {
	if t := d.opts.Telegram; t != nil {
		d.chat, err = telegram.New(d.opts.Home, t.Token, &telegram.Options{APIURL: t.APIURL, Screenshot: t.Screenshot, Logger: d.log})
	}
	return err
}

// converse carries the conversation on with the sidecar at control until ctx
// ends; whole is the daemon's own life.
func (d *daemon) converse(ctx, whole context.Context, control string) {
	if d.chat == nil {
		return
	}
	for ctx.Err() == nil {
		client, err := ownerClient(d.opts.Home, control)
		if err == nil {
			err = d.chat.Follow(ctx, client, func() bool { return whole.Err() != nil })
			client.Close()
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("the conversation with the owner cannot go on now", "error", err)
		}
		select {
		case <-time.After(chatPause):
		case <-ctx.Done():
		}
	}
}

// chatPause is before the feed is followed again.
const chatPause = time.Second

// ownerClient speaks to the sidecar with the owner's token.
func ownerClient(home *store.Home, control string) (*api.Client, error) {
	token, err := home.Read(ownerTokenFile)
	if err != nil {
		return nil, err
	}
	return api.NewClient("http://"+control, secret.New(strings.TrimSpace(string(token))), nil)
}

// BotName asks for the name under which people find the bot.
func BotName(ctx context.Context, t Telegram) (string, error) {
	return telegram.BotName(ctx, t.APIURL, t.Token)
}
