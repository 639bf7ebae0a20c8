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

// KeepFeedAt has the feed of a home that nobody serves go on with a number no
// lower than seq, whatever is in it.
func KeepFeedAt(home *store.Home, seq uint64) error {
	name := path.Join(feedFolder, fmt.Sprintf("%020d.jsonl", seq))
	if there, err := home.Exists(name); err != nil || there {
		return err
	}
	return home.Write(name, nil)
}

// KeepNumbers has the feed of a home that nobody serves go on beyond all numbers
// that it has given, whichever of its events are taken out afterwards.
func KeepNumbers(home *store.Home) error {
	f, err := OpenFeed(home, nil)
	if err != nil {
		return err
	}
	next := f.last + f.skip + 1
	if err := f.Close(); err != nil {
		return err
	}
	if next == 1 {
		return nil // it has given none
	}
	return KeepFeedAt(home, next)
}
