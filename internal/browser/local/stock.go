package local

import (
	"context"
	"sync"
	"time"
)

// Stock is how many browsers are kept ready.
type Stock struct {
	Always int // whatever happens
	// Follow is for how long one is kept in the place of a browser that has ended:
	// whoever is done with one thing often begins the next.
	Follow time.Duration
	// Vacant is that one may follow already: nothing runs yet, and whoever has
	// started tapin often begins something.
	Vacant bool
}

// spares are browsers that were started before anybody asked: each has a
// private context and a blank tab, and is used once.
type spares struct {
	mu      sync.Mutex
	ready   []*instance
	stock   Stock
	begun   bool            // somebody has asked for one
	given   map[string]bool // who ends one of these often wants the next
	vacant  time.Time       // until when a place is kept for whoever comes next
	news    chan struct{}   // told when one more may be wanted; nil while none are kept
	making  chan *instance  // gives the one that is being made to who waits for it; nil while none is
	awaited bool            // somebody does
}

// keep begins to keep browsers, and tells when one more may be wanted.
func (s *spares) keep(stock Stock) (news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock, s.news = stock, make(chan struct{}, 1)
	if stock.Vacant && !s.begun {
		s.vacant = time.Now().Add(stock.Follow)
	}
	return s.news
}

// begin says how many are to be ready, and for how long, and whether one more is to
// be made: from then on it is being made.
func (s *spares) begin() (n int, until time.Duration, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, until = s.stock.Always, spareRenew
	if left := time.Until(s.vacant); left > 0 {
		n, until = max(n, 1), left
	}
	if len(s.ready) >= n {
		return n, until, false
	}
	s.making, s.awaited = make(chan *instance, 1), false
	return n, until, true
}

// put adds the one that was made, or gives it to who waits for it; nil means that
// none could be made, and that nobody's place is kept any longer.
func (s *spares) put(inst *instance) (given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	given = s.awaited
	switch {
	case given:
		s.making <- inst
	case inst != nil:
		s.ready = append(s.ready, inst)
	default:
		s.vacant = time.Time{}
	}
	s.making, s.awaited = nil, false
	return given
}

func (s *spares) isAwaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaited
}

// give notes that a browser is with somebody who takes spares.
func (s *spares) give(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == nil {
		s.given = map[string]bool{}
	}
	s.given[id] = true
}

// ended is told of every browser that has, and keeps the place of one that was given.
func (s *spares) ended(id string) {
	s.mu.Lock()
	was := s.given[id]
	delete(s.given, id)
	s.mu.Unlock()
	if was {
		s.vacate()
	}
}

// vacate keeps a place for whoever comes next, for a while.
func (s *spares) vacate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacant = time.Now().Add(s.stock.Follow)
	s.tell()
}

// pop gives one away, or the one that is being made: that is usually there sooner
// than one that would be started beside it.
func (s *spares) pop(ctx context.Context) *instance {
	inst, coming := s.claim()
	if coming == nil {
		return inst
	}
	late := time.NewTimer(spareAwaited)
	defer late.Stop()
	select {
	case inst = <-coming:
		return inst
	case <-late.C:
	case <-ctx.Done():
		s.vacate() // somebody else may come instead
	}
	if left := s.waive(coming); left != nil {
		_ = left.End(context.WithoutCancel(ctx))
	}
	return nil
}

// claim takes one, or the right to the one that is being made. Whether there is one
// or not, somebody takes the place that was kept.
func (s *spares) claim() (inst *instance, coming chan *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.vacant = true, time.Time{}
	switch {
	case len(s.ready) > 0:
		inst, s.ready = s.ready[0], s.ready[1:]
		s.tell()
	case s.making != nil && !s.awaited:
		s.awaited, coming = true, s.making
	}
	return inst, coming
}

// waive leaves the one that is being made, or was made just now, to others; where
// none are kept any longer it is left over.
func (s *spares) waive(coming chan *instance) (left *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making == coming {
		s.awaited = false
		return nil
	}
	made := <-coming
	if made == nil || s.news == nil {
		return made
	}
	s.ready = append(s.ready, made)
	s.tell()
	return nil
}

func (s *spares) tell() {
	select {
	case s.news <- struct{}{}: // a nil channel is never ready
	default:
	}
}
