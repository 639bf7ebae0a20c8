package cdp

import (
	"context"
	"fmt"
	"slices"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/guard"
)

var _ proto.Session = (*Session)(nil)

// Session is one target's channel in a connection. The typed calls of cdproto
// run on it: proto.Call(ctx, session, page.Navigate, params).
type Session struct {
	conn   *Conn
	id     target.SessionID
	parent target.SessionID // that it was opened through; the connection's lock guards it
	recipe Recipe
	ended  chan struct{}

	mu       sync.Mutex
	info     *target.Info
	handlers map[string][]*handler
	over     bool
}

type handler struct{ fn func(jsonv2.Value) }

func newSession(c *Conn, id target.SessionID, info *target.Info) *Session {
	return &Session{conn: c, id: id, info: info, ended: make(chan struct{}), handlers: map[string][]*handler{}}
}

// ID names the session on the wire; the root's is empty.
func (s *Session) ID() target.SessionID { return s.id }

// Conn is the connection the session belongs to.
func (s *Session) Conn() *Conn { return s.conn }

// Target is what the session is attached to, nil where that is not known.
func (s *Session) Target() *target.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *Session) setTarget(info *target.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info != nil {
		s.info = info
	}
}

// Ended is closed when the browser detaches the session.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Call sends a command and decodes its result into result, which may be nil. Into
// a *jsonv2.Value it goes as it came.
// It returns at once when the connection is lost, the target goes away or the
// context ends while it waits for the answer, and never waits without a
// deadline. Sending itself is bounded by the transport.
func (s *Session) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.begin(ctx, method, params)(result)
}

// CallAll sends commands of one method in one go and waits for the answer to the last.
func (s *Session) CallAll(ctx context.Context, method string, params ...any) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.begin(ctx, method, params...)(nil)
}

// bounded is a context with a deadline, if only ours.
func (s *Session) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, already := ctx.Deadline(); already {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.conn.opts.CallTimeout)
}

// begin sends commands; the returned func waits for the answer to the last and
// must be called.
func (s *Session) begin(ctx context.Context, method string, params ...any) func(result any) error {
	p := &pending{session: s.id, answer: make(chan answer, 1)}
	id, err := s.conn.send(ctx, s.id, method, params, p)
	return func(result any) error {
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		select {
		case a := <-p.answer:
			if a.err != nil {
				return fmt.Errorf("%s: %w", method, a.err)
			}
			switch into := result.(type) {
			case nil:
				return nil
			case *jsonv2.Value:
				*into = a.result
				return nil
			}
			if jsonv2.Unmarshal(a.result, result, jsonv2.AllowInvalidUTF8(true)) != nil {
				// The decoder's own words may quote the answer.
				return fmt.Errorf("%s: the answer has an unexpected shape", method)
			}
			return nil
		case <-ctx.Done():
			s.conn.abandon(id)
			return fmt.Errorf("%s: no answer: %w", method, ctx.Err())
		}
	}
}

// Send sends a command, or several of one method in one go, and does not wait for
// an answer: what an event handler may use.
func (s *Session) Send(ctx context.Context, method string, params ...any) error {
	if _, err := s.conn.send(ctx, s.id, method, params, nil); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Setup runs commands that give the session lasting properties, all at once,
// and remembers them, so that Recipe can bring a new session into the same
// state. It returns the first failure.
func (s *Session) Setup(ctx context.Context, steps ...Step) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	waits := make([]func(any) error, len(steps))
	for i, st := range steps {
		waits[i] = s.begin(ctx, st.Method, st.Params)
	}
	var failed error
	for i, wait := range waits {
		switch err := wait(nil); {
		case err == nil:
			s.recipe.record(steps[i])
		case failed == nil:
			failed = err
		}
	}
	return failed
}

// Recipe is what Setup was called with so far.
func (s *Session) Recipe() *Recipe { return &s.recipe }

// On runs fn for every such event, in the order of arrival, on the connection's
// one dispatching goroutine: fn must be quick and must not Call or Close. The
// returned func removes it.
func (s *Session) On(method string, fn func(jsonv2.Value)) (cancel func()) {
	h := &handler{fn: fn}
	s.mu.Lock()
	s.handlers[method] = append(s.handlers[method], h)
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// A fresh slice: a dispatch under way may still walk the old one.
		s.handlers[method] = slices.DeleteFunc(slices.Clone(s.handlers[method]), func(o *handler) bool { return o == h })
		if len(s.handlers[method]) == 0 {
			delete(s.handlers, method)
		}
	}
}

// Subscribe returns a channel of the event's payloads. It holds 64; when its
// reader is further behind, the oldest give way. The channel is closed by
// cancel and when the session ends.
func (s *Session) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	ch := make(chan jsonv2.Value, 64)
	var mu sync.Mutex
	closed := false
	off := s.On(method, func(v jsonv2.Value) {
		mu.Lock()
		defer mu.Unlock()
		for !closed {
			select {
			case ch <- v:
				return
			default:
			}
			select {
			case <-ch:
			default:
			}
		}
	})
	stop := sync.OnceFunc(func() {
		off()
		mu.Lock()
		defer mu.Unlock()
		closed = true
		close(ch)
	})
	gone := make(chan struct{})
	go func() {
		defer guard.Catch("CDP")
		select {
		case <-s.ended:
		case <-s.conn.done:
		case <-gone:
		}
		stop()
	}()
	return ch, sync.OnceFunc(func() { close(gone) })
}

// Listen is On with the payload decoded. An event that does not decode is not
// one of the protocol this was built for, and is left out.
func Listen[E any](s *Session, e proto.Event[E], fn func(E)) (cancel func()) {
	return s.On(e.Method, func(raw jsonv2.Value) {
		var v E
		if jsonv2.Unmarshal(raw, &v, jsonv2.AllowInvalidUTF8(true)) == nil {
			fn(v)
		}
	})
}

func (s *Session) handle(m *message) {
	s.mu.Lock()
	handlers := s.handlers[m.Method]
	s.mu.Unlock()
	for _, h := range handlers {
		h.fn(m.Params)
	}
}

func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.ended)
	}
}
