package sidecar

import (
	"time"

	"tapin/internal/approval"
	"tapin/internal/event"
	"tapin/internal/handoff"
	"tapin/internal/inbox"
	"tapin/internal/store"
)

// Void is what of a backup did not come to life again.
type Void struct {
	Handoffs  int `json:"handoffs"`
	Approvals int `json:"approvals"`
	Policies  int `json:"policies"`
	Messages  int `json:"messages"`
}

// Restored makes a home that was unpacked from a backup one that may be served:
// nothing in it can be used any more that was allowed, shown or begun in the life
// of the home that the backup was made of. known is the highest epoch of the
// homes that this one follows. It may be done twice.
func Restored(home *store.Home, at time.Time, known uint64) (void Void, feedFrom uint64, err error) {
	// Nobody starts tapin more than once a second for years on end, as the counter
	// has it, nor does it tell the feed something more than once a millisecond.
	beyond := uint64(max(at.UnixMilli(), 0))
	if err := home.RaiseCounter("epoch", max(known+1000, beyond/1000)); err != nil {
		return void, 0, err
	}
	if void.Handoffs, err = handoff.Restored(home, at); err != nil {
		return void, 0, err
	}
	paid, err := approval.Restored(home, at)
	void.Approvals, void.Policies = paid.Approvals, paid.Policies
	if err != nil {
		return void, 0, err
	}
	if void.Messages, err = inbox.Restored(home); err != nil {
		return void, 0, err
	}
	return void, beyond, event.FirstOfFeed(home, beyond)
}
