// Package site says which addresses belong together.
// It owns the reading of hosts: registrable domains, origins, and how a domain
// may be shown to a person. It must never take two hosts for one that a
// browser keeps apart, nor quote an address in an error.
package site

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"tapin/internal/fault"
)

// maxHostBytes is more than any host that ends up within 253 ASCII characters.
const maxHostBytes = 1024

// Site is a registrable domain in its ASCII form, such as example.co.uk or
// someone.github.io; or an IP address, or a host that is nobody's subdomain.
type Site string

// Of returns the site of a host, a host with port, or a URL. A final dot does
// not make another site: whoever owns the one name owns the other.
func Of(hostOrURL string) (Site, error) {
	host := hostOrURL
	if strings.Contains(hostOrURL, "://") {
		u, err := url.Parse(hostOrURL)
		if err != nil || u.Opaque != "" {
			return "", invalid("it is not a URL")
		}
		host = u.Host
	}
	host, _, err := splitPort(host)
	if err != nil {
		return "", err
	}
	host, err = normalise(host)
	if err != nil {
		return "", err
	}
	host = strings.TrimSuffix(host, ".")
	if strings.HasPrefix(host, "[") {
		return Site(strings.Trim(host, "[]")), nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return Site(host), nil
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return Site(domain), nil
	}
	// The host is a public suffix itself, or has one label: localhost,
	// github.io. Browsers take it for a site of its own.
	return Site(host), nil
}

// Same reports whether two hosts or URLs are of one site. What cannot be read
// is the same as nothing.
func Same(a, b string) bool {
	siteA, errA := Of(a)
	siteB, errB := Of(b)
	return errA == nil && errB == nil && siteA == siteB
}

// Origin returns the origin of a URL of the web in its one form: lower case,
// ASCII, without a default port. It is what a browser's location.origin says.
func Origin(rawURL string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", invalid("it is not a URL")
	}
	standard, ok := map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443"}[u.Scheme]
	if !ok || u.Opaque != "" {
		return "", invalid("only http, https, ws and wss have an origin")
	}
	host, port, err := splitPort(u.Host)
	if err != nil {
		return "", err
	}
	host, err = normalise(host)
	if err != nil {
		return "", err
	}
	if port != "" && port != standard {
		host += ":" + port
	}
	return u.Scheme + "://" + host, nil
}

// SameOrigin reports whether two URLs have one origin.
func SameOrigin(a, b string) bool {
	originA, errA := Origin(a)
	originB, errB := Origin(b)
	return errA == nil && errB == nil && originA == originB
}

// splitPort takes the port off a host and brings it to its shortest form.
func splitPort(host string) (bare, port string, err error) {
	if _, err := netip.ParseAddr(host); err == nil && strings.Contains(host, ":") {
		return "[" + host + "]", "", nil // an IPv6 address that nobody put in brackets
	}
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") {
		return host, "", nil
	}
	bare, port = host[:i], host[i+1:]
	if port == "" {
		return bare, "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", "", invalid("its port is not one")
	}
	return bare, strconv.FormatUint(n, 10), nil
}

// normalise brings a host without port to the form browsers compare: lower
// case, ASCII; IPv6 addresses in brackets. A final dot stays.
func normalise(host string) (string, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", invalid("its host is not an IPv6 address")
		}
		if addr.Is4In6() { // browsers write these in hexadecimal
			b := addr.As16()
			return fmt.Sprintf("[::ffff:%x:%x]", uint(b[12])<<8|uint(b[13]), uint(b[14])<<8|uint(b[15])), nil
		}
		return "[" + addr.String() + "]", nil
	}
	if len(host) > maxHostBytes {
		return "", invalid("its host is too long") // decoding takes quadratic time
	}
	// As browsers do: no transitional mapping, underscores allowed.
	profile := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false))
	host, err := profile.ToASCII(host)
	if err == nil {
		// What does not read back as itself would be two hosts to two readers.
		var again string
		if again, err = profile.ToASCII(host); again != host {
			return "", invalid("its host is not a domain name")
		}
	}
	if err != nil {
		return "", invalid("its host is not a domain name")
	}
	bare := strings.TrimSuffix(host, ".")
	if len(bare) > 253 {
		return "", invalid("its host is too long")
	}
	labels := strings.Split(bare, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.TrimLeft(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", invalid("its host is not a domain name")
		}
	}
	if !numeric(labels[len(labels)-1]) {
		return host, nil
	}
	// Browsers read 127.1 and 0x7f000001 as addresses too. We take the plain
	// form alone, rather than disagree with them about any other.
	if addr, err := netip.ParseAddr(bare); err != nil || !addr.Is4() {
		return "", invalid("its host is a number, but not an IPv4 address")
	}
	return bare, nil
}

// numeric reports whether a browser takes a host that ends so for an address.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.TrimLeft(hex, "0123456789abcdef") == ""
	}
	return strings.TrimLeft(label, "0123456789") == ""
}

func invalid(why string) error {
	// The address itself stays out: it may carry a token.
	return fault.New(fault.InvalidURL, "read address", "%s", why)
}
