package handoff

import (
	"time"

	"tapin/internal/event"
	"tapin/internal/store"
)

// Restored ends every hand-off of a home that was restored from a backup and
// that nobody serves yet: the pages that people were in are not in it. It may be
// done twice.
func Restored(home *store.Home, at time.Time) (ended int, err error) {
	archive, err := event.OpenArchive(home, nil, folder)
	if err != nil {
		return 0, err
	}
	ids, err := archive.Open()
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		var rec Record
		if archive.Read(id, &rec, &rec.ID) != nil {
			continue // such a one is left alone by every start
		}
		over, effects, err := next(rec, gone{at, "tapin was restored from a backup"})
		if err != nil || rec.IsOver() {
			continue
		}
		if err := archive.Write(id, prepare(over, effects)); err != nil {
			return ended, err
		}
		ended++
	}
	return ended, nil
}
