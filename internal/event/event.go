// Package event tells the rest of tapin what has happened, and when it is time.
// It owns the feed with its sequence numbers, the outboxes that records carry,
// the journal, and the one heap of deadlines. It must never tell anybody of
// something that is not on the disk yet, nor let a slow listener hold up a
// publisher.
package event

import (
	"encoding/json"
	"errors"
	"time"
)

// Event is one thing that happened to one record. ID and Version name it: a
// record that changed twice has two events.
type Event struct {
	Seq     uint64          `json:"seq,omitempty"` // place in the feed; given by Publish
	ID      string          `json:"id"`            // of the record
	Version int             `json:"version"`       // of the record after the change, from 1
	Type    string          `json:"type"`          // such as session.started
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"data,omitempty"` // never changed once published
}

// key names an event for deduplication.
type key struct {
	id      string
	version int
}

func (e Event) key() key { return key{e.ID, e.Version} }

func (e Event) check() error {
	switch {
	case e.ID == "":
		return errors.New("an event needs the id of its record")
	case e.Version < 1:
		return errors.New("an event needs the version of its record")
	case e.Type == "":
		return errors.New("an event needs a type")
	case len(e.Data) > 0 && !json.Valid(e.Data):
		return errors.New("the data of an event must be JSON")
	}
	return nil
}

// Outbox holds the events of a record that may not be in the feed yet. A
// record carries it as "outbox" and is written together with it; its owner
// empties it in a later write, after Pump.Deliver has returned nil.
type Outbox []Event
