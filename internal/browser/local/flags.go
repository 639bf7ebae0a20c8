package local

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// flags are what the browser is started with. The holder adds its pipe, its
// profile and its proxy.
func (p *Provider) flags(c Chromium) []string {
	flags := []string{
		"--no-first-run", "--no-default-browser-check", "--no-startup-window", "--noerrdialogs",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
		"--disable-breakpad", "--disable-crash-reporter", "--disable-domain-reliability", "--metrics-recording-only",
		"--disable-client-side-phishing-detection", "--disable-search-engine-choice-screen", "--no-pings",
		"--disable-extensions", "--disable-component-extensions-with-background-pages", "--password-store=basic", "--use-mock-keychain",
		"--disable-hang-monitor", "--disable-ipc-flooding-protection", "--disable-prompt-on-repost",
		"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
		// Nothing may go around the guard: no QUIC, no UDP beside the proxy.
		"--disable-quic", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		// Not a person's wish to hide: the browser must look like one, so that a
		// person called in to solve a CAPTCHA can.
		"--disable-blink-features=AutomationControlled",
		// Without these a headless window starts two hidden renderers of its own.
		"--disable-features=" + strings.Join([]string{
			"WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "PreloadTopChromeWebUI", "NetworkTimeServiceQuerying",
			"OptimizationHints", "MediaRouter", "DialMediaRouteProvider", "Translate", "AcceptCHFrame", "InterestFeedContentSuggestions",
			"GlobalMediaControls", "AutofillServerCommunication", "CertificateTransparencyComponentUpdater",
		}, ","),
	}
	if !p.opts.Headful {
		flags = append(flags, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--mute-audio", "--window-size=1280,720", "--screen-info={1280x720}",
			"--user-agent="+userAgent(c))
	}
	if p.opts.Locale != "" {
		flags = append(flags, "--lang="+p.opts.Locale, "--accept-lang="+acceptLanguages(p.opts.Locale))
	}
	if NeedsNoSandbox() {
		flags = append(flags, "--no-sandbox")
	}
	if smallSharedMemory() {
		flags = append(flags, "--disable-dev-shm-usage")
	}
	return append(flags, p.opts.Args...)
}

// HasDisplay reports whether a browser can show its window. Who names a platform
// of their own knows better.
func HasDisplay(args []string) bool {
	own := slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--ozone-platform") || strings.HasPrefix(a, "--headless")
	})
	return own || runtime.GOOS != "linux" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// NeedsNoSandbox reports whether Chromium refuses to start with its sandbox: it
// does for root. Whoever starts tapin so is told.
func NeedsNoSandbox() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 }

// userAgent is the one the same browser has with a window. Chromium says no more
// than the major version in it.
func userAgent(c Chromium) string {
	platform := "X11; Linux x86_64"
	if runtime.GOOS == "darwin" {
		platform = "Macintosh; Intel Mac OS X 10_15_7"
	}
	ua := fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%s.0.0.0 Safari/537.36", platform, c.Major())
	if strings.Contains(strings.ToLower(c.Path), "edge") {
		ua += " Edg/" + c.Major() + ".0.0.0"
	}
	return ua
}

// acceptLanguages makes "de-CH" into "de-CH,de": what a person's browser sends.
func acceptLanguages(locale string) string {
	language, _, regional := strings.Cut(locale, "-")
	if !regional {
		return locale
	}
	return locale + "," + language
}

// smallSharedMemory reports whether /dev/shm is too small for the browser's
// pictures, as it is in many containers.
func smallSharedMemory() bool {
	var fs syscall.Statfs_t
	if runtime.GOOS != "linux" || syscall.Statfs("/dev/shm", &fs) != nil {
		return false
	}
	return uint64(fs.Bsize)*fs.Blocks < 512<<20 //nolint:gosec // a block size is positive
}

// environment is what the browser and its holder get to see: nothing that could
// hold a key, only what a program needs to find its home, fonts and screen, and
// how to trace the holder.
func environment() []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
		"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
		"FONTCONFIG_PATH", "FONTCONFIG_FILE", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"GODEBUG", "GORACE", "GOTRACEBACK",
	} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
