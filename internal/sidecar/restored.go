package sidecar

import (
	"slices"
	"time"

	"tapin/internal/approval"
	"tapin/internal/event"
	"tapin/internal/handoff"
	"tapin/internal/inbox"
	"tapin/internal/layout"
	"tapin/internal/owners"
	"tapin/internal/store"
)

// Void is what of a backup did not come to life again.
type Void struct {
	Handoffs  int `json:"handoffs"`
	Approvals int `json:"approvals"`
	Policies  int `json:"policies"`
	Cleared   int `json:"cleared"`
	Messages  int `json:"messages"`
	Invited   int `json:"invited"`

	// Unreadable are the files that could not be read. None of them grants anything.
	Unreadable []Unread `json:"unreadable,omitempty"`
}

// Unread is a file that cannot be read.
type Unread struct {
	File  string `json:"file"`
	Why   string `json:"why"`
	Aside string `json:"put_aside,omitempty"` // where it lies now; "" for one that was left as it is
}

// UnreadIn names what of a home cannot be read, of all that a backup carries and
// that exists nowhere else.
func UnreadIn(home *store.Home) ([]Unread, error) {
	damages, err := home.Examine()
	var found []Unread
	for _, d := range damages {
		kind, _ := layout.Of(d.File)
		if d.Aside == "" && (kind.Class == layout.Truth || kind.Class == layout.Key) && layout.Carried(d.File) {
			found = append(found, Unread{File: d.File, Why: d.Why})
		}
	}
	return found, err
}

// Restored makes a home that was unpacked from a backup one that may be served:
// nothing in it can be used any more that was allowed, shown or begun in the life
// of the home that the backup was made of. known is the highest epoch of the
// homes that this one follows. It may be done twice.
func Restored(home *store.Home, at time.Time, known uint64) (void Void, feedFrom uint64, err error) {
	if void.Unreadable, err = UnreadIn(home); err != nil {
		return void, 0, err
	}
	defer func() {
		for _, d := range home.Damages() {
			i := slices.IndexFunc(void.Unreadable, func(u Unread) bool { return u.File == d.File })
			switch {
			case d.Aside == "":
			case i < 0:
				void.Unreadable = append(void.Unreadable, Unread{d.File, d.Why, d.Aside})
			default:
				void.Unreadable[i].Aside = d.Aside
			}
		}
	}()
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
	void.Approvals, void.Policies, void.Cleared = paid.Approvals, paid.Policies, paid.Cleared
	if err != nil {
		return void, 0, err
	}
	if void.Messages, err = inbox.Restored(home, at); err != nil {
		return void, 0, err
	}
	if void.Invited, err = owners.Restored(home); err != nil {
		return void, 0, err
	}
	return void, beyond, event.FirstOfFeed(home, beyond)
}
