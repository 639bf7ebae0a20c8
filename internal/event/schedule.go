package event

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"tapin/internal/guard"
)

// recheckEvery bounds how late a deadline can be after the machine slept:
// timers stand still in a suspend, the wall clock does not.
const recheckEvery = 30 * time.Second

// Schedule fires deadlines by the wall clock. It is safe for concurrent use.
type Schedule struct {
	now func() time.Time // the wall clock; tests let it jump

	mu      sync.Mutex
	byID    map[string]*deadline // what will fire, unless replaced or cancelled
	heap    deadlines
	changed chan struct{} // of size 1
}

type deadline struct {
	id    string
	at    time.Time
	fire  func(context.Context)
	index int // in the heap; -1 once it is due

	failed int // how often it panicked
}

// NewSchedule makes an empty schedule; Run brings it to life.
func NewSchedule() *Schedule {
	return &Schedule{now: time.Now, byID: map[string]*deadline{}, changed: make(chan struct{}, 1)}
}

// Set has fire called once, in a goroutine of its own, when the wall clock is
// at or past at. It replaces the deadline that id had.
func (s *Schedule) Set(id string, at time.Time, fire func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
	d := &deadline{id: id, at: at.Round(0), fire: fire} // Round: by the wall clock alone
	s.byID[id] = d
	heap.Push(&s.heap, d)
	s.signal()
}

// Cancel takes a deadline back and reports whether it was still to fire.
func (s *Schedule) Cancel(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(id)
}

// Next is the earliest deadline, if there is one.
func (s *Schedule) Next() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heap) == 0 {
		return time.Time{}, false
	}
	return s.heap[0].at, true
}

// Run fires deadlines until ctx ends, and then waits for what it has fired.
// They get ctx. It is called once.
func (s *Schedule) Run(ctx context.Context) {
	var fired sync.WaitGroup
	defer fired.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.changed:
		}
		due, wait := s.due()
		for _, d := range due {
			fired.Go(func() {
				defer guard.Catch(guard.Deadlines, func() { s.onceMore(d) })
				if ctx.Err() == nil && s.claim(d) {
					d.fire(ctx)
				}
			})
		}
		timer.Reset(wait)
	}
}

// onceMore sets a deadline again that panicked as it fired, ever later: what it
// is for is still promised. One that was set anew meanwhile stands.
func (s *Schedule) onceMore(d *deadline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[d.id] != nil {
		return
	}
	again := &deadline{id: d.id, at: s.now().Round(0).Add(againAfter << d.failed), fire: d.fire, failed: min(d.failed+1, 10)}
	s.byID[d.id] = again
	heap.Push(&s.heap, again)
	s.signal()
}

// againAfter doubles with every failure of a deadline.
const againAfter = time.Second

// due takes what is due off the heap and says how long to sleep.
func (s *Schedule) due() (due []*deadline, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now().Round(0)
	for len(s.heap) > 0 {
		if wait := s.heap[0].at.Sub(now); wait > 0 {
			return due, min(wait, recheckEvery)
		}
		due = append(due, heap.Pop(&s.heap).(*deadline))
	}
	return due, recheckEvery
}

// claim is the last moment at which a deadline can be found to have been
// replaced or cancelled.
func (s *Schedule) claim(d *deadline) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[d.id] != d {
		return false
	}
	delete(s.byID, d.id)
	return true
}

func (s *Schedule) drop(id string) bool {
	d, ok := s.byID[id]
	if !ok {
		return false
	}
	delete(s.byID, id)
	if d.index >= 0 {
		heap.Remove(&s.heap, d.index)
	}
	return true
}

func (s *Schedule) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // it will be looked at anyway
	}
}

// deadlines is a heap.Interface, the earliest first.
type deadlines []*deadline

func (h deadlines) Len() int           { return len(h) }
func (h deadlines) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h deadlines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *deadlines) Push(x any) {
	d := x.(*deadline)
	d.index = len(*h)
	*h = append(*h, d)
}

func (h *deadlines) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	d.index = -1
	return d
}
