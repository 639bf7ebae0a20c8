package browsertest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Line is the network between us and a browser: a TCP proxy that can be cut,
// stalled and taken down.
type Line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn
	down  bool
	knock []time.Time  // when somebody came while it was down
	gate  sync.RWMutex // held for writing while the line is stalled
}

// NewLine opens a line to an address.
func NewLine(t *testing.T, target string) *Line {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{listener: ln, target: target}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			if l.refuses() {
				_ = in.Close()
				continue
			}
			out, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, in, out)
			l.mu.Unlock()
			serving.Go(func() { l.carry(in, out) })
			serving.Go(func() { l.carry(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		l.Cut()
		serving.Wait()
	})
	return l
}

// Addr is where the line begins.
func (l *Line) Addr() string { return l.listener.Addr().String() }

func (l *Line) carry(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		l.pass()
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// pass waits while the line is stalled.
func (l *Line) pass() {
	l.gate.RLock()
	defer l.gate.RUnlock()
}

// Cut breaks every connection that is open.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	l.conns = nil
}

// Stall holds everything back until Flow.
func (l *Line) Stall() { l.gate.Lock() }

// Flow lets everything pass again.
func (l *Line) Flow() { l.gate.Unlock() }

// Down cuts the line and refuses whoever comes, until Up.
func (l *Line) Down() {
	l.mu.Lock()
	l.down = true
	l.mu.Unlock()
	l.Cut()
}

// Up lets newcomers in again, and tells when somebody came meanwhile.
func (l *Line) Up() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
	knocks := l.knock
	l.knock = nil
	return knocks
}

// Knocks is when somebody came since the line is down.
func (l *Line) Knocks() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.knock)
}

func (l *Line) refuses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		l.knock = append(l.knock, time.Now())
	}
	return l.down
}
