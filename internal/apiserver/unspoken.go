package apiserver

import (
	"net"
	"net/http"
	"sync"
)

// unspoken are the connections on which nobody has said anything yet. Clients
// open them in reserve; a server that ends would wait five seconds for each.
type unspoken struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (u *unspoken) note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state != http.StateNew {
		delete(u.conns, c)
		return
	}
	if u.conns == nil {
		u.conns = map[net.Conn]bool{}
	}
	u.conns[c] = true
}

func (u *unspoken) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close()
	}
}
