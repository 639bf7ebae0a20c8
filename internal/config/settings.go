package config

import (
	_ "embed"

	"tapin/internal/secret"
)

// settingsSource is this file: Keys takes its sentences from the comments
// below, so that the code and the documentation cannot drift apart.
//
//go:embed settings.go
var settingsSource string

// Config is every setting of tapin. The comment of a field is its documentation;
// its yaml name is its key. The zero value is not usable: start from Default or Load.
type Config struct {
	Listen Listen `yaml:"listen"`
	// Which browser a session gets unless its start names another: a local one, Browserbase, or any CDP endpoint.
	Provider     Provider     `yaml:"provider"`
	Browser      Browser      `yaml:"browser"`
	CDP          CDP          `yaml:"cdp"`
	Integrations Integrations `yaml:"integrations"`

	// How many sessions may be open at the same time.
	MaxSessions int `yaml:"max_sessions"`
	// The https address under which the public listener is reached from outside; empty means the tunnel's, or none.
	PublicURL string `yaml:"public_url"`
	// The tunnel that the daemon runs to make the public listener reachable from a phone.
	Tunnel Tunnel `yaml:"tunnel"`
	// Whose live view the owner is sent to: tapin's own, or the provider's, which has no sign-in.
	LiveView LiveView `yaml:"live_view"`
	// What happens to a click that looks like a final payment and carries no approval: refused, allowed with a warning, or not looked at.
	PaymentGuard PaymentGuard `yaml:"payment_guard"`
	// Further words on a button that make it a payment; regular expressions, upper and lower case alike.
	PaymentGuardPatterns []string `yaml:"payment_guard_patterns"`

	Telegram     Telegram     `yaml:"telegram"`
	Notify       Notify       `yaml:"notify"`
	OnResume     OnResume     `yaml:"on_resume"`
	Pool         Pool         `yaml:"pool"`
	BrowserTools BrowserTools `yaml:"browser_tools"`
	// Whether devices on the local network may watch over plain HTTP; they can never drive.
	LAN LAN `yaml:"lan"`
	// The folder that files for upload are taken from; a relative one is under tapin's home.
	Uploads   string    `yaml:"uploads"`
	Usage     Usage     `yaml:"usage"`
	Egress    Egress    `yaml:"egress"`
	Retention Retention `yaml:"retention"`
}

// Listen is where the sidecar listens.
type Listen struct {
	// The address of the API for agents and tools; loopback only.
	Control string `yaml:"control"`
	// The address of the live view and the console, which the tunnel or a reverse proxy forwards to; not set means the port after that of control.
	Public string `yaml:"public"`
}

// Browser is how the local browser is started.
type Browser struct {
	// The Chrome, Chromium or Edge to start; empty means the first one found. TAPIN_CHROME sets it too.
	Path string `yaml:"path"`
	// Whether the browser shows a window on this machine.
	Headful bool `yaml:"headful"`
	// Further command-line switches for the browser.
	Args []string `yaml:"args"`
	// The proxy that the browser's traffic leaves through, after tapin's own guard: http, https or socks5.
	UpstreamProxy secret.Text `yaml:"upstream_proxy"`
	// The language that pages see, such as en-GB; empty means this machine's.
	Locale string `yaml:"locale"`
	// The time zone that pages see, such as Europe/London; empty means this machine's.
	Timezone string `yaml:"timezone"`
}

// CDP is the endpoint of provider cdp.
type CDP struct {
	// The address of the DevTools endpoint: ws, wss, http or https.
	URL secret.Text `yaml:"url"`
	// Headers sent when connecting to it.
	Headers map[string]secret.Text `yaml:"headers"`
}

// Integrations are the services tapin can use but does not need.
type Integrations struct {
	Browserbase Browserbase `yaml:"browserbase"`
}

// Browserbase holds the settings of that provider, and the timers of every
// provider, which stand here because users already keep them here.
type Browserbase struct {
	// Whether sessions may use Browserbase at all; false forbids it, provider chooses it.
	Enabled bool `yaml:"enabled"`
	// The port of the control listener; the short form of listen.control.
	SidecarPort int `yaml:"sidecar_port"`
	// How long a session may live, with every provider.
	DefaultTimeout Duration `yaml:"default_timeout"`
	// How long nothing may happen before a reminder is sent, with every provider.
	IdleWarning Duration `yaml:"idle_warning"`
	// How long a hand-off waits for its owner, with every provider.
	HandoffTimeout Duration `yaml:"handoff_timeout"`
	// Where Browserbase runs the browser.
	DefaultRegion string `yaml:"default_region"`
	// Whether Browserbase blocks advertisements.
	BlockAds bool `yaml:"block_ads"`
	// Whether Browserbase tries to solve CAPTCHAs by itself.
	SolveCaptchas bool `yaml:"solve_captchas"`
	// Whether Browserbase records sessions; what a person types would be in the recording.
	RecordSessions bool `yaml:"record_sessions"`
	// The manifest of saved logins; a relative path is under tapin's home.
	ContextStore string `yaml:"context_store"`
}

// Telegram is the owner's chat.
type Telegram struct {
	// The Telegram user ids that are owners without pairing.
	Owners []int64 `yaml:"owners"`
	// The Bot API to use; change it for a Bot API server of your own.
	APIURL string `yaml:"api_url"`
}

// Notify is what the owner is sent, and when.
type Notify struct {
	// When reminders of a waiting hand-off are sent, counted from its start; not set means once, after idle_warning; [] means never.
	RemindAt []Duration `yaml:"remind_at"`
	// The picture in the message: the page as it is, blurred, or none.
	Screenshot Screenshot `yaml:"screenshot"`
}

// OnResume wakes a stopped agent when its hand-off is over: a command or a webhook, not both.
type OnResume struct {
	// The program to run, with its arguments; no shell is involved.
	Command []string `yaml:"command"`
	// The address to post to; secret, since such addresses often carry a key.
	Webhook secret.Text `yaml:"webhook"`
}

// Pool is the stock of browsers kept ready.
type Pool struct {
	// How many blank browsers are kept started, for a faster first page.
	Warm int `yaml:"warm"`
	// How long one is kept for the next session, once tapin has started or a session has ended; 0 means not at all.
	Follow Duration `yaml:"follow"`
}

// BrowserTools are the one-shot tools.
type BrowserTools struct {
	// Whether the one-shot screenshot and extract tools are offered.
	Enabled bool `yaml:"enabled"`
}

// Usage bounds what sessions may cost.
type Usage struct {
	// How many minutes of billed browser time a calendar month may have; 0 means no limit.
	CapMinutes int `yaml:"cap_minutes"`
}

// Egress is what pages may reach.
type Egress struct {
	// Addresses that are reachable although they are private: host, *.host, host:port, or a CIDR range.
	Allow []string `yaml:"allow"`
	// Whether private, loopback and link-local addresses are out of reach for pages.
	BlockPrivate bool `yaml:"block_private"`
}

// Retention is how long things that are over are kept; 0 keeps them for ever.
type Retention struct {
	// How long hand-offs, approvals and task runs that are over are kept; 0 means for ever.
	Handoffs Duration `yaml:"handoffs"`
	// How long the journal and the event feed are kept; 0 means for ever.
	Journal Duration `yaml:"journal"`
	// How long log files are kept; 0 means for ever.
	Logs Duration `yaml:"logs"`
}
