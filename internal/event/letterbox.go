package event

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	letterFolder = "letters"
	letterSuffix = ".json"
	collectEvery = 2 * time.Second
)

// Letterbox is where the processes that do not have the feed leave events for
// the one that has. A letter is on the disk before anybody reads it, so it is
// told even if its writer ends, or the feed's process only starts later.
type Letterbox struct {
	home *store.Home
	log  *slog.Logger
}

// NewLetterbox is the letterbox of a home; a nil logger discards.
func NewLetterbox(home *store.Home, log *slog.Logger) *Letterbox {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Letterbox{home: home, log: log}
}

// Leave puts an event in. Leaving the same one again is fine.
func (l *Letterbox) Leave(e Event) error {
	if err := e.check(); err != nil {
		return fmt.Errorf("leave %s: %w", e.Type, err)
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At, e.Seq = e.At.UTC().Round(0), 0
	name := fmt.Sprintf("%s-%d%s", e.ID, e.Version, letterSuffix)
	if strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("leave %s: %q is not an id", e.Type, e.ID)
	}
	return l.home.WriteJSON(path.Join(letterFolder, name), e)
}

// Collect delivers what has been left and then removes it. A letter that is no
// event is put aside: it can never be told, and the same one may be left again.
func (l *Letterbox) Collect(ctx context.Context, pump *Pump) error {
	names, err := l.home.List(letterFolder)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if !strings.HasSuffix(name, letterSuffix) {
			continue
		}
		name = path.Join(letterFolder, name)
		var e Event
		err := l.home.ReadRecord(name, &e, func() error { return e.check() })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fault.Unreadable):
			if _, err := l.home.PutAside(name, err); err != nil {
				errs = append(errs, err)
			}
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		default:
			if err := pump.Deliver(ctx, e); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		if err := l.home.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run collects until ctx ends.
func (l *Letterbox) Run(ctx context.Context, pump *Pump) {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		if err := l.Collect(ctx, pump); err != nil && ctx.Err() == nil {
			l.log.Warn("not all letters could be told yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
