package telegram

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"tapin/internal/chat"
	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	cardFolder = "telegram/cards"
	// keepCards is how long the messages of what is over can still be replied to.
	keepCards = 48 * time.Hour
)

// card is one thing that the owner is asked about, and the messages that ask.
// What it shall show and what it shows are both on the disk, so that after any
// kill the one can be made the other.
type card struct {
	ID       string           `json:"id"`
	Version  int              `json:"version"` // of the record
	Handoff  *chat.Handoff    `json:"handoff,omitempty"`
	Approval *approval        `json:"approval,omitempty"`
	Chats    map[int64]*shown `json:"chats"`
	Nudges   []prompt         `json:"nudges,omitempty"`
	EndedAt  time.Time        `json:"ended_at,omitzero"`
}

// shown is what one chat shows of a card.
type shown struct {
	After    int    `json:"after"`              // the newest message of the chat before the first try
	Tries    int    `json:"tries"`              // how often it was sent, as far as anybody knows
	Messages []sent `json:"messages,omitempty"` // ours, the newest last
	Look     string `json:"look,omitempty"`     // what the newest shows
	Dead     bool   `json:"dead,omitempty"`     // nothing can be sent there
}

// sent is a message of ours.
type sent struct {
	ID    int  `json:"id"`
	Photo bool `json:"photo,omitempty"` // its words are a caption
}

// last is the newest message; none has the id 0.
func (s *shown) last() sent {
	if s == nil || len(s.Messages) == 0 {
		return sent{}
	}
	return s.Messages[len(s.Messages)-1]
}

// asked reports whether a message can be an answer: one that was written before
// the question is none. Where the answer to a first try was lost, the question
// may have been seen earlier than we know.
func (s *shown) asked(message int) bool {
	if s.Tries > 1 {
		return message > s.After
	}
	for _, m := range s.Messages {
		if message >= m.ID {
			return true
		}
	}
	return false
}

func (s *shown) has(message int) bool {
	return slices.ContainsFunc(s.Messages, func(m sent) bool { return m.ID == message })
}

// before reports whether a message of ours is known to have been there when
// another one was written.
func (s *shown) before(message int) bool {
	return slices.ContainsFunc(s.Messages, func(m sent) bool { return m.ID < message })
}

// The kinds of prompts.
const (
	remind   = "reminder"
	ending   = "ending"
	reasked  = "reasked"
	timedOut = "timed_out"
)

// prompt is a further message about a card. Some are sent at most once: those
// are begun on the disk before they are tried, and never tried again.
type prompt struct {
	Kind    string         `json:"kind"`
	Version int            `json:"version"`
	Begun   map[int64]bool `json:"begun,omitempty"`
	Done    map[int64]bool `json:"done,omitempty"`
}

func (p *prompt) once() bool { return p.Kind == remind || p.Kind == ending }

// waits reports whether the owner's word is still wanted.
func (c *card) waits() bool { return c.EndedAt.IsZero() }

// look is what people see of a card, in short: an edit that changes none of it
// is not made.
func (c *card) look() string {
	if a := c.Approval; a != nil {
		return a.Status + " " + a.Outcome
	}
	h := c.Handoff
	return fmt.Sprintf("%s %s %v %d", h.Status, h.FinishedBy, h.Parked, h.Deadline.Unix())
}

// readCards takes in what an earlier process left.
func (r *Room) readCards() error {
	names, err := r.home.List(cardFolder)
	if err != nil {
		return fault.Wrap(fault.Internal, "read the messages that are out", err)
	}
	now := time.Now()
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok {
			continue
		}
		found, ok := store.Derived(r.home, cardFile(id), func(c *card) error { return c.check(id) })
		if !ok {
			continue
		}
		c := &found
		maps.DeleteFunc(c.Chats, func(_ int64, s *shown) bool { return s == nil })
		if !c.EndedAt.IsZero() && now.Sub(c.EndedAt) > keepCards {
			if err := r.home.Remove(cardFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.log.Warn("an old message could not be forgotten", "error", err)
			}
			continue
		}
		for _, s := range c.Chats {
			if s.Tries > 0 && len(s.Messages) == 0 {
				s.Tries++ // the answer to the last try was lost with that process
			}
		}
		r.cards[id] = c
	}
	return nil
}

// check refuses a card that is not that of this id, and gives it what its
// readers count on.
func (c *card) check(id string) error {
	if c.ID != id || c.Handoff == nil && c.Approval == nil {
		return errors.New("it belongs to another message")
	}
	if slices.Contains(slices.Collect(maps.Values(c.Chats)), nil) {
		return errors.New("it is not what tapin wrote")
	}
	if c.Chats == nil {
		c.Chats = map[int64]*shown{}
	}
	return nil
}

func cardFile(id string) string { return path.Join(cardFolder, id+".json") }

// keep writes a card. Called with the lock held, as all below.
func (r *Room) keep(c *card) error {
	return fault.Wrap(fault.Internal, "keep what the owner is asked", r.home.WriteJSON(cardFile(c.ID), c))
}

// sweep forgets what has been over for long.
func (r *Room) sweep(now time.Time) {
	for id, c := range r.cards {
		if c.waits() || now.Sub(c.EndedAt) <= keepCards {
			continue
		}
		if err := r.home.Remove(cardFile(id)); err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(r.cards, id)
		}
	}
}

// ordered are the cards, the oldest first.
func (r *Room) ordered() []*card {
	out := make([]*card, 0, len(r.cards))
	for _, c := range r.cards {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *card) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// pending is what a message in a chat could be about: what was asked there
// before it was written.
func (r *Room) pending(in int64, message, replyTo int) chat.Pending {
	var p chat.Pending
	for _, c := range r.ordered() {
		s := c.Chats[in]
		if s == nil {
			continue
		}
		if replyTo != 0 && s.has(replyTo) {
			p.Reply = c.ID
		}
		if !c.waits() || !s.asked(message) {
			continue
		}
		switch {
		case c.Approval != nil && !s.before(message):
			// It is on its way. A word that pays must not be for what nobody has seen.
		case c.Approval != nil:
			p.Approvals = append(p.Approvals, chat.Item{ID: c.ID, Label: c.Approval.label()})
		default:
			p.Handoffs = append(p.Handoffs, chat.Item{ID: c.ID, Label: labelOf(c.Handoff), Parked: c.Handoff.Parked})
		}
	}
	return p
}

// labelOf tells a hand-off from the others, also from one on the same site.
func labelOf(h *chat.Handoff) string {
	label := h.Reason + " on " + h.Site()
	if task := chat.Clean(h.Task); task != "" {
		label += " (" + chat.Clip(task, 30) + ")"
	}
	return label
}
