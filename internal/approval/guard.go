package approval

import (
	"context"
	"net"
	"net/url"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/site"
)

// Permit is asked inside a click, after it is known what would be hit, whether
// that may pay. When it returns nil and an id was given, the approval is used
// up on the disk: whatever happens now, it pays at most once. Settle must follow.
func (r *Room) Permit(ctx context.Context, session string, generation int, intent page.Intent, id string) (err error) {
	began := time.Now()
	intent, err = r.lookAgain(ctx, intent, id)
	if err != nil {
		return err
	}
	at, siteErr := site.Of(intent.Totals.Origin)
	r.mu.Lock()
	defer r.mu.Unlock()
	if siteErr == nil && r.book.clears(string(at), intent.Label) {
		return nil // and an approval that came with it is still good
	}
	rec := Record{SessionID: session, Reading: Reading{Origin: intent.Totals.Origin}}
	defer func() {
		r.journal(began, "agent", "approval.use", rec, err)
		if err != nil {
			r.opts.Count("refused")
		}
	}()
	if id == "" {
		if r.opts.Warn {
			r.log.Warn("a payment was let through without an approval", "session", session, "origin", intent.Totals.Origin)
			r.opts.Count("let_through")
			return nil
		}
		return required(intent)
	}
	live, err := r.find(id)
	if err != nil {
		return fault.New(fault.ApprovalRequired, intent.Kind, "there is no approval %q", clip(id)).With("suggested_next", suggest(intent))
	}
	rec = *live
	e := use{
		now: wallClock(), session: session, generation: generation, frame: intent.Frame,
		reading: readingOf(intent.Totals, Request{Site: live.Site, Payee: live.Payee}), sameSite: site.Same(intent.Frame, intent.Totals.Origin),
	}
	if intent.Look == nil {
		e.reading.PayeeSeen = live.Reading.PayeeSeen // a dialog need not say who is paid
	}
	if live.DecidedBy == Policy && live.Status == Approved {
		// What the owner has taken back meanwhile does not count any more.
		if s, ok := r.book.of(live.PolicySite); !ok || r.stale(ctx, s) != "" {
			return fault.New(fault.ApprovalRequired, "use "+id, "the policy that approved it is not in force any more").With("suggested_next", suggest(intent))
		}
	}
	if rec, err = r.apply(context.WithoutCancel(ctx), live, e); err != nil {
		if f := fault.Of(err); f.Code == fault.ApprovalRequired {
			return f.With("suggested_next", suggest(intent))
		}
		return err
	}
	return nil
}

// lookAgain reads the page for the payee that was approved: another recipient
// of the same sum is another payment. The page is not waited for with the lock.
func (r *Room) lookAgain(ctx context.Context, intent page.Intent, id string) (page.Intent, error) {
	if id == "" || intent.Look == nil {
		return intent, nil
	}
	rec, err := r.Get(id)
	if err != nil {
		return intent, nil //nolint:nilerr // that there is none is said below
	}
	if intent.Totals, err = intent.Look(ctx, []string{rec.Payee}); err != nil {
		return intent, fault.Wrap(fault.ApprovalRequired, intent.Kind, err)
	}
	return intent, nil
}

// Sent notes that the click was done, and where. Only then can whoever comes
// after a crash tell from the page that it was paid.
func (r *Room) Sent(_ context.Context, id string, at page.Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	live, err := r.find(id)
	if err != nil || live.Status != Used || live.Outcome != "" {
		return
	}
	changed := *live
	changed.Book.Sent = &at
	if err := r.deps.Home.WriteJSON(file(id), changed); err != nil {
		r.log.Warn("that a payment was sent could not be noted", "approval", id, "error", err)
		return
	}
	*live = changed
}

// Settle says what became of the click that an approval allowed.
func (r *Room) Settle(ctx context.Context, id, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	live, err := r.find(id)
	if err != nil || live.Status != Used {
		return
	}
	if outcome != OutcomeConfirmed && outcome != OutcomeNone {
		outcome = OutcomeUnknown
	}
	if _, err := r.apply(context.WithoutCancel(ctx), live, settled{outcome}); err != nil {
		r.log.Error("the outcome of a payment could not be noted", "approval", id, "error", err)
		return
	}
	r.opts.Count("used_" + outcome)
}

// required is the refusal, with what to do next.
func required(intent page.Intent) error {
	f := fault.New(fault.ApprovalRequired, intent.Kind, "%q looks like a final payment", clip(intent.Label)).With("suggested_next", suggest(intent))
	if intent.Totals.Decision == page.TotalRead {
		f = f.With("page_total", SumOf(intent.Totals.Total))
	}
	return f
}

func suggest(intent page.Intent) []page.Suggestion {
	host := hostOf(intent.Totals.Origin)
	ask := map[string]string{"site": host, "payee": "who is paid"}
	if intent.Totals.Decision == page.TotalRead {
		sum := SumOf(intent.Totals.Total)
		ask["amount"], ask["currency"] = sum.Amount, sum.Currency
	}
	return []page.Suggestion{
		{Tool: "oc_approval_request", Arguments: ask, Why: "A payment needs the owner's approval; repeat the click with its approval_id."},
		{Tool: "oc_handoff_start", Arguments: map[string]string{"reason": "other", "instruction": "Please check and confirm this payment yourself on " + host + "."}, Why: "The owner can also pay in the live browser."},
	}
}

func clip(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

// isLoopback is for shops on the owner's own machine, as tests and kiosks have.
func isLoopback(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
