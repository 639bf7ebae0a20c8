package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// machineFresh is how long the list of this machine's addresses is believed.
const machineFresh = 5 * time.Second

// machine knows the addresses of this machine. The zero value is ready.
type machine struct {
	mu    sync.Mutex
	read  time.Time
	addrs map[netip.Addr]bool
	list  func() ([]net.Addr, error) // nil means net.InterfaceAddrs
}

// has reports whether a connection to a ends at this machine.
func (m *machine) has(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.addrs == nil || time.Since(m.read) >= machineFresh {
		m.refresh()
	}
	return m.addrs[a]
}

// refresh reads the interfaces. When that fails the last list stands: it is
// nearly always still right.
func (m *machine) refresh() {
	m.read = time.Now()
	list := m.list
	if list == nil {
		list = net.InterfaceAddrs
	}
	found, err := list()
	if err != nil {
		return
	}
	m.addrs = make(map[netip.Addr]bool, len(found))
	for _, f := range found {
		if n, ok := f.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				m.addrs[a.Unmap()] = true
			}
		}
	}
}
