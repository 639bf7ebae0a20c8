// Package approval is how a payment comes to be allowed: an agent asks, the
// owner or a policy of the owner's answers, and one click may follow.
// It owns the requests and their grants, the standing policies with their
// budgets, and the guard that clicks are held against. It must never let one
// grant pay twice, believe an agent about a sum that the page can be asked for,
// nor let anybody but the owner widen what is allowed.
package approval

import (
	"cmp"
	"slices"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/page"
)

// Status is where an approval stands.
type Status string

// The states of an approval. Only Pending can be decided, only Approved used.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Denied   Status = "denied"
	Expired  Status = "expired"
	Used     Status = "used"
)

// Statuses lists all states.
func Statuses() []Status { return []Status{Pending, Approved, Denied, Expired, Used} }

// By is who decides.
type By string

// Who can decide.
const (
	Owner  By = "owner"
	Policy By = "policy"
)

// What became of the click that used a grant.
const (
	OutcomeConfirmed = "confirmed" // the page took it
	OutcomeNone      = "none"      // nothing was clicked, or nothing heard it
	OutcomeUnknown   = "unknown"   // it may have been paid; nobody tries again
)

// Sum is an amount as records and doors carry it.
type Sum struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// SumOf writes an amount down.
func SumOf(a money.Amount) Sum { return Sum{a.Major(), string(a.Currency)} }

// Money reads it back. What cannot be read is no money, and equals nothing.
func (s Sum) Money() money.Amount {
	a, err := money.Of(s.Amount, s.Currency)
	if err != nil {
		return money.Amount{}
	}
	return a
}

// Reading is what we saw on the page ourselves.
type Reading struct {
	Origin    string `json:"origin"`
	Decision  string `json:"decision"` // total, ambiguous or none
	Total     *Sum   `json:"total,omitempty"`
	Label     string `json:"label,omitempty"`
	Seen      []Sum  `json:"seen,omitempty"` // everything called a total
	Certain   bool   `json:"certain"`        // of the currency
	Larger    bool   `json:"larger,omitempty"`
	Echoed    bool   `json:"echoed,omitempty"`
	Foreign   bool   `json:"foreign,omitempty"`
	PayeeSeen bool   `json:"payee_seen"`
	SiteSeen  bool   `json:"site_seen"` // the page is of the site that was named
}

// Record is one approval as it stands on the disk.
type Record struct {
	ID          string    `json:"approval_id"`
	Version     int       `json:"version"`
	Status      Status    `json:"status"`
	SessionID   string    `json:"session_id"`
	Generation  int       `json:"generation"`
	Site        string    `json:"site"` // as the agent names it
	Payee       string    `json:"payee"`
	Claim       Sum       `json:"claim"` // as the agent says
	Description string    `json:"description,omitempty"`
	Reading     Reading   `json:"page_reading"`
	Differs     []string  `json:"differs,omitempty"` // where the claim and the page disagree, for the owner
	Granted     *Sum      `json:"granted,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	Deadline    time.Time `json:"deadline"` // until then it can be decided or, once approved, used
	DecidedAt   time.Time `json:"decided_at,omitzero"`
	DecidedBy   By        `json:"decided_by,omitempty"`
	PolicySite  string    `json:"policy_site,omitempty"` // whose policy it was
	UsedAt      time.Time `json:"used_at,omitzero"`
	Outcome     string    `json:"outcome,omitempty"` // confirmed, none or unknown, once it is used

	Book bookkeeper `json:"book"`
}

// bookkeeper is what the room needs to go on after a restart.
type bookkeeper struct {
	HasCrop bool         `json:"has_crop,omitempty"`
	Outbox  event.Outbox `json:"outbox,omitempty"`
	Sent    *page.Trace  `json:"sent,omitempty"` // it was clicked, in this document
}

// IsOver reports whether nothing more can happen to it.
func (r Record) IsOver() bool {
	return r.Status == Denied || r.Status == Expired || r.Status == Used && r.Outcome != ""
}

// Approvable is the sum that a yes of the owner allows: what the page shows,
// and the agent's word only where the page shows none.
func (r Record) Approvable() Sum {
	if r.Reading.Total != nil {
		return *r.Reading.Total
	}
	return r.Claim
}

// Disputed reports whether the agent and the page name different sums: then a
// yes has to say which.
func (r Record) Disputed() bool {
	return r.Reading.Total != nil && r.Reading.Total.Money() != r.Claim.Money()
}

// tell is a change that people hear of.
type tell string

// The news of an approval.
const (
	tellRequested tell = "approval.requested"
	tellDecided   tell = "approval.decided"
	tellUsed      tell = "approval.used"
)

// Event is what can happen to an approval, with all there is to know about it.
type Event interface {
	apply(r Record) (Record, []tell, error)
}

// next decides what becomes of an approval. An error refuses and changes
// nothing; without news nothing is to be written.
func next(r Record, e Event) (Record, []tell, error) {
	r.Book.Outbox = slices.Clone(r.Book.Outbox)
	changed, news, err := e.apply(r)
	if err != nil {
		return r, nil, err
	}
	return changed, news, nil
}

// decision is the owner's or a policy's answer.
type decision struct {
	by     By
	yes    bool
	sum    *Sum // the sum that the owner names, if any
	policy string
	now    time.Time
	grant  time.Duration
}

func (e decision) apply(r Record) (Record, []tell, error) {
	op := "decide " + r.ID
	if r.Status == Pending && !e.now.Before(r.Deadline) {
		return r, nil, fault.New(fault.ApprovalExpired, op, "the request has expired").With("approval_id", r.ID)
	}
	if r.Status != Pending {
		same := e.yes && (r.Status == Approved || r.Status == Used) || !e.yes && r.Status == Denied
		if same && r.DecidedBy == e.by {
			return r, nil, nil // the first answer stands
		}
		if r.Status == Approved && !e.yes && e.by == Owner {
			r.Status, r.DecidedAt, r.DecidedBy, r.Granted = Denied, e.now, e.by, nil // taken back in time
			return r, []tell{tellDecided}, nil
		}
		if r.Status == Expired {
			return r, nil, fault.New(fault.ApprovalExpired, op, "the request has expired").With("approval_id", r.ID)
		}
		return r, nil, fault.New(fault.InvalidRequest, op, "it is %s already", r.Status).With("status", string(r.Status)).
			WithHint("The first answer stands. The agent can ask again.")
	}
	r.DecidedAt, r.DecidedBy, r.PolicySite = e.now, e.by, e.policy
	if !e.yes {
		r.Status = Denied
		return r, []tell{tellDecided}, nil
	}
	sum := r.Approvable()
	if e.sum != nil && e.sum.Money() != sum.Money() {
		return r, nil, fault.New(fault.InvalidRequest, op, "the page shows %s", sum.Money()).With("field", "amount").
			WithHint("Approve what the page shows, or say no.")
	}
	if r.Disputed() && e.sum == nil {
		return r, nil, fault.New(fault.InvalidRequest, op, "the page shows %s and the agent says %s", sum.Money(), r.Claim.Money()).With("field", "amount").
			WithHint("Say no; or approve with the amount that the page shows, %s.", sum.Money())
	}
	r.Status, r.Granted, r.Deadline = Approved, &sum, e.now.Add(e.grant)
	return r, []tell{tellDecided}, nil
}

// lapse is the end of the time for an answer or for a use.
type lapse struct{ now time.Time }

func (e lapse) apply(r Record) (Record, []tell, error) {
	if r.Status != Pending && r.Status != Approved || e.now.Before(r.Deadline) {
		return r, nil, nil
	}
	r.Status, r.Granted = Expired, nil
	return r, []tell{tellDecided}, nil
}

// use is the moment before the click. Once it is written the grant is gone.
type use struct {
	now        time.Time
	session    string
	generation int
	frame      string
	reading    Reading
	sameSite   bool // the button is in a document of the page's own site
}

func (e use) apply(r Record) (Record, []tell, error) {
	op := "use " + r.ID
	refuse := func(format string, args ...any) (Record, []tell, error) {
		return r, nil, fault.New(fault.ApprovalRequired, op, format, args...).With("approval_id", r.ID).With("status", string(r.Status))
	}
	switch {
	case r.Status == Expired || r.Status == Approved && !e.now.Before(r.Deadline):
		return r, nil, fault.New(fault.ApprovalExpired, op, "the approval has expired").With("approval_id", r.ID)
	case r.Status == Pending:
		return refuse("it is not decided yet")
	case r.Status == Denied:
		return refuse("the owner said no")
	case r.Status == Used:
		return refuse("it was used already; an approval is for one payment")
	case r.Granted == nil:
		return refuse("it grants nothing")
	case r.SessionID != e.session:
		return refuse("it is for another session")
	case r.Generation != e.generation:
		return refuse("it was for the browser before this one")
	case r.Reading.Origin != e.reading.Origin:
		return refuse("it is for %s, and this is %s", r.Reading.Origin, cmp.Or(e.reading.Origin, "nowhere"))
	}
	if why := e.unlike(r); why != "" {
		return refuse("%s", why)
	}
	r.Status, r.UsedAt = Used, e.now
	return r, nil, nil
}

// unlike says in what the page now is not the one that was approved.
func (e use) unlike(r Record) string {
	granted := r.Granted.Money()
	now := e.reading
	switch {
	case now.Total != nil && now.Total.Money() != granted:
		return "the page shows " + now.Total.Money().String() + ", and " + granted.String() + " was approved"
	case now.Total == nil && r.Reading.Total != nil:
		return "the page does not show " + granted.String() + " as its total any more"
	case now.Total == nil && !sameSums(now.Seen, r.Reading.Seen):
		return "the sums on the page are not those that the owner saw"
	case r.Reading.PayeeSeen && !now.PayeeSeen:
		return "the page does not name " + r.Payee + " any more"
	}
	if r.DecidedBy == Policy {
		if why := unfit(now); why != "" {
			return why
		}
		if !e.sameSite {
			return "the button is in a frame of another site"
		}
	}
	return ""
}

// unfit says why a reading is not good enough to pay without a person.
func unfit(now Reading) string {
	switch {
	case now.Total == nil:
		return "the page does not show one total"
	case !now.Certain:
		return "the currency on the page is not certain"
	case now.Larger:
		return "a larger total, or one in another currency, is visible too"
	case now.Echoed:
		return "the total stands in the address as well"
	case now.Foreign:
		return "only a frame of another site shows the total"
	}
	return ""
}

func sameSums(a, b []Sum) bool {
	order := func(x, y Sum) int {
		return cmp.Or(cmp.Compare(x.Currency, y.Currency), cmp.Compare(x.Amount, y.Amount))
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// settled is what became of the click.
type settled struct{ outcome string }

func (e settled) apply(r Record) (Record, []tell, error) {
	if r.Status != Used || r.Outcome != "" {
		return r, nil, nil
	}
	r.Outcome = e.outcome
	return r, []tell{tellUsed}, nil
}
