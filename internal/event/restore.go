package event

import (
	"fmt"
	"path"

	"tapin/internal/store"
)

// FirstOfFeed has the feed of a home that nobody serves begin with a number, and
// with nothing told yet. Whoever followed another feed hears that events are missing.
func FirstOfFeed(home *store.Home, seq uint64) error {
	if err := home.RemoveAll(feedFolder); err != nil {
		return err
	}
	return home.Write(path.Join(feedFolder, fmt.Sprintf("%020d.jsonl", seq)), nil)
}
