package telegram

import (
	"context"
	"sync"
	"testing"
	"time"

	payments "tapin/internal/approval"
	"tapin/internal/money"
	"tapin/internal/page"
)

// shop is the page of a payment: what it shows.
type shop struct {
	mu    sync.Mutex
	total money.Amount
}

const shopOrigin = "https://www.verizon.com"

func (s *shop) totals() page.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return page.Totals{Origin: shopOrigin, Decision: page.TotalRead, Total: s.total, Label: "Amount due", Certain: true,
		Seen: []page.Candidate{{Amount: s.total, Label: "Amount due"}}, Named: []bool{true}}
}

func (s *shop) Read(context.Context, string, []string) (payments.Seen, error) {
	return payments.Seen{SessionID: "ses_06cz3qmhc04x2p5ae9gk8v71", Generation: 1, Totals: s.totals()}, nil
}

// noManifest is of an owner who has saved no logins.
type noManifest struct{}

func (noManifest) List(context.Context) ([]payments.Written, error)      { return nil, nil }
func (noManifest) Put(context.Context, string, *payments.Standing) error { return nil }

// sells runs a test in a house whose agent pays.
func sells(t *testing.T, test func(h *house)) {
	t.Helper()
	live(t, func(h *house) {
		h.stopSidecar()
		h.shop = &shop{total: dollars(14250)}
		h.startSidecar()
		time.Sleep(2 * time.Second)
		h.settle()
		test(h)
	})
}

func dollars(cents int64) money.Amount { return money.Amount{Minor: cents, Currency: "USD"} }

// asks has the agent ask for a payment.
func (h *house) asks(claimed money.Amount) string {
	h.t.Helper()
	rec, err := h.till.Request(h.t.Context(), payments.Request{Site: "verizon.com", Payee: "Verizon", Amount: claimed, Description: "Verizon bill"})
	h.must(err)
	h.settle()
	return rec.ID
}

// pays has the agent click.
func (h *house) pays(id string) error {
	h.t.Helper()
	intent := page.Intent{Kind: "click", Label: "Confirm Payment", Sure: true, Frame: shopOrigin, Totals: h.shop.totals()}
	if err := h.till.Permit(h.t.Context(), "ses_06cz3qmhc04x2p5ae9gk8v71", 1, intent, id); err != nil {
		return err
	}
	h.till.Settle(h.t.Context(), id, payments.OutcomeConfirmed)
	h.settle()
	return nil
}

func (h *house) payment(id string) payments.Status {
	h.t.Helper()
	rec, err := h.till.Get(id)
	h.must(err)
	return rec.Status
}

func TestAPaymentIsAnsweredInTheChat(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(h *house, asked int)
		words  string
		after  string
		paid   bool
	}{
		"yes, in a word":   {func(h *house, _ int) { h.say("yes") }, "Yes it is. I'm confirming.", "You said yes.", true},
		"no, in a word":    {func(h *house, _ int) { h.say("no") }, "Not paid.", "You said no. Nothing is paid.", false},
		"yes, by a button": {func(h *house, asked int) { h.bot.Tap(robin, asked, "Yes") }, "", "You said yes.", true},
		"no, by a button":  {func(h *house, asked int) { h.bot.Tap(robin, asked, "No") }, "", "You said no. Nothing is paid.", false},
		"nobody answers":   {func(h *house, _ int) { time.Sleep(31 * time.Minute) }, "", "The time was over. Nothing is paid.", false},
		"words about something else": {func(h *house, _ int) {
			h.say("what is it for?")
			time.Sleep(31 * time.Minute)
		}, "", "The time was over. Nothing is paid.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sells(t, func(h *house) {
				id := h.asks(dollars(14250))
				asked := h.reads("Verizon bill is $142.50 — okay to confirm?")
				if err := h.pays(id); err == nil {
					t.Fatal("it was paid before anybody answered")
				}
				tt.answer(h, asked.ID)
				h.settle()
				if tt.words != "" {
					h.reads(tt.words)
				}
				if got := h.reads(tt.after); got.ID != asked.ID || len(got.Buttons) != 0 {
					t.Errorf("the question became %+v", got)
				}
				if err := h.pays(id); (err == nil) != tt.paid {
					t.Errorf("it is %s, and paying it: %v", h.payment(id), err)
				}
				if err := h.pays(id); err == nil {
					t.Error("it was paid twice")
				}
			})
		})
	}
}

func TestAnOwnerSeesWhatThePageSaysBesideWhatTheAgentSays(t *testing.T) {
	t.Parallel()
	sells(t, func(h *house) {
		h.shop.total = dollars(98000)
		id := h.asks(dollars(14250))
		asked := h.reads("The page on verizon.com says 980.00 USD.")
		if _, ok := asked.Button("Yes, pay 980.00 USD"); !ok {
			t.Fatalf("the buttons: %+v", asked.Buttons)
		}
		h.bot.Tap(robin, asked.ID, "No")
		h.settle()
		if err := h.pays(id); err == nil || h.payment(id) != payments.Denied {
			t.Errorf("it is %s, and paying it: %v", h.payment(id), err)
		}
		again := h.asks(dollars(14250))
		if again == id {
			t.Fatal("the same question")
		}
		h.bot.Tap(robin, h.reads("The page on verizon.com says 980.00 USD.").ID, "Yes, pay 980.00 USD")
		h.settle()
		if err := h.pays(again); err != nil {
			t.Errorf("what the owner saw and said yes to: %v", err)
		}
	})
}

func TestAPolicyIsProposedInWordsAndConfirmedByAButton(t *testing.T) {
	t.Parallel()
	sells(t, func(h *house) {
		inForce := func() int {
			all, _ := h.till.InForce(h.t.Context())
			return len(all)
		}
		const words = "auto-approve verizon.com payments under $200"
		h.say(words)
		first := h.reads("Approve by myself from now on")
		if inForce() != 0 {
			t.Fatal("words alone were enough")
		}
		h.bot.Tap(robin, first.ID, "No")
		h.settle()
		late, _ := first.Button("Yes, do that")
		h.bot.Press(robin, first.ID, late.Data)
		h.settle()
		if inForce() != 0 {
			t.Fatal("what was refused is in force")
		}
		h.say(words)
		h.bot.Tap(robin, h.reads("Approve by myself from now on").ID, "Yes, do that")
		h.settle()
		if inForce() != 1 {
			t.Fatalf("it is not in force:\n%s\n%s", h.chat(robin), h.log())
		}
		before := h.count("okay to confirm?")
		id := h.asks(dollars(14250))
		if h.payment(id) != payments.Approved || h.count("okay to confirm?") != before {
			t.Errorf("it is %s:\n%s", h.payment(id), h.chat(robin))
		}
		h.must(h.pays(id))
		h.reads("Paid Verizon bill — $142.50.")
		h.shop.total = dollars(98000)
		if over := h.asks(dollars(98000)); h.payment(over) != payments.Pending {
			t.Errorf("more than the policy says is %s", h.payment(over))
		}
		h.reads("Verizon bill is $980.00 — okay to confirm?")
		if found, err := h.inbox.Wait(h.t.Context(), 0, 0, 0); err != nil || len(found) != 0 {
			t.Errorf("the agent was told of it: %+v %v", found, err)
		}
		h.say("stop auto-approving verizon.com")
		if inForce() != 0 {
			t.Errorf("it is in force yet:\n%s", h.chat(robin))
		}
	})
}
