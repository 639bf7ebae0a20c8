package oneshot

import (
	"context"
	"slices"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

// keptCards is how many of the last calls can be looked at. They live in memory
// alone: a picture of a page is written down nowhere.
const keptCards = 8

// Card is one call and what came of it, to be shown to the owner.
type Card struct {
	ID   string
	At   time.Time
	Kind string // screenshot or extract
	URL  string // as it was asked for
	// Shot or Extract is there, by the kind; empty where the call failed.
	Shot    *Shot
	Extract *Extract
	Err     error

	shot    *ShotCall
	extract *ExtractCall
}

// cards are the last calls, the newest first.
type cards struct {
	mu   sync.Mutex
	list []Card
}

func (c *cards) add(card Card) {
	card.ID, card.At = store.NewID("crd"), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append([]Card{card}, c.list[:min(len(c.list), keptCards-1)]...)
}

// Cards are the last calls, the newest first.
func (r *Room) Cards() []Card {
	r.cards.mu.Lock()
	defer r.cards.mu.Unlock()
	return slices.Clone(r.cards.list)
}

// Again makes the call of a card once more. What comes of it is a card of its own.
func (r *Room) Again(ctx context.Context, id string) (Card, error) {
	all := r.Cards()
	i := slices.IndexFunc(all, func(c Card) bool { return c.ID == id })
	if i < 0 {
		return Card{}, fault.New(fault.NotFound, "try again", "that call is not kept any more")
	}
	made := Card{Kind: all[i].Kind, URL: all[i].URL}
	if c := all[i].shot; c != nil {
		shot, err := r.Screenshot(ctx, *c)
		made.Shot, made.Err = &shot, err
		return made, err
	}
	got, err := r.Extract(ctx, *all[i].extract)
	made.Extract, made.Err = &got, err
	return made, err
}
