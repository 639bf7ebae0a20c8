package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tapin/internal/event"
	"tapin/internal/money"
)

const policiesFile = "policies.json"

// Standing is a policy that the owner has confirmed.
type Standing struct {
	Login       string    `json:"login,omitempty"` // the saved login whose manifest entry shows it
	Site        string    `json:"site"`            // the registrable domain it is for
	Max         Sum       `json:"max"`             // of one payment
	Monthly     *Sum      `json:"monthly,omitempty"`
	Expires     time.Time `json:"expires,omitzero"`
	Zone        string    `json:"zone"` // whose calendar the months are of
	ConfirmedAt time.Time `json:"confirmed_at"`
}

// Proposal is a policy that is not in force before the owner has confirmed it.
type Proposal struct {
	ID        string    `json:"proposal_id"`
	Policy    Standing  `json:"policy"`
	From      string    `json:"from"` // words, or manifest
	CreatedAt time.Time `json:"created_at"`
}

// proposed are the ways to a proposal.
const (
	fromWords    = "words"
	fromManifest = "manifest"
	fromDoor     = "door"
)

// Spending is a part of a month's budget that is taken.
type Spending struct {
	Approval string    `json:"approval_id"`
	Site     string    `json:"site"`
	Sum      Sum       `json:"sum"`
	Month    string    `json:"month"` // 2026-11, in the policy's zone
	At       time.Time `json:"at"`
}

// Cleared is a button that the owner says is no payment on a site.
type Cleared struct {
	Site  string    `json:"site"`
	Label string    `json:"label"` // in lower case; "" means every button of the site
	At    time.Time `json:"at"`
}

// ledger is policies.json: one file, so that one write changes all of it.
type ledger struct {
	Version   int          `json:"version"`
	Policies  []Standing   `json:"policies"`
	Proposals []Proposal   `json:"proposals,omitempty"`
	Spendings []Spending   `json:"spendings,omitempty"`
	Cleared   []Cleared    `json:"cleared,omitempty"`
	Outbox    event.Outbox `json:"outbox,omitempty"`
}

func (l ledger) clone() ledger {
	l.Policies, l.Proposals = slices.Clone(l.Policies), slices.Clone(l.Proposals)
	l.Spendings, l.Cleared, l.Outbox = slices.Clone(l.Spendings), slices.Clone(l.Cleared), slices.Clone(l.Outbox)
	return l
}

// same reports whether two policies allow the same, whenever they were confirmed.
func (s Standing) same(o Standing) bool {
	return s.Site == o.Site && s.Login == o.Login && s.Max.Money() == o.Max.Money() && s.budget() == o.budget() && s.Expires.Equal(o.Expires)
}

func (s Standing) budget() money.Amount {
	if s.Monthly == nil {
		return money.Amount{}
	}
	return s.Monthly.Money()
}

// month is the calendar month of a moment where the owner lives. A zone that
// this machine does not know counts by the world's own clock.
func (s Standing) month(at time.Time) string {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	return at.In(zone).Format("2006-01")
}

// spent is what a policy has used up of a month.
func (l ledger) spent(s Standing, month string) money.Amount {
	sum := money.Amount{Currency: s.Max.Money().Currency}
	for _, e := range l.Spendings {
		if e.Site != s.Site || e.Month != month {
			continue
		}
		if e.Sum.Money().Currency != sum.Currency {
			continue // from before the owner changed the currency
		}
		sum.Minor += e.Sum.Money().Minor
	}
	return sum
}

// allows says whether the policy covers a payment, and if not, why.
func (l ledger) allows(s Standing, a money.Amount, now time.Time) (why string) {
	most := s.Max.Money()
	switch {
	case a.IsZero() && a.Currency == "":
		return "there is no sum"
	case most.Currency == "" || most.Minor <= 0:
		return "the policy has no limit"
	case !s.Expires.IsZero() && !now.Before(s.Expires):
		return "the policy for " + s.Site + " ended on " + s.Expires.Format(time.DateOnly)
	case a.Currency != most.Currency:
		return fmt.Sprintf("the policy is in %s", most.Currency)
	case !a.AtMost(most):
		return fmt.Sprintf("it is more than %s", most)
	}
	if budget := s.budget(); budget.Minor > 0 {
		spent := l.spent(s, s.month(now))
		if total, ok := spent.Plus(a); !ok || !total.AtMost(budget) {
			return fmt.Sprintf("of %s this month %s is left", budget, budget.Less(spent))
		}
	}
	return ""
}

// Sentence is the policy for people.
func (s Standing) Sentence() string {
	name := s.Site
	if s.Login != "" && s.Login != s.Site {
		name = s.Login + " (" + s.Site + ")"
	}
	out := fmt.Sprintf("%s: up to %s a payment", name, s.Max.Money())
	if s.Monthly != nil {
		out += fmt.Sprintf(", up to %s a month", s.Monthly.Money())
	}
	if !s.Expires.IsZero() {
		zone, err := time.LoadLocation(s.Zone)
		if err != nil {
			zone = time.UTC
		}
		out += ", until " + s.Expires.In(zone).Format("2 January 2006 15:04 MST")
	}
	return out
}

func (l ledger) of(site string) (Standing, bool) {
	i := slices.IndexFunc(l.Policies, func(s Standing) bool { return s.Site == site })
	if i < 0 {
		return Standing{}, false
	}
	return l.Policies[i], true
}

func (l *ledger) put(s Standing) {
	l.Policies = append(slices.DeleteFunc(l.Policies, func(o Standing) bool { return o.Site == s.Site || s.Login != "" && o.Login == s.Login }), s)
}

// tidy drops what no month asks for any more.
func (l *ledger) tidy(now time.Time) {
	old := now.AddDate(0, -3, 0)
	l.Spendings = slices.DeleteFunc(l.Spendings, func(s Spending) bool { return s.At.Before(old) })
	l.Proposals = slices.DeleteFunc(l.Proposals, func(p Proposal) bool { return p.From != fromManifest && p.CreatedAt.Before(now.AddDate(0, 0, -7)) })
}

func (l ledger) clears(site, label string) bool {
	return slices.ContainsFunc(l.Cleared, func(c Cleared) bool {
		return c.Site == site && (c.Label == "" || c.Label == strings.ToLower(label))
	})
}
