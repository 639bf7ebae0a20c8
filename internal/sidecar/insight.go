package sidecar

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/api"
	"tapin/internal/approval"
	"tapin/internal/browser/usage"
	"tapin/internal/handoff"
	"tapin/internal/insight"
	"tapin/internal/logins"
	"tapin/internal/site"
)

// countEnds counts hand-offs as they end. Reasons and ends are fixed lists; sites
// never become a label.
func countEnds(registry *prometheus.Registry) func(insight.Handoff) {
	waits := []float64{5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 4 * 3600, 24 * 3600}
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tapin_handoffs_ended_total", Help: "Hand-offs that agents asked for, by why and by how they ended.",
	}, []string{"reason", "end"})
	human := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tapin_handoff_time_to_human_seconds", Help: "From being asked until a person was first seen to be there.", Buckets: waits,
	}, []string{"reason"})
	done := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tapin_handoff_time_to_done_seconds", Help: "From being asked until unblocked.", Buckets: waits,
	}, []string{"reason"})
	takeovers := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tapin_takeovers_total", Help: "Times the owner took over unasked, and gave back.",
	})
	registry.MustRegister(ended, human, done, takeovers)
	for _, reason := range handoff.Reasons() {
		for _, end := range insight.Ends() {
			ended.WithLabelValues(string(reason), end) // what never happened shows as zero
		}
	}
	return func(h insight.Handoff) {
		if h.Takeover {
			takeovers.Inc()
			return
		}
		ended.WithLabelValues(h.Reason, h.End).Inc()
		if h.Called && !h.Met.IsZero() {
			human.WithLabelValues(h.Reason).Observe(max(h.Met.Sub(h.Created).Seconds(), 0))
		}
		if h.End == insight.Unblocked {
			done.WithLabelValues(h.Reason).Observe(max(h.Ended.Sub(h.Created).Seconds(), 0))
		}
	}
}

// counted shows records to the room of figures in its own words.
type counted struct {
	handoffs  *handoff.Room
	approvals *approval.Room
}

var _ insight.Records = counted{}

func (c counted) Handoffs(ctx context.Context, after uint64, since time.Time, limit int) ([]insight.Handoff, error) {
	found, err := c.handoffs.After(ctx, after, since, limit)
	out := make([]insight.Handoff, 0, len(found))
	for _, p := range found {
		one := insight.Handoff{ID: p.ID, Created: p.At, Gone: true}
		if p.Record != nil {
			one = countedHandoff(*p.Record)
		}
		one.Seq = p.Seq
		out = append(out, one)
	}
	return out, err
}

func (c counted) Handoff(_ context.Context, id string) (insight.Handoff, error) {
	rec, err := c.handoffs.Get(id)
	return countedHandoff(rec), err
}

func countedHandoff(rec handoff.Record) insight.Handoff {
	return insight.Handoff{
		ID: rec.ID, Created: rec.CreatedAt, Site: siteOf(rec), Reason: string(rec.Reason), Takeover: rec.StartedBy == handoff.Owner, Called: rec.Notify,
		Met: rec.MetAt(), End: endOf(rec), Ended: rec.FinishedAt,
	}
}

// endOf is how a hand-off ended. It helped if the owner says so, or if that was
// seen; an agent that went on by itself has not been helped for all we know.
func endOf(rec handoff.Record) string {
	held := rec.Verified != nil && rec.Verified.Held
	switch {
	case !rec.IsOver():
		return ""
	case rec.Status == handoff.TimedOut:
		return insight.Expired
	case rec.Status == handoff.Finished && (held || rec.FinishedBy == handoff.Owner):
		return insight.Unblocked
	case rec.Status == handoff.Finished || rec.FinishedBy == handoff.Agent:
		return insight.Abandoned
	case rec.FinishedBy == handoff.Owner:
		return insight.Aborted
	}
	return insight.Lost
}

func (c counted) Last() uint64 { return c.handoffs.Last() }

func (c counted) Payments(ctx context.Context, after string, since time.Time, limit int) ([]insight.Payment, error) {
	found, err := c.approvals.After(ctx, after, since, limit)
	out := make([]insight.Payment, 0, len(found))
	for _, rec := range found {
		out = append(out, countedPayment(rec))
	}
	return out, err
}

func (c counted) Payment(_ context.Context, id string) (insight.Payment, error) {
	rec, err := c.approvals.Get(id)
	return countedPayment(rec), err
}

func countedPayment(rec approval.Record) insight.Payment {
	p := insight.Payment{ID: rec.ID, Created: rec.CreatedAt, Over: rec.IsOver(), Denied: rec.Status == approval.Denied}
	if !p.Denied {
		p.Approved = string(rec.DecidedBy)
	}
	if rec.Status == approval.Used && rec.Granted != nil {
		p.Sum = rec.Granted.Money()
		p.Paid, p.Perhaps = rec.Outcome == approval.OutcomeConfirmed, rec.Outcome == approval.OutcomeUnknown
	}
	return p
}

// figures put together what the rooms know of how asking went.
type figures struct {
	room   *counting
	logins *logins.Room
	ledger *usage.Ledger
}

// Analytics tells it.
func (f figures) Analytics(ctx context.Context, days int) (*api.Analytics, error) {
	answer, err := f.room.Report(ctx, days)
	if err != nil {
		return nil, err
	}
	saved, err := f.logins.Lived(ctx)
	if err != nil {
		return nil, err
	}
	lives := lifetimes(saved)
	bySite := map[string]api.LoginFigures{}
	for _, l := range lives {
		bySite[l.Site] = l
	}
	answer.Logins, answer.Sites = lives, insight.Advise(answer.Sites, bySite)
	answer.Cost = months(f.ledger, time.Now().UTC(), days)
	return &answer, nil
}

// lifetimes sums up the logins of each site. One whose domain nobody knows is
// counted nowhere.
func lifetimes(saved []logins.Lived) []api.LoginFigures {
	spans, all := map[string][]time.Duration{}, map[string]*api.LoginFigures{}
	for _, l := range saved {
		of, err := site.Of(l.Domain)
		if l.Domain == "" || err != nil {
			continue
		}
		name := site.Display(of)
		if all[name] == nil {
			all[name] = &api.LoginFigures{Site: name}
		}
		one := all[name]
		one.Logins++
		if l.Stale {
			one.Stale++
		}
		if !l.AliveSince.IsZero() && (one.AliveSince.IsZero() || l.AliveSince.Before(one.AliveSince)) {
			one.AliveSince = l.AliveSince
		}
		for _, life := range l.Lives {
			spans[name] = append(spans[name], max(0, life.To.Sub(life.From)))
		}
	}
	out := []api.LoginFigures{}
	for name, one := range all {
		if lasted := spans[name]; len(lasted) > 0 {
			slices.Sort(lasted)
			seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
			one.Ended, one.ShortestS, one.LongestS = len(lasted), seconds(lasted[0]), seconds(lasted[len(lasted)-1])
			one.MedianS = seconds((lasted[(len(lasted)-1)/2] + lasted[len(lasted)/2]) / 2)
		}
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b api.LoginFigures) int { return strings.Compare(a.Site, b.Site) })
	return out
}

// months are what billed browsers came to in the calendar months that the days
// touch. A month in which there was none is left out, but for the present one.
func months(ledger *usage.Ledger, now time.Time, days int) []api.MonthOfBrowsers {
	out := []api.MonthOfBrowsers{}
	oldest := now.AddDate(0, 0, 1-days).Format("2006-01")
	for at := now; at.Format("2006-01") >= oldest; at = at.AddDate(0, 0, -at.Day()) {
		report := ledger.Report(at)
		month := api.MonthOfBrowsers{Month: report.Month, Minutes: report.Minutes(), Providers: []api.ProviderUsage{}}
		if len(out) == 0 && at.Equal(now) {
			month.CapMinutes = report.CapMinutes
		}
		for name, m := range report.Providers {
			month.Providers = append(month.Providers, api.ProviderUsage{Provider: name, Sessions: m.Sessions, Seconds: m.Seconds})
		}
		slices.SortFunc(month.Providers, func(a, b api.ProviderUsage) int { return strings.Compare(a.Provider, b.Provider) })
		if len(month.Providers) > 0 || at.Equal(now) {
			out = append(out, month)
		}
	}
	return out
}
