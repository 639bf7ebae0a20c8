package origin

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

// DropUnspoken has a server that ends let go of them at once.
func DropUnspoken(server *http.Server) {
	u := &unspoken{conns: map[net.Conn]bool{}}
	server.ConnState = u.note
	server.RegisterOnShutdown(u.close)
}

func (u *unspoken) note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew {
		u.conns[c] = true
	} else {
		delete(u.conns, c)
	}
}

func (u *unspoken) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close()
	}
}
