package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"tapin/internal/store"
)

const (
	defaultRetryEvery = 5 * time.Second
	maxWaiting        = 10_000 // beyond it events wait in their records' outboxes for the next start
)

// PumpOptions are the settings of a pump; nil means the defaults.
type PumpOptions struct {
	RetryEvery time.Duration // how soon a failed delivery is repeated; 0 means 5 s
	Logger     *slog.Logger
}

// Pump copies events from the outboxes of records to the feed, in the order
// they were delivered. It is safe for concurrent use.
type Pump struct {
	feed *Feed
	home *store.Home
	opts PumpOptions

	mu      sync.Mutex
	waiting []Event // could not be published yet
}

// NewPump makes a pump from the records of home to feed.
func NewPump(feed *Feed, home *store.Home, opts *PumpOptions) *Pump {
	p := &Pump{feed: feed, home: home}
	if opts != nil {
		p.opts = *opts
	}
	p.opts.RetryEvery = cmp.Or(max(p.opts.RetryEvery, 0), defaultRetryEvery)
	if p.opts.Logger == nil {
		p.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return p
}

// Deliver publishes events that are in an outbox on the disk. Delivering one
// twice publishes it once. If it fails the events are kept for Run to try
// again, ahead of all later ones, and the outbox must not be emptied.
func (p *Pump) Deliver(ctx context.Context, events ...Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, events...)
	err := p.flush(ctx)
	if len(p.waiting) > maxWaiting {
		p.waiting = slices.Clone(p.waiting[:maxWaiting])
	}
	return err
}

// Run repeats failed deliveries until ctx ends.
func (p *Pump) Run(ctx context.Context) {
	tick := time.NewTicker(p.opts.RetryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		if err := p.flush(ctx); err != nil && ctx.Err() == nil {
			p.opts.Logger.Warn("events could not be published yet", "waiting", len(p.waiting), "err", err)
		}
		p.mu.Unlock()
	}
}

// Recover delivers the outbox of every record that the index lists; file
// gives the name of a record's file. It is for the start, when a kill may have
// come between a record's write and its delivery. A record that cannot be read
// does not keep the others from being delivered.
func (p *Pump) Recover(ctx context.Context, index *Index, file func(id string) string) error {
	ids, err := index.List()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		var record struct {
			Outbox Outbox `json:"outbox"`
		}
		err := p.home.ReadJSON(file(id), &record)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Marked, then killed before the record was written: it never was.
			err = index.Remove(id)
		case err == nil:
			err = p.Deliver(ctx, record.Outbox...)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// flush publishes what waits, up to the first failure. An event that can
// never be published is a mistake of its record; it must not block the rest.
func (p *Pump) flush(ctx context.Context) error {
	var refused error
	for len(p.waiting) > 0 {
		e := p.waiting[0]
		if err := e.check(); err != nil {
			refused = errors.Join(refused, fmt.Errorf("deliver %s: %w", e.Type, err))
		} else if _, err := p.feed.Publish(ctx, e); err != nil {
			return errors.Join(refused, err)
		}
		p.waiting = p.waiting[1:]
	}
	p.waiting = nil
	return refused
}

// Index lists the records that are not over, as empty files in one folder, so
// that a start need not look at all records there ever were. Its user marks a
// record before it writes it first, and unmarks it after its last event was
// delivered.
type Index struct {
	home   *store.Home
	folder string
}

// NewIndex is the index kept in folder, such as sessions/open.
func NewIndex(home *store.Home, folder string) *Index {
	return &Index{home: home, folder: folder}
}

// Add marks a record as open. Adding it again is fine.
func (x *Index) Add(id string) error {
	name, err := x.file(id)
	if err != nil {
		return err
	}
	if ok, err := x.home.Exists(name); ok || err != nil {
		return err
	}
	return x.home.Write(name, nil)
}

// Remove marks a record as over. Removing it again is fine.
func (x *Index) Remove(id string) error {
	name, err := x.file(id)
	if err != nil {
		return err
	}
	return x.home.RemoveAll(name) // there may be a folder in its place
}

// List returns the ids of the open records, sorted.
func (x *Index) List() ([]string, error) {
	return x.home.List(x.folder)
}

func (x *Index) file(id string) (string, error) {
	if id == "" || id[0] == '.' || strings.ContainsAny(id, "/\\") {
		return "", fmt.Errorf("index %s: %q is not an id", x.folder, id)
	}
	return path.Join(x.folder, id), nil
}
