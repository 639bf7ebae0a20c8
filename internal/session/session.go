package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/site"
)

// touchEvery is how exact the record is about the last use; recovery asks for a minute.
const touchEvery = 10 * time.Second

// Session is one live browser. It is safe for concurrent use; actions take turns.
type Session struct {
	host     *Host
	provider browser.Provider
	rec      *record
	turn     chan struct{} // holds one token: whose turn it is
	over     chan struct{} // closed when the session ends

	mu      sync.Mutex
	now     view
	shown   chan struct{} // closed when another view takes the place of a lost one, then replaced
	watched bool          // somebody mends its line
	info    Info
	closing bool
	freed   bool   // its browser is gone, and its place free
	why     string // it ends, unless the browser speaks for itself
	touched time.Time
	lease   lease
	left    bool                             // a person gave it back, and the agent has not touched it since
	saveAs  *bool                            // whether its end saves the login; nil leaves it to the start
	cut     context.CancelCauseFunc          // ends what is under way
	deeds   map[*context.CancelFunc]struct{} // what a person does at this moment
	still   chan struct{}                    // closed when nothing of that is left, for the one who waits

	savedUse time.Time // the last use of which the login was saved

	replaced time.Time  // when a lost browser was last made anew; its watcher's alone
	relaying sync.Mutex // held by whoever types for the owner

	ending  sync.Mutex // held by whoever ends it
	ended   bool
	toldEnd bool
	stopped Stopped
}

func newSession(h *Host, p browser.Provider, v view, rec *record) *Session {
	known := h.records.copy(rec)
	return &Session{
		host: h, provider: p, now: v, rec: rec,
		turn: make(chan struct{}, 1), over: make(chan struct{}), shown: make(chan struct{}), touched: known.LastUsedAt, savedUse: known.LastUsedAt,
		info: Info{
			ID: known.ID, Provider: known.Ref.Provider, Generation: known.Generation,
			StartedAt: known.StartedAt, LastUsedAt: known.LastUsedAt, Deadline: known.Deadline,
			Context: known.Context, Restored: known.Restored, PageLost: known.PageLost,
			EndsAt: known.EndsAt, Notes: known.Notes,
		},
	}
}

// ID names the session.
func (s *Session) ID() string { return s.info.ID }

// record is what is on record of the session now.
func (s *Session) record() record { return s.host.records.copy(s.rec) }

// Info is what is known without asking the browser.
func (s *Session) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Navigate opens an address in the tab in front.
func (s *Session) Navigate(ctx context.Context, url, wait string) (page.Navigation, error) {
	if err := egress.CheckURL(url, s.host.rules); err != nil {
		return page.Navigation{}, err
	}
	return move(ctx, s, "session.navigate", func(ctx context.Context, t *page.Tab) (page.Navigation, error) {
		return t.Navigate(ctx, url, page.Wait(wait))
	})
}

// Visit is Navigate, and tells what the page shows if it can be told.
func (s *Session) Visit(ctx context.Context, url, wait string, o page.SnapshotOptions) (page.Navigation, *page.Snapshot, error) {
	if err := egress.CheckURL(url, s.host.rules); err != nil {
		return page.Navigation{}, nil, err
	}
	var shot *page.Snapshot
	nav, err := move(ctx, s, "session.navigate", func(ctx context.Context, t *page.Tab) (nav page.Navigation, err error) {
		nav, shot, err = t.Visit(ctx, url, page.Wait(wait), o)
		return nav, err
	})
	return nav, shot, err
}

// Back goes one page back in the history of the tab in front.
func (s *Session) Back(ctx context.Context) (page.Navigation, error) {
	return move(ctx, s, "session.back", func(ctx context.Context, t *page.Tab) (page.Navigation, error) { return t.Travel(ctx, -1, "") })
}

// Forward goes one page forward.
func (s *Session) Forward(ctx context.Context) (page.Navigation, error) {
	return move(ctx, s, "session.forward", func(ctx context.Context, t *page.Tab) (page.Navigation, error) { return t.Travel(ctx, +1, "") })
}

// Reload loads the page again.
func (s *Session) Reload(ctx context.Context) (page.Navigation, error) {
	return move(ctx, s, "session.reload", func(ctx context.Context, t *page.Tab) (page.Navigation, error) { return t.Reload(ctx, "") })
}

// Screenshot takes a picture of the tab in front.
func (s *Session) Screenshot(ctx context.Context, o page.ShotOptions) (page.Image, error) {
	return act(ctx, s, "session.screenshot", func(ctx context.Context, t *page.Tab) (page.Image, note, error) {
		shot, err := t.Screenshot(ctx, o)
		return shot, note{address: shot.URL}, err
	})
}

// Status tells who drives and what is open. It waits for nobody's turn.
func (s *Session) Status(ctx context.Context) (Status, error) {
	status := Status{Info: s.Info(), Driver: "agent"}
	if status.Handoff = s.heldBy(); status.Handoff != "" {
		status.Driver = "human"
		if driverOf(ctx) != Owner {
			return status, nil
		}
	}
	tabs := s.view().tabs
	if err := tabs.Refresh(ctx); err != nil {
		return Status{}, err
	}
	if driverOf(ctx) != Owner && s.heldBy() != status.Handoff {
		return s.Status(ctx) // it changed hands meanwhile
	}
	for _, t := range tabs.List() {
		url, title := t.Address()
		status.Tabs = append(status.Tabs, Tab{ID: t.ID(), URL: url, Title: title})
		status.URL, status.Title = url, title
		if d := t.Dialog(); d != nil {
			status.Dialogs = append(status.Dialogs, Dialog{TabID: t.ID(), Kind: d.Kind, Message: d.Message})
		}
		for _, q := range t.Pending() {
			if q.Kind != page.AskDialog {
				status.Questions = append(status.Questions, Question{TabID: t.ID(), Question: q})
			}
		}
	}
	if n := len(status.Tabs); n > 0 {
		status.Tabs[n-1].Active = true
	}
	return status, nil
}

func move(ctx context.Context, s *Session, what string, fn func(context.Context, *page.Tab) (page.Navigation, error)) (page.Navigation, error) {
	return act(ctx, s, what, func(ctx context.Context, t *page.Tab) (page.Navigation, note, error) {
		nav, err := fn(ctx, t)
		return nav, note{address: nav.URL}, err
	})
}

// note is what the journal may know of an operation: the address it ended on,
// of which only the origin is kept, and how much there was of something.
type note struct {
	address string
	counts  counts
}

type counts = map[string]int

// act is one operation in the tab in front.
func act[R any](ctx context.Context, s *Session, what string, fn func(context.Context, *page.Tab) (R, note, error)) (R, error) {
	return turn(ctx, s, what, func(ctx context.Context) (R, note, error) {
		tab, err := s.view().tabs.Front(ctx)
		if err != nil {
			var none R
			return none, note{}, err
		}
		return fn(ctx, tab)
	})
}

// turn is one operation: it waits for its turn, and leaves a line in the journal.
func turn[R any](ctx context.Context, s *Session, what string, fn func(context.Context) (R, note, error)) (R, error) {
	var none R
	began, driver := time.Now(), driverOf(ctx)
	if err := s.permit(ctx); err != nil {
		return none, err // at once: a person's action may take long
	}
	if err := s.await(ctx); err != nil {
		return none, err
	}
	defer func() { <-s.turn }()
	if err := s.permit(ctx); err != nil {
		return none, err
	}
	if err := s.use(began); err != nil {
		return none, err
	}
	if driver != Owner {
		s.touchedByAgent()
	}
	under, done := s.begin(ctx)
	defer done()
	result, noted, err := fn(under)
	if err != nil {
		err = s.blame(context.Cause(under), err)
	}
	s.write(what, driver, began, noted, err)
	if err != nil {
		return none, err
	}
	return result, nil
}

// blame says why an operation was cut off, and that its effect is unknown.
func (s *Session) blame(cause, err error) error {
	switch {
	case errors.Is(cause, errLent):
		err = inControl(s.heldBy())
	case errors.Is(cause, errStopped):
		err = s.orStopped(err)
	case !errors.Is(err, fault.BrowserLost):
		return err
	}
	return fault.Of(err).With("effect", page.Unknown)
}

// write leaves a line in the journal; nothing of what a person does.
func (s *Session) write(what string, d Driver, began time.Time, noted note, err error) {
	if d == Owner && s.heldBy() != "" {
		return
	}
	entry := event.Entry{
		At: began, Who: string(d), What: what, Session: s.ID(), Counts: noted.counts, Took: time.Since(began), Outcome: outcome(err),
	}
	if origin, bad := site.Origin(noted.address); bad == nil {
		entry.Origin = origin
	}
	s.host.journal(entry)
}

// await takes the turn. Whoever gets it while the line to the browser is cut
// leaves it to the one who mends the line, and waits for that.
func (s *Session) await(ctx context.Context) error {
	for {
		select {
		case s.turn <- struct{}{}:
		case <-s.over:
			return s.gone()
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
		conn, shown, watched := s.now.inst.Conn(), s.shown, s.watched
		s.mu.Unlock()
		if conn.Err() == nil || !watched {
			return nil
		}
		<-s.turn
		select {
		case <-shown:
		case <-s.over:
			return s.gone()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// use refuses an ending session, and notes that this one is in use.
func (s *Session) use(at time.Time) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return s.gone()
	}
	s.info.LastUsedAt = at.UTC()
	stale := at.Sub(s.touched) >= touchEvery
	if stale {
		s.touched = at
	}
	s.mu.Unlock()
	if !stale {
		return nil
	}
	return fault.Wrap(fault.Internal, "note the session's use", s.host.records.touch(s.rec, at.UTC()))
}

// orStopped says of what failed because the session was ended under it that it
// was: the browser it lost had been taken from it.
func (s *Session) orStopped(err error) error {
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	if err == nil || why == "" || errors.Is(err, fault.InvalidRequest) {
		return err
	}
	return s.gone()
}

func (s *Session) gone() error {
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	if why != "" {
		return fault.New(fault.NoSession, "", "the session %s is over: %s", s.ID(), why)
	}
	if err := s.view().inst.Conn().Err(); err != nil {
		return err
	}
	return fault.New(fault.NoSession, "", "the session %s is over", s.ID())
}

// view is the browser as it is now.
func (s *Session) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// show puts another view of the same browser in the place of a lost one.
func (s *Session) show(next view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = next
	close(s.shown)
	s.shown = make(chan struct{})
}

// shut turns newcomers away; what is under way is told why, if there is a reason.
func (s *Session) shut(why string) {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	if s.why == "" {
		s.why = why
	}
	s.mu.Unlock()
	if !again {
		close(s.over)
	}
}

func (s *Session) setFreed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed = true
}

func (s *Session) isFreed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed
}

// close turns newcomers away and lets go of the tabs; what is under way fails
// with the browser, and is told why if there is a reason.
func (s *Session) close(why string) {
	s.shut(why)
	s.view().tabs.Close()
}

// abandon lets go of a browser that somebody else will end.
func (s *Session) abandon() {
	s.close("")
	_ = s.view().inst.Release()
}

// end runs fn until it has succeeded once; everybody gets its answer.
func (s *Session) end(fn func() (Stopped, error)) (Stopped, error) {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.ended {
		return s.stopped, nil
	}
	stopped, err := fn()
	s.ended, s.stopped = err == nil, stopped
	return stopped, err
}
