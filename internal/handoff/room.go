package handoff

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/store"
)

const (
	folder  = "handoffs"
	keyFile = folder + "/fingerprint.key"

	defaultTimeout = 30 * time.Minute
	defaultIdle    = 10 * time.Minute
	defaultLongest = 4 * time.Hour
	shortest       = time.Second
	longestAsked   = time.Hour // for one request, unless the configured time is longer
)

// Options are the settings of a room; nil and zero values mean the defaults.
type Options struct {
	Timeout  time.Duration   // how long a person is waited for; default 30 min
	RemindAt []time.Duration // of idleness; nil means once, after 10 min; empty means never
	Longest  time.Duration   // past which no extension goes; default 4 h
	Keep     time.Duration   // how long what is over is kept; 0 means for ever
	// OnChange hears of every change that doors can see, by the session it is
	// about. It must be quick, and ask nothing back.
	OnChange func(session string)
	Logger   *slog.Logger
}

// Deps is what a room works with. All are required.
type Deps struct {
	Home     *store.Home
	Pump     *event.Pump
	Schedule *event.Schedule
	Journal  *event.Journal
	Stage    Stage
	Evidence Evidence
	Sealer   Sealer
}

// Room has the hand-offs of this sidecar. It is safe for concurrent use.
type Room struct {
	deps    Deps
	opts    Options
	log     *slog.Logger
	archive *event.Archive
	todos   todos
	key     []byte // of fingerprints

	mu        sync.Mutex
	open      map[string]*live  // by id: what is not over, or not settled
	bySession map[string]*live  // who holds it, or held it last and is not settled
	last      map[string]string // by session: its latest hand-off, until the session is forgotten
}

// live is a hand-off in memory.
type live struct {
	id   string
	turn turn // held through a change and its effects
	rec  Record

	// Under the room's lock:
	shown   Record        // what doors see: never ahead of the effects
	running bool          // false from the moment the end is on the disk
	changed chan struct{} // closed when shown changes, then replaced
}

// turn is a lock that may be held for as long as a browser takes: whoever waits
// for it is seen to wait, also by a clock that tests move.
type turn chan struct{}

func newTurn() turn  { return make(turn, 1) }
func (t turn) take() { t <- struct{}{} }
func (t turn) give() { <-t }

// New opens the room and reads the hand-offs that are not over, so that Holder
// answers from the first moment. Recover, once there are sessions again, goes
// on with them.
func New(deps Deps, opts *Options) (*Room, error) {
	r := &Room{deps: deps, todos: todos{deps.Home}, open: map[string]*live{}, bySession: map[string]*live{}, last: map[string]string{}}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Timeout <= 0 {
		r.opts.Timeout = defaultTimeout
	}
	if r.opts.RemindAt == nil {
		r.opts.RemindAt = []time.Duration{defaultIdle}
	}
	r.opts.Longest = max(r.opts.Longest, 0)
	if r.opts.Longest == 0 {
		r.opts.Longest = max(defaultLongest, r.opts.Timeout)
	}
	if r.log = r.opts.Logger; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.key, err = fingerprintKey(deps.Home); err != nil {
		return nil, err
	}
	if r.archive, err = event.OpenArchive(deps.Home, deps.Pump, folder); err != nil {
		return nil, err
	}
	return r, r.load()
}

// Close lets go of the room's files. Timers belong to the schedule, and end
// with it.
func (r *Room) Close() error { return r.archive.Close() }

// load reads what is open. What cannot be read is left as it is, and said.
func (r *Room) load() error {
	ids, err := r.archive.Open()
	if err != nil {
		return err
	}
	for _, id := range ids {
		var rec Record
		switch err := r.archive.Read(id, &rec, &rec.ID); {
		case errors.Is(err, fs.ErrNotExist):
			// Killed before its first write: it never was, but for its photo.
			if err := r.archive.NeverBegun(id); err != nil {
				r.log.Warn("what is left of a hand-off could not be removed", "handoff", id, "error", err)
			}
		case err != nil:
			r.log.Error("a hand-off cannot be read and is left alone", "handoff", id, "error", err)
		default:
			r.admit(&live{id: id, turn: newTurn(), rec: rec.doubted(wallClock())})
		}
	}
	return nil
}

// admit takes a hand-off into memory.
func (r *Room) admit(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.shown, l.running, l.changed = l.rec, !l.rec.IsOver(), make(chan struct{})
	r.open[l.rec.ID] = l
	if l.running || r.bySession[l.rec.SessionID] == nil {
		r.bySession[l.rec.SessionID] = l
	}
	r.showed(l)
}

// fingerprintKey is this installation's, made on first use. It keeps anybody
// from trying out which page has which fingerprint.
func fingerprintKey(home *store.Home) ([]byte, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	err := home.Create(keyFile, key)
	if !errors.Is(err, fs.ErrExist) {
		return key, err
	}
	kept, err := home.Read(keyFile)
	if err == nil && len(kept) < len(key) {
		err = home.Unreadable(keyFile, errors.New("it holds no key"))
	}
	if errors.Is(err, fault.Unreadable) {
		// One of this process alone: until it is mended, a page that was looked at
		// by another process counts as changed.
		return key, nil
	}
	return kept, err
}

// StartOptions are what a hand-off is to be.
type StartOptions struct {
	By          By
	Reason      Reason
	Instruction string
	Task        string
	Timeout     time.Duration // 0 means the configured one
	OnTimeout   string        // "" means close
	Capture     bool          // keep pictures beside the snapshots
	Verify      []page.Condition
	Follows     string
	RunID       string
	SessionID   string // "" means the active one
	TabID       string // "" means the tab in front
	Silent      bool   // tell nobody: the person is there
}

const (
	maxText       = 1 << 10
	maxConditions = 10
	maxCondition  = 512
)

func (o *StartOptions) check(most time.Duration) error {
	refuse := func(field, format string, args ...any) error {
		return fault.New(fault.InvalidRequest, "start a hand-off", format, args...).With("field", field)
	}
	switch {
	case !slices.Contains(Reasons(), o.Reason):
		return refuse("reason", "there is no reason %q", clip(string(o.Reason), 32))
	case len(o.Instruction) > maxText:
		return refuse("instruction", "the instruction is over %d bytes", maxText)
	case len(o.Task) > maxText:
		return refuse("task", "the task is over %d bytes", maxText)
	case o.Timeout != 0 && (o.Timeout < shortest || o.Timeout > most):
		return refuse("timeout_ms", "a hand-off lasts from %s to %s", shortest, most)
	case o.OnTimeout != "" && o.OnTimeout != CloseOnTimeout && o.OnTimeout != ReturnOnTimeout:
		return refuse("on_timeout", "on_timeout is close or return")
	case len(o.Verify) > maxConditions:
		return refuse("verify", "there are at most %d conditions", maxConditions)
	}
	for _, c := range o.Verify {
		set := 0
		for _, field := range []string{c.URL, c.Text, c.Visible, c.Absent} {
			if field != "" {
				set++
			}
			if len(field) > maxCondition {
				return refuse("verify", "a condition is over %d bytes", maxCondition)
			}
		}
		if set != 1 {
			return refuse("verify", "a condition has exactly one of url, text, visible and absent")
		}
	}
	return nil
}

// Start hands a browser over. The gate closes first; the record's first write
// is the moment the hand-off exists; then people are told.
func (r *Room) Start(ctx context.Context, o StartOptions) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, o.By, "handoff.start", rec, err) }()
	if err := o.check(max(longestAsked, r.opts.Timeout)); err != nil {
		return Record{}, err
	}
	attempts, err := r.attempts(o.Follows)
	if err != nil {
		return Record{}, err
	}
	if o.RunID != "" {
		if err := r.deps.Evidence.Check(ctx, o.RunID); err != nil {
			return Record{}, err
		}
	}
	id := store.NewID("hof")
	lent, err := r.deps.Stage.Lend(ctx, o.SessionID, id, LendOptions{
		TabID: o.TabID, Conditions: o.Verify, Photo: o.Capture || !o.Silent,
		Observe: page.ObserveOptions{Key: r.key, Conceal: []string{o.Instruction, o.Task}},
	})
	if err != nil {
		return Record{}, err
	}
	// From here on the gate is closed, and whoever asked may hang up.
	ctx = context.WithoutCancel(ctx)
	rec, err = r.begin(ctx, id, o, lent, attempts)
	if err != nil {
		giveBack, stop := context.WithTimeout(ctx, effectWithin)
		defer stop()
		if err := r.deps.Stage.Return(giveBack, lent.SessionID, id, false); err != nil {
			r.log.Warn("the gate could not be opened again", "session", lent.SessionID, "error", err)
		}
	}
	return rec, err
}

func (r *Room) begin(ctx context.Context, id string, o StartOptions, lent Lent, attempts int) (Record, error) {
	if active, ok := r.holding(lent.SessionID); ok {
		return Record{}, fault.New(fault.HandoffActive, "start a hand-off", "%s is running", active).With("handoff_id", active)
	}
	if len(o.Verify) > 0 && allHeld(o.Verify, lent.Holds) {
		return Record{}, fault.New(fault.InvalidRequest, "start a hand-off", "what verify asks for is so already").With("field", "verify").
			WithHint("Look at the page again: the blocker may be gone. Else name something that only its end makes true.")
	}
	l := &live{id: id, turn: newTurn(), rec: r.draft(id, o, lent, attempts)}
	l.turn.take()
	defer l.turn.give()
	if err := r.archive.Begin(id, l.rec.CreatedAt); err != nil {
		return Record{}, err
	}
	r.keepPictures(&l.rec, o, lent.Photo)
	rec, effects, err := next(l.rec, started{})
	if err == nil {
		rec = prepare(rec, effects)
		err = r.archive.Write(id, rec)
	}
	if err != nil {
		_ = r.archive.Forget(id) // or the next start does
		return Record{}, err
	}
	l.rec = rec
	r.admit(l)
	r.settle(ctx, l)
	return l.rec, nil
}

// draft is the record of a hand-off that is about to be.
func (r *Room) draft(id string, o StartOptions, lent Lent, attempts int) Record {
	now := wallClock()
	timeout := o.Timeout
	if timeout == 0 {
		timeout = r.opts.Timeout
	}
	latest := now.Add(max(r.opts.Longest, timeout))
	if end := lent.Until.Add(-endBefore); !lent.Until.IsZero() && end.Before(latest) {
		// The browser ends, whatever the person still has to do: better that they
		// know their time, and that there is some left to save what they did.
		latest = later(end, now.Add(shortestAsked))
		timeout = min(timeout, latest.Sub(now))
	}
	onTimeout := o.OnTimeout
	if onTimeout == "" {
		onTimeout = CloseOnTimeout
	}
	texts := concealed([]string{o.Instruction, o.Task}, lent.Seen.Concealed)
	return Record{
		ID: id, Version: 0, Status: Running, Reason: o.Reason, Instruction: texts[0], Task: texts[1],
		SessionID: lent.SessionID, Generation: lent.Generation, TabID: lent.TabID, RunID: o.RunID, Follows: o.Follows,
		StartedBy: o.By, OnTimeout: onTimeout, Notify: !o.Silent,
		CreatedAt: now, Deadline: now.Add(timeout), Before: snapshot(lent.Seen, now), Attempts: attempts,
		Book: bookkeeper{
			Verify: o.Verify, Capture: o.Capture, Timeout: timeout, Latest: latest,
			RemindAt: reminders(r.opts.RemindAt, timeout), IdleSince: now,
		},
	}
}

// attempts counts on from the hand-off that this one follows.
func (r *Room) attempts(follows string) (int, error) {
	if follows == "" {
		return 1, nil
	}
	before, err := r.Get(follows)
	if err != nil {
		return 0, err
	}
	if !before.IsOver() {
		return 0, fault.New(fault.HandoffActive, "start a hand-off", "%s, which it is to follow, is still running", follows).With("handoff_id", follows)
	}
	return before.Attempts + 1, nil
}

func wallClock() time.Time { return time.Now().UTC().Round(0) }
