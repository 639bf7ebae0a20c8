package approval

import (
	"errors"
	"io/fs"
	"time"

	"tapin/internal/event"
	"tapin/internal/store"
)

// Voided is what a restored home may not do any more.
type Voided struct {
	Approvals int // asked for or granted, and not used
	Policies  int // that wait for the owner's word again
}

// Restored takes back what was allowed in a home that was restored from a backup
// and that nobody serves yet: it may have been used, or taken back, after the
// backup was made. Policies wait for the owner to confirm them. It may be done twice.
func Restored(home *store.Home, at time.Time) (done Voided, err error) {
	ids, err := event.NewIndex(home, folder+"/open").List()
	if err != nil {
		return done, err
	}
	for _, id := range ids {
		var rec Record
		if home.ReadRecord(file(id), &rec, store.Of(&rec.ID, id)) != nil {
			continue // such a one grants nothing
		}
		over, news, err := next(rec, lapse{rec.Deadline})
		if err != nil || len(news) == 0 {
			continue
		}
		over.Deadline = at
		if err := home.WriteJSON(file(id), prepare(over, news)); err != nil {
			return done, err
		}
		done.Approvals++
	}
	var book ledger
	if err := home.ReadJSON(policiesFile, &book); errors.Is(err, fs.ErrNotExist) {
		return done, nil
	} else if err != nil {
		return done, err
	}
	for _, s := range book.Policies {
		p := Proposal{ID: store.NewID("prp"), Policy: s, From: fromDoor, CreatedAt: at}
		if s.Login != "" {
			p.From = fromManifest
		}
		book.Proposals = append(book.Proposals, p)
		book.tell("policy.proposed", p, 1)
		done.Policies++
	}
	if done.Policies == 0 {
		return done, nil
	}
	book.Policies = nil
	book.Version++
	return done, home.WriteJSON(policiesFile, book)
}
