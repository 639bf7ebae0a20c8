package event

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	feedFolder = "events"
	feedLock   = "feed"
	mostSeq    = 1 << 52 // what claims more is not of the feed: readers of JSON could not tell the next numbers apart
	segments   = 8       // retention goes by whole segments; this many make up the limit

	defaultMaxEvents = 10_000
	defaultMaxBytes  = 16 << 20
)

// FeedOptions are the settings of a feed; nil means the defaults.
type FeedOptions struct {
	MaxEvents int   // at least this many of the newest are kept; 0 means 10,000
	MaxBytes  int64 // beyond this the oldest go even so; 0 means 16 MiB
	Logger    *slog.Logger
}

// Feed is the durable sequence of events. One process at a time has it open;
// within that it is safe for concurrent use. Readers pull by cursor, which is
// the Seq of the last event they have seen, 0 at first.
type Feed struct {
	home   *store.Home
	opts   FeedOptions
	unlock func()

	mu       sync.Mutex
	log      *store.Log // of the newest segment; nil until something is published
	parts    []segment  // oldest first
	last     uint64     // the highest number ever given, as far as is known
	skip     uint64     // numbers after it that may have been given too
	byKey    map[key]Event
	newer    chan struct{} // closed when last grows or the feed closes
	isClosed bool
}

// segment is one file of the feed, and its events.
type segment struct {
	name   string
	events []Event
	bytes  int64
	gaps   bool // events of it cannot be read
}

// OpenFeed opens the feed of a home.
func OpenFeed(home *store.Home, opts *FeedOptions) (*Feed, error) {
	f := &Feed{home: home, byKey: map[key]Event{}, newer: make(chan struct{})}
	if opts != nil {
		f.opts = *opts
	}
	f.opts.MaxEvents = cmp.Or(max(f.opts.MaxEvents, 0), defaultMaxEvents)
	f.opts.MaxBytes = cmp.Or(max(f.opts.MaxBytes, 0), defaultMaxBytes)
	if f.opts.Logger == nil {
		f.opts.Logger = slog.New(slog.DiscardHandler)
	}
	unlock, ok, err := home.TryLock(feedLock)
	if err != nil {
		return nil, fmt.Errorf("open feed: %w", err)
	}
	if !ok {
		pid, _, _ := home.LockHolder(feedLock)
		return nil, fault.New(fault.Busy, "open feed", "another process (%d) has it open", pid).
			WithHint("Only one sidecar can use a home; end the other one first.")
	}
	f.unlock = unlock
	if err := f.load(); err != nil {
		unlock()
		return nil, fmt.Errorf("open feed: %w", err)
	}
	return f, nil
}

// Publish adds an event to the feed and returns it with its number. An event
// of the same ID and Version that is in the feed already is returned instead.
// When Publish returns nil the event survives a power cut.
func (f *Feed) Publish(ctx context.Context, e Event) (Event, error) {
	op := "publish " + e.Type
	if err := ctx.Err(); err != nil {
		return Event{}, fmt.Errorf("%s: %w", op, err)
	}
	if err := e.check(); err != nil {
		return Event{}, fmt.Errorf("%s: %w", op, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed {
		return Event{}, fmt.Errorf("%s: %w", op, fs.ErrClosed)
	}
	if first, ok := f.byKey[e.key()]; ok {
		return first, nil
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC().Round(0)
	e.Seq = f.last + f.skip + 1
	line, err := json.Marshal(e)
	if err != nil {
		return Event{}, fmt.Errorf("%s: %w", op, err)
	}
	if err := f.rotate(e.Seq); err != nil {
		return Event{}, fmt.Errorf("%s: %w", op, err)
	}
	if err := f.log.Append(line); err != nil {
		return Event{}, fmt.Errorf("%s: %w", op, err)
	}
	f.remember(&f.parts[len(f.parts)-1], e, len(line))
	f.skip = 0
	f.expire()
	close(f.newer)
	f.newer = make(chan struct{})
	return e, nil
}

// Since returns up to limit events after cursor, oldest first; a limit of 0
// means all. With resync true events are missing between the cursor and the
// first one returned (they are past retention, or the cursor is of another
// feed), and the reader must look at the records themselves.
func (f *Feed) Since(cursor uint64, limit int) (events []Event, resync bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cursor > f.last {
		cursor, resync = 0, true
	}
	if oldest := f.oldest(); cursor+1 < oldest {
		resync = true
	}
	for _, part := range f.parts {
		i, _ := slices.BinarySearchFunc(part.events, cursor+1, func(e Event, seq uint64) int { return cmp.Compare(e.Seq, seq) })
		for _, e := range part.events[i:] {
			// Numbers follow each other; where they do not, a disk has lost events.
			switch n := len(events); {
			case n == 0:
				resync = resync || e.Seq != cursor+1
			case e.Seq != events[n-1].Seq+1:
				return events, resync // whoever asks for what comes then is told
			}
			if events = append(events, e); len(events) == limit {
				return events, resync
			}
		}
	}
	return events, resync
}

// Last is the number of the newest event, the cursor of one who wants only
// what is to come.
func (f *Feed) Last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Wait returns nil once Since(cursor) has something to say.
func (f *Feed) Wait(ctx context.Context, cursor uint64) error {
	for {
		f.mu.Lock()
		newer, last, closed := f.newer, f.last, f.isClosed
		f.mu.Unlock()
		switch {
		case last != cursor: // newer ones, or a cursor that needs a resync
			return nil
		case closed:
			return fmt.Errorf("wait for events: %w", fs.ErrClosed)
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the feed and wakes all who wait. It may be called more than once.
func (f *Feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed {
		return nil
	}
	f.isClosed = true
	close(f.newer)
	var err error
	if f.log != nil {
		err = f.log.Close()
	}
	f.unlock()
	return err
}

// load reads the segments. A segment is named for the first number in it, so
// that even an empty one tells which numbers have been given.
func (f *Feed) load() error {
	names, err := f.home.List(feedFolder)
	if err != nil {
		return err
	}
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".jsonl")
		first, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || first == 0 || first > mostSeq {
			continue // not ours
		}
		f.last = max(f.last, first-1)
		f.parts = append(f.parts, segment{name: path.Join(feedFolder, name)})
		part := &f.parts[len(f.parts)-1]
		next := f.last + 1
		err = f.home.ScanLog(part.name, func(line []byte) error {
			var e Event
			readable := json.Unmarshal(line, &e) == nil && e.check() == nil && e.Seq > f.last
			if !readable {
				f.opts.Logger.Warn("left out an event that cannot be read", "segment", part.name)
				part.gaps = true
				return nil
			}
			part.gaps = part.gaps || e.Seq != next
			next = e.Seq + 1
			f.remember(part, e, len(line))
			return nil
		})
		if errors.Is(err, fault.Unreadable) {
			part.gaps, err = true, nil
		}
		if err != nil {
			return err
		}
	}
	if len(f.parts) == 0 {
		return nil
	}
	newest := &f.parts[len(f.parts)-1]
	if !newest.gaps {
		if f.log, err = f.home.OpenLog(newest.name, nil); err != nil {
			return err
		}
		if f.home.HasLostEnd(newest.name) {
			newest.gaps, err = true, f.log.Close()
			f.log = nil
		}
	}
	if newest.gaps {
		// Which numbers were given in it is not known. None is given twice, so it
		// is left, and the next is beyond all that it can have held.
		f.skip = uint64(f.opts.MaxEvents) //nolint:gosec // positive
	}
	return err
}

func (f *Feed) remember(part *segment, e Event, size int) {
	part.events = append(part.events, e)
	part.bytes += int64(size) + 1
	f.last = e.Seq
	f.byKey[e.key()] = e
}

// rotate starts a new segment if there is none or the newest is full.
func (f *Feed) rotate(seq uint64) error {
	if f.log != nil {
		newest := f.parts[len(f.parts)-1]
		if len(newest.events) < max(f.opts.MaxEvents/segments, 1) && newest.bytes < f.opts.MaxBytes/segments {
			return nil
		}
	}
	name := path.Join(feedFolder, fmt.Sprintf("%020d.jsonl", seq))
	log, err := f.home.OpenLog(name, nil)
	if err != nil {
		return err
	}
	if f.log != nil {
		err = f.log.Close()
	}
	f.log = log
	f.parts = append(f.parts, segment{name: name})
	return err
}

// expire forgets the oldest segments as long as enough is left without them.
func (f *Feed) expire() {
	for len(f.parts) > 1 {
		count, bytes := 0, f.parts[0].bytes
		for _, part := range f.parts[1:] {
			count += len(part.events)
			bytes += part.bytes
		}
		if count < f.opts.MaxEvents && bytes <= f.opts.MaxBytes {
			return
		}
		oldest := f.parts[0]
		if err := f.home.Remove(oldest.name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.Unreadable) {
			f.opts.Logger.Warn("could not remove old events", "err", err)
			return // the next publish tries again
		}
		for _, e := range oldest.events {
			if f.byKey[e.key()].Seq == e.Seq {
				delete(f.byKey, e.key())
			}
		}
		f.parts = slices.Delete(f.parts, 0, 1)
	}
}

// oldest is the number of the oldest event, or of the next if there is none.
func (f *Feed) oldest() uint64 {
	for _, part := range f.parts {
		if len(part.events) > 0 {
			return part.events[0].Seq
		}
	}
	return f.last + 1
}
