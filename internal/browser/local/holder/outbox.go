package holder

import (
	"net"
	"sync"
)

// maxQueued bounds what waits for a slow client. Past it pictures are dropped,
// and a client that does not even read the rest is let go: it may come back, and
// the state table serves it better than a backlog would.
const maxQueued = 64 << 20

// outbox is the line of frames to one client, so that a stopped client never
// keeps the browser's pipe from being drained.
type outbox struct {
	conn net.Conn

	mu     sync.Mutex
	ready  *sync.Cond
	items  []outgoing
	bytes  int
	closed bool
}

type outgoing struct {
	kind    byte
	payload []byte
}

func newOutbox(conn net.Conn) *outbox {
	o := &outbox{conn: conn}
	o.ready = sync.NewCond(&o.mu)
	return o
}

// push reports false when the line is full.
func (o *outbox) push(kind byte, payload []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return true
	}
	if len(o.items) > 0 && o.bytes+len(payload) > maxQueued {
		return false
	}
	o.items = append(o.items, outgoing{kind, payload})
	o.bytes += len(payload)
	o.ready.Signal()
	return true
}

// run writes until the connection breaks, or close was called and all is written.
func (o *outbox) run() {
	defer func() { _ = o.conn.Close() }()
	for {
		o.mu.Lock()
		for len(o.items) == 0 && !o.closed {
			o.ready.Wait()
		}
		if len(o.items) == 0 {
			o.mu.Unlock()
			return
		}
		next := o.items[0]
		o.items[0] = outgoing{}
		o.items = o.items[1:]
		o.bytes -= len(next.payload)
		o.mu.Unlock()
		if err := writeFrame(o.conn, next.kind, next.payload); err != nil {
			return
		}
	}
}

// close lets run end once it has written what is queued.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.ready.Broadcast()
}
