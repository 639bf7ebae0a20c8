package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	portPath    = "integrations.browserbase.sidecar_port"
	controlPath = "listen.control"
	publicPath  = "listen.public"
	remindPath  = "notify.remind_at"
	idlePath    = "integrations.browserbase.idle_warning"
)

var (
	localeForm = regexp.MustCompile(`^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$`)
	zoneForm   = regexp.MustCompile(`^[A-Za-z_]+(/[A-Za-z0-9_+-]+){0,2}$`)
	regionForm = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)
	headerForm = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	hostForm   = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
)

// ownSwitches are the browser's switches that tapin's guarantees rest on: no
// debugging port, no way around the guard, no profile of somebody else.
var ownSwitches = []string{
	"--remote-debugging-port", "--remote-debugging-address", "--remote-debugging-pipe", "--remote-allow-origins",
	"--user-data-dir", "--profile-directory",
	"--proxy-server", "--proxy-pac-url", "--proxy-auto-detect", "--proxy-bypass-list", "--no-proxy-server",
	"--disable-web-security", "--ignore-certificate-errors", "--load-extension",
}

// check holds every value against what the key allows. It never puts the value
// of a secret into a message.
func (l *loader) check() {
	c, bb := l.config, &l.config.Integrations.Browserbase
	l.require(controlPath, checkControl(c.Listen.Control))
	l.require(publicPath, checkAddress(c.Listen.Public))
	if c.Listen.Control == c.Listen.Public && !strings.HasSuffix(c.Listen.Public, ":0") {
		l.require(publicPath, fmt.Errorf("must differ from %s", controlPath))
	}
	l.require(portPath, within(bb.SidecarPort, 0, 65535))
	l.require("max_sessions", within(c.MaxSessions, 1, 1000))
	l.require("pool.warm", within(c.Pool.Warm, 0, 100))
	l.require("pool.follow", notNegative(c.Pool.Follow))
	l.require("usage.cap_minutes", within(c.Usage.CapMinutes, 0, 1_000_000_000))
	l.require("integrations.browserbase.default_timeout", positive(bb.DefaultTimeout))
	l.require(idlePath, positive(bb.IdleWarning))
	l.require("integrations.browserbase.handoff_timeout", positive(bb.HandoffTimeout))
	l.require(remindPath, each(c.Notify.RemindAt, positive))
	l.require("integrations.browserbase.default_region", form(bb.DefaultRegion, regionForm, "us-east-1"))
	l.require("integrations.browserbase.context_store", filled(bb.ContextStore))
	l.require("uploads", filled(c.Uploads))
	l.require("public_url", optional(c.PublicURL, checkOrigin))
	l.require("telegram.api_url", checkWebhook(c.Telegram.APIURL)) // the token is in every address
	l.require("telegram.owners", each(c.Telegram.Owners, checkOwner))
	l.require("browser.args", each(c.Browser.Args, checkSwitch))
	l.require("browser.locale", optional(c.Browser.Locale, func(s string) error { return form(s, localeForm, "en-GB") }))
	l.require("browser.timezone", optional(c.Browser.Timezone, func(s string) error { return form(s, zoneForm, "Europe/London") }))
	l.require("browser.upstream_proxy", optional(c.Browser.UpstreamProxy.Reveal(), func(s string) error {
		return checkURL(s, "http", "https", "socks5")
	}))
	l.require("cdp.url", optional(c.CDP.URL.Reveal(), func(s string) error { return checkURL(s, "wss", "ws", "https", "http") }))
	for name, v := range c.CDP.Headers {
		if !headerForm.MatchString(name) || strings.ContainsFunc(v.Reveal(), unicode.IsControl) {
			l.require("cdp.headers", fmt.Errorf("entry %s is not a valid HTTP header", shown(name)))
		}
	}
	l.require("on_resume.webhook", optional(c.OnResume.Webhook.Reveal(), checkWebhook))
	if len(c.OnResume.Command) > 0 {
		l.require("on_resume.command", filled(c.OnResume.Command[0]))
		if !c.OnResume.Webhook.IsEmpty() {
			l.require("on_resume.command", errors.New("and on_resume.webhook are both set; keep one of them"))
		}
	}
	l.require("payment_guard_patterns", each(c.PaymentGuardPatterns, checkPattern))
	l.require("egress.allow", each(c.Egress.Allow, checkAllowed))
}

// require reports a problem with a key at the place its value came from.
func (l *loader) require(path string, err error) {
	if err != nil {
		l.problem(l.origins.Of(path), "%s %v", path, err)
	}
}

func each[T any](items []T, check func(T) error) error {
	for i, item := range items {
		if err := check(item); err != nil {
			return fmt.Errorf("item %d %w", i+1, err)
		}
	}
	return nil
}

func optional(s string, check func(string) error) error {
	if s == "" {
		return nil
	}
	return check(s)
}

func filled(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func within(n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("must be from %d to %d", low, high)
	}
	return nil
}

func positive(d Duration) error {
	if d <= 0 {
		return errors.New("must be longer than 0")
	}
	return nil
}

func notNegative(d Duration) error {
	if d < 0 {
		return errors.New("must be 0 or longer")
	}
	return nil
}

func form(s string, re *regexp.Regexp, example string) error {
	if !re.MatchString(s) {
		return fmt.Errorf("must look like %s", example)
	}
	return nil
}

// checkControl keeps the control listener on this machine: whoever reaches it
// and finds a token drives the browser.
func checkControl(addr string) error {
	if err := checkAddress(addr); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("must be a loopback address such as 127.0.0.1:%d: control is never offered to a network; listen.public is what others may reach", defaultPort)
}

func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("must be host:port, such as 127.0.0.1:%d", defaultPort)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return errors.New("must end in a port from 0 to 65535")
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil && (!hostForm.MatchString(host) || host[0] == '*') {
		return errors.New("must begin with a host name or an IP address")
	}
	return nil
}

func checkURL(s string, schemes ...string) error {
	// url.Parse quotes its input in its error: it must not be passed on.
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("must be an address beginning with %s://", strings.Join(schemes, ":// or "))
	}
	return nil
}

// checkWebhook lets what is posted leave this machine encrypted only.
func checkWebhook(s string) error {
	if err := checkURL(s, "https", "http"); err != nil {
		return err
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "https" {
		return err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("must begin with https://; http:// is for this machine alone")
}

func checkOrigin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("must be an address such as https://tapin.example.com")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return errors.New("must be scheme and host alone, such as https://tapin.example.com")
	}
	return nil
}

func checkOwner(id int64) error {
	if id <= 0 {
		return errors.New("must be the number of a Telegram user; groups and channels cannot be owners")
	}
	return nil
}

func checkSwitch(arg string) error {
	name, _, _ := strings.Cut(arg, "=")
	if len(name) < 3 || !strings.HasPrefix(name, "--") {
		return errors.New("must be a switch beginning with --")
	}
	if slices.Contains(ownSwitches, name) {
		return fmt.Errorf("is %s, which tapin must decide itself", name)
	}
	return nil
}

func checkPattern(pattern string) error {
	if err := filled(pattern); err != nil {
		return err
	}
	if _, err := regexp.Compile("(?i)" + pattern); err != nil {
		return errors.New("is not a regular expression")
	}
	return nil
}

func checkAllowed(entry string) error {
	if _, err := netip.ParsePrefix(entry); err == nil {
		return nil
	}
	if _, err := netip.ParseAddr(entry); err == nil {
		return nil
	}
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		host, port = entry, "443"
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostForm.MatchString(host) {
		return errors.New("must be a host, *.host, host:port or a range such as 10.0.0.0/8, without a scheme or a path")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("must have a port from 1 to 65535, and no scheme or path")
	}
	return nil
}
