package daemon

import (
	"net/url"
	"regexp"
	"strings"

	"tapin/internal/config"
)

// heard is what a tunnel program has said so far, as far as it concerns us.
// What it says is for people and changes with its versions: only whole,
// unmistakable sentences are understood, and everything else is a remark.
type heard struct {
	url    string // the address under which this machine can be reached
	up     bool   // whether the program has a connection to its network
	ask    string // what the owner has to open in a browser before it goes on
	lost   bool   // the address is gone for good: only a new start gives another
	taken  bool   // the port asked for has another use
	remark string // the last complaint

	expects string // what the next line with an address is about
}

// listener understands the lines of one program.
type listener func(h *heard, line string)

func listenerOf(kind config.Tunnel) listener {
	if kind == config.TunnelTailscale {
		return hearTailscale
	}
	return hearCloudflared
}

var (
	// The address stands alone in a box drawn with | and -. Other addresses of
	// the same domain are in its complaints.
	quickTunnel = regexp.MustCompile(`\|\s+(https://[a-z0-9-]+\.trycloudflare\.com)\s+\|\s*$`)
	registered  = regexp.MustCompile(`\b(Registered tunnel connection|Connection [0-9a-f-]{36} registered)\b`)
	// What it says when the network it was part of has forgotten it; it goes on
	// asking for ever.
	forgotten = regexp.MustCompile(`(?i)\btunnel not found\b`)

	tailnetName = regexp.MustCompile(`^(https://[a-z0-9-]+(?:\.[a-z0-9-]+)*\.ts\.net(?::\d{1,5})?)/?$`)
	tailnetAsk  = regexp.MustCompile(`^https://login\.tailscale\.com/[A-Za-z0-9/?=_&%.-]+$`)
)

func hearCloudflared(h *heard, line string) {
	switch m := quickTunnel.FindStringSubmatch(line); {
	case m != nil && m[1] != "https://api.trycloudflare.com":
		h.url = m[1]
	case strings.Contains(line, "Unregistered tunnel connection"), strings.Contains(line, "Connection terminated"):
		h.up = false
	case registered.MatchString(line):
		h.up, h.remark = true, ""
	case forgotten.MatchString(line):
		h.lost, h.remark = true, tidy(line)
	case strings.Contains(line, " ERR "), strings.HasPrefix(line, "failed to "), strings.Contains(line, " FTL "):
		h.remark = tidy(line)
	}
}

func hearTailscale(h *heard, line string) {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
	case strings.HasPrefix(line, "Available "): // on the internet, or within the tailnet
		h.expects = "name"
	case strings.HasPrefix(line, "To enable, visit:"):
		h.expects = "ask"
	case line == "Success.":
		h.ask = ""
	case h.expects == "name" && tailnetName.MatchString(line):
		h.url, h.up, h.expects, h.ask, h.remark = tailnetName.FindStringSubmatch(line)[1], true, "", "", ""
	case h.expects == "ask" && tailnetAsk.MatchString(line):
		h.ask, h.expects = line, ""
	case strings.Contains(line, "foreground already exists under this port"), strings.Contains(line, "background configuration already exists"):
		h.taken, h.remark = true, tidy(line)
	case strings.HasPrefix(line, "|--"), strings.HasPrefix(line, "Press Ctrl+C"), strings.Contains(line, "is not enabled on your tailnet"):
	default:
		h.remark = tidy(line)
	}
}

var (
	anAddress = regexp.MustCompile(`https?://[^\s"'<>]+`)
	aTime     = regexp.MustCompile(`^\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+((ERR|WRN|INF|FTL)\s+)?`)
)

// maxRemark is more than a person wants to read of a program's complaints.
const maxRemark = 300

// tidy is a line as it may be kept and shown: of addresses only whose they are,
// since what follows may name a live view.
func tidy(line string) string {
	line = aTime.ReplaceAllString(strings.TrimSpace(line), "")
	line = anAddress.ReplaceAllStringFunc(line, func(s string) string {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return "(an address)"
		}
		return u.Scheme + "://" + u.Host
	})
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, line)
	if runes := []rune(line); len(runes) > maxRemark {
		line = string(runes[:maxRemark]) + "…"
	}
	return line
}
