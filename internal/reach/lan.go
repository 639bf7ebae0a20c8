package reach

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// virtual are the beginnings of the names of interfaces that lead to containers
// and virtual machines: no phone is there.
var virtual = [...]string{"docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "cni", "flannel", "cali", "lxc", "lxd", "podman", "tun", "tap", "wg", "utun", "zt", "ifb", "dummy"}

// Neighbours are the addresses under which devices of the same network reach
// this machine: private ones, IPv4 first, the likeliest at the beginning.
func Neighbours() []netip.Addr {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var all []netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		all = append(all, private(i.Name, addresses)...)
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int {
		return rank(a) - rank(b)
	})
	return slices.Compact(all)
}

// private picks what is for a network of one's own.
func private(name string, addresses []net.Addr) (found []netip.Addr) {
	for _, prefix := range virtual {
		if strings.HasPrefix(name, prefix) {
			return nil
		}
	}
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := p.Addr().Unmap(); ip.IsPrivate() {
			found = append(found, ip)
		}
	}
	return found
}

// rank puts the addresses that people can type, and that homes have, first.
func rank(a netip.Addr) int {
	home := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, 0, 0}), 16)
	switch {
	case home.Contains(a):
		return 0
	case a.Is4():
		return 1
	}
	return 2
}
