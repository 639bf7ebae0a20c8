package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/store"
)

const (
	folder     = "task-runs"
	pageSize   = 50
	maxPage    = 200
	maxLooked  = 1000
	sweepEvery = time.Hour
	sweepPause = time.Second
)

// Options are the settings of a room; nil and zero values mean the defaults.
type Options struct {
	Keep   time.Duration // how long runs are kept; 0 means for ever
	Logger *slog.Logger
}

// Room has the runs. It is safe for concurrent use.
type Room struct {
	opts    Options
	log     *slog.Logger
	archive *event.Archive

	mu      sync.Mutex // one change at a time: they are short
	changed chan struct{}
}

// New opens the room; Recover tells what an earlier process could not.
func New(home *store.Home, pump *event.Pump, opts *Options) (*Room, error) {
	r := &Room{changed: make(chan struct{})}
	if opts != nil {
		r.opts = *opts
	}
	if r.log = r.opts.Logger; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	r.archive, err = event.OpenArchive(home, pump, folder)
	return r, err
}

// Close lets go of the room's files.
func (r *Room) Close() error { return r.archive.Close() }

// Start begins a run.
func (r *Room) Start(ctx context.Context, goal string) (Record, error) {
	goal, err := text("goal", goal, maxGoal)
	if err == nil && goal == "" {
		err = fault.New(fault.InvalidRequest, "", "a run has a goal").With("field", "goal")
	}
	if err != nil {
		return Record{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := wallClock()
	rec := Record{ID: store.NewID("run"), Status: Running, Goal: goal, Evidence: []Evidence{}, CreatedAt: now}
	if err := r.archive.Begin(rec.ID, now); err != nil {
		return Record{}, err
	}
	rec, err = r.write(ctx, rec, happening{kind: starts, at: now})
	if err != nil {
		_ = r.archive.Forget(rec.ID) // or the next start does
	}
	return rec, err
}

// Update notes how far a run came; a run that needed help goes on.
func (r *Room) Update(ctx context.Context, id, note string) (Record, error) {
	note, err := text("note", note, maxNote)
	if err != nil {
		return Record{}, err
	}
	return r.apply(ctx, id, happening{kind: updates, text: note})
}

// NeedsHelp says that a run cannot go on by itself, and why.
func (r *Room) NeedsHelp(ctx context.Context, id, what string) (Record, error) {
	what, err := text("help", what, maxNote)
	if err != nil {
		return Record{}, err
	}
	return r.apply(ctx, id, happening{kind: asks, text: what})
}

// Complete ends a run. Ending it the same way twice gives the first result.
func (r *Room) Complete(ctx context.Context, id string, end Status, summary string) (Record, error) {
	if !slices.Contains(Ends(), end) {
		return Record{}, fault.New(fault.InvalidRequest, "", "a run ends as COMPLETED, FAILED or CANCELLED").With("field", "status")
	}
	summary, err := text("summary", summary, maxSummary)
	if err != nil {
		return Record{}, err
	}
	return r.apply(ctx, id, happening{kind: ends, end: end, text: summary})
}

// Check returns NOT_FOUND for a run that is not there.
func (r *Room) Check(_ context.Context, run string) error {
	_, err := r.Get(run)
	return err
}

// HandoffKind is the kind of evidence that tapin alone adds.
const HandoffKind = "handoff"

// AppendOnce adds a pointer to a run's evidence, unless one of that kind and
// ref is there. A run that is over still takes it: evidence is a fact.
func (r *Room) AppendOnce(ctx context.Context, run, kind, ref, summary string) error {
	given := summary
	summary, err := text("summary", given, 4*maxSummary)
	if err != nil {
		return err
	}
	if kind == HandoffKind {
		summary = given // of typed fields, which the rules would only make illegible
	}
	if kind == "" || len(kind) > maxKind || ref == "" || len(ref) > maxRef {
		return fault.New(fault.InvalidRequest, "add evidence to "+run, "evidence has a kind and a ref of sensible length")
	}
	_, err = r.apply(ctx, run, happening{kind: provides, what: Evidence{Kind: kind, Ref: ref, Summary: summary, At: wallClock()}})
	return err
}

// apply lets something happen to a run.
func (r *Room) apply(ctx context.Context, id string, e happening) (Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.Get(id)
	if err != nil {
		return Record{}, err
	}
	e.at = wallClock()
	return r.write(ctx, rec, e)
}

// write decides, writes and tells. A run is listed as open only while it has
// something to tell: there is nothing else to go on with after a crash.
func (r *Room) write(ctx context.Context, rec Record, e happening) (Record, error) {
	defer guard.Vital("run record")
	decided, changed, err := next(rec, e)
	if err != nil || !changed {
		return rec, err
	}
	data, err := json.Marshal(map[string]any{"run_id": decided.ID, "status": decided.Status, "evidence": len(decided.Evidence)})
	if err != nil {
		return rec, err
	}
	decided.Outbox = append(decided.Outbox, event.Event{
		ID: decided.ID, Version: decided.Version, Type: "task_run." + e.kind, At: e.at, Data: data,
	})
	if e.kind != starts { // then it is listed already
		if err := r.archive.Reopen(decided.ID); err != nil {
			return rec, err
		}
	}
	if err := r.archive.Write(decided.ID, decided); err != nil {
		return rec, err
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return r.tell(context.WithoutCancel(ctx), decided), nil
}

func (r *Room) tell(ctx context.Context, rec Record) Record {
	err := r.archive.Tell(ctx, rec.ID, rec.Outbox)
	if err == nil {
		told := rec
		told.Outbox = nil
		if err = r.archive.Write(rec.ID, told); err == nil {
			rec = told
			err = r.archive.Settle(rec.ID)
		}
	}
	if err != nil {
		r.log.Warn("a run is told at the next start", "run", rec.ID, "error", err)
	}
	return rec
}

// Recover tells what an earlier process wrote and could not tell.
func (r *Room) Recover(ctx context.Context) error {
	ids, err := r.archive.Open()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		var rec Record
		switch err := r.archive.Read(id, &rec, &rec.ID); {
		case errors.Is(err, fs.ErrNotExist):
			if err := r.archive.NeverBegun(id); err != nil {
				r.log.Warn("what is left of a run could not be removed", "run", id, "error", err)
			}
		case err != nil || rec.ID != id:
			r.log.Error("a run cannot be read and is left alone", "run", id, "error", err)
		default:
			r.tell(ctx, rec)
		}
	}
	return nil
}

// Run forgets what is past its time, in small steps, until ctx ends.
func (r *Room) Run(ctx context.Context) {
	if r.opts.Keep <= 0 {
		return
	}
	wait := time.NewTimer(sweepPause)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		more, err := r.expire(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("old runs could not be forgotten", "error", err)
		}
		if more && err == nil {
			wait.Reset(sweepPause)
		} else {
			wait.Reset(sweepEvery)
		}
	}
}

// expire forgets some of the old ones. It lets go of the lock whatever happens.
func (r *Room) expire(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.archive.Expire(ctx, time.Now().Add(-r.opts.Keep), func(id string) bool {
		rec, err := r.Get(id)
		return err == nil && !rec.IsOver() && time.Since(rec.UpdatedAt) < r.opts.Keep
	})
}

// Get reads a run.
func (r *Room) Get(id string) (Record, error) {
	var rec Record
	err := fs.ErrNotExist
	if store.ValidID("run", id) {
		err = r.archive.Read(id, &rec, &rec.ID)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fault.New(fault.NotFound, "", "there is no run %q", id[:min(len(id), 64)]).WithHint("GET /task-runs lists them.")
	}
	return rec, err
}

// Wait reads a run as soon as its version is beyond after, and otherwise when
// the time is up. One that is over is not waited for.
func (r *Room) Wait(ctx context.Context, id string, after int, within time.Duration) (Record, error) {
	timeUp := time.NewTimer(within)
	defer timeUp.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		rec, err := r.Get(id)
		if err != nil || rec.Version > after || rec.IsOver() {
			return rec, err
		}
		select {
		case <-changed:
		case <-timeUp.C:
			return rec, nil
		case <-ctx.Done():
			return rec, ctx.Err()
		}
	}
}

// Page is a part of the list.
type Page struct {
	Runs []Record
	Next string // cursor of what follows; "" at the end
}

// List lists runs, the newest first. A page may hold fewer than asked for and
// still have a next one.
func (r *Room) List(ctx context.Context, status Status, limit int, cursor string) (Page, error) {
	limit = min(limit, maxPage)
	if limit <= 0 {
		limit = pageSize
	}
	var before uint64
	if cursor != "" {
		n, err := strconv.ParseUint(cursor, 10, 64)
		if err != nil || n == 0 {
			return Page{}, fault.New(fault.InvalidRequest, "", "that is no cursor of this list").With("field", "cursor")
		}
		before = n
	}
	out := Page{Runs: []Record{}}
	for looked := 0; looked < maxLooked; {
		entries, err := r.archive.Before(before, limit)
		if err != nil || len(entries) == 0 {
			return out, err
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return Page{}, err
			}
			before = e.Seq
			looked++
			if rec, err := r.Get(e.ID); err == nil && (status == "" || rec.Status == status) {
				out.Runs = append(out.Runs, rec)
			}
			if len(out.Runs) == limit {
				out.Next = cursorAt(before)
				return out, nil
			}
		}
	}
	out.Next = cursorAt(before)
	return out, nil
}

func cursorAt(seq uint64) string {
	if seq <= 1 {
		return ""
	}
	return strconv.FormatUint(seq, 10)
}

func wallClock() time.Time { return time.Now().UTC().Round(0) }
