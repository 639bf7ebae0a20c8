package config

import (
	"net"
	"strconv"
	"time"
)

const (
	minute = Duration(time.Minute)
	day    = Duration(24 * time.Hour)
)

// defaultPort is the port of the control listener that clients expect.
const defaultPort = 3849

// Default is what an empty file and an empty environment give.
func Default() *Config {
	c := &Config{
		Listen:       Listen{Control: loopback(defaultPort), Public: loopback(defaultPort + 1)},
		Provider:     ProviderLocal,
		MaxSessions:  1,
		Tunnel:       TunnelNone,
		LiveView:     LiveViewOwn,
		PaymentGuard: GuardStrict,
		Integrations: Integrations{Browserbase: Browserbase{
			Enabled:        true,
			SidecarPort:    defaultPort,
			DefaultTimeout: 30 * minute,
			IdleWarning:    10 * minute,
			HandoffTimeout: 30 * minute,
			DefaultRegion:  "us-east-1",
			BlockAds:       true,
			SolveCaptchas:  true,
			ContextStore:   "browser-contexts.yaml",
		}},
		Telegram:     Telegram{APIURL: "https://api.telegram.org"},
		Notify:       Notify{Screenshot: ScreenshotFull},
		Pool:         Pool{Follow: 5 * minute},
		BrowserTools: BrowserTools{Enabled: true},
		LAN:          LANOff,
		Uploads:      "uploads",
		Egress:       Egress{BlockPrivate: true},
		Retention:    Retention{Handoffs: 90 * day, Journal: 7 * day, Logs: 14 * day},
	}
	c.Notify.RemindAt = []Duration{c.Integrations.Browserbase.IdleWarning}
	return c
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
