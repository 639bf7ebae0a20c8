package session

import (
	"context"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// Credentials are what the owner lets be typed without the agent knowing it.
// Fill returns the value of a part, "" meaning the password, and the site that
// it belongs to, which is never empty. It is safe for concurrent use.
type Credentials interface {
	Fill(ctx context.Context, name, part string) (value secret.Text, site string, err error)
}

// partUsername is the one part that is no secret: who is signed in may be read.
const partUsername = "username"

// Field is one field and what it shall hold: Value, or a part of a credential.
type Field struct {
	Locator    page.Locator
	Value      secret.Text
	Credential string
	Part       string
}

// Fill fills fields. When one of them fails, the fault tells how many are filled.
func (s *Session) Fill(ctx context.Context, fields []Field, within time.Duration) ([]page.Filled, Did, error) {
	return do(ctx, s, "session.fill", func(ctx context.Context, t *page.Tab) ([]page.Filled, counts, error) {
		values, err := s.values(ctx, fields)
		if err != nil {
			return nil, nil, err
		}
		filled, err := t.Fill(ctx, values, within)
		done := 0
		for _, f := range filled {
			if f.OK {
				done++
			}
		}
		if err != nil {
			err = fault.Of(err).With("filled", done)
		}
		return filled, counts{"fields": done}, err
	})
}

// values fetches the credentials among what fields shall hold, before anything
// is typed: one that cannot be had leaves the form as it is.
func (s *Session) values(ctx context.Context, fields []Field) ([]page.Field, error) {
	values := make([]page.Field, 0, len(fields))
	for _, f := range fields {
		want := page.Field{Locator: f.Locator, Value: f.Value}
		if f.Credential != "" {
			if s.host.deps.Credentials == nil {
				return nil, fault.New(fault.Disabled, "use the credential "+f.Credential, "this tapin keeps no credentials").
					WithHint("Ask the owner to type it, with a hand-off.")
			}
			var err error
			if want.Value, want.Only, err = s.host.deps.Credentials.Fill(ctx, f.Credential, f.Part); err != nil {
				return nil, err
			}
			if want.Only == "" {
				return nil, fault.New(fault.Forbidden, "use the credential "+f.Credential, "nothing says which site it belongs to")
			}
			want.Hidden = f.Part != partUsername
		}
		if want.Hidden {
			if err := s.host.records.hides(ctx, s.rec); err != nil {
				return nil, fault.Wrap(fault.Internal, "use the credential "+f.Credential, err)
			}
		}
		values = append(values, want)
	}
	return values, nil
}
