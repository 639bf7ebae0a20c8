package canary

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/testwait"
)

// bird is a canary: one port on all addresses of loopback, TCP and UDP, that
// counts whatever touches it. Each vector has one of its own, so that a hit
// says by which way it came.
type bird struct {
	port uint16

	mu   sync.Mutex
	hits map[string]int // "tcp 127.0.0.1" and the like
}

func (b *bird) hit(how string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hits[how]++
}

// touched is what came, empty when nothing did.
func (b *bird) touched() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hits) == 0 {
		return ""
	}
	return fmt.Sprint(b.hits)
}

func (b *bird) count(how string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hits[how]
}

// aviary keeps the birds of one test and answers for them.
type aviary struct {
	queue  *queue
	server *http.Server
	tls    *tls.Config
}

func newAviary(t *testing.T, cert tls.Certificate) *aviary {
	t.Helper()
	a := &aviary{
		queue: &queue{conns: make(chan net.Conn), done: make(chan struct{})},
		tls:   &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}
	a.server = &http.Server{Handler: http.HandlerFunc(chirp), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(a.queue) }()
	t.Cleanup(func() { _ = a.server.Close() })
	return a
}

// chirp is an answer that every kind of request can do something with.
func chirp(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Connection", "close")
	h.Set("Cache-Control", "no-store")
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods"} {
		h.Set(name, "*")
	}
	switch {
	case r.URL.Path == "/401":
		h.Set("WWW-Authenticate", `Basic realm="canary"`)
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasSuffix(r.URL.Path, ".js"):
		h.Set("Content-Type", "text/javascript")
	case strings.HasSuffix(r.URL.Path, ".css"):
		h.Set("Content-Type", "text/css")
	default:
		h.Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>canary</title>")
	}
}

// hatch opens a port that is free on loopback and on the addresses in own. With
// apart, the listener on 127.0.0.1 is handed out instead of being the bird's.
func (a *aviary) hatch(t *testing.T, own []netip.Addr, apart func(net.Listener)) *bird {
	t.Helper()
	for range 100 {
		if b, ok := a.try(t, own, apart); ok {
			return b
		}
	}
	t.Fatal("no port is free on all addresses")
	return nil
}

func (a *aviary) try(t *testing.T, own []netip.Addr, apart func(net.Listener)) (*bird, bool) {
	t.Helper()
	first, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bird{port: uint16(first.Addr().(*net.TCPAddr).Port), hits: map[string]int{}} //nolint:gosec // a port
	listeners, packets := []net.Listener{first}, []net.PacketConn(nil)
	at := func(addr netip.Addr) string { return netip.AddrPortFrom(addr, b.port).String() }
	addrs := append([]netip.Addr{loop4}, own...)
	if hasIPv6() {
		addrs = append(addrs, loop6)
	}
	for _, addr := range addrs {
		if addr != loop4 {
			var ln net.Listener
			if ln, err = net.Listen("tcp", at(addr)); err == nil {
				listeners = append(listeners, ln)
			}
		}
		if err == nil {
			var pc net.PacketConn
			if pc, err = net.ListenPacket("udp", at(addr)); err == nil {
				packets = append(packets, pc)
			}
		}
		if err != nil {
			for _, ln := range listeners {
				_ = ln.Close()
			}
			for _, pc := range packets {
				_ = pc.Close()
			}
			return nil, false
		}
	}
	for _, ln := range listeners {
		t.Cleanup(func() { _ = ln.Close() })
		if ln == first && apart != nil {
			apart(ln)
			continue
		}
		go a.accept(b, ln)
	}
	for _, pc := range packets {
		t.Cleanup(func() { _ = pc.Close() })
		go receive(b, pc)
	}
	return b, true
}

func (a *aviary) accept(b *bird, ln net.Listener) {
	how := "tcp " + ln.Addr().(*net.TCPAddr).IP.String()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		b.hit(how)
		go a.greet(c)
	}
}

// greet finds out whether TLS is spoken and passes the connection on.
func (a *aviary) greet(c net.Conn) {
	p := &peeked{Conn: c, r: bufio.NewReader(c)}
	_ = c.SetReadDeadline(testwait.End())
	first, err := p.r.Peek(1)
	if err != nil {
		_ = c.Close()
		return
	}
	c = p
	if first[0] == 0x16 {
		c = tls.Server(p, a.tls)
	}
	select {
	case a.queue.conns <- c:
	case <-a.queue.done:
		_ = c.Close()
	}
}

func receive(b *bird, pc net.PacketConn) {
	how := "udp " + pc.LocalAddr().(*net.UDPAddr).IP.String()
	buf := make([]byte, 2048)
	for {
		if _, _, err := pc.ReadFrom(buf); err != nil {
			return
		}
		b.hit(how)
	}
}

type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// queue is a listener of connections that others have accepted.
type queue struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

func (q *queue) Addr() net.Addr { return &net.TCPAddr{} }

// hasIPv6 reports whether this machine has an IPv6 loopback.
var hasIPv6 = sync.OnceValue(func() bool {
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	_ = ln.Close()
	return true
})

// ownAddress is an address of this machine beside loopback.
func ownAddress(v6 bool) (netip.Addr, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, f := range found {
		n, ok := f.(*net.IPNet)
		if !ok {
			continue
		}
		a, _ := netip.AddrFromSlice(n.IP)
		a = a.Unmap()
		if a.IsLoopback() || a.IsLinkLocalUnicast() || a.Is6() != v6 {
			continue
		}
		ln, err := net.Listen("tcp", net.JoinHostPort(a.String(), "0"))
		if err != nil {
			continue
		}
		_ = ln.Close()
		return a, nil
	}
	return netip.Addr{}, errors.New("none")
}

func portOf(ln net.Listener) string { return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port) }
