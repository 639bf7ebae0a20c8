package approval

import (
	"errors"
	"io/fs"
	"time"

	"tapin/internal/store"
)

// Doubt has every policy of a home that nobody serves wait for the owner's word
// again, and every button count as a payment again: what is there now is of an
// earlier time, and may have been taken back since. It may be done twice.
func Doubt(home *store.Home, at time.Time) (policies, cleared int, err error) {
	var book ledger
	switch err := home.ReadRecord(policiesFile, &book, func() error { return versioned(book.Version) }); {
	case errors.Is(err, fs.ErrNotExist):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	}
	policies, cleared = len(book.Policies), len(book.Cleared)
	if policies+cleared == 0 {
		return 0, 0, nil
	}
	for _, s := range book.Policies {
		p := Proposal{ID: store.NewID("prp"), Policy: s, From: fromDoor, CreatedAt: at}
		if s.Login != "" {
			p.From = fromManifest
		}
		book.Proposals = append(book.Proposals, p)
		book.tell("policy.proposed", p, 1)
	}
	book.Policies, book.Cleared = nil, nil
	book.Version++
	return policies, cleared, home.WriteJSON(policiesFile, book)
}
