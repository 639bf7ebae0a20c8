package approval

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/page"
	"tapin/internal/store"
)

func TestAYesPaysOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	if err := h.pay(""); !errors.Is(err, fault.ApprovalRequired) || fault.Of(err).Data["suggested_next"] == nil {
		t.Fatalf("without an approval: %v", err)
	}
	rec := h.ask(bill())
	if rec.Status != Pending || rec.Question() != "Verizon bill is $142.50 — okay to confirm?" || len(rec.Differs) != 0 {
		t.Fatalf("got %+v", rec)
	}
	if err := h.pay(rec.ID); !errors.Is(err, fault.ApprovalRequired) {
		t.Errorf("before the answer: %v", err)
	}
	if shot, err := h.Crop(rec.ID); err != nil || shot.Base64 != "/9j/" {
		t.Errorf("the crop: %v %v", shot, err)
	}
	yes, err := h.Decide(t.Context(), rec.ID, true, nil)
	must(t, err)
	if yes.Status != Approved || yes.Granted == nil || yes.Granted.Amount != "142.50" || yes.DecidedBy != Owner {
		t.Fatalf("got %+v", yes)
	}
	must(t, h.pay(rec.ID))
	if err := h.pay(rec.ID); !errors.Is(err, fault.ApprovalRequired) || h.shop.payments() != 1 {
		t.Errorf("again: %v, and %d payments", err, h.shop.payments())
	}
	over, err := h.Get(rec.ID)
	must(t, err)
	if over.Status != Used || over.Outcome != OutcomeConfirmed || over.Notice() != "Paid Verizon bill — $142.50." {
		t.Errorf("got %+v: %s", over, over.Notice())
	}
	if want := []string{"approval.requested", "approval.decided", "approval.used"}; !slices.Equal(h.told(), want) {
		t.Errorf("told %v", h.told())
	}
	if _, err := h.Crop(rec.ID); !errors.Is(err, fault.NotFound) {
		t.Errorf("the crop is still there: %v", err)
	}
	if _, err := h.Decide(t.Context(), rec.ID, false, nil); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a no after the payment: %v", err)
	}
}

// TestAGrantIsForExactlyWhatWasSeen is the table of everything that may be
// otherwise when the click comes.
func TestAGrantIsForExactlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*shop)
		want   fault.Code // "" pays
	}{
		"the same":                  {func(*shop) {}, ""},
		"another amount":            {func(s *shop) { s.totals = shows("https://www.verizon.com", 98000, "USD") }, fault.ApprovalRequired},
		"a smaller amount":          {func(s *shop) { s.totals = shows("https://www.verizon.com", 14249, "USD") }, fault.ApprovalRequired},
		"another currency":          {func(s *shop) { s.totals = shows("https://www.verizon.com", 14250, "EUR") }, fault.ApprovalRequired},
		"no total any more":         {func(s *shop) { s.totals.Decision, s.totals.Total = page.TotalNone, money.Amount{} }, fault.ApprovalRequired},
		"two totals":                {func(s *shop) { s.totals.Decision = page.TotalAmbiguous }, fault.ApprovalRequired},
		"another host of the site":  {func(s *shop) { s.totals.Origin = "https://pay.verizon.com" }, fault.ApprovalRequired},
		"a look-alike domain":       {func(s *shop) { s.totals.Origin = "https://www.verizon-pay.com" }, fault.ApprovalRequired},
		"a homograph":               {func(s *shop) { s.totals.Origin = "https://www.xn--verzon-9db.com" }, fault.ApprovalRequired},
		"not encrypted":             {func(s *shop) { s.totals.Origin = "http://www.verizon.com" }, fault.ApprovalRequired},
		"another session":           {func(s *shop) { s.session = "ses_2" }, fault.ApprovalRequired},
		"after a park or a crash":   {func(s *shop) { s.generation = 2 }, fault.ApprovalRequired},
		"the owner may see a frame": {func(s *shop) { s.totals.Foreign = true }, ""},
	} {
		h := newHouse(t, nil)
		rec := h.ask(bill())
		_, err := h.Decide(t.Context(), rec.ID, true, nil)
		must(t, err)
		c.change(h.shop)
		err = h.pay(rec.ID)
		if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if paid := h.shop.payments(); (paid == 1) != (c.want == "") {
			t.Errorf("%s: %d payments", name, paid)
		}
	}
}

func TestAnAgentThatLiesIsShownBesideThePage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(*Request)
		page func(*shop)
		says string
	}{
		"about the amount":  {lie: func(q *Request) { q.Amount.Minor = 980 }, says: "The agent says $9.80; the page shows $142.50."},
		"about the site":    {lie: func(q *Request) { q.Site = "chase.com" }, says: "The agent says chase.com; the page is of www.verizon.com."},
		"about the payee":   {lie: func(q *Request) { q.Payee = "Power & Light" }, says: "The page does not name Power & Light."},
		"ambiguous page":    {page: func(s *shop) { s.totals.Decision, s.totals.Total = page.TotalAmbiguous, money.Amount{} }, says: "The page shows more than one total: $142.50."},
		"page without one":  {page: func(s *shop) { s.totals = page.Totals{Origin: "https://www.verizon.com", Decision: page.TotalNone} }, says: "No total could be read on the page."},
		"look-alike domain": {page: func(s *shop) { s.totals.Origin = "https://verizon.com.pay.example" }, says: "The agent says verizon.com; the page is of verizon.com.pay.example."},
	} {
		h := newHouse(t, nil)
		h.allow("auto-approve verizon under $10000")
		q := bill()
		if c.lie != nil {
			c.lie(&q)
		}
		if c.page != nil {
			c.page(h.shop)
		}
		rec := h.ask(q)
		if rec.Status != Pending || !slices.Contains(rec.Differs, c.says) {
			t.Errorf("%s: %s %q", name, rec.Status, rec.Differs)
		}
	}
}

func TestADisputedSumNeedsTheSumInTheYes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	q := bill()
	q.Amount.Minor = 980
	rec := h.ask(q)
	if _, err := h.Decide(t.Context(), rec.ID, true, nil); !errors.Is(err, fault.InvalidRequest) {
		t.Fatalf("a plain yes: %v", err)
	}
	if _, err := h.Decide(t.Context(), rec.ID, true, &Sum{"9.80", "USD"}); !errors.Is(err, fault.InvalidRequest) {
		t.Fatalf("the agent's sum: %v", err)
	}
	yes, err := h.Decide(t.Context(), rec.ID, true, &Sum{"142.50", "USD"})
	must(t, err)
	if yes.Granted.Amount != "142.50" {
		t.Errorf("granted %v", yes.Granted)
	}
	must(t, h.pay(rec.ID))
}

func TestPoliciesApproveOnlyWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		page   func(*shop)
		q      func(*Request)
		want   Status
	}{
		"under the limit":            {policy: "auto-approve verizon under $200", want: Approved},
		"exactly the limit":          {policy: "auto-approve verizon up to $142.50", want: Approved},
		"a cent over":                {policy: "auto-approve verizon up to $142.49", want: Pending},
		"another currency":           {policy: "auto-approve verizon up to 200 EUR", want: Pending},
		"within the month":           {policy: "auto-approve verizon up to $300 a month", want: Approved},
		"over the month":             {policy: "auto-approve verizon up to $142 a month", want: Pending},
		"by domain, without a login": {policy: "auto-approve verizon.com under $200", want: Approved},
		"for another site":           {policy: "auto-approve chase under $200", want: Pending},
		"a larger total in sight":    {policy: "auto-approve verizon under $200", page: func(s *shop) { s.totals.Larger = true }, want: Pending},
		"a currency in doubt":        {policy: "auto-approve verizon under $200", page: func(s *shop) { s.totals.Certain = false }, want: Pending},
		"a total from the address":   {policy: "auto-approve verizon under $200", page: func(s *shop) { s.totals.Echoed = true }, want: Pending},
		"a total in a foreign frame": {policy: "auto-approve verizon under $200", page: func(s *shop) { s.totals.Foreign = true }, want: Pending},
		"a page that is not https":   {policy: "auto-approve verizon under $200", page: func(s *shop) { s.totals.Origin = "http://www.verizon.com" }, want: Pending},
		"a payee nobody names":       {policy: "auto-approve verizon under $200", q: func(q *Request) { q.Payee = "Somebody" }, want: Pending},
		"yen that may be yuan":       {policy: "auto-approve verizon under ¥20000", page: func(s *shop) { s.totals = shows("https://www.verizon.com", 5000, "JPY"); s.totals.Certain = false }, q: func(q *Request) { q.Amount = money.Amount{Minor: 5000, Currency: "JPY"} }, want: Pending},
		"yen that are yen":           {policy: "auto-approve verizon under ¥20000", page: func(s *shop) { s.totals = shows("https://www.verizon.com", 5000, "JPY") }, q: func(q *Request) { q.Amount = money.Amount{Minor: 5000, Currency: "JPY"} }, want: Approved},
	} {
		h := newHouse(t, nil)
		h.allow(c.policy)
		if c.page != nil {
			c.page(h.shop)
		}
		q := bill()
		if c.q != nil {
			c.q(&q)
		}
		rec := h.ask(q)
		if rec.Status != c.want || (rec.DecidedBy == Policy) != (c.want == Approved) {
			t.Errorf("%s: %s by %q", name, rec.Status, rec.DecidedBy)
		}
		if c.want == Approved {
			must(t, h.pay(rec.ID))
		}
	}
}

func TestWhatIsVisibleAtTheClickCountsForAPolicy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*house){
		"a larger total":            func(h *house) { h.shop.totals.Larger = true },
		"a total from the address":  func(h *house) { h.shop.totals.Echoed = true },
		"the owner stopped it":      func(h *house) { _, err := h.Stop(t.Context(), "verizon"); must(t, err) },
		"the manifest was changed":  func(h *house) { h.shelf.all[0].Policy = &Standing{Max: Sum{"9999", "USD"}} },
		"the manifest is not there": func(h *house) { h.shelf.fail = errors.New("broken") },
	} {
		h := newHouse(t, nil)
		h.allow("auto-approve verizon under $200")
		rec := h.ask(bill())
		if rec.Status != Approved {
			t.Fatalf("%s: %s", name, rec.Status)
		}
		change(h)
		if err := h.pay(rec.ID); !errors.Is(err, fault.ApprovalRequired) || h.shop.payments() != 0 {
			t.Errorf("%s: %v, %d payments", name, err, h.shop.payments())
		}
	}
}

func TestBudgetsHoldAcrossRestartsAndMonths(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, s, sh := t.TempDir(), newShop(), verizon()
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Skip("no zones here")
		}
		// 22:30 UTC on the last of January is half an hour before the owner's February.
		pass(time.Until(time.Date(2000, 1, 31, 22, 30, 0, 0, time.UTC)))
		live := func(zone *time.Location) *house {
			h, err := moveIn(t, dir, s, sh, nil, &Options{Location: zone})
			must(t, err)
			return h
		}
		h := live(berlin)
		h.allow("auto-approve verizon up to $300 a month until march")
		for i := range 2 {
			rec := h.ask(bill())
			if rec.Status != Approved {
				t.Fatalf("payment %d: %s", i, rec.Status)
			}
			must(t, h.pay(rec.ID))
		}
		h.out()
		h = live(time.UTC) // the laptop has moved; the policy has not
		if rec := h.ask(bill()); rec.Status != Pending {
			t.Errorf("over the budget after a restart: %s", rec.Status)
		}
		policies, _ := h.InForce(t.Context())
		if left, ok := h.Left(policies[0]); !ok || left.Major() != "15.00" {
			t.Errorf("left %v", left)
		}
		pass(31 * time.Minute) // 23:01 UTC: February where the owner lives, January here
		rec := h.ask(bill())
		if rec.Status != Approved {
			t.Errorf("in the new month: %s", rec.Status)
		}
		pass(11 * time.Minute) // the grant lapses unused, and its part of the budget comes back
		if got, _ := h.Get(rec.ID); got.Status != Expired {
			t.Errorf("an unused grant is %s", got.Status)
		}
		if left, _ := h.Left(policies[0]); left.Major() != "300.00" {
			t.Errorf("left %v after the grant lapsed", left)
		}
		h.out()
		h = live(time.FixedZone("elsewhere", 14*3600))
		pass(time.Until(time.Date(2000, 2, 29, 22, 59, 0, 0, time.UTC)))
		if rec := h.ask(bill()); rec.Status != Approved {
			t.Errorf("a minute before March: %s", rec.Status)
		}
		pass(2 * time.Minute)
		if rec := h.ask(bill()); rec.Status != Pending {
			t.Errorf("in March: %s", rec.Status)
		}
		h.out()
	})
}

func TestRequestsAndGrantsEndByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := moveIn(t, t.TempDir(), newShop(), verizon(), nil, nil)
		must(t, err)
		defer h.out()
		slow, unused := h.ask(bill()), h.ask(bill())
		_, err = h.Decide(t.Context(), unused.ID, true, nil)
		must(t, err)
		pass(10*time.Minute + time.Second)
		synctest.Wait()
		if err := h.pay(unused.ID); !errors.Is(err, fault.ApprovalExpired) {
			t.Errorf("a grant past its time: %v", err)
		}
		pass(20 * time.Minute)
		synctest.Wait()
		if got, _ := h.Get(slow.ID); got.Status != Expired {
			t.Errorf("an unanswered request is %s", got.Status)
		}
		if _, err := h.Decide(t.Context(), slow.ID, true, nil); !errors.Is(err, fault.ApprovalExpired) {
			t.Errorf("a late yes: %v", err)
		}
		if h.shop.payments() != 0 {
			t.Error("something was paid")
		}
	})
}

func TestWhatAHandWroteIntoTheManifestWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.allow("auto-approve verizon under $150")
	h.shelf.all[0].Policy = &Standing{Max: Sum{"9999", "USD"}} // raised by hand
	if rec := h.ask(bill()); rec.Status != Pending {
		t.Fatalf("a raised limit approved: %s", rec.Status)
	}
	_, proposals := h.InForce(t.Context())
	if len(proposals) != 1 || proposals[0].From != "manifest" || !slices.Contains(h.told(), "policy.proposed") {
		t.Fatalf("proposals %+v, told %v", proposals, h.told())
	}
	if again, p := h.InForce(t.Context()); len(again) != 1 || len(p) != 1 {
		t.Errorf("asked twice: %v %v", again, p)
	}
	must(t, h.Reject(t.Context(), proposals[0].ID))
	if h.shelf.all[0].Policy == nil || h.shelf.all[0].Policy.Max.Amount != "150.00" {
		t.Errorf("the manifest now says %+v", h.shelf.all[0].Policy)
	}
	if rec := h.ask(bill()); rec.Status != Approved {
		t.Errorf("the confirmed policy is %s", rec.Status)
	}
	h.shelf.all[1].Policy = &Standing{Max: Sum{"50", "USD"}} // one that nobody confirmed
	_, proposals = h.InForce(t.Context())
	_, err := h.Confirm(t.Context(), proposals[0].ID)
	must(t, err)
	if said := h.Sentence(); !strings.Contains(said, "chase (chase.com): up to $50.00 a payment") || !strings.Contains(said, "verizon (verizon.com)") {
		t.Errorf("says %q", said)
	}
	answer, err := h.Say(t.Context(), "stop auto-approving everything")
	must(t, err)
	if h.Sentence() != "Nothing. I ask before every payment." || h.shelf.all[0].Policy != nil || h.shelf.all[1].Policy != nil {
		t.Errorf("after the stop: %s; %+v", answer.Sentence, h.shelf.all)
	}
}

func TestTheOwnerClearsAFalseAlarmForOneSite(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	must(t, h.Clear(t.Context(), "www.verizon.com", "Confirm  payment"))
	if err := h.pay(""); err != nil {
		t.Errorf("the cleared button: %v", err)
	}
	h.shop.totals.Origin = "https://chase.com"
	if err := h.pay(""); !errors.Is(err, fault.ApprovalRequired) {
		t.Errorf("the same button elsewhere: %v", err)
	}
	h.shop.totals.Origin = "https://www.verizon.com"
	must(t, h.Unclear(t.Context(), "verizon.com"))
	if err := h.pay(""); !errors.Is(err, fault.ApprovalRequired) {
		t.Errorf("guarded again: %v", err)
	}
}

func TestADomainThatOnlyTheAgentChoseIsNotTakenForTheOwners(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.shelf.all[0] = Written{Login: "verizon", Domain: "verizon-pay.com", Noticed: true}
	answer, err := h.Say(t.Context(), "auto-approve verizon under $200")
	if err != nil || answer.Proposal != nil || !strings.Contains(answer.Sentence, "verizon-pay.com") {
		t.Errorf("got %+v %v", answer, err)
	}
	h.allow("auto-approve verizon.com under $200")
	if rec := h.ask(bill()); rec.Status != Approved {
		t.Errorf("the site that the owner named: %s", rec.Status)
	}
}

func TestANoAndATakenBackYesPayNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	no, back := h.ask(bill()), h.ask(bill())
	for id, answers := range map[string][]bool{no.ID: {false}, back.ID: {true, false}} {
		for _, yes := range answers {
			_, err := h.Decide(t.Context(), id, yes, nil)
			must(t, err)
		}
		if err := h.pay(id); !errors.Is(err, fault.ApprovalRequired) {
			t.Errorf("%v: %v", answers, err)
		}
	}
	if h.shop.payments() != 0 {
		t.Error("something was paid")
	}
}

// TestNoHistoryPaysTwice plays random histories against one grant.
func TestNoHistoryPaysTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		read := Reading{Origin: "https://a.example", Decision: "total", Total: &Sum{"5.00", "EUR"}, Certain: true}
		rec := Record{ID: "apr", Status: Pending, SessionID: "s", Generation: 1, Claim: Sum{"5.00", "EUR"}, Reading: read, Deadline: now.Add(time.Hour)}
		used, yes := 0, false
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			var e Event
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				e = decision{by: Owner, yes: rapid.Bool().Draw(rt, "yes"), now: now, grant: 10 * time.Minute}
			case 1:
				e = lapse{now}
			case 2:
				e = use{now: now, session: rapid.SampledFrom([]string{"s", "x"}).Draw(rt, "session"), generation: rapid.IntRange(1, 2).Draw(rt, "gen"), reading: read, sameSite: true}
			case 3:
				e = settled{OutcomeUnknown}
			case 4:
				now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "minutes")) * time.Minute)
				continue
			}
			before := rec
			got, _, err := next(rec, e)
			if err != nil && got.Status != before.Status {
				rt.Fatalf("a refusal changed %s to %s", before.Status, got.Status)
			}
			rec = got
			yes = yes || before.Status == Pending && rec.Status == Approved
			if _, is := e.(use); is && err == nil && rec.Status == Used && before.Status != Used {
				used++
				if !yes || before.Status != Approved || !now.Before(before.Deadline) {
					rt.Fatalf("used from %s", before.Status)
				}
			}
		}
		if used > 1 || used == 1 && !yes {
			rt.Fatalf("used %d times", used)
		}
	})
}

func TestAGrantIsForWhoWasNamed(t *testing.T) {
	t.Parallel()
	rent := bill()
	rent.Payee, rent.Description = "Landlord Ltd", "rent"
	for name, c := range map[string]struct {
		asked, paid string // whom the page names
		byPolicy    bool
		pays        bool
	}{
		"the same recipient":               {"Landlord Ltd", "Landlord Ltd", false, true},
		"another recipient":                {"Landlord Ltd", "Mallory", false, false},
		"the same, by a policy":            {"Landlord Ltd", "Landlord Ltd", true, true},
		"another, by a policy":             {"Landlord Ltd", "Mallory", true, false},
		"nobody, and the owner said so":    {"", "", false, true},
		"nobody first, and then somebody":  {"", "Mallory", false, true}, // what the owner was told holds: the page does not name them
		"somebody first, and nobody later": {"Landlord Ltd", "", false, false},
	} {
		h := newHouse(t, nil)
		if c.byPolicy {
			h.allow("auto-approve verizon under $200")
		}
		h.shop.payee = c.asked
		rec := h.ask(rent)
		if !c.byPolicy {
			_, err := h.Decide(t.Context(), rec.ID, true, nil)
			must(t, err)
		}
		h.shop.payee = c.paid
		err := h.pay(rec.ID)
		if c.pays && err != nil || !c.pays && !errors.Is(err, fault.ApprovalRequired) || (h.shop.payments() == 1) != c.pays {
			t.Errorf("%s: %v, %d payments", name, err, h.shop.payments())
		}
	}
}

func TestAForgottenPaymentGivesNoBudgetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, s, sh := t.TempDir(), newShop(), verizon()
		live := func() *house {
			h, err := moveIn(t, dir, s, sh, nil, &Options{Keep: 24 * time.Hour})
			must(t, err)
			return h
		}
		h := live()
		h.allow("auto-approve verizon up to $300 a month")
		for range 2 {
			must(t, h.pay(h.ask(bill()).ID))
		}
		pass(48 * time.Hour) // beyond what is kept, within the month
		synctest.Wait()
		h.out()
		h = live()
		defer h.out()
		if rec := h.ask(bill()); rec.Status != Pending {
			t.Errorf("a third payment of $142.50 within $300 a month: %s", rec.Status)
		}
	})
}

// A record that is lost or put aside may be of a payment that was made; one that
// was never written is not.
func TestALostPaymentGivesNoBudgetBack(t *testing.T) {
	t.Parallel()
	for name, becomes := range map[string]struct {
		of   func(t *testing.T, h *house, id string)
		then Status
	}{
		"missing": {func(t *testing.T, h *house, id string) { must(t, h.deps.Home.Remove(file(id))) }, Pending},
		"put aside": {func(t *testing.T, h *house, id string) {
			_, err := h.deps.Home.PutAside(file(id), errors.New("cut"))
			must(t, err)
		}, Pending},
		"put aside while it was open": {func(t *testing.T, h *house, id string) {
			must(t, h.index.Add(id))
			_, err := h.deps.Home.PutAside(file(id), errors.New("cut"))
			must(t, err)
		}, Pending},
		"never written": {func(t *testing.T, h *house, id string) {
			must(t, h.index.Add(id))
			must(t, h.deps.Home.Remove(file(id)))
		}, Approved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dir, s, sh := t.TempDir(), newShop(), verizon()
				h, err := moveIn(t, dir, s, sh, nil, nil)
				must(t, err)
				h.allow("auto-approve verizon up to $300 a month")
				var last Record
				for range 2 {
					last = h.ask(bill())
					must(t, h.pay(last.ID))
				}
				becomes.of(t, h, last.ID)
				h.out()
				for range 2 {
					h, err = moveIn(t, dir, s, sh, nil, nil)
					must(t, err)
					if open, err := h.index.List(); err == nil && slices.Contains(open, last.ID) && becomes.then == Approved {
						t.Error("it is still listed as open")
					}
					if becomes.then == Pending {
						if rec := h.ask(bill()); rec.Status != Pending {
							t.Errorf("a third payment of $142.50 within $300 a month: %s", rec.Status)
						}
					}
					h.out()
				}
				if becomes.then == Approved {
					h, err = moveIn(t, dir, s, sh, nil, nil)
					must(t, err)
					if rec := h.ask(bill()); rec.Status != Approved {
						t.Errorf("what was never asked for counts: %s", rec.Status)
					}
					h.out()
				}
			})
		})
	}
}

// What is taken from an earlier time allows nothing by itself.
func TestABookOfAnEarlierTimeAllowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, s, sh := t.TempDir(), newShop(), verizon()
		h, err := moveIn(t, dir, s, sh, nil, nil)
		must(t, err)
		h.allow("auto-approve verizon under $200")
		h.out()
		home, err := store.Open(dir, nil)
		must(t, err)
		for _, want := range []int{1, 0} {
			if n, _, err := Doubt(home, time.Now()); n != want || err != nil {
				t.Errorf("%d policies, %v", n, err)
			}
		}
		must(t, home.Close())
		h, err = moveIn(t, dir, s, sh, nil, nil)
		must(t, err)
		defer h.out()
		if rec := h.ask(bill()); rec.Status != Pending {
			t.Errorf("it is %s", rec.Status)
		}
		if waiting := h.book.Proposals; len(waiting) != 1 {
			t.Errorf("%d wait for the owner", len(waiting))
		}
	})
}

func TestWhatIsOverIsForgottenInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := moveIn(t, t.TempDir(), newShop(), verizon(), nil, &Options{Keep: 24 * time.Hour})
		must(t, err)
		defer h.out()
		old := h.ask(bill())
		_, err = h.Decide(t.Context(), old.ID, false, nil)
		must(t, err)
		pass(23 * time.Hour)
		young := h.ask(bill())
		pass(2*time.Hour + time.Minute)
		synctest.Wait()
		if _, err := h.Get(old.ID); !errors.Is(err, fault.NotFound) {
			t.Errorf("the old one: %v", err)
		}
		if got, err := h.Get(young.ID); err != nil || got.Status != Expired {
			t.Errorf("the young one: %v %v", got.Status, err)
		}
	})
}

// What is allowed is never guessed: without the book everything is asked.
func TestNothingIsApprovedWhileTheBookCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.allow("auto-approve Verizon payments under $200")
		if rec := h.ask(bill()); rec.Status != Approved {
			t.Fatalf("with its policy it is %s", rec.Status)
		}
		file := filepath.Join(h.deps.Home.Path(), policiesFile)
		must(t, os.WriteFile(file, []byte(`{"policies":[`), 0o600))
		room, err := New(h.deps, nil)
		must(t, err)
		h.Room = room
		if rec := h.ask(bill()); rec.Status != Pending {
			t.Errorf("without the book it is %s", rec.Status)
		}
		if _, err := h.Say(t.Context(), "auto-approve Verizon payments under $200"); !errors.Is(err, fault.Unreadable) {
			t.Errorf("a policy is taken in: %v", err)
		}
		if raw, err := os.ReadFile(file); err != nil || string(raw) != `{"policies":[` {
			t.Errorf("the book holds %q, %v", raw, err)
		}
		must(t, h.deps.Home.TakeBefore(policiesFile))
		if rec := h.ask(bill()); rec.Status != Approved {
			t.Errorf("with the version before it is %s", rec.Status)
		}
	})
}
