package config

// choice is a setting with few possible values; the first is the default.
type choice interface{ Values() []string }

// Provider names where a session's browser comes from.
type Provider string

// The providers.
const (
	ProviderLocal       Provider = "local"
	ProviderBrowserbase Provider = "browserbase"
	ProviderCDP         Provider = "cdp"
)

// Values lists what may be written in the file.
func (Provider) Values() []string { return []string{"local", "browserbase", "cdp"} }

// Tunnel names the program that makes the public listener reachable.
type Tunnel string

// The tunnels.
const (
	TunnelNone        Tunnel = "none"
	TunnelCloudflared Tunnel = "cloudflared"
	TunnelTailscale   Tunnel = "tailscale"
)

// Values lists what may be written in the file.
func (Tunnel) Values() []string { return []string{"none", "cloudflared", "tailscale"} }

// LiveView names whose live view the owner is sent to.
type LiveView string

// The live views.
const (
	LiveViewOwn      LiveView = "own"
	LiveViewProvider LiveView = "provider"
)

// Values lists what may be written in the file.
func (LiveView) Values() []string { return []string{"own", "provider"} }

// PaymentGuard says how strictly payments are guarded.
type PaymentGuard string

// The degrees of the payment guard.
const (
	GuardStrict PaymentGuard = "strict"
	GuardWarn   PaymentGuard = "warn"
	GuardOff    PaymentGuard = "off"
)

// Values lists what may be written in the file.
func (PaymentGuard) Values() []string { return []string{"strict", "warn", "off"} }

// Screenshot says which picture a message carries.
type Screenshot string

// The pictures of a message.
const (
	ScreenshotFull Screenshot = "full"
	ScreenshotBlur Screenshot = "blur"
	ScreenshotNone Screenshot = "none"
)

// Values lists what may be written in the file.
func (Screenshot) Values() []string { return []string{"full", "blur", "none"} }

// LAN says what the local network may do without HTTPS.
type LAN string

// What the local network may do.
const (
	LANOff   LAN = "off"
	LANWatch LAN = "watch"
)

// Values lists what may be written in the file.
func (LAN) Values() []string { return []string{"off", "watch"} }
