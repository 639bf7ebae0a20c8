package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/trouble"
)

// News is what is told of a room.
type News string

// The news.
const (
	Failed  News = "failed"
	GivenUp News = "given_up"
	Back    News = "back"
)

// Options are what a house runs with; nil and zero values mean the defaults.
type Options struct {
	Board   *trouble.Board
	LeftOut *LeftOut                                      // nil: nothing is
	Tell    func(n News, t trouble.Trouble, failures int) // nil: nobody is told
	Logger  *slog.Logger

	Pauses []time.Duration // before each start after a failure; the last one for ever
	Most   int             // failures within Window, and then it is given up
	Window time.Duration
	Steady time.Duration // running for so long after a failure, a room is back
	// Planted is for tests: a room whose channel closes fails then.
	Planted func(room string) <-chan struct{}
}

// House runs the background rooms of one process. A room that fails is started
// again after a pause, anew; one that fails too often is given up alone.
type House struct {
	opts Options
	log  *slog.Logger

	mu    sync.Mutex
	rooms map[string]*room
	fell  map[string]int // how many that Again runs fail now, by name
}

type room struct {
	failures []time.Time
	state    trouble.State           // "" while it works
	fail     context.CancelCauseFunc // of what runs now
}

var errFailed = errors.New("it failed in a call")

// NewHouse makes a house without rooms.
func NewHouse(o *Options) *House {
	h := &House{rooms: map[string]*room{}, fell: map[string]int{}}
	if o != nil {
		h.opts = *o
	}
	if h.opts.Board == nil {
		h.opts.Board = &trouble.Board{}
	}
	if h.log = h.opts.Logger; h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.opts.Pauses == nil {
		h.opts.Pauses = []time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second}
	}
	if h.opts.Most <= 0 {
		h.opts.Most = 5
	}
	if h.opts.Window <= 0 {
		h.opts.Window = 15 * time.Minute
	}
	if h.opts.Steady <= 0 {
		h.opts.Steady = 5 * time.Second
	}
	return h
}

// Room runs a room until ctx ends or run returns by itself. After a panic run is
// called again, and has to begin with nothing that the one before left half done.
func (h *House) Room(ctx context.Context, name string, run func(context.Context)) {
	r := h.room(name)
	if !h.awaitTurn(ctx, name, r) {
		return
	}
	h.enter(name, r)
	for ctx.Err() == nil {
		running, fail := context.WithCancelCause(ctx)
		h.mu.Lock()
		r.fail = fail
		again := r.state == trouble.Restarting
		h.mu.Unlock()
		var steady *time.Timer
		if again {
			steady = time.AfterFunc(h.opts.Steady, func() { defer Catch("rooms"); h.back(running, name, r) })
		}
		failed := h.once(running, name, run)
		if steady != nil {
			steady.Stop()
		}
		failed = failed || errors.Is(context.Cause(running), errFailed)
		fail(nil)
		if ctx.Err() != nil {
			return
		}
		if !failed {
			h.back(context.Background(), name, r)
			return
		}
		pause, goOn := h.failed(name, r)
		if !goOn {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// enter takes down what was said of a room that was given up and is begun anew.
// Its failures still count: one more within the window is enough.
func (h *House) enter(name string, r *room) {
	h.mu.Lock()
	was, n := r.state, len(r.failures)
	if was == trouble.GivenUp {
		r.state = ""
	}
	h.mu.Unlock()
	if was != trouble.GivenUp {
		return // one that failed is back once it has run for a while
	}
	h.opts.Board.Clear(key(name))
	h.log.Info("a background room that was given up is begun anew", "room", name)
	h.tell(Back, trouble.Trouble{What: name, Details: "It is begun anew."}, n)
}

// partFell shows that one of many of a kind fails and is started again.
func (h *House) partFell(name string) {
	t := trouble.Trouble{
		What: name, State: trouble.Restarting, Hint: "tapin logs --crash shows what happened.",
		Details: "A part of it failed, for one page or one viewer, and is started again.",
	}
	h.mu.Lock()
	h.fell[name]++
	first := h.fell[name] == 1
	if first { // under the lock, so that the end of another does not come in between
		h.opts.Board.Set(partKey(name), t)
	}
	h.mu.Unlock()
	if first {
		h.log.Warn("a part of a room failed", "room", name)
		h.tell(Failed, t, 1)
	}
}

// partWell takes it down with the last of them.
func (h *House) partWell(name string) {
	h.mu.Lock()
	h.fell[name]--
	last := h.fell[name] == 0
	if last {
		h.opts.Board.Clear(partKey(name))
	}
	h.mu.Unlock()
	if last {
		h.tell(Back, trouble.Trouble{What: name, Details: "It works again."}, 1)
	}
}

func partKey(name string) string { return "part of " + name }

// once runs a room and reports whether it panicked.
func (h *House) once(ctx context.Context, name string, run func(context.Context)) (failed bool) {
	failed = true
	defer Catch(name)
	if h.opts.Planted != nil {
		planting, cancel := context.WithCancel(ctx)
		defer cancel()
		struck := make(chan struct{})
		release := context.AfterFunc(planting, func() { close(struck) })
		defer release()
		at := h.opts.Planted(name)
		var hit bool
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-at:
				hit = true
				cancel()
			case <-struck:
			}
		}()
		run(planting)
		cancel()
		<-watched
		if hit {
			panic(planted{})
		}
		return false
	}
	run(ctx)
	return false
}

// Ask calls into a room. Where it is off, or panics, the answer is a fault; after
// a panic the room is started again.
func (h *House) Ask(name string, do func() error) (err error) {
	if err := h.Off(name); err != nil {
		return err
	}
	failed := true
	defer func() {
		if !failed {
			return
		}
		h.mu.Lock()
		fail := h.roomLocked(name).fail
		h.mu.Unlock()
		if fail != nil {
			fail(errFailed)
		}
		err = fault.New(fault.Busy, "", "the %s failed and are started again", name).WithHint("Try again in a moment. tapin logs --crash shows what happened.")
	}()
	defer Catch(name)
	err = do()
	failed = false
	return err
}

// Off says why a room does not serve, or nil.
func (h *House) Off(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.roomLocked(name).state {
	case trouble.Restarting:
		if h.roomLocked(name).fail == nil {
			return fault.New(fault.Busy, "", "%s failed and is started again", name).WithHint("Try again in a moment. tapin logs --crash shows what happened.")
		}
	case trouble.GivenUp:
		return fault.New(fault.Disabled, "", "%s failed too often and is off", name).WithHint("%s", offHint)
	case trouble.LeftOut:
		return fault.New(fault.Disabled, "", "%s took tapin down before and is left out", name).WithHint("%s", leftOutHint)
	}
	return nil
}

const (
	offHint     = "tapin logs --crash shows what happened. tapin down and tapin up start it again."
	leftOutHint = "tapin logs --crash shows what happened. tapin doctor --fix has the next start try it again."
)

// Names are the rooms that were begun.
func (h *House) Names() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.rooms {
		names = append(names, name)
	}
	return names
}

func (h *House) room(name string) *room {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.roomLocked(name)
}

func (h *House) roomLocked(name string) *room {
	if h.rooms[name] == nil {
		h.rooms[name] = &room{}
	}
	return h.rooms[name]
}

// awaitTurn holds back a room that this start leaves out, until it may be tried
// again. It reports whether there still is a use for it.
func (h *House) awaitTurn(ctx context.Context, name string, r *room) bool {
	until, out := h.LeavesOut(name)
	if !out {
		return ctx.Err() == nil
	}
	h.set(r, trouble.LeftOut)
	h.opts.Board.Set(key(name), trouble.Trouble{
		What: name, State: trouble.LeftOut, Hint: leftOutHint,
		Details: fmt.Sprintf("It took tapin down again and again. It is tried again after %s.", until.UTC().Format("2006-01-02 15:04 MST")),
	})
	for wait := time.Until(until); wait > 0; wait = time.Until(until) {
		select {
		case <-time.After(min(wait, time.Minute)): // a timer stands still while the machine sleeps
		case <-ctx.Done():
			return false
		}
	}
	h.opts.LeftOut.Try(name)
	h.set(r, "")
	h.opts.Board.Clear(key(name))
	return ctx.Err() == nil
}

// LeavesOut reports whether this start leaves a room out, and until when.
func (h *House) LeavesOut(name string) (until time.Time, out bool) {
	if h.opts.LeftOut == nil {
		return time.Time{}, false
	}
	return h.opts.LeftOut.Until(name)
}

// Without puts up that a room is left out which no goroutine of its own runs,
// and reports whether it is.
func (h *House) Without(name string) bool {
	until, out := h.LeavesOut(name)
	if !out {
		return false
	}
	if !time.Now().Before(until) {
		h.opts.LeftOut.Try(name)
		return false
	}
	h.set(h.room(name), trouble.LeftOut)
	h.opts.Board.Set(key(name), trouble.Trouble{
		What: name, State: trouble.LeftOut, Hint: leftOutHint,
		Details: fmt.Sprintf("It took tapin down again and again. The first start after %s tries it again.", until.UTC().Format("2006-01-02 15:04 MST")),
	})
	return true
}

func (h *House) set(r *room, s trouble.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.state = s
}

func key(name string) string { return "room " + name }

// failed notes a failure and says after which pause to go on, if at all.
func (h *House) failed(name string, r *room) (pause time.Duration, goOn bool) {
	now := time.Now()
	h.mu.Lock()
	r.fail = nil
	recent := r.failures[:0]
	for _, at := range r.failures {
		if now.Sub(at) <= h.opts.Window {
			recent = append(recent, at)
		}
	}
	r.failures = append(recent, now)
	n := len(r.failures)
	t := trouble.Trouble{What: name, State: trouble.Restarting, Details: fmt.Sprintf("It failed %s and is started again.", times(n)), Hint: "tapin logs --crash shows what happened."}
	news := Failed
	if goOn = n < h.opts.Most; goOn {
		pause = h.opts.Pauses[min(n-1, len(h.opts.Pauses)-1)]
	} else {
		t = trouble.Trouble{What: name, State: trouble.GivenUp, Details: fmt.Sprintf("It failed %s within %v and was given up. Everything else goes on.", times(n), h.opts.Window), Hint: offHint}
		news = GivenUp
	}
	r.state = t.State
	h.mu.Unlock()
	h.log.Warn("a background room failed", "room", name, "state", t.State, "failures", n, "restart_in", pause)
	h.opts.Board.Set(key(name), t)
	h.tell(news, t, n)
	return pause, goOn
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// back takes down that a room failed, if it is still the one that was started.
func (h *House) back(running context.Context, name string, r *room) {
	h.mu.Lock()
	was := r.state
	if running.Err() != nil || was != trouble.Restarting {
		h.mu.Unlock()
		return
	}
	r.state = ""
	n := len(r.failures)
	h.mu.Unlock()
	h.opts.Board.Clear(key(name))
	h.log.Info("a background room works again", "room", name)
	h.tell(Back, trouble.Trouble{What: name, Details: "It works again."}, n)
}

// tell hands on news, which must not be what takes a room down.
func (h *House) tell(n News, t trouble.Trouble, failures int) {
	if h.opts.Tell == nil {
		return
	}
	defer Catch("rooms")
	h.opts.Tell(n, t, failures)
}
