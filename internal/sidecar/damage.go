package sidecar

import (
	"context"

	"tapin/internal/event"
)

// watchFiles puts every file that cannot be used up on the list, and has the
// feed told of it.
func (s *sidecar) watchFiles() {
	s.damages = event.WatchDamages(s.opts.Home, s.board, s.opts.Logger)
}

// tellDamages has the feed told, until ctx ends.
func (s *sidecar) tellDamages(ctx context.Context) {
	s.damages.Run(ctx, func(ctx context.Context, e event.Event) error { return s.pump.Deliver(ctx, e) }, nil)
}
