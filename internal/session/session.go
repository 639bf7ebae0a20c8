package session

import (
	"context"
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
	info    Info
	closing bool
	touched time.Time

	ending  sync.Mutex // held by whoever ends it
	ended   bool
	stopped Stopped
}

func newSession(h *Host, p browser.Provider, v view, rec *record) *Session {
	return &Session{
		host: h, provider: p, now: v, rec: rec,
		turn: make(chan struct{}, 1), over: make(chan struct{}), touched: rec.LastUsedAt,
		info: Info{
			ID: rec.ID, Provider: rec.Ref.Provider, Generation: rec.Generation,
			StartedAt: rec.StartedAt, LastUsedAt: rec.LastUsedAt, Deadline: rec.Deadline,
		},
	}
}

// ID names the session.
func (s *Session) ID() string { return s.info.ID }

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
	return act(ctx, s, "session.screenshot", func(ctx context.Context, t *page.Tab) (page.Image, string, error) {
		shot, err := t.Screenshot(ctx, o)
		return shot, shot.URL, err
	})
}

// Status tells who drives and what is open. It waits for nobody's turn.
func (s *Session) Status(ctx context.Context) (Status, error) {
	tabs := s.view().tabs
	if err := tabs.Refresh(ctx); err != nil {
		return Status{}, err
	}
	status := Status{Info: s.Info(), Driver: "agent"}
	for _, t := range tabs.List() {
		url, title := t.Address()
		status.Tabs = append(status.Tabs, Tab{ID: t.ID(), URL: url, Title: title})
		status.URL, status.Title = url, title
		if d := t.Dialog(); d != nil {
			status.Dialogs = append(status.Dialogs, Dialog{TabID: t.ID(), Kind: d.Kind, Message: d.Message})
		}
	}
	if n := len(status.Tabs); n > 0 {
		status.Tabs[n-1].Active = true
	}
	return status, nil
}

func move(ctx context.Context, s *Session, what string, fn func(context.Context, *page.Tab) (page.Navigation, error)) (page.Navigation, error) {
	return act(ctx, s, what, func(ctx context.Context, t *page.Tab) (page.Navigation, string, error) {
		nav, err := fn(ctx, t)
		return nav, nav.URL, err
	})
}

// act is one operation: it waits for its turn, runs in the tab in front, and
// leaves a line in the journal. fn returns the address it ended on beside its result.
func act[R any](ctx context.Context, s *Session, what string, fn func(context.Context, *page.Tab) (R, string, error)) (R, error) {
	var none R
	began := time.Now()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.over:
		return none, s.gone()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if err := s.use(began); err != nil {
		return none, err
	}
	tab, err := s.view().tabs.Front(ctx)
	var result R
	var address string
	if err == nil {
		result, address, err = fn(ctx, tab)
	}
	entry := event.Entry{At: began, Who: "agent", What: what, Session: s.ID(), Took: time.Since(began), Outcome: outcome(err)}
	if origin, bad := site.Origin(address); bad == nil {
		entry.Origin = origin
	}
	s.host.journal(entry)
	if err != nil {
		return none, err
	}
	return result, nil
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

func (s *Session) gone() error {
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
}

// close turns newcomers away and lets go of the tabs; what is under way fails
// with the browser.
func (s *Session) close() {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	tabs := s.now.tabs
	s.mu.Unlock()
	if !again {
		close(s.over)
	}
	tabs.Close()
}

// abandon lets go of a browser that somebody else will end.
func (s *Session) abandon() {
	s.close()
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
