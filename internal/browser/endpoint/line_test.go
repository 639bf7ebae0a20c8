package endpoint_test

import (
	"net"
	"sync"
	"testing"
)

// line is the network between us and a browser: a TCP proxy that can be cut
// and stalled.
type line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn
	gate  sync.RWMutex // held for writing while the line is stalled
}

func newLine(t *testing.T, target string) *line {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: ln, target: target}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
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
		l.cut()
		serving.Wait()
	})
	return l
}

func (l *line) addr() string { return l.listener.Addr().String() }

func (l *line) carry(to, from net.Conn) {
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
func (l *line) pass() {
	l.gate.RLock()
	defer l.gate.RUnlock()
}

// cut breaks every connection that is open.
func (l *line) cut() {
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

// stall holds everything back until flow.
func (l *line) stall() { l.gate.Lock() }

func (l *line) flow() { l.gate.Unlock() }
