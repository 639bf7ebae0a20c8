package apiserver

import (
	"cmp"
	"context"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// Analytics tells how asking a person went. Safe for concurrent use.
type Analytics interface {
	Analytics(ctx context.Context, days int) (*api.Analytics, error)
}

const usualDays = 30

func (s *Server) analysis(c *call, q *api.AnalyticsQuery) (*api.Analytics, error) {
	if s.analytics == nil {
		return nil, fault.New(fault.Disabled, "", "this server keeps no figures")
	}
	return s.analytics.Analytics(c.r.Context(), cmp.Or(q.Days, usualDays))
}
