package link

import (
	"context"
	"errors"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// AdmitAs is Admit for somebody of whom it is known for certain who they are,
// such as a person in a chat; whoever calls it has made sure of that. The same
// person who opens the link again moves it along: it is their own device that
// is shut out. Another device waits for the owner's word, as always.
func (r *Room) AdmitAs(ctx context.Context, id, who string) (device secret.Text, err error) {
	const op = "open a link from a chat"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return secret.Text{}, err
	}
	if rec.Device != "" && rec.Who != who {
		return r.wait(ctx, op, rec, "another device uses this link")
	}
	news := event.LinkClaimed
	if rec.Device != "" {
		news = event.LinkMoved
	}
	device = newToken()
	rec.Device, rec.Who, rec.Overheard = digestOf(device), who, false
	return device, r.change(ctx, op, rec, news, 0)
}

// Overhear notes that a device's secret goes over a way that others can read.
// Such a device only ever watches, whichever way it comes later: who listened
// has the same secret, and might know a better way.
func (r *Room) Overhear(ctx context.Context, id string, device secret.Text) error {
	const op = "open a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return err
	}
	shown, known := digestOf(device), false
	if rec.Device.is(shown) {
		rec.Overheard, known = true, true
	}
	for i := range rec.Waiting {
		if rec.Waiting[i].Device.is(shown) {
			rec.Waiting[i].Overheard, known = true, true
		}
	}
	if !known {
		return expired(op)
	}
	return fault.Wrap(fault.Internal, op, r.home.WriteJSON(file(id), rec))
}

// SweepPeople ends the links of people who may no longer come.
func (r *Room) SweepPeople(ctx context.Context, may func(who string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.list(ctx)
	for _, l := range links {
		rec, gone := r.live(ctx, "end a link", l.ID)
		if gone == nil && rec.Who != "" && !may(rec.Who) {
			err = errors.Join(err, r.finish(ctx, rec))
		}
	}
	return err
}
