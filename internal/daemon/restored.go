package daemon

import "tapin/internal/store"

// Restored has nobody woken in a home that was restored from a backup for what
// ended before: they were woken then. The feed goes on after last.
func Restored(home *store.Home, last uint64) error {
	if err := home.RemoveAll(wakeFolder); err != nil {
		return err
	}
	return home.WriteJSON(wakeCursorFile, cursor{last})
}
