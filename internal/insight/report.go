package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/money"
)

// sitesTold is how many sites an answer names.
const sitesTold = 20

// report is an answer, and the day it was made on.
type report struct {
	day    string
	answer api.Analytics
}

// Report tells how it went over the last days, today included: hand-offs and
// payments, and not logins and cost, which are others' to tell. What it returns
// is shared, and not to be changed below its top.
func (r *Room) Report(ctx context.Context, days int) (api.Analytics, error) {
	if days < 1 || days > MostDays {
		return api.Analytics{}, fault.New(fault.InvalidRequest, "", "figures are for 1 to %d days", MostDays).With("field", "days")
	}
	if _, err := r.refresh(ctx); err != nil {
		return api.Analytics{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	today := time.Now().UTC()
	made, ok := r.reports[days]
	if !ok || made.day != today.Format(time.DateOnly) {
		made = report{today.Format(time.DateOnly), r.compute(today, days)}
		r.reports[days] = made
	}
	answer := made.answer
	answer.Counting = r.behind
	return answer, nil
}

// tally is what is added up for an answer.
type tally struct {
	name    string
	ends    map[string]int
	running int
	human   spread
	done    spread
	reasons map[string]int // of a site
}

func newTally(name string) *tally {
	return &tally{name: name, ends: map[string]int{}, reasons: map[string]int{}}
}

func (t *tally) add(c cell) {
	for end, n := range c.Ends {
		t.ends[end] += n
		t.reasons[c.Reason] += n
	}
	t.human.addAll(c.Human)
	t.done.addAll(c.Done)
}

func (t *tally) run(h Handoff) {
	t.running++
	t.reasons[h.Reason]++
}

func (t *tally) ended() (n int) {
	for _, of := range t.ends {
		n += of
	}
	return n
}

func (t *tally) asked() int { return t.ended() + t.running }

func (t *tally) figures() api.HandoffFigures {
	f := api.HandoffFigures{
		Asked: t.asked(), Running: t.running, Ended: t.ended(), Unblocked: t.ends[Unblocked], Expired: t.ends[Expired],
		Aborted: t.ends[Aborted], Abandoned: t.ends[Abandoned], Lost: t.ends[Lost],
		TimeToHuman: spreadOf(t.human), TimeToDone: spreadOf(t.done),
	}
	if f.Ended > 0 {
		rate := float64(f.Unblocked) / float64(f.Ended)
		f.UnblockRate = &rate
	}
	return f
}

func spreadOf(s spread) api.Spread {
	q := s.quantiles(.5, .9)
	return api.Spread{Count: s.count(), MedianS: q[0], P90S: q[1]}
}

// tallies are those of several names.
type tallies map[string]*tally

func (t tallies) of(name string) *tally {
	if t[name] == nil {
		t[name] = newTally(name)
	}
	return t[name]
}

// sorted has those that asked most first.
func (t tallies) sorted() []*tally {
	all := make([]*tally, 0, len(t))
	for _, one := range t {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.asked(), a.asked()), strings.Compare(a.name, b.name))
	})
	return all
}

// compute adds up the days. Called with the lock held.
func (r *Room) compute(today time.Time, days int) api.Analytics {
	first := today.AddDate(0, 0, 1-days)
	out := api.Analytics{
		Days: days, KeptDays: min(days, r.keep), From: first.Format(time.DateOnly), To: today.Format(time.DateOnly),
		Reasons: []api.ReasonFigures{}, Sites: []api.SiteFigures{}, Logins: []api.LoginFigures{}, Cost: []api.MonthOfBrowsers{},
	}
	all, reasons, sites := newTally(""), tallies{}, tallies{}
	running := map[string]int{}
	for _, h := range r.open {
		name := h.Created.UTC().Format(time.DateOnly)
		if h.Gone || h.Takeover || h.Created.IsZero() || name < out.From {
			continue
		}
		running[name]++
		for _, t := range []*tally{all, reasons.of(h.Reason), sites.of(cmp.Or(h.Site, noSite))} {
			t.run(h)
		}
	}
	pay := newTill()
	for at := first; !at.After(today); at = at.AddDate(0, 0, 1) {
		name := at.Format(time.DateOnly)
		one := api.DayFigures{Day: name, Asked: running[name]}
		if d := r.book.Days[name]; d != nil {
			out.Takeovers += d.Takeovers
			pay.add(d)
			for _, c := range d.Cells {
				for _, t := range []*tally{all, reasons.of(c.Reason), sites.of(c.Site)} {
					t.add(c)
				}
				for end, n := range c.Ends {
					one.Asked += n
					if end == Unblocked {
						one.Unblocked += n
					}
				}
			}
		}
		out.PerDay = append(out.PerDay, one)
	}
	out.Handoffs = all.figures()
	for _, t := range reasons.sorted() {
		out.Reasons = append(out.Reasons, api.ReasonFigures{Reason: t.name, HandoffFigures: t.figures()})
	}
	for i, t := range sites.sorted() {
		if i == sitesTold {
			out.MoreSites = len(sites) - i
			break
		}
		out.Sites = append(out.Sites, t.site())
	}
	out.Approvals = pay.figures(r.unpaid, out.From)
	return out
}

func (t *tally) site() api.SiteFigures {
	s := api.SiteFigures{Site: t.name, HandoffFigures: t.figures(), Reasons: []api.ReasonCount{}}
	for reason, n := range t.reasons {
		s.Reasons = append(s.Reasons, api.ReasonCount{Reason: reason, Count: n})
	}
	slices.SortFunc(s.Reasons, func(a, b api.ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	return s
}

// till adds up payments.
type till struct {
	counts        map[string]int
	paid, perhaps map[string]sum
}

func newTill() *till {
	return &till{counts: map[string]int{}, paid: map[string]sum{}, perhaps: map[string]sum{}}
}

func (t *till) add(d *day) {
	for what, n := range d.Payments {
		t.counts[what] += n
	}
	for into, from := range map[*map[string]sum]map[string]sum{&t.paid: d.Paid, &t.perhaps: d.Perhaps} {
		for currency, s := range from {
			before := (*into)[currency]
			(*into)[currency] = sum{before.Minor + s.Minor, before.Payments + s.Payments}
		}
	}
}

func (t *till) figures(open map[string]Payment, from string) api.ApprovalFigures {
	f := api.ApprovalFigures{
		ByOwner: t.counts[byOwner], ByPolicy: t.counts[byPolicy], Denied: t.counts[denied], Expired: t.counts[unanswered],
		Unused: t.counts[allowedUnpaid], Paid: sumsOf(t.paid), Uncertain: sumsOf(t.perhaps),
	}
	for _, p := range open {
		if !p.Created.IsZero() && p.Created.UTC().Format(time.DateOnly) >= from {
			f.Open++
		}
	}
	f.Asked = f.ByOwner + f.ByPolicy + f.Denied + f.Expired + f.Open
	return f
}

func sumsOf(sums map[string]sum) []api.PaidSum {
	out := []api.PaidSum{}
	for _, currency := range keys(sums) {
		a := money.Amount{Minor: sums[currency].Minor, Currency: money.Currency(currency)}
		out = append(out, api.PaidSum{Money: api.Money{Amount: a.Major(), Currency: currency}, Payments: sums[currency].Payments})
	}
	return out
}

// Advise says what would help on each site, where that is plain. saved are how
// long the saved logins of a site last.
func Advise(sites []api.SiteFigures, saved map[string]api.LoginFigures) []api.SiteFigures {
	out := slices.Clone(sites)
	for i := range out {
		s := &out[i]
		signIns := 0
		for _, r := range s.Reasons {
			if r.Reason == "login" || r.Reason == "2fa" {
				signIns += r.Count
			}
		}
		login, isSaved := saved[s.Site]
		switch {
		case s.Site == noSite || s.Site == otherSites:
		case signIns >= 2 && !isSaved:
			s.Advice = fmt.Sprintf("A saved login could have avoided %d of %d.", signIns-1, s.Asked)
		case signIns >= 2 && login.Ended >= 2:
			s.Advice = fmt.Sprintf("The saved login lasts about %s here.", about(time.Duration(login.MedianS)*time.Second))
		case s.Expired >= 2 && 2*s.Expired >= s.Ended:
			s.Advice = fmt.Sprintf("Nobody came %d of %d times: more time to answer, or a nearer channel, would help.", s.Expired, s.Ended)
		}
	}
	return out
}

// about is a time in words, to the unit that matters.
func about(d time.Duration) string {
	for _, u := range []struct {
		of        time.Duration
		one, many string
	}{{24 * time.Hour, "a day", "days"}, {time.Hour, "an hour", "hours"}, {time.Minute, "a minute", "minutes"}} {
		if n := int(d.Round(u.of) / u.of); n > 1 {
			return fmt.Sprintf("%d %s", n, u.many)
		} else if d >= u.of {
			return u.one
		}
	}
	return "a minute"
}
