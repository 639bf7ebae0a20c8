// Package inbox keeps what the owner said to the agent until the agent has
// read it. It owns the inbox folder: a file a message, in the order in which
// they came. It must never hold a text that was to be typed, lose a message
// that was not acknowledged, or tell one twice under two numbers.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	folder    = "inbox"
	stateFile = "inbox/state.json"
	maxText   = 16 << 10 // more than any messenger carries
	maxKept   = 1000
	maxKeys   = 256
	pageSize  = 50
)

// Kind is what a message is about.
type Kind string

// The kinds.
const (
	Words Kind = "message" // ordinary words
	Retry Kind = "retry"   // what a hand-off left undone shall be tried again
)

// Message is one message for the agent.
type Message struct {
	Seq       uint64    `json:"seq"` // from 1, without gaps
	Kind      Kind      `json:"kind"`
	Text      string    `json:"text"`
	From      string    `json:"from,omitempty"` // who wrote it, as they call themselves
	At        time.Time `json:"at"`
	TodoID    string    `json:"todo_id,omitempty"`
	HandoffID string    `json:"handoff_id,omitempty"`
}

// kept is a message as it lies on the disk.
type kept struct {
	Message
	Key string `json:"key,omitempty"`
}

// state is what outlives the messages.
type state struct {
	Last uint64   `json:"last"`           // the newest number given
	Read uint64   `json:"read"`           // what the agent has acknowledged
	Keys []string `json:"keys,omitempty"` // of the last messages, against repetition
}

// Room has the messages of a home. It is safe for concurrent use.
type Room struct {
	home *store.Home

	mu      sync.Mutex
	state   state
	kept    *store.Truth[state]
	waiting []uint64 // the numbers on the disk, in order
	changed chan struct{}
}

// New reads what waits.
func New(home *store.Home) (*Room, error) {
	r := &Room{home: home, changed: make(chan struct{})}
	// Without it nobody knows which numbers were given: what waits can be read,
	// and nothing is added or forgotten.
	r.kept = store.OpenTruth(home, stateFile, &r.state, nil)
	names, err := home.List(folder)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "read the inbox", err)
	}
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".json")
		seq, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil {
			continue
		}
		m, err := r.read(seq)
		if seq <= r.state.Read {
			_ = home.Remove(path.Join(folder, name)) // a kill kept it, or it could not be read and is left
			continue
		}
		if err != nil && !errors.Is(err, fault.Unreadable) {
			return nil, fault.Wrap(fault.Internal, "read the inbox", err)
		}
		r.waiting = append(r.waiting, seq)
		r.state.Last = max(r.state.Last, seq)
		if m.Key != "" && !slices.Contains(r.state.Keys, m.Key) {
			r.state.Keys = append(r.state.Keys, m.Key) // a kill kept it from being noted
		}
	}
	slices.Sort(r.waiting)
	return r, nil
}

// Put adds a message. With a key that was used before it adds nothing.
func (r *Room) Put(_ context.Context, m Message, key string) error {
	const op = "leave a message for the agent"
	switch {
	case m.Kind != Words && m.Kind != Retry:
		return fault.New(fault.InvalidRequest, op, "%q is no kind of message", m.Kind)
	case strings.TrimSpace(m.Text) == "" || !utf8.ValidString(m.Text):
		return fault.New(fault.InvalidRequest, op, "a message has a text").With("field", "text")
	case len(m.Text) > maxText:
		return fault.New(fault.PayloadTooLarge, op, "a message is at most %d bytes", maxText)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return err
	}
	if key != "" && slices.Contains(r.state.Keys, key) {
		return nil
	}
	if len(r.waiting) >= maxKept {
		return fault.New(fault.Busy, op, "%d messages wait already", maxKept).WithHint("The agent reads them with GET /inbox.")
	}
	next := r.state
	next.Last++
	if key != "" {
		next.Keys = append(slices.Clone(next.Keys), key)
		next.Keys = next.Keys[max(0, len(next.Keys)-maxKeys):]
	}
	m.Seq, m.At = next.Last, time.Now().UTC().Round(0)
	// The message first, with its key: a kill in between adds no second one.
	if err := r.home.WriteJSON(name(m.Seq), kept{m, key}); err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	if err := r.kept.Write(next); err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	r.state = next
	if !slices.Contains(r.waiting, m.Seq) {
		r.waiting = append(r.waiting, m.Seq)
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// Wait returns the messages after a number, at once if there are any, else as
// soon as one comes or the time is up.
func (r *Room) Wait(ctx context.Context, after uint64, limit int, within time.Duration) ([]Message, error) {
	timeUp := time.NewTimer(within)
	defer timeUp.Stop()
	for {
		r.mu.Lock()
		found, err := r.since(after, limit)
		changed := r.changed
		r.mu.Unlock()
		if err != nil || len(found) > 0 {
			return found, err
		}
		select {
		case <-changed:
		case <-timeUp.C:
			return found, nil
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
}

func (r *Room) since(after uint64, limit int) ([]Message, error) {
	if limit <= 0 || limit > pageSize {
		limit = pageSize
	}
	out := []Message{}
	for _, seq := range r.waiting {
		if seq <= after || len(out) >= limit {
			continue
		}
		m, err := r.read(seq)
		if errors.Is(err, fault.Unreadable) {
			continue // the others are read all the same, and this one stays
		}
		if err != nil {
			return nil, fault.Wrap(fault.Internal, "read the inbox", err)
		}
		out = append(out, m.Message)
	}
	return out, nil
}

// Acknowledge forgets the messages up to a number: the agent has them.
func (r *Room) Acknowledge(_ context.Context, upTo uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return err
	}
	upTo = min(upTo, r.state.Last)
	if upTo <= r.state.Read {
		return nil
	}
	next := r.state
	next.Read = upTo
	if err := r.kept.Write(next); err != nil {
		return fault.Wrap(fault.Internal, "acknowledge messages", err)
	}
	r.state = next
	var left []uint64
	for _, seq := range r.waiting {
		if seq > upTo {
			left = append(left, seq)
			continue
		}
		if err := r.home.Remove(name(seq)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.Unreadable) {
			return fault.Wrap(fault.Internal, "acknowledge messages", err)
		}
	}
	r.waiting = left
	return nil
}

// read reads a message from the disk.
func (r *Room) read(seq uint64) (m kept, err error) {
	err = r.home.ReadRecord(name(seq), &m, func() error {
		if m.Seq != seq {
			return errors.New("it belongs to another message")
		}
		return nil
	})
	return m, err
}

// ready is nil if it is known which numbers were given. A state that can be
// read only later knows of fewer messages than lie here, never of more.
func (r *Room) ready() error {
	last := r.state.Last
	err := r.kept.Ready()
	r.state.Last = max(r.state.Last, last)
	return err
}

func name(seq uint64) string { return path.Join(folder, fmt.Sprintf("%012d.json", seq)) }
