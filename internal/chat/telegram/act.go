package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/chat"
	"tapin/internal/fault"
)

// retryPause is between tries while the sidecar comes back.
const retryPause = 100 * time.Millisecond

// try calls the sidecar, again while it is away: everything that is called so
// may be called twice.
func (r *Room) try(ctx context.Context, fn func(context.Context, *api.Client) error) error {
	bounded, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	for {
		c, err := r.sidecar(bounded)
		if err == nil {
			err = fn(bounded, c)
			if !errors.Is(err, api.ErrNotRunning) && !errors.Is(err, api.ErrBroken) {
				return err
			}
		}
		timer := time.NewTimer(retryPause)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
			return fault.New(fault.Busy, "reach tapin", "it did not come back in time")
		}
	}
}

// act does what an update means. An error means that it has to come again,
// because we are ended or the disk is full; everything else is told to the owner.
func (r *Room) act(ctx context.Context, l letter, d chat.Decision) error {
	var err error
	switch d.Kind {
	case chat.Type:
		err = r.relay(ctx, l, d)
	case chat.Late:
		r.wipe(l, chat.LateText)
		r.ignore(byStale)
	case chat.Unsure:
		r.wipe(l, chat.AlmostType)
	case chat.Ask:
		r.askWhich(ctx, l, d)
	case chat.Screenshot:
		err = r.show(ctx, l, d)
	case chat.Done, chat.Anyway, chat.Abort, chat.Later, chat.Resume, chat.Extend:
		err = r.turn(ctx, l, d)
	case chat.Yes, chat.No:
		err = r.decidePayment(ctx, l, d)
	case chat.Policy:
		err = r.sayPolicy(ctx, l)
	case chat.Sites:
		err = r.sites(ctx, l)
	case chat.Retry:
		err = r.retry(ctx, l, d)
	case chat.Device:
		err = r.move(ctx, l, d)
	case confirmPolicy, denyPolicy:
		err = r.settlePolicy(ctx, l, d)
	case letIn, sendAway:
		err = r.admit(ctx, l, d)
	case chat.Pair:
		err = r.pair(ctx, l)
	case chat.Help:
		r.answer(ctx, l, chat.Commands, nil)
	case chat.Over:
		r.answer(ctx, l, chat.ThatIsOver, nil)
	default:
		err = r.passOn(ctx, l)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.answer(ctx, l, explain(err), nil)
	return nil
}

// relay types what follows "type:" into the field that has the focus, and has
// the message deleted.
func (r *Room) relay(ctx context.Context, l letter, d chat.Decision) error {
	if l.wish.Text.IsEmpty() {
		r.answer(ctx, l, chat.NothingToType, nil)
		return nil
	}
	var typed *api.HandoffTyped
	arrived := false // as far as we know
	err := r.try(ctx, func(ctx context.Context, c *api.Client) (err error) {
		typed, err = c.TypeInHandoff(ctx, d.Target, api.HandoffTypeRequest{Text: l.wish.Text, IdempotencyKey: key(l.update, "type")})
		arrived = arrived || !errors.Is(err, api.ErrNotRunning)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case arrived && (errors.Is(err, fault.Internal) || errors.Is(err, fault.Busy)): // no answer in time
		r.wipe(l, chat.MayBeTyped)
	case errors.Is(err, fault.HandoffNotRunning):
		r.wipe(l, chat.LateText)
	case err != nil:
		r.wipe(l, explain(err))
	default:
		r.wipe(l, chat.Typed(typed.Characters, typed.Field, typed.Origin))
	}
	return nil
}

// wipe has a message of the owner's deleted, and says what became of it.
func (r *Room) wipe(l letter, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say(note{Chat: l.from, Text: text, Delete: l.message}, answerID(l.update))
}

// askWhich asks between several things. A text is not kept for the answer.
func (r *Room) askWhich(ctx context.Context, l letter, d chat.Decision) {
	if d.Of == chat.Type {
		r.wipe(l, strings.TrimSuffix(chat.Which(d.Which), ", or tap:")+" with the text again. Nothing was typed.")
		return
	}
	k := &keyboard{}
	for _, item := range d.Which {
		verb := map[chat.Kind]string{
			chat.Done: verbDone, chat.Abort: verbAbort, chat.Later: verbLater, chat.Extend: verbMore, chat.Resume: verbResume,
			chat.Screenshot: verbShot, chat.Yes: verbYes, chat.No: verbNo, chat.Anyway: verbAnyway,
		}[d.Of]
		if d.Of == chat.Done && strings.HasPrefix(item.ID, "apr_") {
			verb = verbYes
		}
		k.Rows = append(k.Rows, []button{press(chat.Clip(item.Label, 60), verb, item.ID)})
	}
	r.answer(ctx, l, chat.Which(d.Which), k)
}

// show sends the picture that the owner asked for. Nothing of it is kept, so a
// picture that cannot be sent has to be asked for again.
func (r *Room) show(ctx context.Context, l letter, d chat.Decision) error {
	if l.query != "" {
		r.line.answer(ctx, l.query, "")
		l.query = ""
	}
	var picture []byte
	err := r.try(ctx, func(ctx context.Context, _ *api.Client) (err error) {
		picture, err = r.screenshot(ctx, d.Target)
		return err
	})
	if err != nil {
		return err
	}
	p := post{chat: l.from, reply: l.message}
	for pause := retryPause; ; pause *= 4 {
		message, err := r.line.sendPhoto(ctx, p, picture)
		f, failed := errors.AsType[*failure](err)
		if !failed {
			r.noteSent(l.from, message)
			return nil
		}
		if f.how != again && f.how != unknown || max(pause, f.after) > 10*time.Second {
			r.answer(ctx, l, chat.PhotoFailed, nil)
			return nil
		}
		timer := time.NewTimer(max(pause, f.after))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// turn does something about a person's turn. What came of it the card shows.
func (r *Room) turn(ctx context.Context, l letter, d chat.Decision) error {
	var h *api.Handoff
	once := key(l.update, string(d.Kind))
	err := r.try(ctx, func(ctx context.Context, c *api.Client) (err error) {
		switch d.Kind {
		case chat.Abort:
			h, err = c.CancelHandoff(ctx, d.Target)
		case chat.Later:
			h, err = c.ParkHandoff(ctx, d.Target)
		case chat.Resume:
			h, err = c.ResumeHandoff(ctx, d.Target)
		case chat.Extend:
			h, err = c.ExtendHandoff(ctx, d.Target, api.ExtendRequest{MoreMS: d.More.Milliseconds(), IdempotencyKey: once})
		default:
			h, err = c.FinishHandoff(ctx, d.Target, api.FinishRequest{Anyway: d.Kind == chat.Anyway, IdempotencyKey: once})
		}
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case d.Kind == chat.Extend:
		r.answer(ctx, l, chat.TimeLeft(newsOf(h), time.Now()), nil)
	case d.Kind == chat.Later:
		r.answer(ctx, l, chat.Parked, nil)
	case d.Kind == chat.Resume:
		r.answer(ctx, l, chat.Resumed, nil)
	case h.Status == "RUNNING": // it is asked again, with a picture
		if l.query != "" {
			r.line.answer(ctx, l.query, "")
		}
	default:
		r.answer(ctx, l, chat.Outcome(newsOf(h)), nil)
	}
	return nil
}

// sites lists the saved logins.
func (r *Room) sites(ctx context.Context, l letter) error {
	var list *api.Contexts
	err := r.try(ctx, func(ctx context.Context, c *api.Client) (err error) {
		list, err = c.Contexts(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var all []chat.Saved
	for _, c := range list.Contexts {
		s := chat.Saved{Name: c.Name, Domain: c.Domain, Freshness: "not verified"}
		switch {
		case !c.StaleSince.IsZero():
			s.Freshness = "needs a new login"
		case c.LastVerified != "":
			s.Freshness = "worked on " + day(c.LastVerified)
		}
		if at, err := time.Parse(time.RFC3339, c.LastUsed); err == nil {
			s.LastUsed = at
		} else if at, err := time.Parse(time.DateOnly, c.LastUsed); err == nil {
			s.LastUsed = at
		}
		all = append(all, s)
	}
	r.answer(ctx, l, chat.Inventory(all, time.Now()), nil)
	return nil
}

func day(text string) string {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Format("2 January")
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at.Format("2 January")
	}
	return chat.Clean(text)
}

// retry asks the agent to try again what nobody had time for.
func (r *Room) retry(ctx context.Context, l letter, d chat.Decision) error {
	return r.try(ctx, func(ctx context.Context, c *api.Client) error {
		list, err := c.Todos(ctx)
		if err != nil {
			return err
		}
		var found []api.Todo
		for _, t := range list.Todos {
			if d.Target == "" || t.TodoID == d.Target {
				found = append(found, t)
			}
		}
		switch {
		case len(found) == 0:
			r.answer(ctx, l, chat.NoRetry, nil)
			return nil
		case len(found) > 1:
			k := &keyboard{}
			for _, t := range found[:min(len(found), 8)] {
				k.Rows = append(k.Rows, []button{press(chat.Clip(retryLabel(t), 60), verbRetry, t.TodoID)})
			}
			r.answer(ctx, l, chat.WhichRetry, k)
			return nil
		}
		t := found[0]
		_, err = c.LeaveMessage(ctx, api.InboxRequest{
			Kind: "retry", Text: "The owner is available now. Try again: " + retryLabel(t), From: l.name,
			TodoID: t.TodoID, HandoffID: t.HandoffID, IdempotencyKey: key(l.update, "retry"),
		})
		if err == nil {
			r.answer(ctx, l, chat.RetryPassedOn, nil)
		}
		return err
	})
}

func retryLabel(t api.Todo) string {
	if task := chat.Clean(t.Task); task != "" {
		return task + " (" + t.Site + ")"
	}
	return t.Reason + " on " + t.Site
}

// move gives the live view to the device that shows a number.
func (r *Room) move(ctx context.Context, l letter, d chat.Decision) error {
	return r.try(ctx, func(ctx context.Context, c *api.Client) error {
		id := d.Target
		if id == "" {
			links, err := c.Links(ctx)
			if err != nil {
				return err
			}
			for _, link := range links.Links {
				for _, n := range link.Waiting {
					if n == d.Number {
						id = link.LinkID
					}
				}
			}
		}
		if id == "" {
			r.answer(ctx, l, chat.NoDevice, nil)
			return nil
		}
		_, err := c.MoveLink(ctx, id, d.Number)
		switch {
		case errors.Is(err, fault.NotFound), errors.Is(err, fault.LinkExpired):
			r.answer(ctx, l, chat.NoDevice, nil)
			return nil
		case err != nil:
			return err
		}
		r.answer(ctx, l, chat.Moved, nil)
		return nil
	})
}

// admit is the word about somebody who wants to be an owner. They hear of it
// through the feed.
func (r *Room) admit(ctx context.Context, l letter, d chat.Decision) error {
	id, err := strconv.ParseInt(d.Target, 10, 64)
	if err != nil {
		r.answer(ctx, l, chat.ThatIsOver, nil)
		return nil
	}
	err = r.try(ctx, func(ctx context.Context, c *api.Client) error {
		_, err := c.DecideOwner(ctx, id, d.Kind == letIn)
		return err
	})
	switch {
	case errors.Is(err, fault.NotFound):
		r.answer(ctx, l, chat.ThatIsOver, nil)
	case err != nil:
		return err
	case d.Kind == letIn:
		r.answer(ctx, l, "They are an owner now.", nil)
	default:
		r.answer(ctx, l, "They were not let in.", nil)
	}
	return nil
}

// pair shows a code to the sidecar. A wrong one gets no answer: strangers are
// not spoken to.
func (r *Room) pair(ctx context.Context, l letter) error {
	var outcome *api.OwnerOutcome
	err := r.try(ctx, func(ctx context.Context, c *api.Client) (err error) {
		outcome, err = c.ClaimOwner(ctx, api.ClaimOwnerRequest{Code: l.wish.Code, ID: l.from, Name: chat.Clip(chat.Clean(l.name), 64)})
		return err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fault.NotFound), errors.Is(err, fault.RateLimited), errors.Is(err, fault.InvalidRequest):
		r.ignore(byCode)
		return nil
	case err != nil:
		r.log.Warn("a pairing code could not be shown", "error", err)
		return nil
	}
	if outcome.Outcome == "already" {
		r.answer(ctx, l, chat.Welcome, nil)
	}
	return nil
}

// passOn gives ordinary words to the agent.
func (r *Room) passOn(ctx context.Context, l letter) error {
	if l.words.IsEmpty() {
		return nil
	}
	err := r.try(ctx, func(ctx context.Context, c *api.Client) error {
		_, err := c.LeaveMessage(ctx, api.InboxRequest{Text: l.words.Reveal(), From: chat.Clip(chat.Clean(l.name), 64), IdempotencyKey: key(l.update, "inbox")})
		return err
	})
	if errors.Is(err, fault.Busy) && ctx.Err() == nil {
		r.answer(ctx, l, "Your agent has not read its messages for a long time; this one was not passed on.", nil)
		return nil
	}
	return err
}
