package insight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/store"
)

// archive stands for the rooms with the records, and counts what is read of them.
type archive struct {
	mu       sync.Mutex
	handoffs []Handoff // in the order in which they came
	payments []Payment
	reads    int
	broken   error

	unreadable string // the id of one that cannot be read
}

func (a *archive) Handoffs(_ context.Context, after uint64, since time.Time, limit int) ([]Handoff, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Handoff
	for _, h := range a.handoffs[after:min(int(after)+limit, len(a.handoffs))] {
		if h.Created.Before(since) {
			h = Handoff{ID: h.ID, Seq: h.Seq, Created: h.Created, Gone: true}
		} else {
			a.reads++
		}
		out = append(out, h)
	}
	return out, a.broken
}

func (a *archive) Last() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(len(a.handoffs))
}

func (a *archive) Handoff(_ context.Context, id string) (Handoff, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.handoffs, func(h Handoff) bool { return h.ID == id && !h.Gone })
	if i < 0 {
		return Handoff{}, fault.New(fault.NotFound, "", "gone")
	}
	if id == a.unreadable {
		return Handoff{}, fault.New(fault.Unreadable, "", "it is cut")
	}
	a.reads++
	return a.handoffs[i], nil
}

func (a *archive) Payments(_ context.Context, after string, since time.Time, limit int) ([]Payment, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Payment
	for _, p := range a.payments {
		if p.ID > after && !p.Created.Before(since) && len(out) < limit {
			a.reads++
			out = append(out, p)
		}
	}
	return out, nil
}

func (a *archive) Payment(_ context.Context, id string) (Payment, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.payments {
		if p.ID == id {
			a.reads++
			return p, nil
		}
	}
	return Payment{}, fault.New(fault.NotFound, "", "gone")
}

// came is a hand-off of that long ago. Made at its end, it may be changed before.
func (a *archive) came(ago time.Duration, site, reason, end string, change ...func(*Handoff)) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := Handoff{
		ID: fmt.Sprintf("hof_%d", len(a.handoffs)+1), Seq: uint64(len(a.handoffs) + 1), Created: time.Now().UTC().Add(-ago),
		Site: site, Reason: reason, Called: true, End: end,
	}
	h.Met, h.Ended = h.Created.Add(time.Minute), h.Created.Add(3*time.Minute)
	for _, c := range change {
		c(&h)
	}
	a.handoffs = append(a.handoffs, h)
	return h.ID
}

func (a *archive) change(id string, change func(*Handoff)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.handoffs {
		if a.handoffs[i].ID == id {
			change(&a.handoffs[i])
		}
	}
}

func (a *archive) pay(change func(*Payment)) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := Payment{ID: store.NewID("apr"), Created: time.Now().UTC(), Over: true}
	change(&p)
	a.payments = append(a.payments, p)
	slices.SortFunc(a.payments, func(x, y Payment) int { return cmp.Compare(x.ID, y.ID) })
	return p.ID
}

func (a *archive) read() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads
}

type place struct {
	home *store.Home
	feed *event.Feed
	*archive
}

func newPlace(t testing.TB) *place {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = feed.Close(), home.Close() })
	return &place{home, feed, &archive{}}
}

func (p *place) room(o *Options) *Room { return New(p.home, p.feed, p.archive, o) }

func (p *place) tell(t *testing.T, kind string) {
	t.Helper()
	if _, err := p.feed.Publish(t.Context(), event.Event{ID: store.NewID("evt"), Version: 1, Type: kind}); err != nil {
		t.Fatal(err)
	}
}

func look(t testing.TB, r *Room, days int) api.Analytics {
	t.Helper()
	got, err := r.Report(t.Context(), days)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func site(t *testing.T, got api.Analytics, name string) api.SiteFigures {
	t.Helper()
	for _, s := range got.Sites {
		if s.Site == name {
			return s
		}
	}
	t.Fatalf("%s is not among %+v", name, got.Sites)
	return api.SiteFigures{}
}

const aDay = 24 * time.Hour

func TestHandOffsAreCountedByHowTheyEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // not at midnight
		p := newPlace(t)
		for i, end := range []string{Unblocked, Unblocked, Unblocked, Expired, Aborted, Abandoned, Lost} {
			p.came(time.Duration(i)*aDay, "bank.example", "login", end)
		}
		p.came(2*aDay, "shop.example", "captcha", Expired, func(h *Handoff) { h.Met = time.Time{} })
		p.came(2*aDay, "", "other", "", func(h *Handoff) { h.Met, h.Ended = time.Time{}, time.Time{} })
		p.came(time.Hour, "bank.example", "other", Unblocked, func(h *Handoff) { h.Takeover = true })
		p.came(40*aDay, "bank.example", "2fa", Unblocked)
		r := p.room(nil)
		got := look(t, r, 30)
		rate := 3.0 / 8
		want := api.HandoffFigures{
			Asked: 9, Running: 1, Ended: 8, Unblocked: 3, Expired: 2, Aborted: 1, Abandoned: 1, Lost: 1, UnblockRate: &rate,
			TimeToHuman: api.Spread{Count: 7, MedianS: 60, P90S: 60}, TimeToDone: api.Spread{Count: 3, MedianS: 180, P90S: 180},
		}
		if diff := gocmp.Diff(want, got.Handoffs); diff != "" {
			t.Error(diff)
		}
		if got.Takeovers != 1 || len(got.PerDay) != 30 || got.PerDay[29].Asked != 1 || got.PerDay[27].Asked != 3 || got.PerDay[27].Unblocked != 1 {
			t.Errorf("%d taken over, days %+v", got.Takeovers, got.PerDay)
		}
		if got.Sites[0].Site != "bank.example" || got.Sites[0].Asked != 7 || site(t, got, noSite).Running != 1 || site(t, got, noSite).UnblockRate != nil {
			t.Errorf("sites %+v", got.Sites)
		}
		if len(got.Reasons) != 3 || got.Reasons[0].Reason != "login" || got.Reasons[0].Ended != 7 {
			t.Errorf("reasons %+v", got.Reasons)
		}
		if week := look(t, r, 7).Handoffs.Asked; week != 9 {
			t.Errorf("%d in a week", week)
		}
		if all := look(t, r, 90); all.Handoffs.Asked != 10 || site(t, all, "bank.example").Reasons[1] != (api.ReasonCount{Reason: "2fa", Count: 1}) {
			t.Errorf("in 90 days %+v", all.Handoffs)
		}
	})
}

func TestWhatRunsIsCountedOnceWhenItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		var told []string
		hear := &Options{OnEnd: func(h Handoff) { told = append(told, h.ID) }}
		p.came(aDay, "bank.example", "login", Unblocked) // of before this process
		id := p.came(0, "bank.example", "login", "", func(h *Handoff) { h.Met = time.Time{} })
		r := p.room(hear)
		if got := look(t, r, 7).Handoffs; got.Running != 1 || got.Ended != 1 {
			t.Fatalf("%+v", got)
		}
		time.Sleep(4 * time.Minute)
		p.change(id, func(h *Handoff) { h.End, h.Met, h.Ended = Unblocked, h.Created.Add(90*time.Second), time.Now() })
		for range 3 {
			got := look(t, r, 7).Handoffs
			if got.Running != 0 || got.Ended != 2 || got.TimeToHuman.P90S != 90 || got.TimeToDone.P90S != 240 {
				t.Fatalf("%+v", got)
			}
		}
		if len(told) != 1 || told[0] != id {
			t.Errorf("told of %v", told)
		}
		// The next process goes on from the file, or without it, to the same figures.
		want := look(t, r, 90)
		r.save()
		reads := p.read()
		if diff := gocmp.Diff(want, look(t, p.room(hear), 90)); diff != "" {
			t.Error(diff)
		}
		if more := p.read() - reads; more != 0 {
			t.Errorf("%d records were read again", more)
		}
		for _, damage := range []func() error{
			func() error { return p.home.Write(file, []byte("{")) },
			func() error { return p.home.Write(file, []byte(`{"version":99,"days":{}}`)) },
			func() error { return p.home.RemoveAll(file) }, // it is put aside already
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, look(t, p.room(hear), 90)); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestOneThatIsListedBeforeItIsWrittenIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		soon := p.came(0, "bank.example", "login", "", func(h *Handoff) { h.Gone = true })
		p.came(0, "bank.example", "login", "", func(h *Handoff) { h.Gone = true }) // never
		r := p.room(nil)
		if got := look(t, r, 7).Handoffs; got.Asked != 0 {
			t.Fatalf("%+v", got)
		}
		p.change(soon, func(h *Handoff) { h.Gone, h.End = false, Unblocked })
		time.Sleep(2 * time.Minute)
		if got := look(t, r, 7).Handoffs; got.Asked != 1 || len(r.open) != 0 {
			t.Errorf("%+v, open %v", got, r.open)
		}
	})
}

func TestDaysPastRetentionAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for n := range 20 {
			p.came(time.Duration(n)*aDay, "bank.example", "login", Unblocked)
		}
		r := p.room(&Options{Keep: 10 * aDay})
		if got := look(t, r, 30); got.Handoffs.Asked != 10 || got.KeptDays != 10 {
			t.Errorf("%d of %d days", got.Handoffs.Asked, got.KeptDays)
		}
		time.Sleep(4 * aDay)
		if got := look(t, r, 30); got.Handoffs.Asked != 6 || len(r.book.Days) != 6 {
			t.Errorf("later %d, %d days kept", got.Handoffs.Asked, len(r.book.Days))
		}
		if got := look(t, r, 5).Handoffs.Asked; got != 1 {
			t.Errorf("%d in the last five days", got)
		}
	})
}

func TestPaymentsAreSummedByCurrencyAndExactly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		paid := func(minor int64, currency money.Currency, by string) func(*Payment) {
			return func(p *Payment) { p.Approved, p.Paid, p.Sum = by, true, money.Amount{Minor: minor, Currency: currency} }
		}
		p.pay(paid(10, "USD", "owner"))
		p.pay(paid(20, "USD", "policy"))
		p.pay(paid(5000, "JPY", "owner"))
		p.pay(func(p *Payment) {
			p.Approved, p.Perhaps, p.Sum = "owner", true, money.Amount{Minor: 999, Currency: "EUR"}
		})
		p.pay(func(p *Payment) { p.Approved = "owner" }) // allowed, never used
		p.pay(func(p *Payment) { p.Denied = true })
		p.pay(func(*Payment) {}) // nobody answered
		r := p.room(nil)
		want := api.ApprovalFigures{
			Asked: 7, ByOwner: 4, ByPolicy: 1, Denied: 1, Expired: 1, Unused: 1,
			Paid:      []api.PaidSum{{Money: api.Money{Amount: "5000", Currency: "JPY"}, Payments: 1}, {Money: api.Money{Amount: "0.30", Currency: "USD"}, Payments: 2}},
			Uncertain: []api.PaidSum{{Money: api.Money{Amount: "9.99", Currency: "EUR"}, Payments: 1}},
		}
		if diff := gocmp.Diff(want, look(t, r, 7).Approvals); diff != "" {
			t.Error(diff)
		}
		// One that is asked for is open, then counted; one whose id is older than one
		// already counted is not passed over.
		late := store.NewID("apr")
		time.Sleep(10 * time.Millisecond)
		open := p.pay(func(p *Payment) { p.Over = false })
		p.tell(t, "approval.requested")
		want.Asked, want.Open = 8, 1
		if diff := gocmp.Diff(want, look(t, r, 7).Approvals); diff != "" {
			t.Error(diff)
		}
		p.pay(func(p *Payment) { p.ID, p.Denied = late, true })
		p.tell(t, "approval.requested")
		for i := range p.payments {
			if p.payments[i].ID == open {
				p.payments[i].Over = true
			}
		}
		want.Asked, want.Open, want.Expired, want.Denied = 9, 0, 2, 2
		time.Sleep(time.Hour)
		for range 2 {
			p.tell(t, "approval.decided")
			if diff := gocmp.Diff(want, look(t, r, 7).Approvals); diff != "" {
				t.Error(diff)
			}
		}
		reads := p.read()
		if look(t, r, 7); p.read() != reads || len(r.book.Payments.Recent) != 0 {
			t.Errorf("%d read again, %v remembered", p.read()-reads, r.book.Payments.Recent)
		}
	})
}

func TestManyAreCountedInStepsAndALookReadsFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for n := range 5 * step {
			p.came(time.Duration(n%80)*aDay, fmt.Sprintf("site%d.example", n%150), "login", Unblocked)
		}
		r := p.room(nil)
		if got := look(t, r, 90); !got.Counting || got.Handoffs.Asked != step {
			t.Fatalf("the first look counted %d, and says of the rest %v", got.Handoffs.Asked, got.Counting)
		}
		ctx, stop := context.WithCancel(t.Context())
		var ends sync.WaitGroup
		ends.Go(func() { r.Run(ctx) })
		time.Sleep(time.Minute)
		got := look(t, r, 90)
		if got.Counting || got.Handoffs.Asked != 5*step || len(got.Sites) != sitesTold || got.MoreSites == 0 {
			t.Errorf("%v, %d asked, %d sites and %d more", got.Counting, got.Handoffs.Asked, len(got.Sites), got.MoreSites)
		}
		reads := p.read()
		for range 50 {
			look(t, r, 90)
		}
		if more := p.read() - reads; more != 0 {
			t.Errorf("50 looks read %d records", more)
		}
		p.came(0, "new.example", "2fa", "")
		p.tell(t, "handoff.started")
		time.Sleep(2 * time.Second)
		if r.book.Handoffs.Place != 5*step+1 {
			t.Error("what the feed told of was not read without a look")
		}
		stop()
		ends.Wait()
		if again := readBook(p.home, 5*step+1); again.Handoffs.Place != 5*step+1 || !slices.Equal(again.Handoffs.Open, []string{"hof_1281"}) {
			t.Errorf("the end left %+v", again.Handoffs)
		}
	})
}

func TestADayHasAsManySitesAsAreToldApart(t *testing.T) {
	t.Parallel()
	b := book{Days: map[string]*day{}}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for n := range 3 * sitesADay {
		b.count(Handoff{Site: fmt.Sprintf("s%d.example", n), Reason: "login", End: Lost, Created: at, Ended: at})
	}
	d := b.day(at)
	last := d.Cells[len(d.Cells)-1]
	if len(d.Cells) != sitesADay+1 || last.Site != otherSites || last.Ends[Lost] != 2*sitesADay {
		t.Errorf("%d cells, the last %+v", len(d.Cells), last)
	}
}

func TestWhatCannotBeReadIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.came(time.Hour, "bank.example", "login", Unblocked)
	p.broken = errors.New("the disk is tired")
	r := p.room(nil)
	if _, err := r.Report(t.Context(), 7); err == nil {
		t.Error("a look that failed passes for one that did not")
	}
	p.broken = nil
	if got := look(t, r, 7); got.Handoffs.Asked != 1 || got.Counting {
		t.Errorf("%+v", got)
	}
	for _, days := range []int{0, -1, 91} {
		if _, err := r.Report(t.Context(), days); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%d days: %v", days, err)
		}
	}
}

// One record that cannot be read keeps nobody from counting the others.
func TestOneRecordThatCannotBeReadIsPassedOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	id := p.came(time.Hour, "bank.example", "login", "")
	r := p.room(nil)
	look(t, r, 7)
	p.unreadable = id
	p.came(time.Hour, "shop.example", "login", Unblocked)
	if got := look(t, r, 7); got.Handoffs.Asked != 2 || got.Counting {
		t.Errorf("%+v", got)
	}
	p.unreadable = ""
	p.change(id, func(h *Handoff) { h.End = Aborted })
	if got := look(t, r, 7); got.Handoffs.Aborted != 1 {
		t.Errorf("once it was mended: %+v", got)
	}
}

func TestQuantilesAreOnesThatWereSeen(t *testing.T) {
	t.Parallel()
	s := spread{}
	if got := s.quantiles(.5, .9); got[0] != 0 || got[1] != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for n := 1; n <= 10; n++ {
		s.add(time.Duration(n) * 10 * time.Second)
	}
	if got := s.quantiles(.5, .9, 1); !slices.Equal(got, []int64{50, 90, 100}) {
		t.Errorf("got %v", got)
	}
	for d, want := range map[time.Duration]int64{
		-time.Second: 0, 1499 * time.Millisecond: 1, 119 * time.Second: 119, 122 * time.Second: 120, 59 * time.Minute: 3540, 3*time.Hour + 2*time.Minute: 3 * 3600,
	} {
		one := spread{}
		one.add(d)
		if got := one.quantiles(.5)[0]; got != want {
			t.Errorf("%s is counted as %d s, want %d", d, got, want)
		}
	}
}

func TestAdviceIsGivenWhereItIsPlain(t *testing.T) {
	t.Parallel()
	of := func(asked, expired int, reasons ...api.ReasonCount) api.SiteFigures {
		return api.SiteFigures{Site: "bank.example", HandoffFigures: api.HandoffFigures{Asked: asked, Ended: asked, Expired: expired}, Reasons: reasons}
	}
	saved := map[string]api.LoginFigures{"bank.example": {Ended: 3, MedianS: 3 * 86400}}
	young := map[string]api.LoginFigures{"bank.example": {}}
	for name, tt := range map[string]struct {
		site  api.SiteFigures
		saved map[string]api.LoginFigures
		want  string
	}{
		"sign-ins without a saved login":  {of(6, 0, api.ReasonCount{Reason: "login", Count: 3}, api.ReasonCount{Reason: "2fa", Count: 2}), nil, "A saved login could have avoided 4 of 6."},
		"one sign-in":                     {of(3, 0, api.ReasonCount{Reason: "login", Count: 1}), nil, ""},
		"sign-ins with a login that ends": {of(4, 0, api.ReasonCount{Reason: "login", Count: 4}), saved, "The saved login lasts about 3 days here."},
		"sign-ins with a young login":     {of(4, 0, api.ReasonCount{Reason: "login", Count: 4}), young, ""},
		"nobody came":                     {of(5, 3, api.ReasonCount{Reason: "captcha", Count: 5}), nil, "Nobody came 3 of 5 times: more time to answer, or a nearer channel, would help."},
		"nobody came now and then":        {of(9, 3, api.ReasonCount{Reason: "captcha", Count: 9}), nil, ""},
	} {
		before := []api.SiteFigures{tt.site}
		if got := Advise(before, tt.saved)[0].Advice; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if before[0].Advice != "" {
			t.Error("what is shared was changed")
		}
	}
	other := Advise([]api.SiteFigures{{Site: otherSites, Reasons: []api.ReasonCount{{Reason: "login", Count: 9}}}}, nil)
	if other[0].Advice != "" {
		t.Errorf("advice about no site: %q", other[0].Advice)
	}
	for d, want := range map[time.Duration]string{30 * time.Second: "a minute", 5 * time.Minute: "5 minutes", 61 * time.Minute: "an hour", 26 * time.Hour: "a day", 40 * time.Hour: "2 days", 5 * time.Hour: "5 hours"} {
		if got := about(d); got != want {
			t.Errorf("%s is about %q, want %q", d, got, want)
		}
	}
}

// BenchmarkLook compares what a look costs when very many came before with when
// few did, turn by turn: again, and for the first time after a change.
func BenchmarkLook(b *testing.B) {
	var rooms [2]*Room
	for i, count := range []int{100, 100_000} {
		p := newPlace(b)
		for n := range count {
			p.came(time.Duration(n%90)*aDay, fmt.Sprintf("site%d.example", n%30), []string{"login", "2fa", "captcha"}[n%3], Unblocked,
				func(h *Handoff) {
					h.Met = h.Created.Add(time.Duration(n%900) * time.Second)
					h.Ended = h.Met.Add(time.Minute)
				})
		}
		rooms[i] = p.room(nil)
		for look(b, rooms[i], 30).Counting {
		}
	}
	for name, change := range map[string]bool{"again": false, "after a change": true} {
		b.Run(name, func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				for i, r := range rooms {
					if change {
						r.mu.Lock()
						r.changed()
						r.mu.Unlock()
					}
					began := time.Now()
					look(b, r, 30)
					took[i] = append(took[i], time.Since(began))
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			few, many := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(float64(many)/float64(few), "many/few")
			b.ReportMetric(float64(many.Microseconds()), "µs/many")
		})
	}
}
