package approval

import (
	"errors"
	"io/fs"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/store"
)

// Voided is what a restored home may not do any more.
type Voided struct {
	Approvals int // asked for or granted, and not used
	Policies  int // that wait for the owner's word again
	Cleared   int // buttons that were no payment by the owner's word, and are guarded again
}

// Restored takes back what was allowed in a home that was restored from a backup
// and that nobody serves yet: it may have been used, or taken back, after the
// backup was made. Policies wait for the owner to confirm them, and what was
// cleared is guarded again. A file that cannot be read is put aside: mended by
// hand it would grant what nobody took back. It may be done twice.
func Restored(home *store.Home, at time.Time) (done Voided, err error) {
	ids, err := event.NewIndex(home, folder+"/open").List()
	if err != nil {
		return done, err
	}
	for _, id := range ids {
		var rec Record
		switch err := home.ReadRecord(file(id), &rec, store.Of(&rec.ID, id)); {
		case errors.Is(err, fs.ErrNotExist):
			continue // killed before its first write: it never was
		case err != nil:
			if _, err := home.PutAside(file(id), err); err != nil {
				return done, err
			}
			continue
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
	done.Policies, done.Cleared, err = Doubt(home, at)
	if errors.Is(err, fault.Unreadable) {
		_, err = home.PutAside(policiesFile, err)
	}
	return done, err
}

func versioned(version int) error {
	if version < 1 {
		return errors.New("it has no version")
	}
	return nil
}
