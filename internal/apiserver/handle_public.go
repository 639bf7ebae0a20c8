package apiserver

import (
	"context"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/reach"
)

// Prober asks an address whether it leads here. Safe for concurrent use;
// *reach.Prober is one.
type Prober interface {
	Check(ctx context.Context, address string) error
}

var _ Prober = (*reach.Prober)(nil)

// checkPublic asks the address that people are sent to. That it leads elsewhere
// is an answer, not a failure.
func (s *Server) checkPublic(c *call, _ *nothing) (*api.Reached, error) {
	at, err := s.publicAddress(c, nil)
	if err != nil {
		return nil, err
	}
	if s.prober == nil {
		return nil, fault.New(fault.Disabled, "", "this server does not ask addresses")
	}
	answer := &api.Reached{Public: *at, CheckedAt: time.Now().UTC()}
	if at.Source == "none" {
		answer.Reason, answer.Advice = "only this machine has a way to the live view", "Set tunnel or public_url, so that a phone has one."
		return answer, nil
	}
	began := time.Now()
	err = s.prober.Check(c.r.Context(), at.URL)
	answer.TookMS, answer.Reached = time.Since(began).Milliseconds(), err == nil
	if err != nil {
		f := fault.Of(err)
		answer.Reason, answer.Advice = f.Details(), f.Advice()
	}
	return answer, nil
}
