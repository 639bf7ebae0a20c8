package telegram

import (
	"context"
	"errors"
	"slices"
	"time"

	"tapin/internal/chat"
)

// task is one thing to do about a card in one chat, with a copy of all that it
// needs: nothing is locked while a server is spoken to.
type task struct {
	card   string
	chat   int64
	kind   string // announce, edit or a kind of prompt
	shown  shown
	look   string
	hand   chat.Handoff
	pay    *approval
	prompt *prompt
	over   bool
}

const (
	announce = "announce"
	editing  = "edit"
)

// nextTask is the first thing to be done, the oldest card first.
func (r *Room) nextTask(now time.Time) (task, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	for _, c := range r.ordered() {
		for _, in := range r.audience(c) {
			if t, ok := r.taskFor(c, in); ok {
				return t, true
			}
		}
		if len(r.photos[c.ID]) > 0 {
			delete(r.photos, c.ID) // everybody has it
		}
	}
	return task{}, false
}

// audience are the chats that a card belongs in: every owner's, and those that
// have it already.
func (r *Room) audience(c *card) []int64 {
	var out []int64
	for in := range c.Chats {
		out = append(out, in)
	}
	if c.waits() || len(c.Chats) == 0 {
		for _, in := range r.owners {
			if !slices.Contains(out, in) {
				out = append(out, in)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r *Room) taskFor(c *card, in int64) (task, bool) {
	s := c.Chats[in]
	if s == nil {
		s = &shown{}
	}
	if s.Dead {
		return task{}, false
	}
	t := task{card: c.ID, chat: in, shown: *s, look: c.look(), pay: c.Approval, over: !c.waits()}
	if c.Handoff != nil {
		t.hand = *c.Handoff
	}
	t.shown.Messages = slices.Clone(s.Messages)
	switch {
	case s.last().ID == 0:
		t.kind = announce
		return t, true
	case s.Look != t.look:
		t.kind = editing
		return t, true
	}
	for _, p := range c.Nudges {
		if !p.Done[in] && !(p.once() && p.Begun[in]) {
			t.kind = p.Kind
			t.prompt = &prompt{Kind: p.Kind, Version: p.Version}
			return t, true
		}
	}
	return task{}, false
}

// change lets something happen to a card that is there, and writes it.
func (r *Room) change(id string, fn func(*card)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cards[id]
	if c == nil {
		return nil
	}
	fn(c)
	return r.keep(c)
}

// in is what a chat shows of a card, made if there is nothing yet.
func (c *card) in(chat int64) *shown {
	if c.Chats == nil {
		c.Chats = map[int64]*shown{}
	}
	if c.Chats[chat] == nil {
		c.Chats[chat] = &shown{}
	}
	return c.Chats[chat]
}

func (r *Room) do(ctx context.Context, t task) error {
	switch t.kind {
	case announce:
		return r.announce(ctx, t)
	case editing:
		return r.edit(ctx, t)
	}
	return r.prompt(ctx, t)
}

// announce sends a card. Before the first try the place in the chat is noted
// after which an answer to it can come.
func (r *Room) announce(ctx context.Context, t task) error {
	err := r.change(t.card, func(c *card) {
		if c.Chats[t.chat] == nil {
			c.in(t.chat).After = r.progress.Seen[t.chat]
		}
		c.in(t.chat).Tries++
	})
	if err != nil {
		return err
	}
	if err := r.breathe(ctx, t.chat); err != nil {
		return err
	}
	p, picture, err := r.compose(ctx, t, true)
	if err != nil {
		return err
	}
	defer r.ask(t.chat)()
	message, photo, err := r.sendCard(ctx, p, picture)
	switch {
	case is(err, forbidden), is(err, refused):
		r.log.Error("an owner could not be told of a hand-off", "id", t.card, "error", err)
		return r.change(t.card, func(c *card) { c.in(t.chat).Dead = true })
	case is(err, unknown): // the owner may have it, and answer
		return errors.Join(err, r.change(t.card, func(c *card) { c.in(t.chat).Tries++ }))
	case err != nil:
		return err
	}
	return r.change(t.card, func(c *card) {
		s := c.in(t.chat)
		s.Messages, s.Look = append(s.Messages, sent{message, photo}), t.look
		r.progress.saw(t.chat, message)
		if t.over { // one message says it all
			for i := range c.Nudges {
				c.Nudges[i].finish(t.chat)
			}
		}
	})
}

// ask notes that a question is on its way to a chat, until the function is
// called that it returns.
func (r *Room) ask(in int64) (asked func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	under := make(chan struct{})
	r.asking[in] = under
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asking, in)
		close(under)
	}
}

// awaitAsked waits while a question is on its way to a chat. People may have it,
// and answer, before the server has told us its number; without that nobody
// knows whether they do.
func (r *Room) awaitAsked(ctx context.Context, in int64) error {
	r.mu.Lock()
	under := r.asking[in]
	r.mu.Unlock()
	if under == nil {
		return ctx.Err() // at our end its fate is not known
	}
	timer := time.NewTimer(callWithin)
	defer timer.Stop()
	select {
	case <-under:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (p *prompt) finish(in int64) {
	if p.Done == nil {
		p.Done = map[int64]bool{}
	}
	p.Done[in] = true
}

// sendCard sends words with a picture if there is one, and without it if the
// picture is refused. Long words are a message of their own.
func (r *Room) sendCard(ctx context.Context, p post, picture []byte) (message int, photo bool, err error) {
	if len(picture) > 0 {
		if chat.Units(p.text.Plain) <= maxCaption {
			message, err = r.line.sendPhoto(ctx, p, picture)
			if err == nil || !is(err, refused) {
				return message, err == nil, err
			}
		} else if _, err = r.line.sendPhoto(ctx, post{chat: p.chat, silent: true}, picture); err != nil && !is(err, refused) {
			return 0, false, err
		}
		if err != nil {
			r.log.Warn("a picture was refused; it goes without", "error", err)
		}
	}
	message, err = r.line.send(ctx, p)
	return message, false, err
}

// edit makes a message show what is so now.
func (r *Room) edit(ctx context.Context, t task) error {
	p, _, err := r.compose(ctx, t, false)
	if err != nil {
		return err
	}
	last := t.shown.last()
	err = r.line.edit(ctx, p, last)
	gone := is(err, missing) && !t.over
	switch {
	case is(err, again), is(err, unknown):
		return err
	case is(err, forbidden):
		return r.change(t.card, func(c *card) { c.in(t.chat).Dead = true })
	case err != nil && !is(err, unmodified) && !gone:
		r.log.Warn("a message could not be changed", "error", err)
	}
	if t.over { // also those that were sent twice
		for _, other := range t.shown.Messages[:len(t.shown.Messages)-1] {
			if err := r.line.edit(ctx, p, other); is(err, again) || is(err, unknown) {
				return err
			}
		}
	}
	return r.change(t.card, func(c *card) {
		s := c.in(t.chat)
		s.Look = t.look
		if gone { // the owner has deleted it, and is asked anew
			s.Messages = nil
		}
	})
}

// prompt sends a further message about a card.
func (r *Room) prompt(ctx context.Context, t task) error {
	find := func(c *card) *prompt {
		i := slices.IndexFunc(c.Nudges, func(p prompt) bool { return p.Kind == t.prompt.Kind && p.Version == t.prompt.Version })
		if i < 0 {
			return &prompt{}
		}
		return &c.Nudges[i]
	}
	finish := func() error { return r.change(t.card, func(c *card) { find(c).finish(t.chat) }) }
	begin := func(begun bool) error {
		return r.change(t.card, func(c *card) {
			p := find(c)
			if p.Begun == nil {
				p.Begun = map[int64]bool{}
			}
			p.Begun[t.chat] = begun
		})
	}
	if t.over != (t.kind == timedOut) {
		return finish() // too late to be of use
	}
	if err := r.breathe(ctx, t.chat); err != nil {
		return err
	}
	p, picture, err := r.composePrompt(ctx, t)
	if err != nil {
		return err
	}
	if t.prompt.once() {
		if err := begin(true); err != nil {
			return err
		}
	}
	message, photo, err := r.sendCard(ctx, p, picture)
	switch {
	case is(err, again):
		if t.prompt.once() {
			return errors.Join(err, begin(false))
		}
		return err
	case is(err, unknown) && !t.prompt.once():
		return err
	case err != nil:
		r.log.Warn("a message about a hand-off could not be sent", "kind", t.kind, "error", err)
		return finish()
	}
	return r.change(t.card, func(c *card) {
		find(c).finish(t.chat)
		r.progress.saw(t.chat, message)
		s := c.in(t.chat)
		switch {
		case t.kind == reasked: // this is the one to answer now
			s.Messages = append(s.Messages, sent{message, photo})
		case p.buttons != nil && !t.over: // it loses them at the end too
			s.Messages = append([]sent{{message, photo}}, s.Messages...)
		}
	})
}
