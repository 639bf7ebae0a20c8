package inbox

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"tapin/internal/store"
)

// beyond is more messages than come between a backup and its restoring.
const beyond = 1_000_000

// Restored forgets what waited for the agent in a home that was restored from a
// backup: it may have read that since, and must not do it twice. Numbers go on
// far beyond those that it may have seen; where they cannot be read, beyond the
// seconds there ever were.
func Restored(home *store.Home, at time.Time) (dropped int, err error) {
	names, err := home.List(folder)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	var s state
	if err := home.ReadJSON(stateFile, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if _, err := home.PutAside(stateFile, err); err != nil {
			return 0, err
		}
		s = state{Last: uint64(max(at.Unix(), 0))}
	}
	s.Last += beyond
	s.Read = s.Last
	if err := home.WriteJSON(stateFile, s); err != nil {
		return 0, err
	}
	for _, name := range names {
		if path.Join(folder, name) == stateFile || !strings.HasSuffix(name, ".json") {
			continue
		}
		if err := home.Remove(path.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dropped, err
		}
		dropped++
	}
	return dropped, nil
}
