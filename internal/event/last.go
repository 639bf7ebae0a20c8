package event

import (
	"slices"
	"time"

	"tapin/internal/store"
)

// lastWithin is how far back LastNames looks.
const lastWithin = time.Hour

// LastNames are the names of the last operations in a home's journal, and how
// they ended, the newest last. It is for the report of a crash: it needs nothing
// of the process that failed, and names are all that it takes.
func LastNames(home *store.Home, most int) (names []string) {
	journal := NewJournal(home, nil)
	defer func() { _ = journal.Close() }()
	_ = journal.Scan(time.Now().Add(-lastWithin), func(e Entry) error {
		names = append(names, e.At.UTC().Format("15:04:05")+" "+e.Who+" "+e.What+" "+e.Outcome)
		if len(names) > 2*most {
			names = slices.Delete(names, 0, len(names)-most)
		}
		return nil
	})
	return names[max(0, len(names)-most):]
}
