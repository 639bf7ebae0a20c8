package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"tapin/internal/chat"
	"tapin/internal/secret"
)

const (
	maxText    = 4096 // UTF-16 units of a message
	maxCaption = 1024 // and of a photo's
	maxAnswer  = 200  // characters in answer to a button

	callWithin  = 20 * time.Second
	photoWithin = 45 * time.Second
	pollFor     = 25 * time.Second
	maxUpdates  = 16 << 20 // bytes of one answer
)

// how is what a failed call means for what to do next.
type how int

const (
	again      how = iota // it may work later, and was not done
	unknown               // nobody knows whether it was done
	forbidden             // this person cannot be written to
	refused               // it will never work like this
	unmodified            // it is so already
	missing               // the message is gone
	conflict              // somebody else polls with the same token
	wrongToken
)

// failure is a call that failed. It says of it what may be said: no address,
// which holds the token, and nothing of what was sent or answered.
type failure struct {
	method string
	how    how
	after  time.Duration // how long the server wants to be left alone
}

func (f *failure) Error() string {
	why := map[how]string{ //nolint:gosec // words, not values
		again: "it cannot be reached now", unknown: "it gave no answer", forbidden: "this chat cannot be written to", refused: "it was refused",
		unmodified: "it is so already", missing: "the message is gone", conflict: "another program uses the same bot", wrongToken: "the bot's token is not valid",
	}[f.how]
	return "telegram " + f.method + ": " + why
}

// is reports whether a call failed in that way.
func is(err error, h how) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.how == h
}

// line is the Bot API.
type line struct {
	bot  *bot.Bot
	base string // with the token: never to be printed
	http *http.Client
}

func newLine(api string, token secret.Text) (*line, error) {
	client := &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     time.Minute,
		},
		// A redirect must not carry the token on.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	api = strings.TrimRight(api, "/")
	quiet := func(error) {} // its words may hold addresses and bodies
	b, err := bot.New(token.Reveal(), bot.WithSkipGetMe(), bot.WithServerURL(api), bot.WithHTTPClient(callWithin, client), bot.WithErrorsHandler(quiet))
	if err != nil {
		return nil, &failure{method: "getMe", how: wrongToken}
	}
	return &line{bot: b, base: api + "/bot" + token.Reveal() + "/", http: client}, nil
}

func (l *line) close() { l.http.CloseIdleConnections() }

// judge makes a failure of what the library says of a photo.
func judge(method string, err error) error {
	if err == nil {
		return nil
	}
	f := &failure{method: method, how: unknown}
	slow, isSlow := errors.AsType[*bot.TooManyRequestsError](err)
	dial, isNet := errors.AsType[*net.OpError](err)
	said := err.Error()
	answered := "error response from telegram for method " + method + ", "
	switch {
	case isSlow:
		f.how, f.after = again, time.Duration(slow.RetryAfter)*time.Second
	case errors.Is(err, bot.ErrorForbidden):
		f.how = forbidden
	case errors.Is(err, bot.ErrorUnauthorized):
		f.how = wrongToken
	case errors.Is(err, bot.ErrorBadRequest), errors.Is(err, bot.ErrorNotFound), errors.Is(err, bot.ErrorConflict), bot.IsMigrateError(err):
		f.how = refused
	case strings.HasPrefix(said, answered+"0 "):
		f.how = refused // a server that knows no photos, and says so in its own way
	case strings.HasPrefix(said, answered):
		f.how = again // it answered, and said that it could not
	case isNet && dial.Op == "dial":
		f.how = again
	}
	return f
}

// keyboard is an inline keyboard in the fewest words: the library's own type
// writes fields that the server has to ignore.
type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text   string  `json:"text"`
	Data   string  `json:"callback_data,omitempty"`
	URL    string  `json:"url,omitempty"`
	WebApp *webApp `json:"web_app,omitempty"`
}

type webApp struct {
	URL string `json:"url"`
}

// post is a message to be sent or edited.
type post struct {
	chat    int64
	text    chat.Text
	buttons *keyboard
	reply   int
	silent  bool
}

func (p post) entities() []models.MessageEntity {
	var out []models.MessageEntity
	for _, b := range p.text.Bold {
		out = append(out, models.MessageEntity{Type: models.MessageEntityTypeBold, Offset: b.Offset, Length: b.Length})
	}
	return out
}

func (p post) markup() models.ReplyMarkup {
	if p.buttons == nil || len(p.buttons.Rows) == 0 {
		return nil
	}
	return p.buttons
}

func (p post) replyTo() *models.ReplyParameters {
	if p.reply == 0 {
		return nil
	}
	return &models.ReplyParameters{MessageID: p.reply, AllowSendingWithoutReply: true}
}

func (l *line) send(ctx context.Context, p post) (int, error) {
	off := true
	var m models.Message
	err := l.call(ctx, "sendMessage", callWithin, &bot.SendMessageParams{
		ChatID: p.chat, Text: chat.Clip(p.text.Plain, maxText), Entities: p.entities(), ReplyMarkup: p.markup(), ReplyParameters: p.replyTo(),
		LinkPreviewOptions: &models.LinkPreviewOptions{IsDisabled: &off}, DisableNotification: p.silent,
	}, &m)
	return m.ID, err
}

func (l *line) sendPhoto(ctx context.Context, p post, picture []byte) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, photoWithin)
	defer cancel()
	m, err := l.bot.SendPhoto(ctx, &bot.SendPhotoParams{
		ChatID: p.chat, Photo: &models.InputFileUpload{Filename: "page.jpg", Data: bytes.NewReader(picture)},
		Caption: p.text.Plain, CaptionEntities: p.entities(), ReplyMarkup: p.markup(), ReplyParameters: p.replyTo(), DisableNotification: p.silent,
	})
	if err != nil {
		return 0, judge("sendPhoto", err)
	}
	return m.ID, nil
}

// edit changes a message of ours; one without buttons loses them.
func (l *line) edit(ctx context.Context, p post, message sent) error {
	if message.Photo {
		return l.call(ctx, "editMessageCaption", callWithin, &bot.EditMessageCaptionParams{
			ChatID: p.chat, MessageID: message.ID, Caption: chat.Clip(p.text.Plain, maxCaption), CaptionEntities: p.entities(), ReplyMarkup: p.markup(),
		}, nil)
	}
	off := true
	return l.call(ctx, "editMessageText", callWithin, &bot.EditMessageTextParams{
		ChatID: p.chat, MessageID: message.ID, Text: chat.Clip(p.text.Plain, maxText), Entities: p.entities(), ReplyMarkup: p.markup(),
		LinkPreviewOptions: &models.LinkPreviewOptions{IsDisabled: &off},
	}, nil)
}

// remove deletes a message; one that is gone is deleted.
func (l *line) remove(ctx context.Context, in int64, message int) error {
	err := l.call(ctx, "deleteMessage", callWithin, &bot.DeleteMessageParams{ChatID: in, MessageID: message}, nil)
	if is(err, missing) {
		return nil
	}
	return err
}

// answer ends the waiting of a button. Nothing depends on it.
func (l *line) answer(ctx context.Context, query, text string) {
	runes := []rune(text)
	_ = l.call(ctx, "answerCallbackQuery", 5*time.Second, &bot.AnswerCallbackQueryParams{CallbackQueryID: query, Text: string(runes[:min(len(runes), maxAnswer)])}, nil)
}

func (l *line) me(ctx context.Context) (string, error) {
	var u models.User
	err := l.call(ctx, "getMe", callWithin, struct{}{}, &u)
	if is(err, refused) {
		err = &failure{method: "getMe", how: wrongToken}
	}
	return u.Username, err
}

// reply is how the server answers.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int `json:"retry_after"`
	} `json:"parameters"`
}

// call sends a request as JSON and decodes its result. The library would send
// everything as a form with files, which not every Bot API server reads, and
// put bodies into its errors; files alone go through it.
func (l *line) call(ctx context.Context, method string, within time.Duration, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err := json.Marshal(params)
	if err != nil {
		return &failure{method: method, how: refused}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base+method, bytes.NewReader(body))
	if err != nil {
		return &failure{method: method, how: refused}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.http.Do(req)
	if err != nil {
		f := &failure{method: method, how: unknown}
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			f.how = again
		}
		return f
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxUpdates))
	var said reply
	if err != nil || json.Unmarshal(raw, &said) != nil {
		return &failure{method: method, how: unknown}
	}
	if !said.OK {
		return refusalOf(method, resp.StatusCode, said)
	}
	if result != nil && json.Unmarshal(said.Result, result) != nil {
		return &failure{method: method, how: unknown}
	}
	return nil
}

// refusalOf is what an answer that is no yes means.
func refusalOf(method string, status int, said reply) error {
	f := &failure{method: method, how: again, after: time.Duration(said.Parameters.RetryAfter) * time.Second}
	code := said.Code
	if code == 0 {
		code = status
	}
	switch code {
	case http.StatusUnauthorized:
		f.how = wrongToken
	case http.StatusForbidden:
		f.how = forbidden
	case http.StatusConflict:
		f.how = conflict
	case http.StatusNotFound:
		f.how = refused
	case http.StatusBadRequest:
		switch {
		case strings.Contains(said.Description, "message is not modified"):
			f.how = unmodified
		case strings.Contains(said.Description, "not found") && strings.Contains(said.Description, "message"):
			f.how = missing
		default:
			f.how = refused
		}
	}
	return f
}

// updates asks for what happened from an offset on, and waits for it. It is our
// own request: the library's poller gives up updates when it ends.
func (l *line) updates(ctx context.Context, offset int64) ([]models.Update, error) {
	var raw json.RawMessage
	err := l.call(ctx, "getUpdates", pollFor+callWithin, map[string]any{
		"offset": offset, "timeout": int(pollFor.Seconds()), "allowed_updates": []string{"message", "callback_query"},
	}, &raw)
	if is(err, refused) {
		err = &failure{method: "getUpdates", how: wrongToken}
	}
	if err != nil {
		return nil, err
	}
	return readUpdates(raw)
}

// readUpdates reads a batch. One that cannot be read is passed over and not
// asked for again: it would come for ever.
func readUpdates(raw json.RawMessage) ([]models.Update, error) {
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return nil, &failure{method: "getUpdates", how: again}
	}
	out := make([]models.Update, 0, len(parts))
	for _, part := range parts {
		var u models.Update
		if json.Unmarshal(part, &u) != nil {
			var bare struct {
				ID int64 `json:"update_id"`
			}
			if json.Unmarshal(part, &bare) != nil {
				continue
			}
			u = models.Update{ID: bare.ID}
		}
		out = append(out, u)
	}
	return out, nil
}

// key names an update for whatever is to happen once because of it.
func key(update int64, what string) string { return fmt.Sprintf("tg-%d-%s", update, what) }
