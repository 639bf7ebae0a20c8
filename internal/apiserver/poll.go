package apiserver

import (
	"context"
	"errors"
	"time"

	"tapin/internal/api"
)

// polled waits for news of a record for as long as its caller wants to. When the
// server ends meanwhile, the record as it is now is the answer.
func polled[R any](s *Server, c *call, q *api.WaitQuery, wait func(ctx context.Context, id string, after int, within time.Duration) (R, error)) (R, error) {
	ctx, stop := s.waiting(c)
	defer stop()
	rec, err := wait(ctx, c.id, q.After, time.Duration(q.WaitMS)*time.Millisecond)
	if errors.Is(err, context.Canceled) && c.r.Context().Err() == nil {
		return rec, nil
	}
	return rec, err
}
