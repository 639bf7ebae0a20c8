package apiserver

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// crowd bounds the open connections. When it is full, a newcomer takes the
// place of the oldest visitor that is not being served, strangers first: a
// flood of idle connections pushes out itself and not the agent.
type crowd struct {
	most int

	mu    sync.Mutex
	count uint64
	open  map[*visitor]struct{}
}

// visitor is one connection.
type visitor struct {
	net.Conn
	crowd   *crowd
	number  uint64       // in the order of arrival
	known   atomic.Bool  // a valid token came through it
	serving atomic.Int32 // calls with a valid token under way
}

type visitorKey struct{}

// visitorOf finds the connection of a request; nil outside of Serve.
func visitorOf(r *http.Request) *visitor {
	v, _ := r.Context().Value(visitorKey{}).(*visitor)
	return v
}

// serve marks the visitor as a known caller until done is called.
func (v *visitor) serve() (done func()) {
	if v == nil {
		return func() {}
	}
	v.known.Store(true)
	v.serving.Add(1)
	return func() { v.serving.Add(-1) }
}

// Close also makes room for the next visitor.
func (v *visitor) Close() error {
	v.crowd.mu.Lock()
	delete(v.crowd.open, v)
	v.crowd.mu.Unlock()
	return v.Conn.Close()
}

// CloseWrite lets net/http deliver an answer to a caller that is still sending
// a body nobody will read.
func (v *visitor) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

func (c *crowd) at(ln net.Listener) net.Listener { return &entrance{ln, c} }

type entrance struct {
	net.Listener
	crowd *crowd
}

// Accept returns the next visitor there is room for.
func (e *entrance) Accept() (net.Conn, error) {
	for {
		conn, err := e.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if v := e.crowd.enter(conn); v != nil {
			return v, nil
		}
		_ = conn.Close()
	}
}

func (c *crowd) enter(conn net.Conn) *visitor {
	c.mu.Lock()
	var leaves *visitor
	if len(c.open) >= c.most {
		if leaves = c.idlest(); leaves == nil {
			c.mu.Unlock()
			return nil
		}
		delete(c.open, leaves)
	}
	c.count++
	v := &visitor{Conn: conn, crowd: c, number: c.count}
	c.open[v] = struct{}{}
	c.mu.Unlock()
	if leaves != nil {
		_ = leaves.Close()
	}
	return v
}

func (c *crowd) idlest() (found *visitor) {
	for v := range c.open {
		switch {
		case v.serving.Load() > 0:
		case found == nil,
			found.known.Load() && !v.known.Load(),
			found.known.Load() == v.known.Load() && v.number < found.number:
			found = v
		}
	}
	return found
}
