package holder

import (
	"net"
	"slices"
	"sync"
)

// maxQueued bounds what waits for a slow client. Past it pictures are dropped,
// and a client that does not even read the rest is let go: it may come back, and
// the state table serves it better than a backlog would.
const maxQueued = 64 << 20

// socketHolds is room for a large picture, so that it is written and read in one
// go and not in as many turns as it has parts.
const socketHolds = 1 << 20

// outbox is the line of frames to one client, so that a stopped client never
// keeps the browser's pipe from being drained. Where nobody stands in line a
// frame is written at once, as far as the socket takes it: to wake another for
// that would cost more than to do it.
type outbox struct {
	conn   net.Conn
	inline inline

	mu      sync.Mutex
	ready   *sync.Cond
	items   [][]byte // frames, and what is left of one
	bytes   int
	writing bool // run has taken a frame off the line and is at it
	closed  bool
}

func newOutbox(conn net.Conn) *outbox {
	if wide, ok := conn.(*net.UnixConn); ok {
		_ = wide.SetWriteBuffer(socketHolds)
	}
	o := &outbox{conn: conn, inline: inlineTo(conn)}
	o.ready = sync.NewCond(&o.mu)
	return o
}

// push reports false when the line is full. It keeps nothing of the payload.
func (o *outbox) push(kind byte, payload []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return true
	}
	if len(o.items) > 0 && o.bytes+len(payload) > maxQueued {
		return false
	}
	head, sent := headOf(kind, payload), 0
	if len(o.items) == 0 && !o.writing {
		sent = o.inline.write(head[:], payload)
	}
	if sent == len(head)+len(payload) {
		return true
	}
	rest := slices.Concat(head[min(sent, len(head)):], payload[max(0, sent-len(head)):])
	o.items = append(o.items, rest)
	o.bytes += len(rest)
	o.ready.Signal()
	return true
}

// run writes until the connection breaks, or close was called and all is written.
func (o *outbox) run() {
	defer func() { _ = o.conn.Close() }()
	for {
		next, ok := o.pop()
		if !ok {
			return
		}
		if _, err := o.conn.Write(next); err != nil {
			return
		}
	}
}

func (o *outbox) pop() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = false
	for len(o.items) == 0 && !o.closed {
		o.ready.Wait()
	}
	if len(o.items) == 0 {
		return nil, false
	}
	next := o.items[0]
	o.items[0] = nil
	o.items = o.items[1:]
	o.bytes -= len(next)
	o.writing = true
	return next, true
}

// close lets run end once it has written what is queued.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.ready.Broadcast()
}
