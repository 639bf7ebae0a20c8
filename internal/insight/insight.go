// Package insight tells how asking a person went: how long until somebody came,
// how often it helped, which sites ask most, what was paid.
// It owns one file of figures, derived from the records of the other rooms and
// made anew from them when it is lost. It must never keep more of a record than
// its site, its reason, its end and its times, nor read all records for a look.
package insight

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/store"
)

// MostDays is as far back as figures go.
const MostDays = 90

const (
	step      = 256 // records read at a time, so that nobody waits for all of them
	stepPause = 5 * time.Millisecond
	saveEvery = 30 * time.Second // what is lost with a kill is read again
	lookEvery = 15 * time.Second // at what is open, whatever the feed says
	// begunFor is how long a hand-off may be listed before its record is written.
	begunFor = time.Minute
)

// The ways in which a hand-off ends.
const (
	Unblocked = "unblocked"
	Expired   = "expired"
	Aborted   = "aborted"
	Abandoned = "abandoned"
	Lost      = "lost"
)

// Ends lists them.
func Ends() []string { return []string{Unblocked, Expired, Aborted, Abandoned, Lost} }

// Handoff is a hand-off as far as figures need it.
type Handoff struct {
	ID       string
	Seq      uint64 // its place in the order in which they came
	Created  time.Time
	Gone     bool   // there is no record: not yet, not any more, or too old to matter
	Site     string // registrable domain; none for a page without
	Reason   string
	Takeover bool      // by the owner, unasked
	Called   bool      // somebody was told: that is what a person is late after
	Met      time.Time // when a person was first seen to be there; zero for never
	End      string    // one of Ends; none while it runs
	Ended    time.Time
}

// Payment is an approval as far as figures need it.
type Payment struct {
	ID       string
	Created  time.Time
	Over     bool
	Approved string // owner or policy; none when it was not
	Denied   bool
	Paid     bool // the page took it
	Perhaps  bool // nobody knows
	Sum      money.Amount
}

// Records are the rooms that figures come from. Safe for concurrent use.
type Records interface {
	// Handoffs lists up to limit of those after a place, the oldest first. Those
	// from before since need not be read.
	Handoffs(ctx context.Context, after uint64, since time.Time, limit int) ([]Handoff, error)
	// Handoff reads one; NOT_FOUND when it is gone.
	Handoff(ctx context.Context, id string) (Handoff, error)
	// Payments lists up to limit of those whose ids come after one, in order.
	Payments(ctx context.Context, after string, since time.Time, limit int) ([]Payment, error)
	Payment(ctx context.Context, id string) (Payment, error)
	// Last is the highest number that a hand-off ever had in its list.
	Last() uint64
}

// Options are the settings of a room; nil and zero values mean the defaults.
type Options struct {
	Keep time.Duration // how long hand-offs are remembered; 0 means for ever
	// OnEnd hears of every hand-off that ends while this process lives, once.
	OnEnd  func(Handoff)
	Logger *slog.Logger
}

// Room has the figures of one home. It is safe for concurrent use.
type Room struct {
	home    *store.Home
	feed    *event.Feed
	records Records
	opts    Options
	log     *slog.Logger
	began   time.Time
	keep    int // days

	mu      sync.Mutex
	book    book
	open    map[string]Handoff // what runs, as it was last read
	unpaid  map[string]Payment // what is not over
	heard   uint64             // of the feed, as far as payments are concerned
	behind  bool               // there is more to be read
	listing bool               // of payments, whatever the feed says
	dirty   bool               // more than is on the disk
	reports map[int]report     // by days; emptied by every change
}

// New opens the figures of a home. What the file does not say is read later,
// from the records: by Run, and a little by every look.
func New(home *store.Home, feed *event.Feed, records Records, opts *Options) *Room {
	r := &Room{home: home, feed: feed, records: records, began: time.Now(), keep: MostDays, behind: true, listing: true}
	if opts != nil {
		r.opts = *opts
	}
	if r.log = r.opts.Logger; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if days := int(r.opts.Keep / (24 * time.Hour)); r.opts.Keep > 0 {
		r.keep = min(MostDays, max(days, 1))
	}
	r.open, r.unpaid, r.reports = map[string]Handoff{}, map[string]Payment{}, map[int]report{}
	r.book = readBook(home, records.Last())
	for _, id := range r.book.Handoffs.Open {
		r.open[id] = Handoff{ID: id}
	}
	for _, id := range r.book.Payments.Open {
		r.unpaid[id] = Payment{ID: id}
	}
	return r
}

// Run keeps the figures up to date until ctx ends, and on the disk.
func (r *Room) Run(ctx context.Context) {
	saved := time.Now()
	for ctx.Err() == nil {
		cursor := r.feed.Last()
		more, err := r.refresh(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("the figures could not be brought up to date", "error", err)
		}
		if !more && time.Since(saved) >= saveEvery {
			r.save()
			saved = time.Now()
		}
		if more && err == nil {
			pause(ctx, stepPause)
			continue
		}
		waiting, stop := context.WithTimeout(ctx, lookEvery)
		if err := r.feed.Wait(waiting, cursor); err == nil {
			pause(waiting, time.Second) // much comes together, and what is told is shown a moment later
		} else if errors.Is(err, fs.ErrClosed) {
			pause(waiting, lookEvery)
		}
		stop()
	}
	r.save()
}

func pause(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// refresh reads a step of what is new, and what was open.
func (r *Room) refresh(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UTC()
	more, err = r.followHandoffs(ctx, now)
	morePayments, paymentErr := r.followPayments(ctx, now)
	r.behind = more || morePayments || err != nil || paymentErr != nil
	if r.book.forget(now.AddDate(0, 0, 1-r.keep)) {
		r.changed()
	}
	return more || morePayments, errors.Join(err, paymentErr)
}

func (r *Room) changed() {
	r.dirty = true
	clear(r.reports)
}

func (r *Room) followHandoffs(ctx context.Context, now time.Time) (more bool, err error) {
	for id, before := range r.open {
		h, err := r.records.Handoff(ctx, id)
		switch {
		case errors.Is(err, fault.NotFound) && now.Sub(before.Created) < begunFor: // listed, and not written yet
		case errors.Is(err, fault.NotFound):
			delete(r.open, id)
			r.changed()
		case errors.Is(err, fault.Unreadable): // it counts when somebody has mended it
		case err != nil:
			return false, err
		case h != before:
			r.take(h)
		}
	}
	since := r.since(now)
	found, err := r.records.Handoffs(ctx, r.book.Handoffs.Place, since, step)
	if err != nil {
		return false, err
	}
	for _, h := range found {
		r.book.Handoffs.Place = h.Seq
		r.dirty = true
		switch {
		case !h.Gone:
			r.take(h)
		case now.Sub(h.Created) < begunFor:
			r.open[h.ID] = h
		}
	}
	return len(found) == step, nil
}

// take counts a hand-off that is over, once, and remembers one that is not.
func (r *Room) take(h Handoff) {
	r.changed()
	if h.End == "" {
		r.open[h.ID] = h
		return
	}
	delete(r.open, h.ID)
	r.book.count(h)
	if r.opts.OnEnd != nil && !h.Ended.Before(r.began) {
		r.opts.OnEnd(h)
	}
}

func (r *Room) followPayments(ctx context.Context, now time.Time) (more bool, err error) {
	for id, before := range r.unpaid {
		p, err := r.records.Payment(ctx, id)
		switch {
		case errors.Is(err, fault.NotFound):
			delete(r.unpaid, id)
			r.changed()
		case errors.Is(err, fault.Unreadable):
		case err != nil:
			return false, err
		case p != before:
			r.takePayment(p)
		}
	}
	// Their folder is listed only when there is something new in it.
	last := r.feed.Last()
	if !r.asked(last) && !r.listing {
		return false, nil
	}
	r.listing = true // again, if this fails
	at := &r.book.Payments
	found, err := r.records.Payments(ctx, at.Last, r.since(now), step)
	if err != nil {
		return false, err
	}
	for _, p := range found {
		if slices.Contains(at.Recent, p.ID) {
			continue
		}
		at.Recent = append(at.Recent, p.ID)
		r.takePayment(p)
	}
	// Ids sort by when they were made, and are written a moment after: only those
	// that are some time old have none before them that is still to come.
	settled := store.FirstID("apr", now.Add(-begunFor))
	at.Recent = slices.DeleteFunc(at.Recent, func(id string) bool {
		if id < settled || len(found) == step {
			at.Last = max(at.Last, id)
		}
		return id <= at.Last
	})
	r.listing = len(found) == step
	return r.listing, nil
}

// asked reports whether the feed has told of a payment since it was last heard.
func (r *Room) asked(last uint64) bool {
	if last == r.heard {
		return false
	}
	news, resync := r.feed.Since(r.heard, 0)
	r.heard = last
	return resync || slices.ContainsFunc(news, func(e event.Event) bool { return e.Type == "approval.requested" || e.Type == "approval.decided" })
}

func (r *Room) takePayment(p Payment) {
	r.changed()
	if !p.Over {
		r.unpaid[p.ID] = p
		return
	}
	delete(r.unpaid, p.ID)
	r.book.countPayment(p)
}

// since is the beginning of the oldest day that is counted.
func (r *Room) since(now time.Time) time.Time {
	return now.Truncate(24*time.Hour).AddDate(0, 0, 1-r.keep)
}

// save writes what has changed. Losing it costs reading, and no figure.
func (r *Room) save() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty {
		return
	}
	r.book.Handoffs.Open, r.book.Payments.Open = keys(r.open), keys(r.unpaid)
	if err := r.home.WriteJSON(file, r.book); err != nil {
		r.log.Warn("the figures could not be written", "error", err)
		return
	}
	r.dirty = false
}
