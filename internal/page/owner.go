package page

import "context"

// owner is whom the tabs are for.
type owner struct {
	hidden     *Hidden
	onSurprise func(Surprise)
}

func (t *Tabs) hidden() *Hidden { return t.owner.Load().hidden }

// Belong says for whom the tabs are that were opened before anybody had asked for
// them. It is for tabs that no page has been in: what they told until now was for
// nobody. Of the options only those count that differ from owner to owner.
func (t *Tabs) Belong(ctx context.Context, opts *Options) error {
	t.belong(opts)
	return t.Dress(ctx, opts.Look)
}

func (t *Tabs) belong(opts *Options) {
	o := &owner{hidden: opts.Hidden, onSurprise: opts.OnSurprise}
	if o.hidden == nil {
		o.hidden = NewHidden(false)
	}
	t.owner.Store(o)
	t.state.origins.know(opts.Origins, opts.OnOrigin)
}
