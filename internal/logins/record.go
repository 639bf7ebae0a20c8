package logins

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

// record is what tapin itself remembers of a login: who uses it, how fresh it
// is, and what has been begun with it and must be finished. It holds no secret.
type record struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Use     *use   `json:"use,omitempty"`
	Task    string `json:"task,omitempty"` // under way: taskDelete or taskRename
	From    string `json:"from,omitempty"` // the name it had, while it is renamed
	Kept    string `json:"kept,omitempty"` // what a provider keeps of it, while it is deleted

	// Noticed is the domain that we wrote into the manifest ourselves: where the
	// browser was, which is not what the owner says.
	Noticed string `json:"noticed,omitempty"`

	UsedAt      time.Time `json:"used_at,omitzero"`
	VerifiedAt  time.Time `json:"verified_at,omitzero"`
	VerifiedHow How       `json:"verified_how,omitempty"`
	StaleSince  time.Time `json:"stale_since,omitzero"`
	StaleWhy    Why       `json:"stale_why,omitempty"`
	LastCheck   *Checked  `json:"last_check,omitempty"`
	AliveSince  time.Time `json:"alive_since,omitzero"` // of the life that has not ended
	Lives       []Life    `json:"lives,omitempty"`      // oldest first, the last maxLives of them
}

// use says which session has a login, since when, and from which version on.
type use struct {
	Session    string    `json:"session"`
	Since      time.Time `json:"since"`
	Generation uint64    `json:"generation"`
}

const (
	recordVersion = 1
	taskDelete    = "delete"
	taskRename    = "rename"
)

// record reads the record of a login; one that has none has an empty one. While
// it cannot be read nobody gets the login: it says who has it already.
func (r *Room) record(name string) (*record, error) {
	rec := &record{}
	err := r.home.ReadRecord(recordFile(name), rec, store.Of(&rec.Name, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &record{Version: recordVersion, Name: name}, nil
	case err != nil:
		return nil, err
	case rec.Version != recordVersion:
		return nil, fault.New(fault.Forbidden, "read the login "+name, "its record was written by a newer tapin")
	}
	return rec, nil
}

func (r *Room) keep(rec *record) error {
	r.at("record")
	return r.home.WriteJSON(recordFile(rec.Name), rec)
}

// drop removes a record that says nothing any more.
func (r *Room) drop(name string) error {
	if err := r.home.Remove(recordFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// recorded names the logins that have a record.
func (r *Room) recorded() ([]string, error) {
	all, err := r.home.List(folder)
	var names []string
	for _, file := range all {
		if name, ok := strings.CutSuffix(file, ".json"); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}
