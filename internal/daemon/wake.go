package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	wakeFolder     = "wakes/open"
	wakeCursorFile = "wakes/cursor.json"
	ownerTokenFile = "owner.token"

	wakeFor      = 24 * time.Hour   // how long one wake is tried
	wakeFirst    = 2 * time.Second  // the first pause; each further one is twice as long
	wakeLongest  = 10 * time.Minute // the longest, but for what the other side asks for
	wakeAsked    = time.Hour        // the longest that it may ask for: a slip of theirs must not use up the day
	wakesAtOnce  = 8
	cursorStride = 100             // events that concern nobody may be read again, this many
	followPause  = 5 * time.Second // before following a feed that refused
)

// wake is an agent that has to be woken. It is on the disk from before the
// feed's cursor passes its event until it was delivered or given up, and so
// after any kill it is delivered again, under the same id.
type wake struct {
	ID   string    `json:"id"` // the same for every try
	Type string    `json:"type"`
	At   time.Time `json:"at"` // of the event
	event.HandoffEnded

	Tries   int       `json:"tries"`
	FirstAt time.Time `json:"first_at"`
	NextAt  time.Time `json:"next_at"`
}

// caller wakes an agent once. An error means that it may not have been woken;
// again is how long the other side wants to be left alone.
type caller interface {
	call(ctx context.Context, w wake) (again time.Duration, err error)
}

// errFinal marks a failure that trying again would not mend.
var errFinal = errors.New("not tried again")

// waker carries the ends of hand-offs to agents that do not run. It is safe
// for concurrent use.
type waker struct {
	home  *store.Home
	log   *slog.Logger
	leave func(kind, id string, data any) error
	via   caller // nil means that nobody is to be woken

	nudge chan struct{} // holds one token when there may be something to do

	mu    sync.Mutex
	busy  map[string]bool      // ids under way
	rests map[string]time.Time // until when an id is left alone, whatever the disk says
}

func newWaker(home *store.Home, how config.OnResume, log *slog.Logger, leave func(kind, id string, data any) error) (*waker, error) {
	w := &waker{home: home, log: log, leave: leave, nudge: make(chan struct{}, 1), busy: map[string]bool{}, rests: map[string]time.Time{}}
	switch {
	case len(how.Command) > 0:
		w.via = &command{argv: how.Command, home: home.Path(), limit: commandFor}
	case !how.Webhook.IsEmpty():
		key, err := webhookKey(home)
		if errors.Is(err, fault.Unreadable) {
			w.via = unkeyed{home, how.Webhook}
			return w, nil
		}
		if err != nil {
			return nil, err
		}
		w.via = newWebhook(how.Webhook, key)
	}
	return w, nil
}

// follow reads the feed of the sidecar at control until ctx ends. It follows
// also when nobody is to be woken: whoever asks for it later is not woken for
// what is long over.
func (w *waker) follow(ctx context.Context, control string) {
	for ctx.Err() == nil {
		if err := w.read(ctx, control); err != nil && ctx.Err() == nil {
			w.log.Warn("the feed cannot be followed now", "error", err)
		}
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
		}
	}
}

type cursor struct {
	Seq uint64 `json:"seq"`
}

func (w *waker) read(ctx context.Context, control string) error {
	token, err := w.home.Read(ownerTokenFile)
	if err != nil {
		return err
	}
	client, err := api.NewClient("http://"+control, secret.New(strings.TrimSpace(string(token))), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	at, _ := store.Derived[cursor](w.home, wakeCursorFile, nil) // else from the oldest event on
	saved := at.Seq
	for e, err := range client.Events(ctx, at.Seq) {
		if gap, ok := errors.AsType[*api.ResyncError](err); ok {
			if err := w.missed(saved, gap); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		ends := event.EndsHandoff(e.Type)
		if ends {
			if err := w.note(e); err != nil {
				return err // and the cursor stays before it
			}
		}
		if ends || e.Seq >= saved+cursorStride {
			if err := w.home.WriteJSON(wakeCursorFile, cursor{e.Seq}); err != nil {
				return err
			}
			saved = e.Seq
			w.prod()
		}
	}
	return ctx.Err()
}

// note puts a wake on the disk. One that is there already has been tried.
func (w *waker) note(e event.Event) error {
	if w.via == nil {
		return nil
	}
	now := time.Now().UTC()
	k := wake{ID: fmt.Sprintf("%s-%d", e.ID, e.Version), Type: e.Type, At: e.At, FirstAt: now, NextAt: now}
	err := json.Unmarshal(e.Data, &k.HandoffEnded)
	// What the event is about is in its name too, should its data say less.
	k.HandoffID = cmp.Or(k.HandoffID, e.ID)
	k.Status = cmp.Or(k.Status, strings.ToUpper(strings.TrimPrefix(e.Type, "handoff.")))
	if err != nil && len(e.Data) > 0 || strings.ContainsAny(k.ID, `/\`) || k.ID[0] == '.' {
		w.log.Error("the end of a hand-off cannot be read, and nobody is woken for it", "seq", e.Seq)
		return nil
	}
	if k.ByAgent() {
		return nil // it is awake
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := w.home.Create(wakeFile(k.ID), append(raw, '\n')); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func wakeFile(id string) string { return path.Join(wakeFolder, id+".json") }

// missed tells that the feed has forgotten events that were never read.
func (w *waker) missed(seen uint64, gap *api.ResyncError) error {
	if w.via == nil || seen == 0 && gap.Oldest <= 1 {
		return nil
	}
	w.log.Error("events were lost before they were read; hand-offs among them woke nobody", "after", seen, "before", gap.Oldest)
	return w.leave(event.WakeMissed, fmt.Sprintf("wak_missed-%d-%d", seen, gap.Oldest), event.Trouble{
		Details: "The feed has forgotten events that were never read; agents may wait for hand-offs that are over.",
		Hint:    "GET /handoffs lists them.",
	})
}

// run delivers until ctx ends, and then waits for what is under way.
func (w *waker) run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	for {
		due, next := w.due(time.Now())
		for _, k := range due {
			under.Go(func() {
				defer guard.Catch(guard.Wakes)
				defer w.prod()
				defer func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					delete(w.busy, k.ID)
				}()
				w.tryWhole(ctx, k)
			})
		}
		timer := time.NewTimer(next)
		select {
		case <-w.nudge:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (w *waker) prod() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// due takes the wakes whose time has come, as many as may run, and tells how
// long it is until the next one's.
func (w *waker) due(now time.Time) (due []wake, next time.Duration) {
	next = time.Hour
	if w.via == nil {
		return nil, next
	}
	names, err := w.home.List(wakeFolder)
	if err != nil {
		w.log.Error("the agents to wake cannot be listed", "error", err)
		return nil, wakeFirst
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.rests, func(_ string, until time.Time) bool { return !until.After(now) })
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || w.busy[id] || len(w.busy) >= wakesAtOnce {
			continue
		}
		if until, rests := w.rests[id]; rests {
			next = min(next, until.Sub(now))
			continue
		}
		var k wake
		if err := w.home.ReadRecord(wakeFile(id), &k, store.Of(&k.ID, id)); err != nil {
			continue // it is left alone, and the home tells of it
		}
		if wait := k.NextAt.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		w.busy[id] = true
		// Neither a panic nor a disk that is full has it tried without a pause.
		w.rests[id] = now.Add(backoff(k.Tries + 1))
		due = append(due, k)
	}
	return due, next
}

// tryWhole tries, and takes a panic for a failure like any other.
func (w *waker) tryWhole(ctx context.Context, k wake) {
	defer guard.Catch(guard.Wakes, func() { w.failed(k, 0, errPanicked) })
	w.try(ctx, k)
}

var errPanicked = errors.New("it failed inside tapin; tapin logs --crash shows where")

// try wakes once, and notes what came of it.
func (w *waker) try(ctx context.Context, k wake) {
	again, err := w.via.call(ctx, k)
	if err == nil {
		w.log.Info("woke the agent", "id", k.ID, "status", k.Status, "tries", k.Tries+1)
		w.drop(k)
		return
	}
	if ctx.Err() != nil {
		return // it stays for the next daemon
	}
	w.failed(k, again, err)
}

// failed has a wake tried again later, or gives it up.
func (w *waker) failed(k wake, again time.Duration, err error) {
	k.Tries++
	k.NextAt = time.Now().UTC().Add(max(min(again, wakeAsked), backoff(k.Tries)))
	if errors.Is(err, errFinal) || k.NextAt.After(k.FirstAt.Add(wakeFor)) {
		w.giveUp(k, err)
		return
	}
	w.log.Warn("the agent was not woken", "id", k.ID, "tries", k.Tries, "error", err, "again_at", k.NextAt)
	if err := w.home.WriteJSON(wakeFile(k.ID), k); err != nil {
		w.log.Error("a try could not be noted; it will be made again", "id", k.ID, "error", err)
	}
}

// giveUp tells first and forgets second.
func (w *waker) giveUp(k wake, cause error) {
	w.log.Error("gave up waking the agent", "id", k.ID, "tries", k.Tries, "error", cause)
	err := w.leave(event.WakeFailed, k.ID, event.Trouble{
		Details: fmt.Sprintf("The agent was not woken after hand-off %s: %s.", k.HandoffID, fault.Of(cause).Details()),
		Hint:    "Start the agent by hand; check on_resume in config.yaml.", Count: k.Tries, HandoffID: k.HandoffID, WakeID: k.ID,
	})
	if err != nil {
		w.log.Error("the owner could not be left a word about it", "error", err)
		return // it is tried, and given up, again
	}
	w.drop(k)
}

func (w *waker) drop(k wake) {
	if err := w.home.Remove(wakeFile(k.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.log.Error("a wake that is over could not be removed", "id", k.ID, "error", err)
	}
}

// backoff is the pause after so many tries: 2 s, 4 s, 8 s, and so on.
func backoff(tries int) time.Duration {
	if tries > 10 {
		return wakeLongest
	}
	return min(wakeFirst<<(tries-1), wakeLongest)
}
