package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// target is what a request names: a host name or a literal address, and a port.
// Exactly one of name and addr is set.
type target struct {
	name string
	addr netip.Addr
	port uint16
}

func (t target) host() string {
	if t.addr.IsValid() {
		return t.addr.String()
	}
	return t.name
}

var errHost = errors.New("the host cannot be read")

// parseTarget reads "host:port" as a proxy or dialer is given it.
func parseTarget(hostport string) (target, error) {
	h, p, err := net.SplitHostPort(hostport)
	if err != nil {
		return target{}, errHost
	}
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	t, err := parseHost(h)
	if err != nil {
		return target{}, err
	}
	t.port, err = parsePort(p)
	return t, err
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '+' {
		return 0, errors.New("the port must be a number from 1 to 65535")
	}
	return uint16(n), nil
}

// parseHost reads a host in any spelling that a browser would accept, so that
// what is judged is what would be opened.
func parseHost(raw string) (target, error) {
	if len(raw) > 1024 {
		return target{}, errHost
	}
	h, err := url.PathUnescape(raw)
	if err != nil {
		return target{}, errHost
	}
	if inner, ok := strings.CutPrefix(h, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || a.Is4() {
			return target{}, errHost
		}
		return target{addr: a}, nil
	}
	h, err = toASCII(h)
	if err != nil {
		return target{}, err
	}
	h = strings.TrimSuffix(h, ".")
	if !isName(h) {
		return target{}, errHost
	}
	if endsInNumber(h) {
		a, err := parseIPv4(h)
		return target{addr: a}, err
	}
	return target{name: h}, nil
}

// isName reports whether h has the shape of a DNS name; the underscore is not
// in the standard, but in the world.
func isName(h string) bool {
	if h == "" || len(h) > 253 {
		return false
	}
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			switch c := label[i]; {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			default:
				return false
			}
		}
	}
	return true
}

// endsInNumber is the browsers' test for "this is meant as an IPv4 address".
func endsInNumber(h string) bool {
	last := h[strings.LastIndexByte(h, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// parseIPv4 reads decimal, octal and hexadecimal parts, of which the last one
// fills all bytes that are left: 127.1, 0x7f.1, 2130706433.
func parseIPv4(h string) (netip.Addr, error) {
	parts := strings.Split(h, ".")
	if len(parts) > 4 {
		return netip.Addr{}, errHost
	}
	var sum uint64
	for i, part := range parts {
		n, err := parseIPv4Part(part)
		if err != nil {
			return netip.Addr{}, err
		}
		width := 8
		if i == len(parts)-1 {
			width = 8 * (5 - len(parts))
		}
		if n >= 1<<width {
			return netip.Addr{}, errHost
		}
		sum = sum<<width | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), nil
}

func parseIPv4Part(s string) (uint64, error) {
	base := 10
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		s, base = "0"+hex, 16
	} else if len(s) > 1 && s[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil || n > 1<<32-1 {
		return 0, errHost
	}
	return n, nil
}

// isLocalhost reports a name that means this machine (RFC 6761). It is
// answered here and never asked of a resolver.
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isPrivateName reports a name that only a private network can answer.
func isPrivateName(name string) bool {
	if name == "" {
		return false
	}
	if !strings.Contains(name, ".") || name == "home.arpa" {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
