// Package trouble is the list of what does not work although tapin serves.
// It owns the entries and their order; health, doctor, console and the first
// screen all show this one list. It must never hold anything of a page, nor a
// secret: /health shows it to everybody on this machine.
package trouble

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// State is what became of the thing.
type State string

// The states.
const (
	Restarting State = "restarting" // it failed and is started again after a pause
	GivenUp    State = "given_up"   // it failed too often and stays off until tapin starts again
	LeftOut    State = "left_out"   // it took tapin down before, so this start left it out
	SetAside   State = "set_aside"  // its file could not be used; it was put aside and made anew
	Unfinished State = "unfinished" // it was begun and could not be brought to its end
	Unreadable State = "unreadable" // its file could not be used and is kept as it is
)

// Trouble is one thing that does not work as it should.
type Trouble struct {
	What    string    `json:"what" doc:"The room, or the kind of file: \"figures\", \"saved login\"."`
	State   State     `json:"state" enum:"restarting,given_up,left_out,set_aside,unreadable,unfinished"`
	Details string    `json:"details" doc:"What happened, in a sentence."`
	Hint    string    `json:"hint,omitempty" doc:"What to do about it."`
	Since   time.Time `json:"since"`
}

// words are the states as a sentence goes on with them.
var words = map[State]string{
	Restarting: "failed and is started again",
	GivenUp:    "failed too often and is off",
	LeftOut:    "is left out",
	SetAside:   "was put aside and made anew",
	Unreadable: "cannot be read",
	Unfinished: "is not finished",
}

// Sentence says it to a person, without what to do about it.
func (t Trouble) Sentence() string { return t.What + " " + words[t.State] + ": " + t.Details }

// Board is the list of one process. Its zero value is ready; it is safe for
// concurrent use, and waits for nobody.
type Board struct {
	mu  sync.Mutex
	all map[string]Trouble
}

// Set puts an entry up, or replaces the one with this key. The time of the
// first one stays.
func (b *Board) Set(key string, t Trouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]Trouble{}
	}
	if t.Since.IsZero() {
		t.Since = time.Now()
	}
	if before, ok := b.all[key]; ok && before.State == t.State {
		t.Since = before.Since
	}
	t.Since = t.Since.UTC().Round(0)
	b.all[key] = t
}

// Clear takes an entry down.
func (b *Board) Clear(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, key)
}

// List is every entry, the oldest first.
func (b *Board) List() []Trouble {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Trouble, 0, len(b.all))
	for _, t := range b.all {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Trouble) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.What, b.What), cmp.Compare(a.Details, b.Details))
	})
	return all
}
