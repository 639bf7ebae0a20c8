package sidecar

import (
	"context"
	"strconv"
	"strings"

	"tapin/internal/inbox"
	"tapin/internal/link"
	"tapin/internal/owners"
)

// openPeople opens what is known of the owner's people, and what they said.
func (s *sidecar) openPeople() (err error) {
	s.owners = owners.New(s.opts.Home, s.pump, s.opts.Config.Telegram.Owners)
	s.inbox, err = inbox.New(s.opts.Home)
	return err
}

// chatOf begins how links know somebody of a chat.
const chatOf = "telegram "

// guests are the owners with what they have open: who is none any more loses it.
type guests struct {
	*owners.Room
	links *link.Room
}

// Remove takes an owner off the list, then ends what they have open; after a
// kill in between the next start does.
func (g guests) Remove(ctx context.Context, id int64) error {
	if err := g.Room.Remove(ctx, id); err != nil {
		return err
	}
	return g.sweep(context.WithoutCancel(ctx))
}

func (g guests) sweep(ctx context.Context) error {
	if err := g.Ready(); err != nil {
		return err // who is an owner is not known, and so is not who is none
	}
	return g.links.SweepPeople(ctx, func(who string) bool {
		number, _ := strings.CutPrefix(who, chatOf)
		user, err := strconv.ParseInt(number, 10, 64)
		return err == nil && g.Is(user)
	})
}
