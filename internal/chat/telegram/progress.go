package telegram

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"tapin/internal/chat"
	"tapin/internal/fault"
)

const (
	progressFile = "telegram/progress.json"
	cursorFile   = "telegram/cursor.json"
	noteFolder   = "telegram/queue"

	// maxHandled is how many updates are remembered. A number alone would not
	// do: updates may come again, out of order, and after a week of silence
	// their ids may begin anywhere, also below.
	maxHandled = 512
	// silentFor is when ids may have begun anew.
	silentFor = 6 * 24 * time.Hour
	// maxNotes bounds what waits to be sent in answer to somebody.
	maxNotes = 500
)

// What is told of those whose messages have no effect.
const (
	byStranger = "stranger"
	byGroup    = "group"
	byForward  = "forward"
	byEdit     = "edit"
	byStale    = "stale"
	byOther    = "other"
	byCode     = "code"
)

// progress is how far updates were handled.
type progress struct {
	Offset  int64          `json:"offset"`            // what to ask for next
	Handled []int64        `json:"handled,omitempty"` // updates that had their effect
	LastAt  time.Time      `json:"last_at,omitzero"`  // when one last came
	Now     *decided       `json:"now,omitempty"`     // what was decided about the update under way
	Seen    map[int64]int  `json:"seen,omitempty"`    // the newest message known of each chat
	Refused map[string]int `json:"refused,omitempty"` // what had no effect, by kind
}

// decided is what an update means. It is written before it is done: what waits
// may be another thing when the same update comes again after a kill.
type decided struct {
	Update int64         `json:"update"`
	What   chat.Decision `json:"what"`
}

func (p *progress) handled(id int64) bool { return slices.Contains(p.Handled, id) }

// done notes that an update had its effect.
func (p *progress) done(id int64, now time.Time) {
	p.Handled = append(p.Handled, id)
	p.Handled = p.Handled[max(0, len(p.Handled)-maxHandled):]
	p.Now, p.LastAt = nil, now.UTC()
}

// from is the offset to ask with.
func (p *progress) from(now time.Time) int64 {
	if !p.LastAt.IsZero() && now.Sub(p.LastAt) > silentFor {
		return 0 // everything that is not confirmed
	}
	return p.Offset
}

func (p *progress) saw(in int64, message int) {
	if p.Seen == nil {
		p.Seen = map[int64]int{}
	}
	p.Seen[in] = max(p.Seen[in], message)
}

func (p *progress) refuse(what string) {
	if p.Refused == nil {
		p.Refused = map[string]int{}
	}
	p.Refused[what]++
}

// save writes the progress. Called with the lock held.
func (r *Room) save() error {
	return fault.Wrap(fault.Internal, "keep how far Telegram was read", r.home.WriteJSON(progressFile, r.progress))
}

// note is something to be said in answer, or because of something else than a
// card. It is a file until it was sent.
type note struct {
	Chat    int64     `json:"chat"`
	Text    string    `json:"text"`
	Buttons *keyboard `json:"buttons,omitempty"`
	Reply   int       `json:"reply,omitempty"`
	Delete  int       `json:"delete,omitempty"`  // a message of the owner's to be deleted first
	Deleted *bool     `json:"deleted,omitempty"` // what came of that
	Once    bool      `json:"once,omitempty"`    // at most once
	Begun   bool      `json:"begun,omitempty"`
	Until   time.Time `json:"until,omitzero"` // afterwards it is not worth saying
}

// say queues a note under an id; one that is there already is the same one.
// Called with the lock held.
func (r *Room) say(n note, id string) {
	raw, err := json.Marshal(n)
	if err == nil {
		err = r.home.Create(noteFile(id), append(raw, '\n'))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		r.log.Error("an answer could not be queued", "error", err)
	}
	r.prod()
}

func noteFile(id string) string { return path.Join(noteFolder, id+".json") }

// notes are the ids of what waits to be said, in order.
func (r *Room) notes() []string {
	names, err := r.home.List(noteFolder)
	if err != nil {
		r.log.Error("the answers cannot be listed", "error", err)
		return nil
	}
	var out []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".json"); ok {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	if len(out) > maxNotes {
		for _, id := range out[:len(out)-maxNotes] {
			_ = r.home.Remove(noteFile(id))
		}
		out = out[len(out)-maxNotes:]
	}
	return out
}
