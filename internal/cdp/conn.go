// Package cdp is a connection to a browser over the Chrome DevTools Protocol.
// It owns the wire: message ids, flat sessions, the order of events, deadlines
// and the cause of a lost connection. It must never put an address, a key or a
// message body into an error, and never take a lost connection for a cancelled call.
package cdp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/guard"
)

// Transport carries whole protocol messages. Read is called by one goroutine,
// and what it gave is valid until it is called again; Write may be called by many at once. After Close both return an error.
type Transport interface {
	Read() ([]byte, error)
	Write(ctx context.Context, messages ...[]byte) error // in one go, where it can
	Close() error
}

// Options tune a connection; nil means the defaults.
type Options struct {
	// CallTimeout bounds calls whose context has no deadline: a hung renderer
	// never answers. Default 30 s.
	CallTimeout time.Duration
	// FirstID is the first message id; a client that follows another on the
	// same pipe starts above it. Default 1.
	FirstID int64
	// QueuedEvents bounds the events that wait for their handlers. A consumer
	// that falls further behind loses the connection, loudly, because a silently
	// dropped event would leave it with a wrong picture. Default 16384.
	QueuedEvents int
}

func (o *Options) orDefaults() Options {
	out := Options{}
	if o != nil {
		out = *o
	}
	if out.CallTimeout <= 0 {
		out.CallTimeout = 30 * time.Second
	}
	if out.FirstID <= 0 {
		out.FirstID = 1
	}
	if out.QueuedEvents <= 0 {
		out.QueuedEvents = 16384
	}
	return out
}

// Conn multiplexes sessions over one transport. It is safe for concurrent use.
type Conn struct {
	transport Transport
	opts      Options
	nextID    atomic.Int64
	root      *Session
	events    *queue
	done      chan struct{}
	workers   sync.WaitGroup

	dispatching sync.Once

	mu       sync.Mutex
	pending  map[int64]*pending
	sessions map[target.SessionID]*Session
	lost     error
}

// pending is a call that waits for its answer.
type pending struct {
	session target.SessionID
	answer  chan answer
}

type answer struct {
	result jsonv2.Value
	err    error
}

// New takes over the transport and begins to read: calls work at once. Events
// wait in their queue until Dispatch, so that handlers installed until then
// miss nothing.
func New(t Transport, opts *Options) *Conn {
	o := opts.orDefaults()
	c := &Conn{
		transport: t,
		opts:      o,
		events:    newQueue(o.QueuedEvents),
		done:      make(chan struct{}),
		pending:   map[int64]*pending{},
		sessions:  map[target.SessionID]*Session{},
	}
	c.nextID.Store(o.FirstID - 1)
	c.root = newSession(c, "", nil)
	c.sessions[""] = c.root
	c.workers.Go(func() {
		defer guard.Catch("CDP", func() { c.lose(errPanicked) })
		c.read()
	})
	return c
}

// Dispatch begins to hand events to their handlers. More than the first call
// has no effect.
func (c *Conn) Dispatch() {
	c.dispatching.Do(func() {
		c.workers.Go(func() {
			defer guard.Catch("CDP", func() { c.lose(errPanicked) })
			c.dispatch()
		})
	})
}

// Root is the session of the browser itself.
func (c *Conn) Root() *Session { return c.root }

// Session returns the session with that id, known or not: a client that follows
// another on the same pipe goes on with the sessions of the first.
func (c *Conn) Session(id target.SessionID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[id]
	if !ok {
		s = newSession(c, id, nil)
		c.sessions[id] = s
	}
	return s
}

// Done is closed when the connection is lost or closed.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended, nil while it stands.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Close ends the connection and waits for its goroutines. The browser is left alone.
// It must not be called from an event handler.
func (c *Conn) Close() error {
	c.lose(errClosed)
	c.workers.Wait()
	return nil
}

// lose fails every call in flight with the cause, at once. The first cause stands.
func (c *Conn) lose(cause error) {
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return
	}
	c.lost = lostError(cause)
	calls := c.pending
	c.pending = nil
	c.mu.Unlock()

	close(c.done)
	for _, p := range calls {
		p.answer <- answer{err: c.lost}
	}
	_ = c.transport.Close()
	c.events.close()
}

func (c *Conn) read() {
	for {
		raw, err := c.transport.Read()
		if err != nil {
			c.lose(err)
			return
		}
		m, err := parse(raw)
		if err != nil {
			c.lose(&Lost{Cause: "the browser sent something that is not a protocol message"})
			return
		}
		if m.ID != 0 {
			c.deliver(m)
			continue
		}
		replaced, ok := c.events.push(m)
		if !ok {
			c.lose(&Lost{Cause: "events came faster than they were handled"})
			return
		}
		if replaced != nil {
			c.acknowledge(replaced)
		}
	}
}

// acknowledge answers for a picture that no handler will see; the browser
// counts, and stops after a few that nobody answered for.
func (c *Conn) acknowledge(frame *message) {
	var cast struct {
		Number int64 `json:"sessionId"`
	}
	if jsonv2.Unmarshal(frame.Params, &cast) == nil {
		_, _ = c.send(context.Background(), frame.Session, "Page.screencastFrameAck", []any{map[string]int64{"sessionId": cast.Number}}, nil)
	}
}

// deliver hands an answer to its caller. Answers to calls nobody waits for any
// more, or that an earlier client made, are dropped.
func (c *Conn) deliver(m *message) {
	c.mu.Lock()
	p := c.pending[m.ID]
	delete(c.pending, m.ID)
	c.mu.Unlock()
	if p == nil {
		return
	}
	if m.Error != nil {
		p.answer <- answer{err: m.Error}
		return
	}
	p.answer <- answer{result: m.Result}
}

// Settle waits until the handlers have seen every event that arrived before
// now. After an answer it makes sure that what the browser told before the
// answer is known too. It must not be called from a handler.
func (c *Conn) Settle(ctx context.Context) error {
	reached := make(chan struct{})
	_, _ = c.events.push(&message{mark: reached})
	select {
	case <-reached:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dispatch runs the handlers, in the order the events arrived.
func (c *Conn) dispatch() {
	for {
		m, ok := c.events.pop()
		if !ok {
			return
		}
		if m.mark != nil {
			close(m.mark)
			continue
		}
		c.follow(m)
		c.mu.Lock()
		s := c.sessions[m.Session]
		c.mu.Unlock()
		if s != nil {
			c.hand(s, m)
		}
	}
}

// hand gives an event to its session. What a handler makes of one page's event
// is that session's loss: the others go on, and the rest of the browser.
func (c *Conn) hand(s *Session, m *message) {
	defer guard.Catch("CDP", func() {
		if m.Session == "" {
			c.lose(errPanicked)
			return
		}
		c.forget(m.Session)
	})
	s.handle(m)
}

var errPanicked = &Lost{Cause: "an event of the browser could not be handled"}

// follow keeps the table of sessions: a session exists from the moment its
// event says so, before any handler sees it.
func (c *Conn) follow(m *message) {
	switch m.Method {
	case "Target.attachedToTarget":
		var e target.EventAttachedToTarget
		if jsonv2.Unmarshal(m.Params, &e) != nil || e.SessionID == "" {
			return
		}
		c.mu.Lock()
		if known := c.sessions[e.SessionID]; known == nil {
			c.sessions[e.SessionID] = newSession(c, e.SessionID, e.TargetInfo)
		} else {
			known.setTarget(e.TargetInfo)
		}
		c.sessions[e.SessionID].parent = m.Session
		c.mu.Unlock()
	case "Target.detachedFromTarget":
		var e target.EventDetachedFromTarget
		if jsonv2.Unmarshal(m.Params, &e) == nil && e.SessionID != "" {
			c.forget(e.SessionID)
		}
	}
}

// forget ends a session: its calls will never be answered. Those that were
// opened through it go with it, of which the browser does not tell.
func (c *Conn) forget(id target.SessionID) {
	c.mu.Lock()
	s := c.sessions[id]
	delete(c.sessions, id)
	var inner []target.SessionID
	for child, session := range c.sessions {
		if session.parent == id && child != "" {
			inner = append(inner, child)
		}
	}
	var orphans []*pending
	for callID, p := range c.pending {
		if p.session == id {
			orphans = append(orphans, p)
			delete(c.pending, callID)
		}
	}
	c.mu.Unlock()
	for _, p := range orphans {
		p.answer <- answer{err: ErrDetached}
	}
	if s != nil {
		s.end()
	}
	for _, child := range inner {
		c.forget(child)
	}
}

// send writes calls of one method; the answer to the last of them goes to pending.
// With a nil one nobody waits for it.
func (c *Conn) send(ctx context.Context, s target.SessionID, method string, params []any, p *pending) (int64, error) {
	var id int64
	messages := make([][]byte, len(params))
	for i, each := range params {
		id = c.nextID.Add(1)
		raw, err := encode(id, s, method, each)
		if err != nil {
			return 0, err
		}
		messages[i] = raw
	}
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return 0, c.lost
	}
	if p != nil {
		c.pending[id] = p
	}
	c.mu.Unlock()

	if err := c.transport.Write(ctx, messages...); err != nil {
		c.abandon(id)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		c.lose(err)
		return 0, c.Err()
	}
	return id, nil
}

func (c *Conn) abandon(id int64) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}
