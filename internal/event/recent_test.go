package event

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheJournalIsFilteredAndCounted(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	synctest.Test(t, func(t *testing.T) { // midnight of 2000-01-01 UTC
		j := NewJournal(h, nil)
		defer j.Close()
		start := time.Now()
		for _, e := range []Entry{
			{Who: "agent", What: "session.start", Session: "ses_1", Took: time.Second, Outcome: "ok"},
			{Who: "agent", What: "session.click", Session: "ses_1", Took: time.Second, Outcome: "ok"},
			{Who: "agent", What: "session.click", Session: "ses_1", Took: 3 * time.Second, Outcome: "STALE_REF"},
			{Who: "owner", What: "handoff.finish", Session: "ses_1", Outcome: "ok"},
			{Who: "tapin", What: "session.stop", Session: "ses_1", Outcome: "ok"},
			{Who: "agent", What: "session.start", Session: "ses_2", Outcome: "BUSY"},
			{Who: "agent", What: "sessions.other", Outcome: "ok"},
		} {
			must(t, j.Write(e))
			time.Sleep(6 * time.Hour) // over two days
		}
		for name, tt := range map[string]struct {
			filter Filter
			n      int
			want   []string
			more   bool
		}{
			"the newest":           {Filter{}, 2, []string{"session.start", "sessions.other"}, true},
			"all":                  {Filter{}, 100, []string{"session.start", "session.click", "session.click", "handoff.finish", "session.stop", "session.start", "sessions.other"}, false},
			"exactly all":          {Filter{Session: "ses_2"}, 1, []string{"session.start"}, false},
			"by who":               {Filter{Who: "owner"}, 100, []string{"handoff.finish"}, false},
			"by what":              {Filter{What: "session.click"}, 100, []string{"session.click", "session.click"}, false},
			"by a family of what":  {Filter{What: "session"}, 1, []string{"session.start"}, true},
			"by outcome":           {Filter{Outcome: "BUSY"}, 100, []string{"session.start"}, false},
			"by failure":           {Filter{Outcome: "failed"}, 100, []string{"session.click", "session.start"}, false},
			"since a time":         {Filter{Since: start.Add(30 * time.Hour)}, 100, []string{"session.start", "sessions.other"}, false},
			"nothing fits":         {Filter{Who: "nobody"}, 100, nil, false},
			"none of what is kept": {Filter{Since: start.Add(999 * time.Hour)}, 100, nil, false},
		} {
			entries, more, err := j.Recent(tt.filter, tt.n)
			must(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, e.What)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || more != tt.more {
				t.Errorf("%s: more %v, %s", name, more, diff)
			}
		}
		got, err := j.Summarize(Filter{Who: "agent"})
		must(t, err)
		want := Summary{
			Entries: 5, Failed: 2, Sessions: 2, First: start.UTC(), Last: start.Add(36 * time.Hour).UTC(),
			ByWhat: []Tally{
				{"session.click", 2, 1, 4 * time.Second}, {"session.start", 2, 1, time.Second}, {"sessions.other", 1, 0, 0},
			},
			ByWho:    []Tally{{"agent", 5, 2, 5 * time.Second}},
			Outcomes: []Tally{{"ok", 3, 0, 2 * time.Second}, {"BUSY", 1, 1, 0}, {"STALE_REF", 1, 1, 3 * time.Second}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
