package logins

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
)

const (
	maxCookieBytes = 4096         // of name and value, as browsers have it
	maxPathBytes   = 1024         // likewise
	lastSecond     = 253402300799 // of the year 9999
)

// host is an origin as far as cookies are concerned.
type host struct {
	scheme, name string
	isIP         bool
	trusted      bool // browsers treat it as secure: https, or this machine
}

// readOrigin takes an origin in its one spelling.
func readOrigin(origin string) (host, error) {
	canonical, err := site.Origin(origin)
	u, badURL := url.Parse(origin)
	if err != nil || badURL != nil || canonical != origin || u.Scheme != "https" && u.Scheme != "http" {
		return host{}, refuse("its origin is not one such as https://example.com")
	}
	h := host{scheme: u.Scheme, name: u.Hostname()}
	addr, err := netip.ParseAddr(h.name)
	h.isIP = err == nil
	if strings.Contains(h.name, ":") {
		h.name = "[" + h.name + "]"
	}
	h.trusted = u.Scheme == "https" || h.name == "localhost" || strings.HasSuffix(h.name, ".localhost") || h.isIP && addr.IsLoopback()
	return h, nil
}

// allowsAll refuses an envelope with a cookie that a browser would not take
// from this origin, or with one twice.
func (h host) allowsAll(cookies []browser.Cookie) error {
	seen := map[string]bool{}
	for i, c := range cookies {
		if err := h.allows(toWire(c)); err != nil {
			return fault.Wrap(fault.InvalidRequest, fmt.Sprintf("%s: cookies[%d]", opVerify, i), err)
		}
		id := strings.Join([]string{c.Domain, c.Path, c.Name, partition(c)}, "\x00")
		if seen[id] {
			return refuse("cookies[%d] is there twice", i)
		}
		seen[id] = true
	}
	return nil
}

// allows is nil for a cookie that this origin can have and see, ORIGIN_MISMATCH
// for one that is another's, and INVALID_REQUEST for one that nobody can have.
func (h host) allows(c wireCookie) error {
	for _, rule := range []func(wireCookie) error{h.sees, plainCookie, prefixed, h.partitioned} {
		if err := rule(c); err != nil {
			return err
		}
	}
	return nil
}

func foreign(why string) error {
	return fault.New(fault.OriginMismatch, "", "%s", why).WithHint("An envelope holds the cookies of its own origin alone; export it again.")
}

func impossible(why string) error {
	return fault.New(fault.InvalidRequest, "", "%s", why).WithHint("No browser keeps such a cookie; export it again.")
}

func (h host) sees(c wireCookie) error {
	domain, below := strings.CutPrefix(c.Domain, ".")
	switch {
	case domain == "" || len(domain) > 255:
		return impossible("it has no domain")
	case domain != h.name && (!below || h.isIP || !strings.HasSuffix(h.name, "."+domain)):
		return foreign("its domain is not the origin's")
	case below && h.isIP:
		return impossible("there are no hosts below an address")
	case c.Secure && !h.trusted:
		return foreign("it is for https, and the origin is not")
	}
	if suffix, _ := publicsuffix.PublicSuffix(domain); below && suffix == domain {
		return foreign("its domain is a public suffix, and so everybody's")
	}
	return nil
}

func plainCookie(c wireCookie) error {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	switch {
	case c.Name == "" && c.Value == "":
		return impossible("it has neither a name nor a value")
	case len(c.Name)+len(c.Value) > maxCookieBytes:
		return impossible("it is longer than a cookie can be")
	case strings.ContainsAny(c.Name, "=;") || strings.Contains(c.Value, ";"):
		return impossible("its name or value would end early")
	case strings.ContainsFunc(c.Name, control) || strings.ContainsFunc(c.Value, control) || strings.ContainsFunc(c.Path, control):
		return impossible("it holds a control character")
	case strings.TrimSpace(c.Name) != c.Name || strings.TrimSpace(c.Value) != c.Value:
		return impossible("it begins or ends with a blank")
	case !strings.HasPrefix(c.Path, "/") || len(c.Path) > maxPathBytes || strings.Contains(c.Path, ";"):
		return impossible("its path is not one")
	case c.Expires < 0 || c.Expires > lastSecond:
		return impossible("it expires at no possible time")
	case !slices.Contains([]string{"", "Strict", "Lax", "None"}, c.SameSite):
		return impossible("its sameSite is not one")
	case c.SameSite == "None" && !c.Secure:
		return impossible("it is for other sites, but not secure")
	case !slices.Contains([]string{"", "Low", "Medium", "High"}, c.Priority):
		return impossible("its priority is not one")
	case !slices.Contains([]string{"", "Unset", "NonSecure", "Secure"}, c.SourceScheme):
		return impossible("its sourceScheme is not one")
	case c.SourcePort < -1 || c.SourcePort > 65535:
		return impossible("its sourcePort is not one")
	}
	return nil
}

// prefixed holds a cookie to what the beginning of its name promises. Browsers
// look at names without regard to case, and at the value of one without a name.
func prefixed(c wireCookie) error {
	name := strings.ToLower(c.Name)
	if name == "" {
		if v := strings.ToLower(c.Value); strings.HasPrefix(v, "__host-") || strings.HasPrefix(v, "__secure-") || strings.HasPrefix(v, "__http-") {
			return impossible("it pretends to a name that it does not have")
		}
		return nil
	}
	hostOnly := !strings.HasPrefix(c.Domain, ".") && c.Path == "/"
	http := strings.HasPrefix(name, "__http-") || strings.HasPrefix(name, "__host-http-")
	switch {
	case strings.HasPrefix(name, "__host-") && !(c.Secure && hostOnly):
		return impossible("a name with __Host- promises secure, path / and this host alone")
	case strings.HasPrefix(name, "__secure-") && !c.Secure:
		return impossible("a name with __Secure- promises secure")
	case http && !(c.Secure && c.HTTPOnly):
		return impossible("a name with __Http- promises secure and httpOnly")
	}
	return nil
}

// partitioned wants the partition of a cookie to be the one of this origin: in
// another, the origin does not see it when it is the page itself.
func (h host) partitioned(c wireCookie) error {
	p := c.PartitionKey
	if p == nil {
		return nil
	}
	if !c.Secure {
		return impossible("it is partitioned, but not secure")
	}
	own, err := site.Of(h.name)
	name := string(own)
	if h.isIP {
		name = h.name
	}
	if err != nil || p.TopLevelSite != h.scheme+"://"+name {
		return foreign("it is partitioned under another site")
	}
	return nil
}

func (r *reader) cookies() ([]browser.Cookie, error) {
	out := []browser.Cookie{}
	err := r.list("cookies", maxCookies, func(i int) error {
		c, err := r.cookie(fmt.Sprintf("cookies[%d]", i))
		out = append(out, fromWire(c))
		return err
	})
	return out, err
}

// cookie reads one cookie. What is optional must not be given its empty value:
// the same cookie would have two spellings, and two integrities.
func (r *reader) cookie(what string) (c wireCookie, err error) {
	given := func(name string) (string, error) { return r.printable(what+"."+name, 1, 64) }
	err = r.object(what, []string{"name", "value", "domain", "path", "httpOnly", "secure"}, func(name string) (err error) {
		switch name {
		case "name":
			c.Name, err = r.text(what + ".name")
		case "value":
			c.Value, err = r.text(what + ".value")
		case "domain":
			c.Domain, err = r.text(what + ".domain")
		case "path":
			c.Path, err = r.text(what + ".path")
		case "expires":
			if c.Expires, err = r.number(what+".expires", 0, lastSecond); err == nil && c.Expires == 0 {
				err = refuse("%s.expires must be left out instead of 0", what)
			}
		case "httpOnly":
			c.HTTPOnly, err = r.boolean(what + ".httpOnly")
		case "secure":
			c.Secure, err = r.boolean(what + ".secure")
		case "sameSite":
			c.SameSite, err = given(name)
		case "priority":
			c.Priority, err = given(name)
		case "sourceScheme":
			c.SourceScheme, err = given(name)
		case "sourcePort":
			var n float64
			if n, err = r.whole(what+".sourcePort", -1, 65535); err == nil && n == 0 {
				err = refuse("%s.sourcePort must be left out instead of 0", what)
			}
			c.SourcePort = int64(n)
		case "partitionKey":
			c.PartitionKey, err = r.partition(what + ".partitionKey")
		default:
			err = r.unknown(name)
		}
		return err
	})
	return c, err
}

func (r *reader) partition(what string) (*wirePartition, error) {
	p := &wirePartition{}
	err := r.object(what, []string{"topLevelSite", "hasCrossSiteAncestor"}, func(name string) (err error) {
		switch name {
		case "topLevelSite":
			p.TopLevelSite, err = r.printable(what+".topLevelSite", 1, 512)
		case "hasCrossSiteAncestor":
			p.HasCrossSiteAncestor, err = r.boolean(what + ".hasCrossSiteAncestor")
		default:
			err = r.unknown(name)
		}
		return err
	})
	return p, err
}
