package telegram

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"tapin/internal/chat"
	"tapin/internal/fault"
)

const (
	firstPause = time.Second
	lastPause  = time.Minute
	sweepEvery = time.Hour

	inAMoment = chat.BackInAMoment
	backAgain = chat.BackAgain
)

// bucket keeps a chat from being flooded: so many at once, then one a second,
// as the server wants it.
type bucket struct {
	left int
	at   time.Time
}

const bucketSize = 10

// take reports how long to wait before one more message.
func (b *bucket) take(now time.Time) time.Duration {
	gained := int(now.Sub(b.at) / time.Second)
	if gained > 0 {
		b.left, b.at = min(bucketSize, b.left+gained), now
	}
	if b.left == 0 {
		return time.Second - now.Sub(b.at)
	}
	b.left--
	return 0
}

// deliver sends what is to be sent until ctx ends.
func (r *Room) deliver(ctx context.Context) {
	pause, swept := firstPause, time.Now()
	for ctx.Err() == nil {
		wait := time.Minute // times run out
		err := r.round(ctx)
		if f, ok := errors.AsType[*failure](err); ok {
			wait = max(pause, f.after)
			pause = min(2*pause, lastPause)
			r.log.Warn("Telegram is tried again later", "error", f, "in", wait)
		} else if err != nil {
			wait = firstPause // a disk, or a sidecar that is away: both come back
			if ctx.Err() == nil {
				r.log.Warn("a message is tried again later", "error", err)
			}
		} else {
			pause = firstPause
		}
		if now := time.Now(); now.Sub(swept) > sweepEvery {
			swept = now
			r.sweepNow(now)
		}
		if !r.rest(ctx, wait, err != nil) {
			return
		}
	}
}

func (r *Room) sweepNow(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
}

// rest waits; a failed server is not woken by something new to tell it.
func (r *Room) rest(ctx context.Context, wait time.Duration, failed bool) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	nudge := r.nudge
	if failed {
		nudge = nil
	}
	select {
	case <-nudge:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// round sends everything that is due. A failure ends it: what cannot be sent
// now will be sent in the same order later.
func (r *Room) round(ctx context.Context) error {
	for _, id := range r.notes() {
		if err := r.sendNote(ctx, id); err != nil {
			return err
		}
	}
	for {
		todo, ok := r.nextTask(time.Now())
		if !ok {
			return nil
		}
		if err := r.do(ctx, todo); err != nil {
			return err
		}
	}
}

// breathe waits until a chat may have one more message.
func (r *Room) breathe(ctx context.Context, in int64) error {
	for {
		r.mu.Lock()
		b := r.pace[in]
		if b == nil {
			b = &bucket{left: bucketSize, at: time.Now()}
			r.pace[in] = b
		}
		wait := b.take(time.Now())
		r.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// sendNote says one thing. A nil error means that it is off the queue.
func (r *Room) sendNote(ctx context.Context, id string) error {
	var n note
	if err := r.home.ReadJSON(noteFile(id), &n); err != nil {
		if errors.Is(err, fault.Unreadable) {
			return nil // it stays, and keeps no other from being said
		}
		return r.dropNote(id)
	}
	if n.Delete != 0 && n.Deleted == nil {
		err := r.line.remove(ctx, n.Chat, n.Delete)
		if is(err, again) || is(err, unknown) {
			return err // deleting twice is deleting once
		}
		gone := err == nil
		n.Deleted = &gone
		if err := r.home.WriteJSON(noteFile(id), n); err != nil {
			return err
		}
	}
	if n.Text == "" || n.Once && n.Begun || !n.Until.IsZero() && time.Now().After(n.Until) {
		return r.dropNote(id)
	}
	if n.Once {
		n.Begun = true
		if err := r.home.WriteJSON(noteFile(id), n); err != nil {
			return err
		}
	}
	if err := r.breathe(ctx, n.Chat); err != nil {
		return err
	}
	message, err := r.line.send(ctx, post{chat: n.Chat, text: chat.Text{Plain: n.words()}, buttons: n.Buttons, reply: n.Reply})
	switch {
	case is(err, again):
		if n.Once {
			n.Begun = false
			if err := r.home.WriteJSON(noteFile(id), n); err != nil {
				return err
			}
		}
		return err
	case is(err, unknown) && !n.Once:
		return err
	case err != nil:
		r.log.Warn("something could not be said", "error", err)
	default:
		r.noteSent(n.Chat, message)
	}
	return r.dropNote(id)
}

// words are what a note says, now that it is known what came of a deletion.
func (n note) words() string {
	switch {
	case n.Deleted == nil:
		return n.Text
	case *n.Deleted:
		return n.Text + chat.DeletedYours
	}
	return n.Text + chat.NotDeletedYours
}

func (r *Room) dropNote(id string) error {
	err := r.home.Remove(noteFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// noteSent notes the newest message of a chat; the disk hears of it with the next
// write.
func (r *Room) noteSent(in int64, message int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.saw(in, message)
}
