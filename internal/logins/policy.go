package logins

import (
	"context"
	"slices"

	"tapin/internal/fault"
)

// SetPolicy writes the standing approval of a login into the manifest, where
// people see it; nil takes it out. What is not given is taken out too.
func (r *Room) SetPolicy(ctx context.Context, name string, p *Policy) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return fault.Wrap(fault.InvalidRequest, "set the policy of "+name, err)
	}
	return r.exclusively(ctx, func() error {
		names, err := r.names()
		if err != nil {
			return err
		}
		if !slices.Contains(names, name) {
			return unknown(name)
		}
		return r.book.update(ctx, func(d *document) (*document, error) {
			if p == nil {
				return d.remove(keyContexts, name, keyPolicy)
			}
			return d.setPolicy(name, *p)
		})
	})
}

func (d *document) setPolicy(name string, p Policy) (_ *document, err error) {
	for _, field := range []struct {
		key   string
		value value
	}{
		{"max_amount", number(p.MaxAmount)}, {"auto_approve", boolean(p.AutoApprove)}, {"currency", text(p.Currency)},
		{"monthly_budget", number(p.MonthlyBudget)}, {"expires", text(p.Expires.String())},
	} {
		if field.value.text == "" {
			d, err = d.remove(keyContexts, name, keyPolicy, field.key)
		} else {
			d, err = d.set(field.value, keyContexts, name, keyPolicy, field.key)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// check refuses what would not be read back.
func (p *Policy) check() error {
	switch {
	case p == nil:
		return nil
	case p.MaxAmount != "" && !amountForm.MatchString(p.MaxAmount), p.MonthlyBudget != "" && !amountForm.MatchString(p.MonthlyBudget):
		return fault.New(fault.InvalidRequest, "", "an amount is like 200 or 142.50")
	case p.Currency != "" && !currencyForm.MatchString(p.Currency):
		return fault.New(fault.InvalidRequest, "", "a currency is three letters such as USD")
	}
	return nil
}
