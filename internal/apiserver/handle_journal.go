package apiserver

import (
	"context"
	"time"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/session"
)

// Journal is where the accounts of operations are read. Safe for concurrent use.
type Journal interface {
	Recent(f event.Filter, n int) (entries []event.Entry, more bool, err error)
	Summarize(f event.Filter) (event.Summary, error)
	Write(e event.Entry) error
}

// Cleaner puts in order what sessions left behind, and never touches a live
// one. Safe for concurrent use.
type Cleaner interface {
	Recover(ctx context.Context) (session.Recovered, error)
}

var (
	_ Journal = (*event.Journal)(nil)
	_ Cleaner = (*session.Host)(nil)
)

// recentEntries is how many entries an answer has if nobody says.
const recentEntries = 100

func (s *Server) journal(_ *call, q *api.JournalQuery) (*api.JournalAnswer, error) {
	since, err := api.Since(q.Since, time.Now())
	if err != nil {
		return nil, err
	}
	filter := event.Filter{Since: since, Who: q.Who, What: q.What, Session: q.SessionID, Outcome: q.Outcome}
	answer := &api.JournalAnswer{Entries: []api.JournalEntry{}}
	if q.Recent > 0 || !q.Summary {
		n := q.Recent
		if n == 0 {
			n = recentEntries
		}
		entries, more, err := s.accounts.Recent(filter, n)
		if err != nil {
			return nil, err
		}
		answer.More = more
		for _, e := range entries {
			answer.Entries = append(answer.Entries, api.JournalEntry{
				At: e.At, Who: e.Who, What: e.What, SessionID: e.Session, Origin: e.Origin, Counts: e.Counts, TookMS: ms(e.Took), Outcome: e.Outcome,
			})
		}
	}
	if q.Summary {
		sum, err := s.accounts.Summarize(filter)
		if err != nil {
			return nil, err
		}
		answer.Summary = &api.JournalSummary{
			Entries: sum.Entries, Failed: sum.Failed, Sessions: sum.Sessions, First: sum.First, Last: sum.Last,
			ByWhat: talliesOf(sum.ByWhat), ByWho: talliesOf(sum.ByWho), Outcomes: talliesOf(sum.Outcomes),
		}
	}
	return answer, nil
}

func talliesOf(tallies []event.Tally) []api.JournalTally {
	out := []api.JournalTally{}
	for _, t := range tallies {
		out = append(out, api.JournalTally{Name: t.Name, Count: t.Count, Failed: t.Failed, TookMS: ms(t.Took)})
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (s *Server) cleanup(c *call, _ *api.CleanupRequest) (*api.Cleanup, error) {
	found, err := s.cleaner.Recover(c.r.Context())
	// What could not be judged is named in the answer; only a cleanup that could
	// not even begin is an error.
	if err != nil && len(found.LeftAlone) == 0 {
		return nil, err
	}
	some := func(ids []string) []string { return append([]string{}, ids...) }
	return &api.Cleanup{Closed: some(found.Closed), Reconnected: some(found.Reconnected), LeftAlone: some(found.LeftAlone)}, nil
}
