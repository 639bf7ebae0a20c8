package egress

import (
	"net/netip"
)

// opening says what may open a forbidden range.
type opening uint8

const (
	byAddress opening = iota // only an IP or CIDR entry that covers it: no page needs it
	byName                   // also a host entry, or block_private: false
	byExactIP                // only an entry for that very address: it hands out credentials
)

// prefixRow is one forbidden range. Where IPv4 hides inside, embedded finds it.
type prefixRow struct {
	prefix   netip.Prefix
	rule     string
	opens    opening
	embedded func(netip.Addr) netip.Addr
}

// forbidden is searched from the top, so what is narrow stands above what is wide.
var forbidden = []prefixRow{
	// Cloud metadata: one GET gives the credentials of the whole machine.
	row("169.254.169.254/32", "metadata", byExactIP),   // AWS, Azure, GCP and most others
	row("169.254.170.2/32", "metadata", byExactIP),     // task credentials on AWS
	row("169.254.170.23/32", "metadata", byExactIP),    // pod credentials on AWS
	row("100.100.100.200/32", "metadata", byExactIP),   // Alibaba, inside the CGNAT range
	row("168.63.129.16/32", "metadata", byExactIP),     // Azure's platform, in public space
	row("192.0.0.192/32", "metadata", byExactIP),       // Oracle
	row("fd00:ec2::254/128", "metadata", byExactIP),    // AWS over IPv6
	row("fd00:ec2::23/128", "metadata", byExactIP),     // pod credentials over IPv6
	row("fd20:ce::254/128", "metadata", byExactIP),     // GCP over IPv6
	row("127.0.0.0/8", "loopback", byName),             // this machine
	row("::1/128", "loopback", byName),                 // this machine
	row("0.0.0.0/8", "unspecified", byName),            // 0.0.0.0 connects to this machine
	row("::/128", "unspecified", byName),               // as 0.0.0.0
	row("10.0.0.0/8", "private", byName),               // RFC 1918
	row("172.16.0.0/12", "private", byName),            // RFC 1918
	row("192.168.0.0/16", "private", byName),           // RFC 1918, the router at home
	row("169.254.0.0/16", "link-local", byName),        // this link only
	row("fe80::/10", "link-local", byName),             // this link only
	row("100.64.0.0/10", "shared", byName),             // carriers' NAT, overlay networks
	row("fc00::/7", "private", byName),                 // unique local
	row("fec0::/10", "private", byName),                // site-local: deprecated, still routed by some
	row("198.18.0.0/15", "benchmarking", byName),       // labs, and fake-IP VPNs
	row("2001:2::/48", "benchmarking", byName),         // labs
	row("192.0.0.0/24", "reserved", byAddress),         // protocol assignments
	row("192.0.2.0/24", "documentation", byAddress),    // examples in books
	row("198.51.100.0/24", "documentation", byAddress), // examples in books
	row("203.0.113.0/24", "documentation", byAddress),  // examples in books
	row("2001:db8::/32", "documentation", byAddress),   // examples in books
	row("3fff::/20", "documentation", byAddress),       // examples in books
	row("192.88.99.0/24", "transition", byAddress),     // the old 6to4 relays
	row("224.0.0.0/4", "multicast", byAddress),         // has no TCP
	row("ff00::/8", "multicast", byAddress),            // has no TCP
	row("255.255.255.255/32", "broadcast", byAddress),  // has no TCP
	row("240.0.0.0/4", "reserved", byAddress),          // never assigned, routed privately by some
	row("100::/64", "discard", byAddress),              // black hole
	row("2001:10::/28", "orchid", byAddress),           // identifiers, not addresses
	row("2001:20::/28", "orchid", byAddress),           // identifiers, not addresses
	row("5f00::/16", "segment-routing", byAddress),     // instructions to routers inside one network

	// Transition: an IPv6 spelling of an IPv4 address, which is judged as well.
	// 64:ff9b::/96 alone may pass, since on a DNS64 network every IPv4 site has it.
	transition("64:ff9b::/96", "nat64", low32),
	transition("64:ff9b:1::/48", "nat64", localNAT64), // a network's own translator
	transition("::ffff:0:0/96", "ipv4-mapped", low32), // the kernel connects to the IPv4 address
	transition("::/96", "ipv4-compatible", low32),     // deprecated spelling of IPv4
	transition("2002::/16", "6to4", bytesAt(2)),       // tunnel to the IPv4 address in bytes 2 to 5
	transition("2001::/32", "teredo", inverted32),     // tunnel to the inverted IPv4 address at the end
	row("2001::/23", "reserved", byAddress),           // the other protocol assignments
}

var (
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")
	globalUnicast6 = netip.MustParsePrefix("2000::/3")
	fakeIPRange    = netip.MustParsePrefix("198.18.0.0/15")
)

func row(prefix, rule string, opens opening) prefixRow {
	return prefixRow{prefix: netip.MustParsePrefix(prefix), rule: rule, opens: opens}
}

func transition(prefix, rule string, embedded func(netip.Addr) netip.Addr) prefixRow {
	return prefixRow{prefix: netip.MustParsePrefix(prefix), rule: rule, opens: byAddress, embedded: embedded}
}

// finding is what the table says of one address. An empty rule means public.
type finding struct {
	rule  string
	opens opening
	inner netip.Addr // the IPv4 address inside, if any
}

// classify judges an address by the table alone.
func classify(a netip.Addr) finding {
	if a.Zone() != "" {
		return finding{rule: "zone", opens: byAddress}
	}
	for i := range forbidden {
		r := &forbidden[i]
		if !contains(r.prefix, a) {
			continue
		}
		if r.embedded == nil {
			return finding{rule: r.rule, opens: r.opens}
		}
		return embedding(r.prefix, r.rule, r.embedded(a))
	}
	if a.Is6() && isISATAP(a) {
		return embedding(netip.Prefix{}, "isatap", low32(a))
	}
	if a.Is6() && !globalUnicast6.Contains(a) {
		// What is not handed out yet is nobody's public site.
		return finding{rule: "reserved", opens: byAddress}
	}
	return finding{}
}

// embedding judges an IPv6 spelling of the IPv4 address inner.
func embedding(prefix netip.Prefix, rule string, inner netip.Addr) finding {
	f := classify(inner)
	f.inner = inner
	switch {
	case f.rule == "" && prefix == wellKnownNAT64:
		return f
	case f.rule == "":
		return finding{rule: rule, opens: byAddress, inner: inner}
	case prefix != wellKnownNAT64 && prefix.Addr() != mappedPrefix && f.opens == byName:
		// Only the two spellings that reach the very same host may be opened
		// by what opens the IPv4 address.
		f.opens = byAddress
	}
	return f
}

var mappedPrefix = netip.MustParseAddr("::ffff:0:0")

// contains is Prefix.Contains that sees IPv4-mapped addresses as IPv6, as the
// row for them is written.
func contains(p netip.Prefix, a netip.Addr) bool {
	if a.Is4In6() {
		return p.Addr() == mappedPrefix
	}
	return p.Contains(a)
}

func low32(a netip.Addr) netip.Addr { return bytesAt(12)(a) }

func bytesAt(i int) func(netip.Addr) netip.Addr {
	return func(a netip.Addr) netip.Addr {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[i : i+4]))
	}
}

func inverted32(a netip.Addr) netip.Addr {
	b := low32(a).As4()
	for i := range b {
		b[i] = ^b[i]
	}
	return netip.AddrFrom4(b)
}

// localNAT64 reads the layout of a /96 translator or, when the end is empty,
// of a /48 one, where byte 8 is a gap (RFC 6052).
func localNAT64(a netip.Addr) netip.Addr {
	if inner := low32(a); !inner.IsUnspecified() {
		return inner
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]})
}

// isISATAP recognises an interface identifier that carries an IPv4 address,
// under any prefix.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
