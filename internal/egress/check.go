package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"tapin/internal/fault"
)

// Block tells of one refused connection. It is for the owner's side: it must
// not be shown to the page.
type Block struct {
	Host   string    `json:"host"`
	Port   uint16    `json:"port"`
	Addr   string    `json:"addr,omitempty"` // the refused address, if it came to that
	Rule   string    `json:"rule"`
	Scheme string    `json:"scheme,omitempty"` // http, https or ws, as far as known
	Vendor bool      `json:"vendor,omitempty"` // the browser's own call, not the page's
	Hint   string    `json:"hint,omitempty"`
	Lane   string    `json:"lane,omitempty"` // whose traffic it was, where several share a browser
	At     time.Time `json:"at"`
}

// Refusal is the cause inside a BLOCKED_TARGET fault.
type Refusal struct{ Block Block }

func (r *Refusal) Error() string {
	return fmt.Sprintf("the network guard refuses %s (rule %s)", r.Block.Host, r.Block.Rule)
}

const fakeIPHint = "The name was answered from 198.18.0.0/15, as VPNs with a fake-IP mode do. " +
	"Switch that mode off, or name 198.18.0.0/15 under egress.allow in config.yaml; tapin doctor tells more."

// hintFor is advice that the fault's own hint does not give.
func hintFor(b Block) string {
	switch b.Rule {
	case "benchmarking":
		if a, err := netip.ParseAddr(b.Addr); err == nil && fakeIPRange.Contains(a) {
			return fakeIPHint
		}
	case RuleOwnPort:
		return "Pages can never reach tapin itself."
	case RuleNoPolicy:
		return "The browser is still starting: try again in a moment."
	case RuleVendor:
		return "Background calls of the browser itself are always refused."
	case "metadata":
		return "If this is wanted, name exactly this IP address under egress.allow in config.yaml."
	}
	return ""
}

// refuse makes the fault of a block.
func refuse(op string, b Block) error {
	f := &fault.Error{Code: fault.BlockedTarget, Op: op, Err: &Refusal{Block: b}, Hint: b.Hint}
	return f.With("rule", b.Rule).With("host", b.Host)
}

// CheckURL is the check at the API's door, before a browser is troubled: http
// and https only, and no address or name that the rules refuse outright. It
// resolves nothing; names are judged again where the connection is made.
func CheckURL(raw string, rules *Rules) error {
	invalid := func(format string, args ...any) error {
		return fault.New(fault.InvalidURL, "check the address", format, args...)
	}
	// A browser strips these before it reads the rest.
	raw = strings.Trim(raw, "\x00\t\n\v\f\r ")
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || !isScheme(scheme) {
		return invalid("it has no scheme")
	}
	scheme = strings.ToLower(scheme)
	if scheme != "http" && scheme != "https" {
		return invalid("pages are opened over http and https, not %s", scheme)
	}
	rest, ok = strings.CutPrefix(rest, "//")
	if !ok {
		return invalid("two slashes must follow %s:", scheme)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return invalid("it has control characters in it")
	}
	authority := rest
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		if rest[i] == '\\' {
			return invalid("it has a backslash in front of the path")
		}
		authority = rest[:i]
	}
	// The user's part may be a password: from here on it is out of sight.
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	t, err := parseAuthority(authority, scheme)
	if err != nil {
		return invalid("%w", err)
	}
	if rule := rules.judgeName(t); rule != "" {
		b := Block{Host: t.host(), Port: t.port, Rule: rule, Scheme: scheme, Vendor: rule == RuleVendor, At: time.Now()}
		if t.addr.IsValid() {
			b.Addr = t.addr.String()
		}
		b.Hint = hintFor(b)
		return refuse("open "+scheme+"://"+b.Host, b)
	}
	return nil
}

func isScheme(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if letter := 'a' <= c && c <= 'z'; !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(s[i]))) {
			return false
		}
	}
	return true
}

// parseAuthority reads host and optional port of a URL.
func parseAuthority(s, scheme string) (target, error) {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, port = s[:i], s[i+1:]
	}
	if host == "" {
		return target{}, errors.New("it names no host")
	}
	t, err := parseHost(host)
	if err != nil {
		return target{}, err
	}
	switch {
	case port != "":
		t.port, err = parsePort(port)
	case scheme == "https":
		t.port = 443
	default:
		t.port = 80
	}
	return t, err
}
