package reach

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestOnlyAddressesWhereAPhoneCanBeAreOffered(t *testing.T) {
	t.Parallel()
	at := func(s string) net.Addr {
		ip, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		return &net.IPNet{IP: ip, Mask: n.Mask}
	}
	for name, tt := range map[string]struct {
		addresses []net.Addr
		want      string
	}{
		"wlan0":     {[]net.Addr{at("192.168.1.20/24"), at("fe80::1/64"), at("2001:db8::5/64"), at("fd12::5/64")}, "[192.168.1.20 fd12::5]"},
		"eth0":      {[]net.Addr{at("10.1.2.3/8"), at("203.0.113.9/24")}, "[10.1.2.3]"},
		"docker0":   {[]net.Addr{at("172.17.0.1/16")}, "[]"},
		"br-1f2a":   {[]net.Addr{at("172.18.0.1/16")}, "[]"},
		"utun4":     {[]net.Addr{at("10.9.0.2/24")}, "[]"},
		"tailscale": {[]net.Addr{at("100.101.102.103/32")}, "[]"},
		"en0":       {[]net.Addr{at("169.254.3.4/16"), at("172.20.10.2/28")}, "[172.20.10.2]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := private(name, tt.addresses)
			if s := sprint(got); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

func TestTheLikeliestAddressComesFirst(t *testing.T) {
	t.Parallel()
	all := []netip.Addr{netip.MustParseAddr("fd12::5"), netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("192.168.1.20")}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return rank(a) - rank(b) })
	if s := sprint(all); s != "[192.168.1.20 10.0.0.7 fd12::5]" {
		t.Errorf("got %s", s)
	}
}

func sprint(all []netip.Addr) string {
	s := "["
	for i, a := range all {
		if i > 0 {
			s += " "
		}
		s += a.String()
	}
	return s + "]"
}
