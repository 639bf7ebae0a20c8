package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"tapin/internal/chat"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// poll takes updates until ctx ends. An update is confirmed to the server only
// after it had its effect, so that one in whose middle we are killed comes again.
func (r *Room) poll(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		r.mu.Lock()
		from := r.progress.from(time.Now())
		r.mu.Unlock()
		began := time.Now()
		batch, err := r.line.updates(ctx, from)
		if err == nil {
			if err = r.handleAll(ctx, batch); err == nil {
				pause = firstPause
				if len(batch) == 0 && time.Since(began) < pollPause {
					r.doze(ctx, pollPause) // a server that does not wait
				}
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		wait := pause
		if f, ok := errors.AsType[*failure](err); ok {
			wait = max(wait, f.after)
		}
		r.log.Warn("Telegram cannot be read now", "error", err, "again_in", wait)
		pause = min(2*pause, lastPause)
		r.doze(ctx, wait)
	}
}

// pollPause is the least time between two polls that bring nothing.
const pollPause = 250 * time.Millisecond

func (*Room) doze(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// handleAll handles a batch in the order in which people wrote.
func (r *Room) handleAll(ctx context.Context, batch []models.Update) error {
	slices.SortStableFunc(batch, func(a, b models.Update) int { return int(a.ID - b.ID) })
	dirty := false
	for i := range batch {
		u := &batch[i]
		r.mu.Lock()
		known := r.progress.handled(u.ID)
		r.mu.Unlock()
		if known {
			continue
		}
		acted, err := r.handle(ctx, u)
		if err != nil {
			return err
		}
		if err := r.handledOne(u.ID, acted); err != nil {
			return err
		}
		dirty = dirty || !acted
		r.prod()
	}
	if len(batch) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := batch[len(batch)-1].ID + 1; next != r.progress.Offset {
		r.progress.Offset = next
		dirty = true
	}
	if dirty {
		return r.save() // strangers cost one write a batch
	}
	return nil
}

// letter is an update of an owner's, as far as it matters.
type letter struct {
	update  int64
	from    int64
	name    string
	message int
	reply   int
	query   string // of a button
	photo   bool   // whose message is one
	wish    chat.Wish
	said    *chat.Decision // by a button
	words   secret.Text    // what was written
}

// handledOne notes that an update is done with; at once where it acted.
func (r *Room) handledOne(id int64, acted bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.done(id, time.Now())
	if acted {
		return r.save()
	}
	return nil
}

// handle lets one update have its effect. It reports whether anything was done
// that must not be done again; an error leaves the update to come again.
func (r *Room) handle(ctx context.Context, u *models.Update) (acted bool, err error) {
	l, why := read(u)
	if why != "" {
		r.ignore(why)
		return false, nil
	}
	if _, err := r.sidecar(ctx); err != nil { // who the owners are, it knows
		return false, err
	}
	r.mu.Lock()
	owner := slices.Contains(r.owners, l.from)
	r.mu.Unlock()
	pairing := len(l.wish.Kinds) > 0 && l.wish.Kinds[0] == chat.Pair
	if !owner && !pairing {
		r.ignore(byStranger)
		return false, nil
	}
	if err := r.awaitAsked(ctx, l.from); err != nil {
		return false, err
	}
	what, err := r.decide(l, u)
	if err != nil {
		return false, err
	}
	return true, r.act(ctx, l, what)
}

func (r *Room) ignore(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.refuse(why)
}

// read finds out who wrote what. A reason means that it has no effect, whoever
// it comes from.
func read(u *models.Update) (letter, string) {
	l := letter{update: u.ID}
	switch {
	case u.CallbackQuery != nil:
		q := u.CallbackQuery
		l.from, l.name, l.query = q.From.ID, called(&q.From), q.ID
		in := models.Chat{}
		switch {
		case q.Message.Message != nil:
			in, l.message, l.photo = q.Message.Message.Chat, q.Message.Message.ID, len(q.Message.Message.Photo) > 0
		case q.Message.InaccessibleMessage != nil:
			in, l.message = q.Message.InaccessibleMessage.Chat, q.Message.InaccessibleMessage.MessageID
		}
		if q.From.IsBot || in.ID != q.From.ID {
			return l, byGroup
		}
		d, ok := parseButton(q.Data)
		if !ok {
			return l, byStale
		}
		l.said = &d
		return l, ""
	case u.Message != nil:
		m := u.Message
		switch {
		case m.From == nil || m.From.IsBot:
			return l, byOther
		case m.Chat.Type != models.ChatTypePrivate || m.Chat.ID != m.From.ID || m.SenderChat != nil:
			return l, byGroup
		case m.ForwardOrigin != nil || m.ViaBot != nil || m.IsAutomaticForward:
			return l, byForward
		case m.EditDate != 0:
			return l, byEdit
		case m.Text == "":
			return l, byOther
		}
		l.from, l.name, l.message = m.From.ID, called(m.From), m.ID
		if m.ReplyToMessage != nil {
			l.reply = m.ReplyToMessage.ID
		}
		l.words, l.wish = secret.New(m.Text), chat.Read(m.Text)
		return l, ""
	case u.EditedMessage != nil:
		return l, byEdit
	}
	return l, byOther
}

func called(u *models.User) string { return strings.TrimSpace(u.FirstName + " " + u.LastName) }

// parseButton reads what a button of ours says.
func parseButton(data string) (chat.Decision, bool) {
	verb, id, ok := strings.Cut(data, ":")
	if !ok || id == "" || len(data) > 64 {
		return chat.Decision{}, false
	}
	kind := map[string]chat.Kind{
		verbDone: chat.Done, verbAnyway: chat.Anyway, verbAbort: chat.Abort, verbShot: chat.Screenshot, verbMore: chat.Extend, verbLater: chat.Later,
		verbResume: chat.Resume, verbRetry: chat.Retry, verbMove: chat.Device, verbYes: chat.Yes, verbNo: chat.No, verbLetIn: letIn, verbRefuse: sendAway,
		verbPolicy: confirmPolicy, verbNoPolicy: denyPolicy,
	}[verb]
	if kind == "" {
		return chat.Decision{}, false
	}
	d := chat.Decision{Kind: kind, Target: id}
	switch kind {
	case chat.Extend:
		d.More = chat.More
	case chat.Device:
		link, number, ok := strings.Cut(id, ":")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return chat.Decision{}, false
		}
		d.Target, d.Number = link, n
	}
	return d, true
}

// What buttons alone can say.
const (
	letIn    chat.Kind = "let_in"
	sendAway chat.Kind = "send_away"

	confirmPolicy chat.Kind = "confirm_policy"
	denyPolicy    chat.Kind = "deny_policy"
)

// decide finds out what an update means, and writes it down. What was decided
// before a kill stays decided: by now something else may wait.
func (r *Room) decide(l letter, u *models.Update) (chat.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.progress.Now; now != nil && now.Update == u.ID {
		return now.What, nil
	}
	var what chat.Decision
	switch {
	case l.said != nil:
		what = r.checkButton(l)
	case r.policy(l):
		what = chat.Decision{Kind: chat.Policy}
	default:
		what = chat.Decide(l.wish, r.pending(l.from, l.message, l.reply))
	}
	r.progress.saw(l.from, l.message)
	r.progress.Now = &decided{Update: u.ID, What: what}
	return what, r.save()
}

// checkButton holds a button to the chat that it was shown in, and learns of a
// message that was sent and not noted.
func (r *Room) checkButton(l letter) chat.Decision {
	d := *l.said
	c := r.cards[d.Target]
	switch d.Kind {
	case chat.Retry, chat.Device, letIn, sendAway, confirmPolicy, denyPolicy:
		return d
	}
	switch {
	case c == nil || c.Chats[l.from] == nil:
		r.progress.refuse(byStale)
		return chat.Decision{Kind: chat.Over}
	case !c.waits():
		r.progress.refuse(byStale)
		return chat.Decision{Kind: chat.Over, Target: d.Target}
	}
	if s := c.Chats[l.from]; l.message != 0 && !s.has(l.message) && len(s.Messages) > 0 {
		s.Messages = append([]sent{{l.message, l.photo}}, s.Messages...) // sent twice: it is changed at the end too
		if err := r.keep(c); err != nil {
			r.log.Warn("a message that was sent twice could not be noted", "error", err)
		}
	}
	return d
}

// answer says something back, and ends the waiting of a button.
func (r *Room) answer(ctx context.Context, l letter, text string, buttons *keyboard) {
	if l.query != "" && buttons == nil && len([]rune(text)) <= maxAnswer {
		r.line.answer(ctx, l.query, text)
		return
	}
	if l.query != "" {
		r.line.answer(ctx, l.query, "")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say(note{Chat: l.from, Text: text, Buttons: buttons, Reply: l.replyable()}, answerID(l.update))
}

// replyable is the message to answer under; one that is deleted is not.
func (l letter) replyable() int {
	if l.query != "" || len(l.wish.Kinds) > 0 && l.wish.Kinds[0] == chat.Type {
		return 0
	}
	return l.message
}

func answerID(update int64) string { return fmt.Sprintf("u%020d", update) }

// explain is a failure in the owner's words.
func explain(err error) string {
	f := fault.Of(err)
	switch {
	case f.Data["effect"] == "unknown":
		return chat.MayBeTyped
	case f.Data["characters"] != nil:
		return "Not all of it was typed: look at the field before you send it again."
	}
	switch f.Code {
	case fault.HandoffNotRunning:
		return chat.ThatIsOver
	case fault.NoFocusedField:
		return "No field is waiting for text: tap the field in the live view first. Nothing was typed."
	case fault.Internal, fault.Busy:
		return chat.NotReached
	}
	return f.Code.Sentence() + " " + f.Advice()
}
