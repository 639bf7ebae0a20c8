package sidecar

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/approval"
	"tapin/internal/browser/usage"
	"tapin/internal/handoff"
	"tapin/internal/insight"
	"tapin/internal/logins"
	"tapin/internal/money"
	"tapin/internal/store"
)

func TestAHandOffHelpedIfTheOwnerOrThePageSaysSo(t *testing.T) {
	t.Parallel()
	held, not := &handoff.Verified{Held: true}, &handoff.Verified{}
	for name, tt := range map[string]struct {
		rec  handoff.Record
		want string
	}{
		"running":                        {handoff.Record{Status: handoff.Running}, ""},
		"the owner's done":               {handoff.Record{Status: handoff.Finished, FinishedBy: handoff.Owner}, insight.Unblocked},
		"the owner's done anyway":        {handoff.Record{Status: handoff.Finished, FinishedBy: handoff.Owner, Verified: not}, insight.Unblocked},
		"seen to be done":                {handoff.Record{Status: handoff.Finished, FinishedBy: handoff.Verify, Verified: held}, insight.Unblocked},
		"the agent's done, and seen":     {handoff.Record{Status: handoff.Finished, FinishedBy: handoff.Agent, Verified: held}, insight.Unblocked},
		"the agent's done, and not seen": {handoff.Record{Status: handoff.Finished, FinishedBy: handoff.Agent}, insight.Abandoned},
		"called off by the agent":        {handoff.Record{Status: handoff.Cancelled, FinishedBy: handoff.Agent}, insight.Abandoned},
		"declined":                       {handoff.Record{Status: handoff.Cancelled, FinishedBy: handoff.Owner}, insight.Aborted},
		"lost":                           {handoff.Record{Status: handoff.Cancelled}, insight.Lost},
		"out of time":                    {handoff.Record{Status: handoff.TimedOut, FinishedBy: handoff.Time}, insight.Expired},
	} {
		if got := endOf(tt.rec); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestAPaymentIsSummedOnlyIfThePageTookIt(t *testing.T) {
	t.Parallel()
	sum := &approval.Sum{Amount: "1.50", Currency: "USD"}
	exact := money.Amount{Minor: 150, Currency: "USD"}
	for name, tt := range map[string]struct {
		rec  approval.Record
		want insight.Payment
	}{
		"pending":               {approval.Record{Status: approval.Pending, Claim: *sum}, insight.Payment{}},
		"approved":              {approval.Record{Status: approval.Approved, DecidedBy: approval.Owner, Granted: sum}, insight.Payment{Approved: "owner"}},
		"taken":                 {approval.Record{Status: approval.Used, DecidedBy: approval.Policy, Granted: sum, Outcome: approval.OutcomeConfirmed}, insight.Payment{Over: true, Approved: "policy", Paid: true, Sum: exact}},
		"nobody knows":          {approval.Record{Status: approval.Used, DecidedBy: approval.Owner, Granted: sum, Outcome: approval.OutcomeUnknown}, insight.Payment{Over: true, Approved: "owner", Perhaps: true, Sum: exact}},
		"nothing was clicked":   {approval.Record{Status: approval.Used, DecidedBy: approval.Owner, Granted: sum, Outcome: approval.OutcomeNone}, insight.Payment{Over: true, Approved: "owner", Sum: exact}},
		"allowed and not used":  {approval.Record{Status: approval.Expired, DecidedBy: approval.Owner}, insight.Payment{Over: true, Approved: "owner"}},
		"not answered":          {approval.Record{Status: approval.Expired}, insight.Payment{Over: true}},
		"denied, or taken back": {approval.Record{Status: approval.Denied, DecidedBy: approval.Owner}, insight.Payment{Over: true, Denied: true}},
	} {
		if got := countedPayment(tt.rec); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestTheLoginsOfASiteAreSummedUpTogether(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	life := func(hours int) logins.Life {
		return logins.Life{From: noon, To: noon.Add(time.Duration(hours) * time.Hour)}
	}
	got := lifetimes([]logins.Lived{
		{Name: "mine", Domain: "login.bank.example", Lives: []logins.Life{life(1), life(9)}, Stale: true},
		{Name: "theirs", Domain: "bank.example", Lives: []logins.Life{life(4)}, AliveSince: noon.Add(time.Hour)},
		{Name: "third", Domain: "https://www.bank.example", AliveSince: noon},
		{Name: "young", Domain: "a.example"},
		{Name: "nowhere"},
		{Name: "odd", Domain: "not a domain"},
	})
	want := []api.LoginFigures{
		{Site: "a.example", Logins: 1},
		{Site: "bank.example", Logins: 3, Stale: 1, Ended: 3, MedianS: 4 * 3600, ShortestS: 3600, LongestS: 9 * 3600, AliveSince: noon},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCostIsToldForTheMonthsThatTheDaysTouch(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	account := `{"open":{},"months":{"2026-01":{"browserbase":{"sessions":1,"seconds":61}},"2025-12":{"browserbase":{"sessions":2,"seconds":600}},"2025-11":{"browserbase":{"sessions":9,"seconds":9000}}}}`
	if err := home.Write("usage.json", []byte(account)); err != nil {
		t.Fatal(err)
	}
	ledger := usage.Open(home, &usage.Options{CapMinutes: 60})
	now := time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC)
	for days, want := range map[int][]string{7: {"2026-03 0 60"}, 90: {"2026-03 0 60", "2026-01 2 0"}} {
		var got []string
		for _, m := range months(ledger, now, days) {
			got = append(got, fmt.Sprintf("%s %d %d", m.Month, m.Minutes, m.CapMinutes))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d days: %s", days, diff)
		}
	}
}
