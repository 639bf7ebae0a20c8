package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Finding is one thing that Diagnose looked at.
type Finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
}

// publicNames are known everywhere to have public addresses.
var publicNames = []string{"example.com", "www.wikipedia.org", "www.google.com"}

// fakeRanges are where VPNs take their stand-ins for real addresses from.
var fakeRanges = []netip.Prefix{
	fakeIPRange,
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("28.0.0.0/8"),
}

// Diagnose looks for quirks of this machine's DNS that a person would take for
// a fault of the guard. It asks for a handful of well-known public names.
func Diagnose(ctx context.Context, resolver Resolver) []Finding {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	return []Finding{diagnoseAnswers(ctx, resolver), diagnoseDNS64(ctx, resolver)}
}

// diagnoseTimeout keeps one silent server from holding up the doctor.
const diagnoseTimeout = 5 * time.Second

func lookup(ctx context.Context, resolver Resolver, network, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	answers, err := resolver.LookupNetIP(ctx, network, name)
	for i := range answers {
		answers[i] = answers[i].Unmap()
	}
	return answers, err
}

func diagnoseAnswers(ctx context.Context, resolver Resolver) Finding {
	f := Finding{Name: "dns answers"}
	answered := false
	for _, name := range publicNames {
		answers, err := lookup(ctx, resolver, "ip", name)
		if err != nil || len(answers) == 0 {
			continue
		}
		answered = true
		for _, a := range answers {
			if i := slices.IndexFunc(fakeRanges, func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
				f.Text = "Public names are answered from " + fakeRanges[i].String() + ", as VPNs with a fake-IP mode do. " +
					"The guard then sees stand-ins instead of the real addresses."
				f.Fix = "Switch the VPN's fake-IP mode off for this machine. If it must stay on, name " + fakeRanges[i].String() +
					" under egress.allow: pages load again, but what they reach is then decided by the VPN."
				return f
			}
			if found := classify(a); found.rule != "" {
				f.Text = name + " is answered with an address that is not public (rule " + found.rule + "): a filter or a captive portal stands in between."
				f.Fix = "Sign in to the network, or use another DNS server."
				return f
			}
		}
	}
	if !answered {
		f.Text = "No public name could be resolved."
		f.Fix = "Check this machine's network connection and DNS server."
		return f
	}
	f.OK, f.Text = true, "Public names have public addresses."
	return f
}

func diagnoseDNS64(ctx context.Context, resolver Resolver) Finding {
	f := Finding{Name: "dns64", OK: true}
	answers, err := lookup(ctx, resolver, "ip6", "ipv4only.arpa")
	if dns, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !dns.IsNotFound) {
		f.Text = "Whether this network translates IPv6 to IPv4 could not be found out."
		return f
	}
	prefix, ok := netip.Prefix{}, false
	for _, a := range answers {
		if prefix, ok = nat64Prefix(a); ok {
			break
		}
	}
	switch {
	case !ok:
		f.Text = "This network does not use DNS64."
	case prefix == wellKnownNAT64:
		f.Text = "This network uses DNS64 with the well-known prefix; the guard judges the IPv4 address inside."
	case classify(prefix.Addr().Next()).rule != "" || classify(prefix.Addr()).rule != "":
		f.OK = false
		f.Text = "This network uses DNS64 with the private prefix " + prefix.String() + ", which the guard refuses, so sites without IPv6 cannot be reached."
		f.Fix = "Name " + prefix.String() + " under egress.allow, or use 64:ff9b::/96 on the translator."
	default:
		f.OK = false
		f.Text = "This network uses DNS64 with its own prefix " + prefix.String() + ". Pages load, " +
			"but the guard cannot tell which IPv4 address stands behind an answer."
		f.Fix = "Use 64:ff9b::/96 on the translator, or make sure that it does not translate to private addresses."
	}
	return f
}

// nat64Prefix finds the prefix around 192.0.0.170 or 192.0.0.171, which are
// all the IPv4 addresses that ipv4only.arpa has (RFC 7050, layouts of RFC 6052).
func nat64Prefix(a netip.Addr) (netip.Prefix, bool) {
	if !a.Is6() || a.Is4In6() {
		return netip.Prefix{}, false
	}
	b := a.As16()
	for _, layout := range []struct {
		bits int
		at   [4]int
	}{
		{96, [4]int{12, 13, 14, 15}},
		{64, [4]int{9, 10, 11, 12}},
		{56, [4]int{7, 9, 10, 11}},
		{48, [4]int{6, 7, 9, 10}},
		{40, [4]int{5, 6, 7, 9}},
		{32, [4]int{4, 5, 6, 7}},
	} {
		last := b[layout.at[3]]
		if b[layout.at[0]] == 192 && b[layout.at[1]] == 0 && b[layout.at[2]] == 0 && (last == 170 || last == 171) {
			p, err := a.Prefix(layout.bits)
			return p, err == nil
		}
	}
	return netip.Prefix{}, false
}
