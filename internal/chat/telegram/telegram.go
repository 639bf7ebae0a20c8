// Package telegram carries the conversation with the owner over the Bot API:
// it tells what the feed tells, and does what the owner's words and buttons
// say, through the API of the sidecar. It owns the messages that are out, what
// is still to be sent, and how far updates and feed were read. It must never
// act for somebody who is not an owner, have one update take effect twice, or
// let a relayed text or the bot's token reach a disk, a log or an error.
package telegram

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	// downFor is how long a sidecar may be away before the owner is told.
	downFor = 5 * time.Second
	// actWithin is how long an action is tried while the sidecar comes back.
	actWithin = 30 * time.Second
)

// Options are the settings of a room; nil means the defaults.
type Options struct {
	APIURL     string            // default https://api.telegram.org
	Screenshot config.Screenshot // default full
	Logger     *slog.Logger      // nil discards
}

// Room is the conversation. It is safe for concurrent use.
type Room struct {
	home *store.Home
	line *line
	opts Options
	log  *slog.Logger

	nudge chan struct{} // holds one token when there may be something to send

	mu       sync.Mutex
	client   *api.Client   // of the sidecar that serves now; nil while none does
	attached chan struct{} // closed when a sidecar serves, replaced when it ends
	down     *time.Timer   // while none serves
	saidDown []int64       // the chats that were told
	owners   []int64
	names    map[int64]string
	progress progress
	cards    map[string]*card
	photos   map[string][]byte // of hand-offs that are not announced to all yet
	pace     map[int64]*bucket
	asking   map[int64]chan struct{} // closed once it is known whether a question has reached the chat
}

// New reads what an earlier process left. Run and Follow bring it to life.
func New(home *store.Home, token secret.Text, opts *Options) (*Room, error) {
	r := &Room{
		home: home, nudge: make(chan struct{}, 1), attached: make(chan struct{}), cards: map[string]*card{},
		photos: map[string][]byte{}, names: map[int64]string{}, pace: map[int64]*bucket{}, asking: map[int64]chan struct{}{},
	}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.APIURL == "" {
		r.opts.APIURL = config.Default().Telegram.APIURL
	}
	if r.opts.Screenshot == "" {
		r.opts.Screenshot = config.ScreenshotFull
	}
	if r.log = r.opts.Logger; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.line, err = newLine(r.opts.APIURL, token); err != nil {
		return nil, fault.New(fault.InvalidRequest, "start Telegram", "the bot's token is not one").
			WithHint("Set TELEGRAM_BOT_TOKEN to what BotFather gave you.")
	}
	r.progress, _ = store.Derived[progress](home, progressFile, nil) // else from the oldest that is not confirmed
	return r, r.readCards()
}

// Run polls and sends until ctx ends. Where one of the two panics, both have
// failed: whoever is answered but never written to is not served.
func (r *Room) Run(ctx context.Context) {
	defer r.line.close()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.down != nil && ctx.Err() != nil {
			r.down.Stop()
		}
	}()
	guard.Parts(ctx, r.poll, r.deliver)
}

// attach lets actions reach a sidecar, until detach.
func (r *Room) attach(c *api.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client = c
	close(r.attached)
	if r.down != nil {
		r.down.Stop()
		r.down = nil
	}
	told := r.saidDown
	r.saidDown = nil
	for _, id := range told {
		r.say(note{Chat: id, Text: backAgain}, store.NewID("bck"))
	}
	r.prod()
}

func (r *Room) detach(ending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client, r.attached = nil, make(chan struct{})
	if !ending && r.down == nil {
		r.down = time.AfterFunc(downFor, func() {
			defer guard.Catch("chat")
			r.tellDown()
		})
	}
}

// tellDown tells those who are in the middle of something that it takes longer.
func (r *Room) tellDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return
	}
	for _, id := range r.owners {
		for _, c := range r.cards {
			if s := c.Chats[id]; c.waits() && s != nil && s.last().ID != 0 {
				r.say(note{Chat: id, Text: inAMoment, Once: true, Until: time.Now().Add(time.Minute)}, store.NewID("dwn"))
				r.saidDown = append(r.saidDown, id)
				break
			}
		}
	}
	r.prod()
}

// sidecar is the one that serves, waited for.
func (r *Room) sidecar(ctx context.Context) (*api.Client, error) {
	for {
		r.mu.Lock()
		c, attached := r.client, r.attached
		r.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-attached:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *Room) prod() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// BotName asks for the name under which people find a bot.
func BotName(ctx context.Context, apiURL string, token secret.Text) (string, error) {
	l, err := newLine(apiURL, token)
	if err != nil {
		return "", err
	}
	defer l.close()
	name, err := l.me(ctx)
	switch {
	case is(err, wrongToken):
		return "", fault.New(fault.Unauthorized, "ask Telegram for the bot", "its token is not valid").WithHint("Set TELEGRAM_BOT_TOKEN to what BotFather gave you.")
	case err != nil:
		return "", fault.New(fault.ProviderError, "ask Telegram for the bot", "%w", err).WithHint("Check the network, and telegram.api_url.")
	}
	return name, nil
}
