package apiserver_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/session"
)

func TestTheJournalIsToldAsItIsAskedFor(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, e := range []event.Entry{
		{At: time.Now().Add(-25 * time.Hour), Who: "agent", What: "session.start", Session: "ses_1", Took: 1500 * time.Microsecond, Outcome: "ok"},
		{Who: "agent", What: "session.type", Session: "ses_1", Origin: "https://a.example", Counts: map[string]int{"characters": 3}, Outcome: "BUSY"},
		{Who: "owner", What: "handoff.finish", Outcome: "ok"},
	} {
		if err := f.journal.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		query   api.JournalQuery
		entries []string
		more    bool
		counted int // -1 means no summary
	}{
		"nothing said":            {api.JournalQuery{}, []string{"session.start", "session.type", "handoff.finish"}, false, -1},
		"the newest":              {api.JournalQuery{Recent: 1}, []string{"handoff.finish"}, true, -1},
		"a day":                   {api.JournalQuery{Since: "1d"}, []string{"session.type", "handoff.finish"}, false, -1},
		"a duration":              {api.JournalQuery{Since: "26h"}, []string{"session.start", "session.type", "handoff.finish"}, false, -1},
		"a time":                  {api.JournalQuery{Since: time.Now().Add(-time.Hour).Format(time.RFC3339), Who: "owner"}, []string{"handoff.finish"}, false, -1},
		"a session":               {api.JournalQuery{SessionID: "ses_1", Outcome: "failed"}, []string{"session.type"}, false, -1},
		"a summary alone":         {api.JournalQuery{Summary: true, What: "session"}, nil, false, 2},
		"a summary and something": {api.JournalQuery{Summary: true, Recent: 1}, []string{"handoff.finish"}, true, 3},
	} {
		got, err := f.agent.Journal(t.Context(), tt.query)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var entries []string
		for _, e := range got.Entries {
			entries = append(entries, e.What)
		}
		counted := -1
		if got.Summary != nil {
			counted = got.Summary.Entries
		}
		if diff := cmp.Diff(tt.entries, entries); diff != "" || got.More != tt.more || counted != tt.counted || got.Entries == nil {
			t.Errorf("%s: %+v, %s", name, got, diff)
		}
	}
	whole := f.do(t, http.MethodGet, "/journal?recent=2&who=agent", "", nil)
	first := whole.body["entries"].([]any)[0].(map[string]any)
	if first["took_ms"] != 1.5 || first["outcome"] != "ok" || first["session_id"] != "ses_1" || first["origin"] != nil {
		t.Errorf("told as %v", first)
	}
	for _, query := range []string{"since=yesterday", "since=-5h", "recent=1001", "recent=x", "summery=true"} {
		if got := f.do(t, http.MethodGet, "/journal?"+query, "", nil); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, got.status)
		}
	}
}

func TestACleanupTellsWhatBecameOfEverything(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left session.Recovered
		err  error
		body string
		code error
	}{
		"nothing was left":      {session.Recovered{}, nil, `{"ok":true,"closed":[],"reconnected":[],"left_alone":[]}`, nil},
		"something was":         {session.Recovered{Closed: []string{"ses_1"}, Reconnected: []string{"ses_2"}}, nil, `{"ok":true,"closed":["ses_1"],"reconnected":["ses_2"],"left_alone":[]}`, nil},
		"not all can be judged": {session.Recovered{LeftAlone: []string{"ses_3"}}, errors.New("no answer"), `{"ok":true,"closed":[],"reconnected":[],"left_alone":["ses_3"]}`, nil},
		"it could not begin":    {session.Recovered{}, fault.New(fault.StorageFull, "", "full"), "", fault.StorageFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			f.room.left, f.room.leftErr = tt.left, tt.err
			if _, err := f.agent.Cleanup(t.Context()); !errors.Is(err, tt.code) {
				t.Fatalf("got %v", err)
			}
			if got := f.do(t, http.MethodPost, "/cleanup", "", nil); tt.code == nil && got.raw != tt.body {
				t.Fatalf("got %s", got.raw)
			}
		})
	}
}

// fickle tokens can be revoked.
type fickle struct {
	apiserver.FixedTokens

	revoked atomic.Bool
}

func (f *fickle) Role(token secret.Text) (apiserver.Role, string, bool) {
	if f.revoked.Load() {
		return apiserver.Anyone, "", false
	}
	return f.FixedTokens.Role(token)
}

func TestARevokedTokenHearsNothingMoreOfTheFeed(t *testing.T) {
	t.Parallel()
	tokens := &fickle{FixedTokens: apiserver.FixedTokens{{Name: "agent", Role: apiserver.Agent, Value: secret.New(agentToken)}}}
	f := serveWith(t, nil, func(d *apiserver.Deps) { d.Tokens = tokens })
	publish(t, f, 1)
	var heard []uint64
	var last error
	for e, err := range f.agent.Events(t.Context(), 0) {
		if err != nil {
			last = err
			break
		}
		if heard = append(heard, e.Seq); len(heard) > 1 {
			break
		}
		tokens.revoked.Store(true)
		publish(t, f, 1)
	}
	if diff := cmp.Diff([]uint64{1}, heard); diff != "" || !errors.Is(last, fault.Unauthorized) {
		t.Fatalf("heard %v, then %v", heard, last)
	}
}
