package session

import (
	"context"

	"tapin/internal/page"
)

// Guard decides about what would pay. It is asked inside an action, after it is
// known what would be hit, and must be safe for concurrent use.
type Guard interface {
	// Permit lets a payment happen, once, under the approval of that id.
	Permit(ctx context.Context, session string, generation int, intent page.Intent, approval string) error
	// Sent hears that it was done to the page, and in which document.
	Sent(ctx context.Context, approval string, at page.Trace)
	// Settle hears what became of it: confirmed, none or unknown.
	Settle(ctx context.Context, approval, effect string)
}

type approvalKey struct{}

// Approved says under which approval is done what follows.
func Approved(ctx context.Context, approval string) context.Context {
	if approval == "" {
		return ctx
	}
	return context.WithValue(ctx, approvalKey{}, approval)
}

func approvalOf(ctx context.Context) string {
	id, _ := ctx.Value(approvalKey{}).(string)
	return id
}

// guarded keeps what the agent does from paying unasked. The owner needs
// nobody's leave.
func (s *Session) guarded(ctx context.Context) context.Context {
	guard := s.host.deps.Guard
	if guard == nil || driverOf(ctx) == Owner {
		return ctx
	}
	info := s.Info()
	approval := approvalOf(ctx)
	return page.Guarded(ctx, page.Guarding{
		Patterns: s.host.opts.PaymentPatterns,
		Permit: func(ctx context.Context, intent page.Intent) error {
			return guard.Permit(ctx, info.ID, info.Generation, intent, approval)
		},
		Unasked: func(ctx context.Context, intent page.Intent) error {
			return guard.Permit(ctx, info.ID, info.Generation, intent, "")
		},
		Sent: func(ctx context.Context, at page.Trace) {
			if approval != "" {
				guard.Sent(ctx, approval, at)
			}
		},
		Settled: func(ctx context.Context, effect string) {
			if approval != "" {
				guard.Settle(ctx, approval, effect)
			}
		},
	})
}

// WentOn tells whether the page in which a payment was sent has gone on since.
// Nothing is said of a browser that has been replaced.
func (h *Host) WentOn(ctx context.Context, id string, generation int, from page.Trace) bool {
	s, err := h.find(id)
	if err != nil || s.Info().Generation != generation {
		return false
	}
	for _, tab := range s.view().tabs.List() {
		if tab.ID() == from.Tab {
			return tab.WentOn(ctx, from)
		}
	}
	return false
}

// Totals is what the page in front says is to be paid.
type Totals struct {
	SessionID  string
	Generation int
	Totals     page.Totals
	Crop       *page.Image
}

// Totals reads what the page of a session says is to be paid, and takes a
// picture of where it stands; "" means the active one.
func (h *Host) Totals(ctx context.Context, id string, names []string) (Totals, error) {
	s, err := h.find(id)
	if err != nil {
		return Totals{}, err
	}
	return act(ctx, s, "session.totals", func(ctx context.Context, t *page.Tab) (Totals, note, error) {
		out := Totals{SessionID: s.ID(), Generation: s.Info().Generation}
		var err error
		if out.Totals, err = t.Totals(ctx, names); err != nil {
			return out, note{}, err
		}
		if shot, err := t.TotalsCrop(ctx, out.Totals); err == nil {
			out.Crop = &shot
		}
		return out, note{address: out.Totals.Origin}, nil
	})
}
