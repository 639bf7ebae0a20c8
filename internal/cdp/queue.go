package cdp

import (
	"slices"
	"sync"

	"github.com/chromedp/cdproto/target"
)

// frameEvent is the one event of which only the latest matter.
const frameEvent = "Page.screencastFrame"

// framesKept is how many of a session wait. They come in twos and threes where the
// machine is busy, and each was painted to be seen.
const framesKept = 3

// queue is the bounded line of events between reader and handlers. Of screencast
// frames the latest win: one too many of a session and its oldest gives way, so that
// a slow handler costs pictures and never order.
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
		replaced = q.makeWay(m.Session)
	}
	if len(q.items) >= q.limit && m.mark == nil {
		return replaced, false
	}
	q.items = append(q.items, m)
	q.ready.Signal()
	return replaced, true
}

// makeWay takes a session's oldest picture out of the line, if there are enough.
func (q *queue) makeWay(session target.SessionID) *message {
	oldest, n := -1, 0
	for i, waiting := range q.items {
		if waiting.Method != frameEvent || waiting.Session != session {
			continue
		}
		if n++; n == 1 {
			oldest = i
		}
	}
	if n < framesKept {
		return nil
	}
	out := q.items[oldest]
	q.items = slices.Delete(q.items, oldest, oldest+1)
	return out
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
