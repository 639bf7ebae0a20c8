package browser

import (
	"net/netip"
	"net/url"
	"strings"

	"tapin/internal/site"
)

// VisibleTo reports whether a page of that origin, opened by itself, can be
// sent the cookie under some path of its own. The origin is in its one form, as
// site.Origin gives it.
func (c Cookie) VisibleTo(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := u.Hostname()
	if c.Secure && u.Scheme != "https" && !isLoopback(host) {
		return false
	}
	if !c.reaches(host) {
		return false
	}
	return c.Partition == nil || !c.Partition.CrossSiteAncestor && c.Partition.TopLevelSite == topLevelSite(u)
}

// reaches compares hosts. An address has no subdomains, and a name that only
// ends alike is another's.
func (c Cookie) reaches(host string) bool {
	domain := strings.Trim(strings.ToLower(c.Domain), "[]")
	parent, isDomain := strings.CutPrefix(domain, ".")
	if host == parent {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	return isDomain && parent != "" && strings.HasSuffix(host, domain)
}

// isLoopback tells the hosts whose plain HTTP the browser trusts as if it were
// not plain.
func isLoopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// topLevelSite is a site as partition keys name it: without port.
func topLevelSite(u *url.URL) string {
	of, err := site.Of(u.String())
	if err != nil {
		return ""
	}
	host := string(of)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host
}
