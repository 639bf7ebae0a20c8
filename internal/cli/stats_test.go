package cli

import (
	"strings"
	"testing"

	"tapin/internal/api"
)

func TestStatsAreToldInWords(t *testing.T) {
	t.Parallel()
	rate := .75
	figures := api.HandoffFigures{
		Asked: 5, Running: 1, Ended: 4, Unblocked: 3, Expired: 1, UnblockRate: &rate,
		TimeToHuman: api.Spread{Count: 3, MedianS: 42, P90S: 380}, TimeToDone: api.Spread{Count: 3, MedianS: 130, P90S: 9000},
	}
	whole := api.Analytics{
		Days: 30, KeptDays: 10, From: "2026-02-03", To: "2026-03-04", Handoffs: figures, Takeovers: 2, Counting: true,
		Reasons: []api.ReasonFigures{{Reason: "login", HandoffFigures: figures}, {Reason: "2fa"}},
		Sites:   []api.SiteFigures{{Site: "bank.example\x1b[2J", HandoffFigures: figures, Reasons: []api.ReasonCount{{Reason: "login", Count: 5}}, Advice: "A saved login could have avoided 4 of 5."}},
		Logins:  []api.LoginFigures{{Site: "bank.example", Logins: 1, Stale: 1, Ended: 2, MedianS: 3 * 86400, ShortestS: 3600 * 5, LongestS: 6 * 86400}},
		Approvals: api.ApprovalFigures{
			Asked: 3, ByOwner: 1, ByPolicy: 2,
			Paid: []api.PaidSum{{Money: api.Money{Amount: "5000", Currency: "JPY"}, Payments: 1}, {Money: api.Money{Amount: "0.30", Currency: "USD"}, Payments: 2}},
		},
		Cost: []api.MonthOfBrowsers{{Month: "2026-03", Minutes: 61, CapMinutes: 600, Providers: []api.ProviderUsage{{Provider: "browserbase"}}}, {Month: "2026-02"}},
	}
	w := newWorld(t)
	(&app{env: w.Env}).tellStats(&whole)
	for _, want := range []string{
		"still being counted", "5, 1 running", "3 of 4, 75 %", "nobody came 1×", "half within 42 seconds, nine of ten within 6 minutes", "half within 2 minutes, nine of ten within 3 hours",
		"A saved login could have avoided 4 of 5.", "lasts 3 days, 5 hours to 6 days over 2 times, signed out now", "1 by you, 2 by policy",
		"5000 JPY (1 payment), 0.30 USD (2 payments)", "61 minutes of 600", "go back 10 days",
	} {
		if !strings.Contains(w.stdout.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, w.stdout.String())
		}
	}
	if strings.ContainsAny(w.stdout.String(), "\x1b") || strings.Contains(w.stdout.String(), "2026-02 ") {
		t.Errorf("it says %q", w.stdout.String())
	}
	empty := newWorld(t)
	(&app{env: empty.Env}).tellStats(&api.Analytics{Days: 7})
	if got := empty.stdout.String(); got != "Nothing yet: no agent has asked for you in 7 days.\n" {
		t.Errorf("of nothing it says %q", got)
	}
}
