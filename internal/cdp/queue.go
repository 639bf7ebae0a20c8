package cdp

import "sync"

// frameEvent is the one event of which only the latest matters.
const frameEvent = "Page.screencastFrame"

// queue is the bounded line of events between reader and handlers. Screencast
// frames are latest-wins: a newer one of the same session takes the older one's
// place in the line, so that a slow handler costs pictures and never order.
type queue struct {
	limit int

	mu     sync.Mutex
	ready  *sync.Cond
	items  []*message
	closed bool
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.ready = sync.NewCond(&q.mu)
	return q
}

// push reports false when the line is full, and returns the picture that gave
// way: nobody else will acknowledge it.
func (q *queue) push(m *message) (replaced *message, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, true
	}
	if m.Method == frameEvent {
		for i, waiting := range q.items {
			if waiting.Method == frameEvent && waiting.Session == m.Session {
				q.items[i] = m
				return waiting, true
			}
		}
	}
	if len(q.items) >= q.limit && m.mark == nil {
		return nil, false
	}
	q.items = append(q.items, m)
	q.ready.Signal()
	return nil, true
}

// pop waits for the next event; false means the queue is closed and empty.
func (q *queue) pop() (*message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.ready.Wait()
	}
	if len(q.items) == 0 {
		return nil, false
	}
	m := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	return m, true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}
