package page

import (
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
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
		if l.Mobile {
			l.Scale = 3
		}
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
		catchChoosers(),
		autoAttach(),
		l.size(),
		// A tab behind another one still paints and keeps its focus.
		{Method: emulation.SetFocusEmulationEnabled.Method, Params: emulation.SetFocusEmulationEnabledParams{Enabled: true}},
	}
	return append(append(steps, l.place()...), goOn())
}

// size is that of the screen and of the window in it.
func (l Look) size() cdp.Step {
	p := emulation.SetDeviceMetricsOverrideParams{
		Width: int64(l.Width), Height: int64(l.Height), DeviceScaleFactor: l.Scale, Mobile: l.Mobile,
		ScreenWidth: int64(l.Width), ScreenHeight: int64(l.Height),
	}
	if l.Mobile {
		p.ScreenOrientation = &emulation.ScreenOrientation{Type: emulation.ScreenOrientationTypePortraitPrimary}
		if l.Width > l.Height {
			p.ScreenOrientation = &emulation.ScreenOrientation{Type: emulation.ScreenOrientationTypeLandscapePrimary, Angle: 90}
		}
	}
	return cdp.Step{Method: emulation.SetDeviceMetricsOverride.Method, Params: p}
}

// place is what a page and each of its frames must agree on: fingers, language, time.
func (l Look) place() []cdp.Step {
	var steps []cdp.Step
	if l.Mobile {
		steps = append(steps, cdp.Step{Method: emulation.SetTouchEmulationEnabled.Method, Params: emulation.SetTouchEmulationEnabledParams{Enabled: true, MaxTouchPoints: 5}})
	}
	if l.Locale != "" {
		steps = append(steps, cdp.Step{Method: emulation.SetLocaleOverride.Method, Params: emulation.SetLocaleOverrideParams{Locale: l.Locale}})
	}
	if l.Timezone != "" {
		steps = append(steps, cdp.Step{Method: emulation.SetTimezoneOverride.Method, Params: emulation.SetTimezoneOverrideParams{TimezoneID: l.Timezone}})
	}
	return steps
}

// autoAttach follows everything that can show or run something.
func autoAttach() cdp.Step { return browser.AttachAll() }

// agent is what the browser calls itself, by what it would: a telephone, or the
// same browser with a window when it is a headless one that we did not start
// ourselves. One that says the right thing already is left alone.
func (l Look) agent(userAgent string) []cdp.Step {
	plain := strings.Replace(userAgent, "HeadlessChrome/", "Chrome/", 1)
	if plain == userAgent && !l.Mobile {
		return nil
	}
	_, version, _ := strings.Cut(plain, "Chrome/")
	version, _, _ = strings.Cut(version, " ")
	major, _, _ := strings.Cut(version, ".")
	brands := func(v, filler string) []*emulation.UserAgentBrandVersion {
		return []*emulation.UserAgentBrandVersion{{Brand: "Not:A-Brand", Version: filler}, {Brand: "Chromium", Version: v}}
	}
	p := emulation.SetUserAgentOverrideParams{
		UserAgent: plain, AcceptLanguage: l.languages(),
		UserAgentMetadata: &emulation.UserAgentMetadata{
			Brands: brands(major, "8"), FullVersionList: brands(version, "8.0.0.0"), Platform: desk(plain), Architecture: "x86", Bitness: "64",
		},
	}
	if l.Mobile {
		// Chrome on Android tells every site the same device; the hints name one.
		p.UserAgent = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/" + major + ".0.0.0 Mobile Safari/537.36"
		p.Platform = "Linux armv81"
		m := p.UserAgentMetadata
		m.Platform, m.PlatformVersion, m.Model, m.Mobile = "Android", "14.0.0", "Pixel 8", true
		m.Architecture, m.Bitness, m.FormFactors = "", "", []string{"Mobile"}
	}
	return []cdp.Step{{Method: emulation.SetUserAgentOverride.Method, Params: p}}
}

// desk is the system of a desktop browser.
func desk(userAgent string) string {
	switch {
	case strings.Contains(userAgent, "Windows"):
		return "Windows"
	case strings.Contains(userAgent, "Mac OS X"):
		return "macOS"
	}
	return "Linux"
}

// languages makes "de-CH" into "de-CH,de": what a person's browser sends.
func (l Look) languages() string {
	language, _, regional := strings.Cut(l.Locale, "-")
	if !regional {
		return l.Locale
	}
	return l.Locale + "," + language
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
