// Package egress decides which addresses a page may reach and makes the connections.
// It owns the address policy, the guarded dialer and the filtering proxy that every request of a local browser passes through.
// It must never connect to an address that it has not judged, and never let anything through before it has a policy.
package egress

import (
	"net/netip"
	"slices"
	"strings"

	"tapin/internal/fault"
)

// Rules that callers tell apart; the ranges of the address table have their
// own names ("loopback", "private", …).
const (
	RuleNoPolicy    = "no-policy"    // no policy has arrived yet
	RuleOwnPort     = "own-port"     // one of tapin's own listeners
	RuleOwnAddress  = "own-address"  // a public address of this very machine
	RulePrivateName = "private-name" // a name that only a private network answers
	RuleVendor      = "vendor"       // the browser's own background call
)

// Policy is what the owner configured, as plain data. The zero value opens
// private ranges; nothing opens OwnPorts.
type Policy struct {
	BlockPrivate bool `json:"block_private"`
	// Allow loosens only what it names: host, *.host, host:port, *.host:port,
	// IP, IP:port, [v6]:port, CIDR. A host entry lets that name resolve to a
	// private address; an IP or CIDR entry opens addresses however named.
	Allow []string `json:"allow"`
	// OwnPorts are tapin's own listeners: never reachable on an address of
	// this machine, whatever is allowed.
	OwnPorts []uint16 `json:"own_ports"`
}

// Rules is a compiled Policy. It is safe for concurrent use.
type Rules struct {
	blockPrivate bool
	names        []nameEntry
	nets         []netEntry
	own          []uint16
	machine      *machine
}

type nameEntry struct {
	name     string // without the "*."
	wildcard bool
	port     uint16 // 0 means every port
}

type netEntry struct {
	prefix netip.Prefix
	port   uint16
}

// Compile checks the policy and prepares it. The error names the bad entry.
func (p Policy) Compile() (*Rules, error) {
	r := &Rules{blockPrivate: p.BlockPrivate, own: slices.Clone(p.OwnPorts), machine: &machine{}}
	if slices.Contains(p.OwnPorts, 0) {
		return nil, fault.New(fault.InvalidRequest, "read the network policy", "own_ports has a port 0").
			WithHint("Name the ports that tapin listens on.")
	}
	for _, entry := range p.Allow {
		if err := r.allow(entry); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// allow takes in one entry of Policy.Allow.
func (r *Rules) allow(entry string) error {
	bad := func(why, hint string) error {
		return fault.New(fault.InvalidRequest, "read egress.allow", "entry %q: %s", entry, why).
			WithHint("%s", hint).With("entry", entry)
	}
	const forms = "Write host, *.host, host:port, an IP address, IP:port, [v6]:port or a CIDR range."
	if strings.Contains(entry, "://") {
		return bad("it is a URL", "Leave out the scheme and the path: example.com or example.com:8080.")
	}
	if strings.Contains(entry, "/") {
		prefix, err := netip.ParsePrefix(entry)
		switch {
		case err != nil || prefix.Addr().Is4In6():
			return bad("it is not a CIDR range", forms)
		case prefix.Masked() != prefix:
			return bad("it has bits outside its mask", "Write "+prefix.Masked().String()+".")
		case prefix.Bits() == 0:
			return bad("it names every address", "Name what is needed, or set egress.block_private to false.")
		}
		r.nets = append(r.nets, netEntry{prefix: prefix})
		return nil
	}
	if a, err := netip.ParseAddr(entry); err == nil {
		return r.allowAddr(a, 0, bad)
	}

	host, port := entry, uint16(0)
	if i := strings.LastIndexByte(entry, ':'); i >= 0 && !strings.HasSuffix(entry, "]") {
		var err error
		if port, err = parsePort(entry[i+1:]); err != nil {
			return bad(err.Error(), forms)
		}
		host = entry[:i]
	}
	host, wildcard := strings.CutPrefix(host, "*.")
	if strings.Contains(host, "*") {
		return bad("a star may only stand for whole labels in front", "Write *.example.com.")
	}
	t, err := parseHost(host)
	switch {
	case err != nil:
		return bad(err.Error(), forms)
	case t.addr.IsValid() && wildcard:
		return bad("an address has no subdomains", "Write a CIDR range.")
	case t.addr.Is4() && t.addr.String() != host:
		return bad("it is an unusual spelling of an address", "Write "+t.addr.String()+".")
	case t.addr.IsValid():
		return r.allowAddr(t.addr, port, bad)
	}
	r.names = append(r.names, nameEntry{name: t.name, wildcard: wildcard, port: port})
	return nil
}

func (r *Rules) allowAddr(a netip.Addr, port uint16, bad func(why, hint string) error) error {
	if a.Zone() != "" {
		return bad("it has a zone", "Addresses with a zone cannot be opened.")
	}
	a = a.Unmap()
	r.nets = append(r.nets, netEntry{prefix: netip.PrefixFrom(a, a.BitLen()), port: port})
	return nil
}

// judgeName judges what can be told without resolving. The answer is the rule
// that refuses, or empty.
func (r *Rules) judgeName(t target) string {
	switch {
	case r == nil:
		return RuleNoPolicy
	case t.addr.IsValid():
		return r.judgeAddr(t, t.addr)
	case isVendor(t.name):
		return RuleVendor
	case r.privateNameOnly(t) && len(r.nets) == 0:
		return RulePrivateName
	case isLocalhost(t.name):
		_, rule := r.localAnswers(t)
		return rule
	}
	return ""
}

// judgeAddr judges the address a that t is or resolves to.
func (r *Rules) judgeAddr(t target, a netip.Addr) string {
	if r == nil {
		return RuleNoPolicy
	}
	f := classify(a)
	onMachine := r.machine.has(a) || f.inner.IsValid() && r.machine.has(f.inner)
	if onMachine && slices.Contains(r.own, t.port) {
		return RuleOwnPort
	}
	if f.rule == "" && onMachine {
		// A firewall keeps strangers from the other services of a machine
		// with a public address, but not a browser that runs on it.
		f = finding{rule: RuleOwnAddress, opens: byName}
	}
	switch {
	case f.rule != "" && r.allowsAddr(a, t.port, f):
		return ""
	case r.privateNameOnly(t) && !r.namesAddr(a, t.port, false):
		return RulePrivateName
	case f.rule == "":
		return ""
	case f.opens == byName && (!r.blockPrivate || r.allowsName(t)):
		return ""
	}
	return f.rule
}

// localAnswers is what localhost means: the loopback addresses that the policy
// lets pass. Being our own answers, the others may be left out.
func (r *Rules) localAnswers(t target) (answers []netip.Addr, rule string) {
	for _, a := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if why := r.judgeAddr(t, a); why == "" {
			answers = append(answers, a)
		} else if rule == "" {
			rule = why
		}
	}
	if len(answers) > 0 {
		rule = ""
	}
	return answers, rule
}

// privateNameOnly reports a name that is refused unless its addresses are allowed.
func (r *Rules) privateNameOnly(t target) bool {
	return r.blockPrivate && isPrivateName(t.name) && !r.allowsName(t)
}

func (r *Rules) allowsName(t target) bool {
	return t.name != "" && slices.ContainsFunc(r.names, func(e nameEntry) bool {
		if e.port != 0 && e.port != t.port {
			return false
		}
		if e.wildcard {
			return strings.HasSuffix(t.name, "."+e.name)
		}
		return t.name == e.name
	})
}

// allowsAddr reports whether an IP or CIDR entry opens a, of which the table
// says f. A range of a translator opens only what its IPv4 side may reach.
func (r *Rules) allowsAddr(a netip.Addr, port uint16, f finding) bool {
	if r.namesAddr(a, port, true) {
		return true
	}
	if f.opens == byExactIP || !r.namesAddr(a, port, false) {
		return false
	}
	if !f.inner.IsValid() {
		return true
	}
	inner := classify(f.inner)
	return inner.rule == "" || r.allowsAddr(f.inner, port, inner)
}

// namesAddr reports an entry that covers a, or with exact is a itself.
func (r *Rules) namesAddr(a netip.Addr, port uint16, exact bool) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	return slices.ContainsFunc(r.nets, func(e netEntry) bool {
		return (e.port == 0 || e.port == port) && e.prefix.Contains(a) && (!exact || e.prefix.IsSingleIP())
	})
}
