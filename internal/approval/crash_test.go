package approval

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/page"
)

// TestAKillAtAnyWriteNeverPaysTwice kills the process at each of its writes
// around asking, answering, using and telling, restarts it, and has an agent
// that does not know what happened try again.
func TestAKillAtAnyWriteNeverPaysTwice(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]bool{"by the owner": false, "by a policy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			died := 0
			for n := int64(1); ; n++ {
				survived := false
				synctest.Test(t, func(t *testing.T) { survived = dieAt(t, n, policy) })
				if survived {
					break
				}
				died++
			}
			if died < 8 {
				t.Errorf("only %d moments were tried", died)
			}
			t.Logf("died at each of %d writes", died)
		})
	}
}

func dieAt(t *testing.T, n int64, policy bool) (survived bool) {
	t.Helper()
	dir, s, sh := t.TempDir(), newShop(), verizon()
	if policy {
		h, err := moveIn(t, dir, s, sh, nil, nil)
		must(t, err)
		h.allow("auto-approve verizon up to $300 a month")
		h.out()
	}
	var left atomic.Int64
	left.Store(n)
	dead := atomic.Bool{}
	h, err := moveIn(t, dir, s, sh, func(string) error {
		if left.Add(-1) <= 0 {
			dead.Store(true)
			return errKilled
		}
		return nil
	}, nil)
	id := ""
	if err == nil {
		id = h.live(dead.Load)
		h.out()
	}
	if !dead.Load() {
		return true
	}
	// The next process. Whoever knows the id tries it once more; and again.
	h, err = moveIn(t, dir, s, sh, nil, &Options{WentOn: func(_ context.Context, _ string, _ int, from page.Trace) bool {
		return s.paid[from.Document] > 0
	}})
	must(t, err)
	defer h.out()
	for range 3 {
		if id == "" {
			break
		}
		if rec, err := h.Get(id); err == nil && rec.Status == Pending {
			_, _ = h.Decide(t.Context(), id, true, nil)
		}
		_ = h.pay(id)
	}
	for id, paid := range s.paid {
		rec, err := h.Get(id)
		if paid > 1 || err != nil || rec.Status != Used || rec.Outcome == "" {
			t.Errorf("killed at write %d: paid %d times, %+v %v", n, paid, rec.Status, err)
		}
	}
	// A grant that is used and was not seen to pay says so.
	page, err := h.List(t.Context(), Filter{})
	must(t, err)
	for _, rec := range page.Approvals {
		if rec.Status == Used && s.paid[rec.ID] == 0 && rec.Outcome != OutcomeUnknown {
			t.Errorf("killed at write %d: nothing was paid and it says %q", n, rec.Outcome)
		}
	}
	if policy {
		checkBudget(t, h, n)
	}
	return false
}

// TestAfterACrashThePageIsLookedAt has a process die after the click. What the
// page shows counts where it is known that the click was done, and not else.
func TestAfterACrashThePageIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		sent   bool
		wentOn bool
		want   string
	}{
		{"clicked, and the page went on", true, true, OutcomeConfirmed},
		{"clicked, and the page stands", true, false, OutcomeUnknown},
		{"perhaps not clicked, and the page went on", false, true, OutcomeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, s, sh := t.TempDir(), newShop(), verizon()
			h, err := moveIn(t, dir, s, sh, nil, nil)
			must(t, err)
			rec, err := h.Request(t.Context(), bill())
			must(t, err)
			_, err = h.Decide(t.Context(), rec.ID, true, nil)
			must(t, err)
			must(t, h.Permit(t.Context(), "ses_1", 1, page.Intent{Kind: "click", Label: "Pay", Frame: s.totals.Origin, Totals: s.totals}, rec.ID))
			at := page.Trace{Tab: "tab", Document: "before"}
			if c.sent {
				h.Sent(t.Context(), rec.ID, at)
			}
			h.out()
			h, err = moveIn(t, dir, s, sh, nil, &Options{WentOn: func(_ context.Context, session string, generation int, from page.Trace) bool {
				if session != "ses_1" || generation != 1 || from != at {
					t.Errorf("asked about %s %d %v", session, generation, from)
				}
				return c.wentOn
			}})
			must(t, err)
			defer h.out()
			rec, err = h.Get(rec.ID)
			must(t, err)
			if rec.Status != Used || rec.Outcome != c.want {
				t.Errorf("%s %s, want %s", rec.Status, rec.Outcome, c.want)
			}
			if err := h.pay(rec.ID); err == nil {
				t.Error("it could be used again")
			}
		})
	}
}

// live is one life: asked, answered, paid.
func (h *house) live(dead func() bool) string {
	rec, err := h.Request(h.t.Context(), bill())
	if err != nil || dead() {
		return rec.ID
	}
	if rec.Status == Pending {
		if _, err := h.Decide(h.t.Context(), rec.ID, true, nil); err != nil || dead() {
			return rec.ID
		}
	}
	intent := page.Intent{Kind: "click", Label: "Pay", Frame: h.shop.totals.Origin, Totals: h.shop.totals}
	if err := h.Permit(h.t.Context(), "ses_1", 1, intent, rec.ID); err != nil || dead() {
		return rec.ID // killed before the click, or refused
	}
	h.shop.mu.Lock()
	h.shop.paid[rec.ID]++
	h.shop.mu.Unlock()
	h.Sent(h.t.Context(), rec.ID, page.Trace{Tab: "tab", Document: rec.ID})
	if dead() {
		return rec.ID
	}
	h.Settle(h.t.Context(), rec.ID, OutcomeConfirmed)
	return rec.ID
}

// checkBudget makes sure that what was paid is taken from the budget, and that
// what never can be is not.
func checkBudget(t *testing.T, h *house, n int64) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	policies, _ := h.InForce(t.Context())
	if len(policies) != 1 {
		t.Fatalf("killed at write %d: %d policies", n, len(policies))
	}
	left, _ := h.Left(policies[0])
	used := 0
	page, err := h.List(t.Context(), Filter{Status: Used})
	must(t, err)
	for _, rec := range page.Approvals {
		if rec.DecidedBy == Policy {
			used++
		}
	}
	if want := int64(30000 - 14250*used); left.Minor != want {
		t.Errorf("killed at write %d: %s is left after %d payments", n, left, used)
	}
}
