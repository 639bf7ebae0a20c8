package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/chat"
	"tapin/internal/event"
	"tapin/internal/guard"
	"tapin/internal/store"
)

// cursorStride is how many events that concern nobody may be read again.
const cursorStride = 100

type cursor struct {
	Seq uint64 `json:"seq"`
}

// Follow serves the conversation with one sidecar until ctx ends, or until the
// feed says that following it makes no sense. Ending tells whether the end of
// the sidecar is wanted; if it is not, and lasts, the owner is told.
func (r *Room) Follow(ctx context.Context, c *api.Client, ending func() bool) error {
	if err := r.meet(ctx, c); err != nil {
		return err
	}
	r.attach(c)
	defer func() { r.detach(ending()) }()
	known, err := r.home.Exists(cursorFile)
	if err != nil {
		return err
	}
	at, _ := store.Derived[cursor](r.home, cursorFile, nil) // one that is damaged: from the oldest event on
	if !known {                                             // the first time: what is over is of no interest
		at.Seq = api.Newest
		var looking sync.WaitGroup
		defer looking.Wait()
		looking.Go(func() {
			defer guard.Catch("chat")
			r.lookAround(ctx, c)
		})
	}
	saved := at.Seq
	for e, err := range c.EventsFrom(ctx, &at.Seq) {
		if _, ok := errors.AsType[*api.ResyncError](err); ok {
			if err := r.catchUp(ctx, c); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		mattered, err := r.take(ctx, c, e)
		if err != nil {
			return err // and the cursor stays before it
		}
		if mattered || saved == api.Newest || e.Seq >= saved+cursorStride {
			if err := r.home.WriteJSON(cursorFile, cursor{e.Seq}); err != nil {
				return err
			}
			saved = e.Seq
		}
		r.prod()
	}
	return ctx.Err()
}

// lookAround finds what runs already where nothing was followed before: at
// once, and again when the feed is surely being followed.
func (r *Room) lookAround(ctx context.Context, c *api.Client) {
	for _, wait := range []time.Duration{0, 2 * time.Second} {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if err := r.catchUp(ctx, c); err != nil && ctx.Err() == nil {
			r.log.Warn("what runs already cannot be told of", "error", err)
		}
	}
}

// meet learns who the owners are.
func (r *Room) meet(ctx context.Context, c *api.Client) error {
	list, err := c.Owners(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners = nil
	for _, o := range list.Owners {
		r.owners = append(r.owners, o.ID)
		r.names[o.ID] = o.Name
	}
	return nil
}

// catchUp makes the cards agree with the hand-offs, where events are missing.
func (r *Room) catchUp(ctx context.Context, c *api.Client) error {
	running, err := c.Handoffs(ctx, api.HandoffsQuery{Status: "RUNNING", Limit: 200})
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for i := range running.Handoffs {
		h := &running.Handoffs[i]
		open[h.HandoffID] = true
		if err := r.note(h.Version, newsOf(h), ""); err != nil {
			return err
		}
	}
	r.mu.Lock()
	var lost []string
	for id, card := range r.cards {
		if card.Handoff != nil && card.waits() && !open[id] {
			lost = append(lost, id)
		}
	}
	r.mu.Unlock()
	for _, id := range lost {
		h, err := c.Handoff(ctx, id, api.WaitQuery{})
		if err != nil {
			return err
		}
		if err := r.note(h.Version, newsOf(h), ""); err != nil {
			return err
		}
	}
	return nil
}

// newsOf is a record as the feed would tell of it. Whether people are to be
// told at all the record does not say: a hand-off that the owner began is theirs.
func newsOf(h *api.Handoff) chat.Handoff {
	return chat.Handoff{
		HandoffID: h.HandoffID, SessionID: h.SessionID, Status: h.Status, Reason: h.Reason, Instruction: h.Instruction, Task: h.Task,
		Origin: h.Before.Origin, StartedBy: h.StartedBy, FinishedBy: h.FinishedBy, Attempts: h.Attempts, Follows: h.Follows,
		Notify: h.StartedBy == "agent", Photo: h.Status == "RUNNING", Deadline: h.Deadline, OnTimeout: h.OnTimeout, Parked: h.Parked, TodoID: h.TodoID,
	}
}

// take takes in one event, and reports whether it mattered. After nil it need
// not come again.
func (r *Room) take(ctx context.Context, c *api.Client, e event.Event) (mattered bool, err error) {
	switch e.Type {
	case "handoff.started", "handoff.reasked", "handoff.reminder", "handoff.ending", "handoff.extended", "handoff.parked", "handoff.resumed",
		event.HandoffFinished, event.HandoffCancelled, event.HandoffTimedOut:
		var h chat.Handoff
		if json.Unmarshal(e.Data, &h) != nil || h.HandoffID == "" {
			r.log.Error("news of a hand-off cannot be read", "seq", e.Seq)
			return false, nil
		}
		return true, r.note(e.Version, h, e.Type)
	case event.OwnerPaired, event.OwnerRemoved, event.OwnerRefused, event.OwnerWaiting:
		return true, r.takeOwner(ctx, c, e)
	case "approval.requested", "approval.decided", "approval.used":
		return true, r.takeApproval(e)
	case "policy.proposed":
		r.takeProposal(e)
		return true, nil
	case event.LinkWaiting:
		r.takeWaiting(e)
		return true, nil
	case "session.expiring":
		r.takeExpiring(e)
		return true, nil
	case event.DaemonGaveUp, event.CrashLoop, event.RoomGivenUp, event.RoomLeftOut, event.WakeFailed, event.WakeMissed, event.FileUnread:
		var t event.Trouble
		if json.Unmarshal(e.Data, &t) == nil && t.Details != "" {
			r.tellAll(e, note{Text: chat.Clean(t.Details + " " + t.Hint)})
		}
		return true, nil
	}
	return false, nil
}

// note takes in how a hand-off stands now.
func (r *Room) note(version int, h chat.Handoff, kind string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cards[h.HandoffID]
	if c == nil {
		if !h.Notify || !h.Running() && kind != "" && kind != event.HandoffTimedOut {
			return nil
		}
		c = &card{ID: h.HandoffID}
		r.cards[c.ID] = c
	}
	if version <= c.Version {
		return nil // it came again
	}
	photo := h.Photo || c.Handoff != nil && c.Handoff.Photo
	c.Version, c.Handoff = version, &h
	c.Handoff.Photo = photo
	if !h.Running() && c.waits() {
		c.EndedAt = time.Now().UTC()
	}
	if !c.waits() && len(c.Chats)+len(r.owners) == 0 {
		// Nobody was there to be told; whoever is paired later need not be.
		delete(r.cards, c.ID)
		if err := r.home.Remove(cardFile(c.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	kinds := map[string]string{"handoff.reminder": remind, "handoff.ending": ending, "handoff.reasked": reasked, event.HandoffTimedOut: timedOut}
	if k := kinds[kind]; k != "" {
		c.add(prompt{Kind: k, Version: version})
	}
	r.prod()
	return r.keep(c)
}

// add puts a prompt in. An older one of the same kind that nobody has seen the
// beginning of is not worth sending any more.
func (c *card) add(p prompt) {
	kept := c.Nudges[:0]
	for _, old := range c.Nudges {
		if old.Kind != p.Kind || len(old.Begun)+len(old.Done) > 0 {
			kept = append(kept, old)
		}
	}
	if len(kept) > 20 {
		kept = kept[len(kept)-20:]
	}
	c.Nudges = append(kept, p)
}

// tellAll says something to every owner, once for each event.
func (r *Room) tellAll(e event.Event, n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.Once = true
	for _, in := range r.owners {
		n.Chat = in
		r.say(n, fmt.Sprintf("e%020d-%d", e.Seq, in))
	}
}

func (r *Room) takeOwner(ctx context.Context, c *api.Client, e event.Event) error {
	var news event.OwnerNews
	if json.Unmarshal(e.Data, &news) != nil || news.ID <= 0 {
		return nil
	}
	r.mu.Lock()
	before := append([]int64(nil), r.owners...)
	r.mu.Unlock()
	if err := r.meet(ctx, c); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := func(in int64) string { return fmt.Sprintf("e%020d-%d", e.Seq, in) }
	name := chat.Clean(news.Name)
	if name == "" {
		name = fmt.Sprint("number ", news.ID)
	}
	switch e.Type {
	case event.OwnerPaired:
		r.say(note{Chat: news.ID, Text: chat.Welcome}, id(news.ID))
		for _, in := range before {
			if in != news.ID {
				r.say(note{Chat: in, Text: name + " is an owner now."}, id(in))
			}
		}
	case event.OwnerWaiting:
		for _, in := range before {
			r.say(note{Chat: in, Text: name + " has a pairing code and wants to be an owner: to see pages, type, and say yes to payments. Let them in?", Buttons: ownerButtons(news.ID)}, id(in))
		}
		r.say(note{Chat: news.ID, Text: "An owner has to let you in. I have asked."}, id(news.ID))
	case event.OwnerRefused:
		r.say(note{Chat: news.ID, Text: "The owner did not let you in."}, id(news.ID))
	case event.OwnerRemoved:
		r.say(note{Chat: news.ID, Text: "You are no longer an owner here."}, id(news.ID))
	}
	return nil
}

// takeWaiting asks about a second device.
func (r *Room) takeWaiting(e event.Event) {
	var news event.LinkNews
	if json.Unmarshal(e.Data, &news) != nil || news.Number == 0 {
		return
	}
	r.tellAll(e, note{
		Text: chat.Waiting(news.Number), Until: time.Now().Add(10 * time.Minute),
		Buttons: &keyboard{Rows: [][]button{{press(fmt.Sprintf("Move to device %d", news.Number), verbMove, fmt.Sprintf("%s:%d", news.LinkID, news.Number))}}},
	})
}

// takeExpiring warns of the end of a session.
func (r *Room) takeExpiring(e event.Event) {
	var news struct {
		Deadline time.Time `json:"deadline"`
	}
	_ = json.Unmarshal(e.Data, &news) // without it the usual time is said
	left := 5 * time.Minute
	if !news.Deadline.IsZero() {
		left = time.Until(news.Deadline)
	}
	if left > 0 {
		r.tellAll(e, note{Text: chat.Expiring(left), Until: time.Now().Add(left)})
	}
}
