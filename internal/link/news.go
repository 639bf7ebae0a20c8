package link

import (
	"context"
	"encoding/json"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
)

// change writes the next version of a link together with its news, then tells
// them. Called with the lock held, as all here.
func (r *Room) change(ctx context.Context, op string, rec *record, news string, number int) error {
	defer r.tell(rec.ID)
	rec.Version++
	data, err := json.Marshal(event.LinkNews{LinkID: rec.ID, SessionID: rec.SessionID, Mode: string(rec.Mode), Number: number})
	if err != nil {
		return err
	}
	rec.Outbox = append(rec.Outbox, event.Event{ID: rec.ID, Version: rec.Version, Type: news, At: time.Now().UTC(), Data: data})
	if err := r.home.WriteJSON(file(rec.ID), rec); err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	r.deliver(ctx, rec)
	return nil
}

// deliver tells what a record still has to tell. What fails stays in it, and is
// told with the next change or by the next start.
func (r *Room) deliver(ctx context.Context, rec *record) {
	if len(rec.Outbox) == 0 {
		return
	}
	if r.opts.Pump != nil {
		if err := r.opts.Pump.Deliver(context.WithoutCancel(ctx), rec.Outbox...); err != nil {
			return
		}
	}
	rec.Outbox = nil
	if !rec.Over {
		// Should this fail, it is told again; telling twice is telling once.
		_ = r.home.WriteJSON(file(rec.ID), rec)
	}
}
