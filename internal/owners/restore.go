package owners

import (
	"errors"
	"io/fs"

	"tapin/internal/store"
)

// Restored takes back the invitations of a home that was restored from a backup
// and that nobody serves yet: codes that are out, and who waits for a word. Owners
// stay those of then. A file that cannot be read makes nobody an owner and is put
// aside. It may be done twice.
func Restored(home *store.Home) (dropped int, err error) {
	var rec record
	err = home.ReadRecord(file, &rec, func() error {
		if rec.Version < 1 {
			return errors.New("it has no version")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		_, err = home.PutAside(file, err)
		return 0, err
	}
	dropped = len(rec.Codes) + len(rec.Waiting)
	if dropped == 0 && len(rec.Outbox) == 0 {
		return 0, nil
	}
	rec.Codes, rec.Waiting, rec.Outbox = nil, nil, nil // what is in the last was told by the other life
	rec.Version++
	return dropped, home.WriteJSON(file, rec)
}
