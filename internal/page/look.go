package page

import (
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
)

// Look is what the browser shows itself as: size, device, place. The zero value
// is a desktop of 1280×720.
type Look struct {
	Width, Height int
	Scale         float64 // device pixel ratio
	Mobile        bool
	Locale        string // "de-CH"; empty means the browser's
	Timezone      string // "Europe/Zurich"; empty means the system's
}

func (l Look) orDefaults() Look {
	if l.Width <= 0 || l.Height <= 0 {
		l.Width, l.Height = 1280, 720
		if l.Mobile {
			l.Width, l.Height = 390, 844
		}
	}
	if l.Scale <= 0 {
		l.Scale = 1
	}
	return l
}

// steps bring a new tab into the state every tab of ours has. They are sent at
// once; the last one lets a tab that waits for us begin.
func (l Look) steps() []cdp.Step {
	steps := []cdp.Step{
		{Method: cdppage.Enable.Method, Params: cdppage.EnableParams{}},
		{Method: cdppage.SetLifecycleEventsEnabled.Method, Params: cdppage.SetLifecycleEventsEnabledParams{Enabled: true}},
		{Method: inspector.Enable.Method, Params: struct{}{}},
		install(),
		autoAttach(),
		{Method: emulation.SetDeviceMetricsOverride.Method, Params: emulation.SetDeviceMetricsOverrideParams{
			Width: int64(l.Width), Height: int64(l.Height), DeviceScaleFactor: l.Scale, Mobile: l.Mobile,
			ScreenWidth: int64(l.Width), ScreenHeight: int64(l.Height),
		}},
		// A tab behind another one still paints and keeps its focus.
		{Method: emulation.SetFocusEmulationEnabled.Method, Params: emulation.SetFocusEmulationEnabledParams{Enabled: true}},
	}
	if l.Mobile {
		touches := int64(5)
		steps = append(steps, cdp.Step{Method: emulation.SetTouchEmulationEnabled.Method, Params: emulation.SetTouchEmulationEnabledParams{Enabled: true, MaxTouchPoints: touches}})
	}
	if l.Locale != "" {
		steps = append(steps, cdp.Step{Method: emulation.SetLocaleOverride.Method, Params: emulation.SetLocaleOverrideParams{Locale: l.Locale}})
	}
	if l.Timezone != "" {
		steps = append(steps, cdp.Step{Method: emulation.SetTimezoneOverride.Method, Params: emulation.SetTimezoneOverrideParams{TimezoneID: l.Timezone}})
	}
	return append(steps, goOn())
}

// childSteps are for frames and workers: follow what they open, and let them run.
func childSteps(kind string) []cdp.Step {
	if kind == "iframe" {
		return []cdp.Step{{Method: cdppage.Enable.Method, Params: cdppage.EnableParams{}}, install(), autoAttach(), goOn()}
	}
	return []cdp.Step{goOn()}
}

// autoAttach follows everything that can show or run something. The browser's
// own surfaces are not part of any page.
func autoAttach() cdp.Step {
	flat := true
	return cdp.Step{Method: target.SetAutoAttach.Method, Params: target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &flat,
		Filter: target.Filter{
			{Type: "browser", Exclude: true}, {Type: "browser_ui", Exclude: true}, {Type: "tab", Exclude: true}, {Type: "webview", Exclude: true}, {},
		},
	}}
}

// disguise makes a headless browser that we did not start ourselves call itself
// what it is with a window. One that does already is left alone.
func disguise(userAgent string) []cdp.Step {
	plain := strings.Replace(userAgent, "HeadlessChrome/", "Chrome/", 1)
	if plain == userAgent {
		return nil
	}
	_, version, _ := strings.Cut(plain, "Chrome/")
	version, _, _ = strings.Cut(version, " ")
	major, _, _ := strings.Cut(version, ".")
	platform := "Linux"
	switch {
	case strings.Contains(plain, "Windows"):
		platform = "Windows"
	case strings.Contains(plain, "Mac OS X"):
		platform = "macOS"
	}
	brands := func(v, filler string) []*emulation.UserAgentBrandVersion {
		return []*emulation.UserAgentBrandVersion{{Brand: "Not:A-Brand", Version: filler}, {Brand: "Chromium", Version: v}}
	}
	return []cdp.Step{{Method: emulation.SetUserAgentOverride.Method, Params: emulation.SetUserAgentOverrideParams{
		UserAgent: plain,
		UserAgentMetadata: &emulation.UserAgentMetadata{
			Brands: brands(major, "8"), FullVersionList: brands(version, "8.0.0.0"), Platform: platform, Architecture: "x86", Bitness: "64",
		},
	}}}
}

// discover makes a browser that does not attach us by itself tell of new pages.
func discover() cdp.Step {
	return cdp.Step{Method: target.SetDiscoverTargets.Method, Params: target.SetDiscoverTargetsParams{
		Discover: true, Filter: target.Filter{{Type: "page"}},
	}}
}

func goOn() cdp.Step {
	return cdp.Step{Method: runtime.RunIfWaitingForDebugger.Method, Params: struct{}{}}
}
