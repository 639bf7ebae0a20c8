package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/store"
)

var errKilled = errors.New("killed")

// theatre stands in for the sessions: one browser, as strict about who holds it
// as the real ones. It outlives rooms, as browsers outlive sidecars.
type theatre struct {
	mu         sync.Mutex
	session    string // "" when it is closed
	lease      string
	generation int
	isParked   bool
	keepUntil  time.Time
	human      time.Time
	watching   bool
	fitted     bool // laid out for a person's screen
	plain      int  // how often the agent's layout was asked for
	seen       page.Observation
	visible    map[string]bool
	stuck      error // what Observe and Holds say
	typed      map[string]int
	closed     int
	lost       bool
	lends      int
	stale      int  // how often the saved login was found not to do
	idle       bool // the agent has not used it for long: after a restart nobody picks it up
	// step is asked before each call that changes something, and after it.
	step func(what string) error
	// pause is how long it takes to say which browser there is.
	pause func()
}

const aSession = "ses_1"

func newTheatre() *theatre {
	return &theatre{
		session: aSession, generation: 1, typed: map[string]int{}, visible: map[string]bool{"#login": true}, step: func(string) error { return nil }, pause: func() {},
		seen: page.Observation{
			URL: "https://bank.example/login?code=secret#otp", Origin: "https://bank.example", Title: "Sign in", Cookies: 1,
			LocalKeys: []string{"theme"}, Fingerprint: "f1",
		},
	}
}

// loggedIn is what the person does.
func (s *theatre) loggedIn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = true
	s.seen = page.Observation{
		URL: "https://bank.example/home", Origin: "https://bank.example", Title: "Accounts", Cookies: 3,
		LocalKeys: []string{"theme", "token"}, Fingerprint: "f2",
	}
	s.visible = map[string]bool{"#balance": true}
}

// lose is the end of a session by itself.
func (s *theatre) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.lease, s.lost = "", "", true
}

// replaced is another browser in the place of a lost one.
func (s *theatre) replaced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
}

func (s *theatre) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.human = time.Now()
}

func (s *theatre) watch(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = on
}

// restart is what a new sidecar finds: gates are derived from running hand-offs.
func (s *theatre) restart(claims func(string) (string, time.Time, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease, s.human, s.watching = "", time.Time{}, false
	if id, _, ok := claims(aSession); ok && s.session != "" {
		s.lease = id
	} else if s.isParked || s.idle {
		s.session = "" // nobody waits for it
	}
}

func (s *theatre) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}

func (s *theatre) there(session string) error {
	if session != s.session || s.session == "" {
		return fault.New(fault.NoSession, "", "no session %q is active", session)
	}
	return nil
}

func (s *theatre) held(session, handoff string) error {
	if err := s.there(session); err != nil {
		return err
	}
	if s.lease != handoff {
		return fault.New(fault.HandoffNotRunning, "", "that hand-off does not hold this browser")
	}
	return s.stuck
}

// change runs fn between two moments at which the process may be killed.
func (s *theatre) change(what string, fn func() error) error {
	if err := s.step("before " + what); err != nil {
		return err
	}
	s.mu.Lock()
	err := fn()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.step("after " + what)
}

func (s *theatre) Lend(_ context.Context, session, handoff string, o LendOptions) (lent Lent, err error) {
	err = s.change("lend", func() error {
		if session == "" {
			session = s.session
		}
		if err := s.there(session); err != nil {
			return err
		}
		if s.lease != "" && s.lease != handoff {
			return fault.New(fault.HandoffActive, "", "this browser is already handed over").With("handoff_id", s.lease)
		}
		s.lease = handoff
		s.lends++
		lent = Lent{SessionID: session, Generation: s.generation, TabID: "tab_1", Seen: s.seen, Holds: s.conditions(o.Conditions)}
		lent.Seen.Concealed = o.Observe.Conceal
		if o.Photo {
			lent.Photo = &page.Image{Format: page.PNG, Base64: "aGVsbG8="}
		}
		return nil
	})
	return lent, err
}

func (s *theatre) conditions(all []page.Condition) []bool {
	var out []bool
	for _, c := range all {
		switch {
		case c.URL != "":
			out = append(out, strings.Contains(s.seen.URL, c.URL))
		case c.Text != "":
			out = append(out, s.seen.Title == c.Text)
		case c.Visible != "":
			out = append(out, s.visible[c.Visible])
		default:
			out = append(out, !s.visible[c.Absent])
		}
	}
	return out
}

func (s *theatre) Return(_ context.Context, session, handoff string, _ bool) error {
	return s.change("return", func() error {
		if s.lease == handoff {
			s.lease, s.idle = "", false
		}
		return s.there(session)
	})
}

func (s *theatre) Observe(_ context.Context, session, handoff string, o page.ObserveOptions) (page.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen, s.held(session, handoff)
}

func (s *theatre) Plain(_ context.Context, session, handoff string) (func(), bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plain++
	return func() {}, s.fitted, s.held(session, handoff)
}

func (s *theatre) Fitted(string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fitted
}

func (s *theatre) Holds(_ context.Context, session, handoff string, c []page.Condition) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conditions(c), s.held(session, handoff)
}

func (s *theatre) Stale(_ context.Context, session string) error {
	return s.change("stale", func() error {
		if err := s.there(session); err != nil {
			return err
		}
		s.stale++
		return nil
	})
}

func (s *theatre) Generation(session string) (int, error) {
	s.pause()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation, s.there(session)
}

func (s *theatre) KeepUntil(_ context.Context, session string, t time.Time) error {
	return s.change("keep", func() error {
		s.keepUntil = later(s.keepUntil, t)
		return s.there(session)
	})
}

func (s *theatre) Screenshot(_ context.Context, session, handoff string) (page.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return page.Image{Format: page.PNG, Base64: "bmV3"}, s.held(session, handoff)
}

func (s *theatre) Type(_ context.Context, session, handoff string, text secret.Text, key string) (page.Typed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.held(session, handoff); err != nil {
		return page.Typed{}, err
	}
	if s.typed[key] == 0 {
		s.typed[key] = len(text.Reveal())
	}
	return page.Typed{Characters: s.typed[key], Field: "password", Origin: s.seen.Origin}, nil
}

func (s *theatre) Close(_ context.Context, session, reason string) (bool, error) {
	err := s.change("close", func() error {
		if err := s.there(session); err != nil {
			return err
		}
		s.session, s.lease = "", ""
		s.closed++
		return nil
	})
	return err == nil, err
}

func (s *theatre) Park(_ context.Context, session, handoff string) error {
	return s.change("park", func() error {
		if err := s.held(session, handoff); err != nil {
			return err
		}
		s.isParked = true
		return nil
	})
}

func (s *theatre) Unpark(_ context.Context, session, handoff string) (generation int, err error) {
	err = s.change("unpark", func() error {
		if err := s.held(session, handoff); err != nil {
			return err
		}
		if s.isParked {
			s.isParked = false
			s.generation++
		}
		generation = s.generation
		return nil
	})
	return generation, err
}

func (s *theatre) Presence(string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.human, s.watching
}

// runs stands in for the task runs.
type runs struct {
	mu     sync.Mutex
	listed []string
	step   func(what string) error
}

func (e *runs) Check(_ context.Context, run string) error {
	if run != "run_1" {
		return fault.New(fault.NotFound, "", "there is no run %q", run)
	}
	return nil
}

func (e *runs) AppendOnce(_ context.Context, run, kind, ref, summary string) error {
	e.mu.Lock()
	step := e.step
	e.mu.Unlock()
	if step != nil {
		if err := step("before evidence"); err != nil {
			return err
		}
	}
	e.mu.Lock()
	key := fmt.Sprint(run, " ", kind, " ", ref)
	if !slices.Contains(e.listed, key) {
		e.listed = append(e.listed, key)
	}
	e.mu.Unlock()
	if step != nil {
		return step("after evidence")
	}
	return nil
}

func (e *runs) let(step func(string) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step = step
}

// envelope seals by turning bytes round; what matters here is that nothing
// lies open.
type envelope struct{}

func (envelope) Seal(name, origin string, plain []byte) ([]byte, error) {
	out := slices.Clone(plain)
	slices.Reverse(out)
	return append([]byte(name+"\n"+origin+"\n"), out...), nil
}

func (envelope) Open(name, origin string, sealed []byte) ([]byte, error) {
	rest, ok := strings.CutPrefix(string(sealed), name+"\n"+origin+"\n")
	if !ok {
		return nil, fault.IntegrityMismatch
	}
	out := []byte(rest)
	slices.Reverse(out)
	return out, nil
}

// house is a room with everything around it, for one life of a process.
type house struct {
	*Room
	t       testing.TB
	home    *store.Home
	feed    *event.Feed
	stage   *theatre
	runs    *runs
	stop    context.CancelFunc
	running sync.WaitGroup
}

// moveIn starts a process on the home at path.
func moveIn(t testing.TB, path string, stage *theatre, evidence *runs, guard func(string) error, opts *Options) (*house, error) {
	t.Helper()
	home, err := store.Open(path, &store.Options{Guard: guard})
	if err != nil {
		return nil, err
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		_ = home.Close()
		return nil, err
	}
	h := &house{t: t, home: home, feed: feed, stage: stage, runs: evidence}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	schedule, pump := event.NewSchedule(), event.NewPump(feed, home, nil)
	h.Room, err = New(Deps{
		Home: home, Pump: pump, Schedule: schedule, Journal: event.NewJournal(home, nil), Stage: stage, Evidence: evidence, Sealer: envelope{},
	}, opts)
	h.running.Go(func() { schedule.Run(ctx) })
	h.running.Go(func() { pump.Run(ctx) })
	if err != nil {
		h.moveOut()
		return nil, err
	}
	stage.restart(h.Holder)
	h.Recover(ctx)
	return h, nil
}

// moveOut ends the process, as a kill would: nothing is put in order.
func (h *house) moveOut() {
	h.stop()
	h.running.Wait()
	if h.Room != nil && h.archive != nil {
		_ = h.deps.Journal.Close()
		_ = h.archive.Close()
	}
	_ = h.feed.Close()
	_ = h.home.Close()
}

func newHouse(t *testing.T, opts *Options) *house {
	t.Helper()
	h, err := moveIn(t, t.TempDir(), newTheatre(), &runs{}, nil, opts)
	must(t, err)
	t.Cleanup(h.moveOut)
	return h
}

func (h *house) begin(o StartOptions) Record {
	h.t.Helper()
	if o.Reason == "" {
		o.Reason = Login
	}
	if o.By == "" {
		o.By = Agent
	}
	rec, err := h.Start(h.t.Context(), o)
	must(h.t, err)
	return rec
}

// told are the types of all events so far.
func (h *house) told() []string {
	events, _ := h.feed.Since(0, 0)
	var out []string
	for _, e := range events {
		out = append(out, strings.TrimPrefix(e.Type, "handoff."))
	}
	return out
}

func (h *house) get(id string) Record {
	h.t.Helper()
	rec, err := h.Get(id)
	must(h.t, err)
	return rec
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}
