package sidecar

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/approval"
	"tapin/internal/config"
	"tapin/internal/console"
	"tapin/internal/fault"
	"tapin/internal/logins"
	"tapin/internal/page"
	"tapin/internal/session"
)

// openApprovals makes the room of payments. The sessions come later.
func (s *sidecar) openApprovals(at *till, keys approval.Sealer, registry *prometheus.Registry) (err error) {
	counted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tapin_approvals_total", Help: "Payments that were asked for, decided, used or refused.",
	}, []string{"what"})
	registry.MustRegister(counted)
	s.approvals, err = approval.New(approval.Deps{
		Home: s.opts.Home, Pump: s.pump, Schedule: s.schedule, Journal: s.journal, Totals: at, Policies: manifest{s.logins}, Sealer: keys,
	}, &approval.Options{
		Timeout: s.opts.Config.Integrations.Browserbase.HandoffTimeout.Std(), Location: ownersPlace(), Keep: s.opts.Config.Retention.Handoffs.Std(),
		Warn:  s.opts.Config.PaymentGuard == config.GuardWarn,
		Count: func(what string) { counted.WithLabelValues(what).Inc() }, Logger: s.opts.Logger,
		WentOn: at.WentOn,
	})
	return err
}

// paymentGuard is what sessions ask before a payment; nil when the owner wants
// nothing to be asked.
func (s *sidecar) paymentGuard() session.Guard {
	if s.opts.Config.PaymentGuard == config.GuardOff {
		return nil
	}
	return s.approvals
}

// till shows what sessions are about to pay to the approvals.
type till struct {
	sessions *session.Host // set before anything asks
}

var _ approval.Totals = (*till)(nil)

func (t *till) Read(ctx context.Context, id string, names []string) (approval.Seen, error) {
	seen, err := t.sessions.Totals(ctx, id, names)
	return approval.Seen(seen), err
}

// WentOn looks after a payment of an earlier sidecar. The browsers have been
// taken up again before anybody asks.
func (t *till) WentOn(ctx context.Context, id string, generation int, from page.Trace) bool {
	return t.sessions.WentOn(ctx, id, generation, from)
}

// manifest shows the policies that stand in the manifest to the approvals.
type manifest struct{ *logins.Room }

var _ approval.Policies = manifest{}

func (m manifest) List(ctx context.Context) ([]approval.Written, error) {
	all, err := m.Room.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []approval.Written
	for _, l := range all {
		w := approval.Written{Login: l.Name, Domain: l.Domain, Noticed: l.DomainNoticed}
		if p := l.Policy; l.Problem == nil && p != nil && p.AutoApprove {
			s := approval.Standing{Max: approval.Sum{Amount: p.MaxAmount, Currency: p.Currency}, Expires: p.Expires.At}
			if p.MonthlyBudget != "" {
				s.Monthly = &approval.Sum{Amount: p.MonthlyBudget, Currency: p.Currency}
			}
			w.Policy = &s
		}
		out = append(out, w)
	}
	return out, nil
}

func (m manifest) Put(ctx context.Context, login string, s *approval.Standing) error {
	if s == nil {
		err := m.SetPolicy(ctx, login, nil)
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	p := &logins.Policy{MaxAmount: s.Max.Amount, AutoApprove: true, Currency: s.Max.Currency, Expires: logins.Moment{At: s.Expires}}
	if s.Monthly != nil {
		p.MonthlyBudget = s.Monthly.Amount
	}
	return m.SetPolicy(ctx, login, p)
}

// ownersPlace is whose calendar months are counted by: that of this machine,
// by its name, so that it means the same after a move.
func ownersPlace() *time.Location {
	name := os.Getenv("TZ")
	if name == "" {
		if to, err := os.Readlink("/etc/localtime"); err == nil {
			if _, after, ok := strings.Cut(to, "zoneinfo/"); ok {
				name = after
			}
		}
	}
	if place, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil && name != "" {
		return place
	}
	return time.UTC
}

// payments shows the approvals to the console in its own words.
type payments struct{ *approval.Room }

var _ console.Approvals = payments{}

func (p payments) Pending(context.Context) ([]console.Approval, error) {
	var out []console.Approval
	for _, r := range p.PendingOnes() {
		a := console.Approval{ID: r.ID, Site: r.Site, Payee: r.Payee, Amount: r.Claim.Amount, Currency: r.Claim.Currency, Description: r.Description, Deadline: r.Deadline}
		if len(r.Differs) > 0 {
			a.Description = strings.TrimSpace(a.Description + " " + strings.Join(r.Differs, " "))
		}
		a.Page = &console.Reading{Origin: r.Reading.Origin, Agrees: len(r.Differs) == 0}
		if t := r.Reading.Total; t != nil {
			a.Page.Amount, a.Page.Currency = t.Amount, t.Currency
		}
		out = append(out, a)
	}
	return out, nil
}

func (p payments) Policies(ctx context.Context) (map[string]console.Policy, error) {
	out := map[string]console.Policy{}
	policies, proposals := p.InForce(ctx)
	for _, s := range policies {
		if s.Login == "" {
			continue
		}
		one := console.Policy{MaxAmount: s.Max.Amount, Currency: s.Max.Currency, Expires: s.Expires}
		if left, ok := p.Left(s); ok {
			one.MonthlyBudget, one.Spent = s.Monthly.Amount, s.Monthly.Money().Less(left).Major()
		}
		out[s.Login] = one
	}
	for _, q := range proposals {
		if q.Policy.Login == "" {
			continue
		}
		one := console.Policy{MaxAmount: q.Policy.Max.Amount, Currency: q.Policy.Max.Currency, Expires: q.Policy.Expires, Pending: true, Proposal: q.ID}
		if q.Policy.Monthly != nil {
			one.MonthlyBudget = q.Policy.Monthly.Amount
		}
		out[q.Policy.Login] = one
	}
	return out, nil
}

func (p payments) Decide(ctx context.Context, id string, approve bool, amount, currency string) error {
	var sum *approval.Sum
	if amount != "" {
		sum = &approval.Sum{Amount: amount, Currency: currency}
	}
	_, err := p.Room.Decide(ctx, id, approve, sum)
	return err
}

// DecidePolicy is the owner's word about the very proposal that he was shown: the
// manifest may say something else by now, which would be another one.
func (p payments) DecidePolicy(ctx context.Context, login, proposal string, allow bool) error {
	if proposal == "" && !allow {
		_, err := p.Stop(ctx, login)
		return err
	}
	_, proposals := p.InForce(ctx)
	if !slices.ContainsFunc(proposals, func(q approval.Proposal) bool { return q.ID == proposal && q.Policy.Login == login }) {
		return fault.New(fault.NotFound, "", "what waits for your yes about %s has changed since you looked", login).WithHint("Look again, and decide then.")
	}
	if !allow {
		return p.Reject(ctx, proposal)
	}
	_, err := p.Confirm(ctx, proposal)
	return err
}
