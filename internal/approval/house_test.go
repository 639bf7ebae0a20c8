package approval

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/page"
	"tapin/internal/store"
)

var errKilled = errors.New("killed")

// shop stands in for a session with a page: what it shows, and what was paid.
type shop struct {
	mu         sync.Mutex
	session    string
	generation int
	totals     page.Totals
	payee      string // named on the page
	paid       map[string]int
}

func newShop() *shop {
	return &shop{session: "ses_1", generation: 1, totals: shows("https://www.verizon.com", 14250, "USD"), payee: "Verizon", paid: map[string]int{}}
}

// shows is a page with one clear total.
func shows(origin string, minor int64, code money.Currency) page.Totals {
	a := money.Amount{Minor: minor, Currency: code}
	return page.Totals{Origin: origin, Decision: page.TotalRead, Total: a, Label: "Amount due", Certain: true, Seen: []page.Candidate{{Amount: a, Label: "Amount due"}}}
}

func (s *shop) Read(_ context.Context, session string, names []string) (Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != "" && session != s.session {
		return Seen{}, fault.New(fault.NoSession, "", "no session")
	}
	t := s.totals
	t.Named = []bool{names[0] == s.payee}
	return Seen{SessionID: s.session, Generation: s.generation, Totals: t, Crop: &page.Image{Format: page.JPEG, Base64: "/9j/"}}, nil
}

func (s *shop) look(_ context.Context, names []string) (page.Totals, error) {
	seen, err := s.Read(context.Background(), "", names)
	return seen.Totals, err
}

// pay is the click: permitted, then done, then told.
func (h *house) pay(id string) error {
	s := h.shop
	s.mu.Lock()
	intent := page.Intent{Kind: "click", Label: "Confirm Payment", Sure: true, Frame: s.totals.Origin, Totals: s.totals, Look: s.look}
	session, generation := s.session, s.generation
	s.mu.Unlock()
	if err := h.Permit(h.t.Context(), session, generation, intent, id); err != nil {
		return err
	}
	s.mu.Lock()
	s.paid[id]++
	s.mu.Unlock()
	h.Settle(h.t.Context(), id, OutcomeConfirmed)
	return nil
}

func (s *shop) payments() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.paid {
		n += each
	}
	return n
}

// shelf stands in for the manifest.
type shelf struct {
	mu   sync.Mutex
	all  []Written
	fail error
	step func(string) error
}

func (s *shelf) List(context.Context) ([]Written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Written(nil), s.all...), s.fail
}

func (s *shelf) Put(_ context.Context, login string, p *Standing) error {
	if s.step != nil {
		if err := s.step("manifest"); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		if s.all[i].Login == login {
			if p == nil {
				s.all[i].Policy = nil
			} else {
				s.all[i].Policy = &Standing{Max: p.Max, Monthly: p.Monthly, Expires: p.Expires}
			}
			return nil
		}
	}
	return fault.New(fault.NotFound, "", "no login")
}

// wax seals nothing: what it is given it gives back.
type wax struct{}

func (wax) Seal(_, _ string, plain []byte) ([]byte, error)  { return plain, nil }
func (wax) Open(_, _ string, sealed []byte) ([]byte, error) { return sealed, nil }

type house struct {
	*Room
	t     *testing.T
	home  *store.Home
	feed  *event.Feed
	shop  *shop
	shelf *shelf
	out   func()
}

// moveIn opens a room on a folder; step is asked before every write.
func moveIn(t *testing.T, dir string, s *shop, sh *shelf, step func(string) error, opts *Options) (*house, error) {
	t.Helper()
	home, err := store.Open(dir, &store.Options{Guard: step})
	if err != nil {
		return nil, err
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		return nil, errors.Join(err, home.Close())
	}
	schedule, journal := event.NewSchedule(), event.NewJournal(home, nil)
	pump := event.NewPump(feed, home, nil)
	room, err := New(Deps{Home: home, Pump: pump, Schedule: schedule, Journal: journal, Totals: s, Policies: sh, Sealer: wax{}}, opts)
	if err != nil {
		return nil, errors.Join(err, feed.Close(), home.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { schedule.Run(ctx) })
	var once sync.Once
	h := &house{Room: room, t: t, home: home, feed: feed, shop: s, shelf: sh, out: func() {
		once.Do(func() {
			cancel()
			running.Wait()
			_ = journal.Close()
			_ = feed.Close()
			_ = home.Close()
		})
	}}
	room.Recover(ctx)
	return h, nil
}

func newHouse(t *testing.T, opts *Options) *house {
	t.Helper()
	h, err := moveIn(t, t.TempDir(), newShop(), verizon(), nil, opts)
	must(t, err)
	t.Cleanup(h.out)
	return h
}

func verizon() *shelf {
	return &shelf{all: []Written{{Login: "verizon", Domain: "verizon.com"}, {Login: "chase", Domain: "chase.com"}}}
}

func bill() Request {
	return Request{Site: "verizon.com", Payee: "Verizon", Amount: money.Amount{Minor: 14250, Currency: "USD"}, Description: "Verizon bill"}
}

func (h *house) ask(q Request) Record {
	h.t.Helper()
	rec, err := h.Request(h.t.Context(), q)
	must(h.t, err)
	return rec
}

// allow says a sentence and confirms it.
func (h *house) allow(sentence string) {
	h.t.Helper()
	answer, err := h.Say(h.t.Context(), sentence)
	must(h.t, err)
	if answer.Proposal == nil {
		h.t.Fatalf("%q: %s", sentence, answer.Sentence)
	}
	_, err = h.Confirm(h.t.Context(), answer.Proposal.ID)
	must(h.t, err)
}

func (h *house) told() []string {
	events, _ := h.feed.Since(0, 0)
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pass(d time.Duration) { time.Sleep(d) } // by the clock of a synctest bubble
