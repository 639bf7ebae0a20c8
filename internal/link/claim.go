package link

import (
	"context"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Claim takes a link's token and gives the device that showed it a secret of
// its own. The first device gets in. A further one is refused with a number,
// and gets in with its secret once the owner has moved the link to it.
func (r *Room) Claim(ctx context.Context, id string, token secret.Text) (device secret.Text, err error) {
	const op = "claim a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return secret.Text{}, err
	}
	if !rec.Token.is(digestOf(token)) {
		if !r.mayGuess(id) {
			return secret.Text{}, fault.New(fault.RateLimited, op, "too many wrong tokens were shown to this link").WithHint("Wait a minute.")
		}
		return secret.Text{}, expired(op) // whether the link exists is nobody's business
	}
	return r.admit(ctx, op, rec)
}

// Admit is Claim for somebody who needs no token, because he is known to sit at
// this very machine. Whoever calls it has made sure of that.
func (r *Room) Admit(ctx context.Context, id string) (device secret.Text, err error) {
	const op = "open a link on this machine"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return secret.Text{}, err
	}
	return r.admit(ctx, op, rec)
}

// admit lets a device in, or has it wait for the owner's word. Called with the
// lock held.
func (r *Room) admit(ctx context.Context, op string, rec *record) (device secret.Text, err error) {
	if rec.Device != "" {
		return r.wait(ctx, op, rec, "another device uses this link")
	}
	device = newToken()
	rec.Device = digestOf(device)
	return device, r.change(ctx, op, rec, event.LinkClaimed, 0)
}

// Knock has a device wait that has nothing to show, at a link that may be known
// to anybody. The owner lets it in by its number.
func (r *Room) Knock(ctx context.Context, id string) (device secret.Text, err error) {
	const op = "knock at a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return secret.Text{}, err
	}
	if !rec.Open {
		return secret.Text{}, fault.New(fault.Unauthorized, op, "this link has to be opened with its token").
			WithHint("Open it from the message that brought it.")
	}
	return r.wait(ctx, op, rec, "the owner has not let this device in")
}

// wait gives a device a number, by which the owner can let it in. Called with
// the lock held.
func (r *Room) wait(ctx context.Context, op string, rec *record, why string) (device secret.Text, err error) {
	if len(rec.Waiting) >= maxWaiting {
		return secret.Text{}, fault.New(fault.RateLimited, op, "other devices wait for this link already").WithHint("Wait until the owner has decided about them.")
	}
	number, err := r.freeNumber(ctx, op)
	if err != nil {
		return secret.Text{}, err
	}
	device = newToken()
	rec.Waiting = append(rec.Waiting, waiting{Number: number, Device: digestOf(device), Until: time.Now().Add(waitWithin).UTC()})
	if err := r.change(ctx, op, rec, event.LinkWaiting, number); err != nil {
		return secret.Text{}, err
	}
	return device, waits(op, number, why)
}

// waits tells a device that it has to wait, and by which number it is known.
func waits(op string, number int, why string) error {
	return fault.New(fault.LinkClaimed, op, "%s", why).With("number", number).
		WithHint("The owner can let this device in by the number %d.", number)
}

// Enter finds the link that a device has claimed. A device that still waits gets
// LINK_CLAIMED with its number.
func (r *Room) Enter(ctx context.Context, id string, device secret.Text) (Link, error) {
	const op = "open a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return Link{}, err
	}
	shown := digestOf(device)
	if rec.Device.is(shown) {
		return rec.link(), nil
	}
	for _, w := range rec.Waiting {
		if w.Device.is(shown) {
			return Link{}, waits(op, w.Number, "this device waits for the owner's word")
		}
	}
	return Link{}, expired(op)
}

// Move gives a link to the device that shows the number. The one that had it is
// shut out.
func (r *Room) Move(ctx context.Context, id string, number int) (Link, error) {
	const op = "move a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, op, id)
	if err != nil {
		return Link{}, err
	}
	for _, w := range rec.Waiting {
		if w.Number == number {
			rec.Device, rec.Who, rec.Overheard, rec.Waiting = w.Device, "", w.Overheard, nil
			return rec.link(), r.change(ctx, op, rec, event.LinkMoved, number)
		}
	}
	return Link{}, fault.New(fault.NotFound, op, "no device waits with the number %d", number).
		WithHint("The number is on the waiting device's screen, for %d minutes.", int(waitWithin.Minutes()))
}
