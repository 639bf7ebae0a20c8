package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"tapin/internal/guard"
)

// lingering is how long the other side may go on after one has said its last.
// Without it a server that never hangs up would hold a tunnel for ever.
const lingering = 5 * time.Minute

// tunnel joins a connection of the browser with one of the dialer. It is never
// cut for being idle: a WebSocket may be silent for as long as a person thinks.
type tunnel struct {
	client, origin net.Conn
	once           sync.Once
}

// end closes both sides.
func (t *tunnel) end() {
	t.once.Do(func() {
		_ = t.client.Close()
		_ = t.origin.Close()
	})
}

func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request) {
	t, err := parseTarget(r.Host)
	if err != nil {
		fail(w, r, http.StatusBadRequest, "address")
		return
	}
	scheme := "https"
	if t.port == 80 {
		scheme = "ws" // the only plain traffic for which Chromium asks a tunnel
	}
	origin, err := p.dial(withScheme(r.Context(), scheme), "tcp", r.Host)
	if err != nil {
		p.answerError(w, r, err)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = origin.Close()
		p.log.Error("the connection cannot be taken over", "error", err)
		fail(w, r, http.StatusInternalServerError, "internal")
		return
	}
	tun := &tunnel{client: client, origin: origin}
	defer tun.end()
	if !p.enlist(tun) {
		return
	}
	defer p.discharge(tun)
	// net/http may have left a deadline from reading the header.
	if client.SetDeadline(time.Time{}) != nil {
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	tun.run(buffered.Reader)
}

// enlist lets Close find the tunnel.
func (p *Proxy) enlist(t *tunnel) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.tunnels[t] = struct{}{}
	return true
}

func (p *Proxy) discharge(t *tunnel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tunnels, t)
}

// run copies both ways until both have ended. early holds what the browser
// sent before it had our answer.
func (t *tunnel) run(early *bufio.Reader) {
	var up guard.Group
	up.Run(func() {
		if n := early.Buffered(); n > 0 {
			if _, err := io.CopyN(t.origin, early, int64(n)); err != nil {
				t.end()
				return
			}
		}
		t.copy(t.origin, t.client)
	})
	t.copy(t.client, t.origin)
	up.Wait()
}

// copy carries one direction. A clean end is passed on as such and the other
// direction may finish; anything else ends the tunnel.
func (t *tunnel) copy(dst, src net.Conn) {
	if _, err := io.Copy(rawConn(dst), rawConn(src)); err != nil {
		t.end()
		return
	}
	if closeWrite(dst) != nil || dst.SetReadDeadline(time.Now().Add(lingering)) != nil {
		t.end()
	}
}
