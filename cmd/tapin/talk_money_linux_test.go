package main

import (
	"bytes"
	"image"
	_ "image/jpeg" // the picture of a total
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/chat/telegram/bottest"
)

// payer is an agent with a bill to pay, and its owner in the chat.
type payer struct {
	*talk
	shop *cashier
}

// TestTalkAboutMoney is what an owner lives through whose agent pays bills:
// asked in the chat and answered in a word, then told afterwards, because a
// sentence in the chat allowed it. The shop's own books say what was paid.
func TestTalkAboutMoney(t *testing.T) {
	t.Parallel()
	p := &payer{talk: newTalk(t), shop: newCashier(t)}
	p.shop.due["december"] = "$980.00"
	list := filepath.Join(p.home, "browser-contexts.yaml")
	if err := os.WriteFile(list, []byte("contexts:\n  verizon:\n    domain: 127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.up()
	p.must("agent", "POST", "/session/start", map[string]any{"screenshot": false})

	// Criterion 7 and scenario 4.
	t.Run("a yes in the chat pays once", func(t *testing.T) {
		p := p.in(t)
		p.bill("august")
		p.refused("august", "")
		id := p.asks("142.50", "pending")
		asked := p.question("Verizon bill is $142.50 — okay to confirm?\nThe page on 127.0.0.1 says 142.50 USD.")
		p.seesTheTotal(asked)
		p.refused("august", id)

		p.says("yes")
		p.hears(id, "approved", "owner")
		p.clicks("august", id)
		over := p.reads("Paid Verizon bill — $142.50.")
		if over.ID != asked.ID || len(over.Buttons) != 0 {
			t.Errorf("the question %d became %+v", asked.ID, over)
		}
		p.bill("august")
		p.refused("august", id)
	})

	t.Run("a no in the chat pays nothing", func(t *testing.T) {
		p := p.in(t)
		p.bill("september")
		id := p.asks("142.50", "pending")
		asked := p.question("Verizon bill is $142.50 — okay to confirm?")
		p.says("no")
		p.hears(id, "denied", "owner")
		p.refused("september", id)
		if over := p.reads("You said no. Nothing is paid."); over.ID != asked.ID || len(over.Buttons) != 0 {
			t.Errorf("the question %d became %+v", asked.ID, over)
		}
	})

	// Scenario 4b.
	t.Run("a sentence in the chat, confirmed by its button, pays without asking", func(t *testing.T) {
		p := p.in(t)
		p.bill("october")
		p.says("auto-approve Verizon payments under $200")
		proposed := p.reads("Approve by myself from now on — verizon (127.0.0.1): up to $200.00 a payment?")
		early := p.asks("142.50", "pending") // words alone allow nothing
		p.bot.Tap(theOwner, p.question("Verizon bill is $142.50 — okay to confirm?").ID, "No")
		p.hears(early, "denied", "owner")
		p.bot.Tap(theOwner, proposed.ID, "Yes, do that")
		allowed := p.reads("From now on I approve by myself — verizon (127.0.0.1): up to $200.00 a payment.")

		p.bill("november")
		p.refused("november", "") // no click goes without a grant, whatever is allowed
		id := p.asks("142.50", "approved")
		p.hears(id, "approved", "policy")
		p.clicks("november", id)
		p.sees("that it was paid, in a message of its own", func(m bottest.Message) bool {
			return m.ID > allowed.ID && m.Text == "Paid Verizon bill — $142.50."
		})
		for _, m := range p.bot.Chat(theOwner) {
			if m.ID > allowed.ID && strings.Contains(m.Text, "okay to confirm?") {
				t.Errorf("the owner was asked: %q", m.Text)
			}
		}
		p.bill("november")
		p.refused("november", id)
	})

	t.Run("a sum within the limit that is not the page's asks", func(t *testing.T) {
		p := p.in(t)
		p.bill("october")
		id := p.asks("14.25", "pending")
		asked := p.question("⚠️ The agent says $14.25; the page shows $142.50.")
		if _, ok := asked.Button("Yes, pay 142.50 USD"); !ok {
			t.Errorf("the buttons: %+v", asked.Buttons)
		}
		p.bot.Tap(theOwner, asked.ID, "No")
		p.hears(id, "denied", "owner")
		p.refused("october", id)
	})

	t.Run("what is above the limit asks", func(t *testing.T) {
		p := p.in(t)
		p.bill("december")
		id := p.asks("980.00", "pending")
		p.question("Verizon bill is $980.00 — okay to confirm?\nThe page on 127.0.0.1 says 980.00 USD.")
		p.refused("december", id)
		p.says("go ahead")
		p.hears(id, "approved", "owner")
		p.clicks("december", id)
		p.reads("Paid Verizon bill — $980.00.")
	})

	for month, want := range map[string]int{"august": 1, "september": 0, "october": 0, "november": 1, "december": 1} {
		if got := p.shop.payments(month); got != want {
			t.Errorf("the shop was paid %d times for %s, not %d", got, month, want)
		}
	}
	for _, m := range p.bot.Chat(theOwner) {
		if strings.Contains(m.Text, "Here's the browser") {
			t.Errorf("the browser was handed over: %q", m.Text)
		}
	}
}

// in is the same world, for one scene.
func (p *payer) in(t testing.TB) *payer { return &payer{talk: p.talk.in(t), shop: p.shop} }

// bill has the agent open the bill of a month.
func (p *payer) bill(month string) {
	p.t.Helper()
	p.must("agent", "POST", "/session/navigate", map[string]any{"url": p.shop.URL + "/?round=" + month, "screenshot": false})
}

// asks has the agent ask for the payment that is on the page.
func (p *payer) asks(amount, status string) string {
	p.t.Helper()
	got := p.must("agent", "POST", "/approval/request", map[string]any{
		"site": "127.0.0.1", "payee": "Verizon", "amount": amount, "currency": "USD", "description": "Verizon bill",
	})
	if got.text("status") != status {
		p.t.Fatalf("it is %s, not %s: %v", got.text("status"), status, got.body)
	}
	return got.text("approval_id")
}

// hears has the agent wait for what was decided.
func (p *payer) hears(id, status, by string) {
	p.t.Helper()
	var got answer
	p.within("the decision", func() bool {
		got = p.must("agent", "GET", "/approval/"+id, nil)
		return got.text("status") != "pending"
	})
	if got.text("status") != status || got.text("decided_by") != by {
		p.t.Fatalf("it is %s by %s, not %s by %s", got.text("status"), got.text("decided_by"), status, by)
	}
}

func (p *payer) click(id string) answer {
	p.t.Helper()
	return p.ask("agent", "POST", "/session/click", map[string]any{"selector": "#pay", "approval_id": id, "screenshot": false, "timeout_ms": 5000})
}

// clicks has the agent pay, which the shop has to hear of once.
func (p *payer) clicks(month, id string) {
	p.t.Helper()
	if got := p.click(id); !got.ok() {
		p.t.Fatalf("the click: %d %v\n%s", got.code, got.body, p.logs())
	}
	p.within("the payment", func() bool { return p.shop.payments(month) > 0 })
	if got := p.must("agent", "GET", "/approval/"+id, nil); got.text("status") != "used" || got.text("outcome") != "confirmed" {
		p.t.Errorf("in the end it is %v", got.body)
	}
}

// refused has the agent click where it may not, which the shop must not notice.
func (p *payer) refused(month, id string) {
	p.t.Helper()
	before := p.shop.payments(month)
	if got := p.click(id); got.text("error") != "APPROVAL_REQUIRED" {
		p.t.Fatalf("the click: %d %v", got.code, got.body)
	}
	if after := p.shop.payments(month); after != before {
		p.t.Fatalf("a click that was refused paid for %s", month)
	}
}

// question waits for a question that can be answered.
func (p *payer) question(words string) bottest.Message {
	p.t.Helper()
	return p.sees(words, func(m bottest.Message) bool {
		_, yes := m.Button("Yes")
		_, no := m.Button("No")
		return strings.Contains(m.Text, words) && yes && no
	})
}

// seesTheTotal checks that a question has the picture of a part of the page, with
// something on it.
func (p *payer) seesTheTotal(asked bottest.Message) {
	p.t.Helper()
	shot, _, err := image.Decode(bytes.NewReader(asked.Photo))
	if err != nil {
		p.t.Fatalf("the picture of %d bytes: %v", len(asked.Photo), err)
	}
	size, ink := shot.Bounds(), 0
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			if r, _, _, _ := shot.At(x, y).RGBA(); r < 0x8000 {
				ink++
			}
		}
	}
	if size.Dy() > 400 || ink < 50 {
		p.t.Errorf("the picture is %v, %d pixels are dark", size, ink)
	}
}
