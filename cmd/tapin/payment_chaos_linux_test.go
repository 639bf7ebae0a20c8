package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// cashier is a shop that counts what it was paid, by what the page was for.
type cashier struct {
	*httptest.Server
	due map[string]string // by what the page is for; set before it is opened

	mu   sync.Mutex
	paid map[string]int
}

func newCashier(t *testing.T) *cashier {
	t.Helper()
	c := &cashier{due: map[string]string{}, paid: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		round := r.URL.Query().Get("round")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.Method == http.MethodPost {
			c.mu.Lock()
			c.paid[round]++
			c.mu.Unlock()
			_, _ = fmt.Fprint(w, "<p>thank you")
			return
		}
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang=en-US><h1>Verizon</h1><p>Amount due: %s</p><form method=post action="/?round=%s"><button id=pay>Confirm Payment</button></form>`, cmp.Or(c.due[round], "$142.50"), round)
	}))
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *cashier) payments(round string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paid[round]
}

// TestChaosOfAPayment kills the sidecar, and at times the daemon or the browser
// with it, at random moments between the owner's yes and the answer to the
// click. An agent that does not know what happened tries again and again. No
// grant may ever pay twice, and what nobody saw has to be called unknown.
func TestChaosOfAPayment(t *testing.T) {
	rounds, seed := 2, uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil && n > 0 {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("TAPIN_CHAOS_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d: repeat with TAPIN_CHAOS_SEED=%[1]d TAPIN_CHAOS=%d", seed, rounds)
	w, shop := newWorld(t), newCashier(t)
	w.up()
	counts := map[string]int{}
	takes := payRound(t, w, shop, "calm", rand.New(rand.NewPCG(seed, 0)), 0, map[string]int{}) //nolint:gosec // dice
	t.Logf("an errand takes %v when nobody dies", takes)
	for n := range rounds {
		if n > 0 && n%25 == 0 {
			t.Logf("%d rounds: %v", n, counts)
			w.kill(w.pids("daemon")...) // a daemon gives up a sidecar that dies all the time
			w.up()
			w.serving()
		}
		dice := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // dice
		took := payRound(t, w, shop, strconv.Itoa(n), dice, takes, counts)
		takes = (3*takes + took) / 4
	}
	t.Logf("%d rounds: %v", rounds, counts)
}

// payRound is one grant and one kill, or none where it is not known yet how long
// the errand takes. It returns how long the errand took, or
// would have taken.
func payRound(t *testing.T, w *world, shop *cashier, round string, dice *rand.Rand, takes time.Duration, counts map[string]int) time.Duration {
	t.Helper()
	if w.must("agent", "GET", "/session/status", nil).body["active"] != true {
		w.must("agent", "POST", "/session/start", map[string]any{"screenshot": false})
	}
	open := map[string]any{"url": shop.URL + "/?round=" + round, "screenshot": false}
	w.must("agent", "POST", "/session/navigate", open)
	asked := w.must("agent", "POST", "/approval/request", map[string]any{"site": "127.0.0.1", "payee": "Verizon", "amount": "142.50", "currency": "USD"})
	id := asked.text("approval_id")
	click := map[string]any{"selector": "#pay", "approval_id": id, "screenshot": false, "timeout_ms": 2000}

	victims, with := w.pids("sidecar"), ""
	switch dice.IntN(8) {
	case 0:
		victims, with = append(victims, w.pids("daemon")...), ", with the daemon"
	case 1:
		victims, with = append(victims, w.pids("browser")...), ", with the browser" // nobody can look at its page
	}
	before := w.pids("sidecar")
	wait := time.Duration(dice.Float64() * 1.1 * float64(takes))
	var took time.Duration
	var errand sync.WaitGroup
	began := time.Now()
	errand.Go(func() {
		if _, err := w.try("owner", "POST", "/approval/"+id+"/decide", map[string]any{"decision": "approve"}, ""); err != nil {
			return
		}
		if _, err := w.try("agent", "POST", "/session/click", click, ""); err == nil {
			took = time.Since(began)
		}
	})
	if takes == 0 {
		errand.Wait()
		return took
	}
	time.Sleep(wait)
	w.kill(victims...)
	errand.Wait()
	if took == 0 {
		took = takes
	}
	if len(w.pids("daemon")) == 0 {
		w.up()
	}
	w.serving(before...)

	// The agent knows nothing, and tries on whatever page there is now.
	for range 2 {
		_, _ = w.try("agent", "POST", "/session/click", click, "")
		_, _ = w.try("agent", "POST", "/session/navigate", open, "")
		_, _ = w.try("owner", "POST", "/approval/"+id+"/decide", map[string]any{"decision": "approve"}, "")
	}
	_, _ = w.try("agent", "POST", "/session/click", click, "")
	rec := w.must("agent", "GET", "/approval/"+id, nil)
	paid, status, outcome := shop.payments(round), rec.text("status"), rec.text("outcome")
	switch {
	case paid > 1:
		t.Errorf("round %s: %d payments for one grant", round, paid)
	case paid == 1 && status != "used":
		t.Errorf("round %s: it was paid, and the grant is %s", round, status)
	case status == "used" && outcome == "":
		t.Errorf("round %s: nobody says what became of it", round)
	case status == "used" && paid == 0 && outcome == "confirmed":
		t.Errorf("round %s: it is called paid, and was not", round)
	}
	if err := w.whole(true); err != nil {
		t.Errorf("round %s: %v", round, err)
	}
	counts[fmt.Sprintf("%s %s, paid %d%s", status, outcome, paid, with)]++
	return took
}
