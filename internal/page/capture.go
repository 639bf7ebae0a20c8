package page

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

const (
	// defaultQuality is what JPEG and WebP get when nobody says.
	defaultQuality = 80
	// longestSide is what the browser can paint in one piece; beyond it, it
	// repeats itself.
	longestSide = 16_384
	// shotWithin is how long an element to photograph is waited for: a picture
	// is for looking at what is there.
	shotWithin = 5 * time.Second
	// captureWithin bounds a picture whose caller set no limit.
	captureWithin = 30 * time.Second
	// maskTries is how often a picture is taken again because what is to be
	// masked moved while it was taken.
	maskTries = 3
)

// Screenshot takes a picture of the tab as a person would see it.
func (t *Tab) Screenshot(ctx context.Context, o ShotOptions) (Image, error) {
	const op = "take a screenshot"
	params, err := o.params()
	if err != nil {
		return Image{}, err
	}
	if t.hasCrashed() {
		return Image{}, crashFault()
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, captureWithin)
		defer cancel()
	}
	o.MaskSecrets = !o.ForDriver && (o.MaskSecrets || t.tabs.hidden().given())
	shot := Image{}
	err = t.unlessDialog(ctx, func(ctx context.Context) error {
		if err := t.frameShot(ctx, o, &params); err != nil {
			return err
		}
		address := make(chan error, 1)
		if shot.URL, shot.Title = t.Address(); o.Asked || shot.URL == "" {
			go func() { // the browser answers this while the page paints
				defer guard.Catch("page", func() { address <- errPanicked })
				var err error
				shot.URL, shot.Title, err = t.address(ctx)
				address <- err
			}()
		} else {
			address <- nil
		}
		if o.MaskSecrets || len(o.Mask) > 0 {
			shot.Base64, err = t.masked(ctx, o, params)
		} else {
			shot.Base64, err = t.capture(ctx, params)
		}
		return errors.Join(err, <-address)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return Image{}, fault.New(fault.WaitTimeout, op, "the page did not paint in time")
	}
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", op, err)
	}
	var ok bool
	if shot.Format, ok = formatOf(shot.Base64); !ok {
		return Image{}, fault.New(fault.ProviderError, op, "the browser sent something that is no picture")
	}
	return shot, nil
}

// capture takes the picture. Only the data is read, and that as it came: it
// goes out as base64 again.
func (t *Tab) capture(ctx context.Context, params cdppage.CaptureScreenshotParams) (string, error) {
	var answer jsonv2.Value
	if err := t.session.Call(ctx, cdppage.CaptureScreenshot.Method, params, &answer); err != nil {
		return "", err
	}
	if data, rest, ok := cutData(answer); ok && string(rest) == "}" {
		return unsafe.String(unsafe.SliceData(data), len(data)), nil //nolint:gosec // the answer is ours alone, and nobody writes to it
	}
	var got struct {
		Data string `json:"data"`
	}
	if jsonv2.Unmarshal(answer, &got, jsonv2.AllowInvalidUTF8(true)) != nil {
		return "", fault.New(fault.ProviderError, "", "the browser sent something that is no picture")
	}
	return got.Data, nil
}

func (t *Tab) address(ctx context.Context) (url, title string, err error) {
	history, err := proto.Call(ctx, t.session, cdppage.GetNavigationHistory, proto.Empty{})
	if err != nil {
		return "", "", err
	}
	if i := history.CurrentIndex; i >= 0 && i < int64(len(history.Entries)) {
		url, title = t.tabs.hidden().conceal(history.Entries[i].URL), t.tabs.hidden().conceal(history.Entries[i].Title)
	}
	return url, title, nil
}

func (o ShotOptions) params() (cdppage.CaptureScreenshotParams, error) {
	const op = "take a screenshot"
	p := cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatPng}
	switch o.Format {
	case "", PNG:
		fast := true
		p.OptimizeForSpeed = &fast
	case JPEG, WebP:
		quality := int64(o.quality())
		p.Format, p.Quality = cdppage.CaptureScreenshotFormat(o.Format), &quality
	default:
		return p, fault.New(fault.InvalidRequest, op, "%q is no picture format", o.Format).WithHint("Use png, jpeg or webp.")
	}
	switch {
	case o.Quality < 0 || o.Quality > 100:
		return p, fault.New(fault.InvalidRequest, op, "quality is from 1 to 100, not %d", o.Quality)
	case o.FullPage && o.Locator != nil:
		return p, fault.New(fault.InvalidRequest, op, "a picture is of the full page or of an element, not of both")
	}
	return p, nil
}

func (o ShotOptions) quality() int {
	if o.Quality == 0 {
		return defaultQuality
	}
	return o.Quality
}

// frameShot points the camera: at the whole page or at one element. The clip is
// in CSS pixels from the page's own corner.
func (t *Tab) frameShot(ctx context.Context, o ShotOptions, p *cdppage.CaptureScreenshotParams) error {
	var area rect
	var g glass
	var err error
	switch {
	case o.FullPage:
		area, g, err = t.wholePage(ctx)
	case o.Locator != nil:
		area, g, err = t.elementArea(ctx, *o.Locator, o.Timeout)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	area = area.toPixels(g.Ratio)
	if width, height := area.Width*g.Ratio, area.Height*g.Ratio; width > longestSide || height > longestSide {
		return fault.New(fault.ImageTooLarge, "", "the picture would be %.0f by %.0f pixels; no side may be over %d", width, height, longestSide).
			WithHint("Ask for the viewport or for an element, or scroll and take several pictures.")
	}
	// Only what does not fit makes the page larger for a moment, which it notices.
	beyond := o.FullPage || !g.shows(area)
	p.Clip = &cdppage.Viewport{X: area.X, Y: area.Y, Width: area.Width, Height: area.Height, Scale: 1}
	p.CaptureBeyondViewport = &beyond
	return nil
}

// rect is a box in CSS pixels.
type rect struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// toPixels widens a box to whole pixels of the picture.
func (r rect) toPixels(ratio float64) rect {
	const dust = 1e-3 // of a pixel: what the arithmetic of layouts leaves
	left, top := math.Floor(r.X*ratio+dust), math.Floor(r.Y*ratio+dust)
	right, bottom := math.Ceil((r.X+r.Width)*ratio-dust), math.Ceil((r.Y+r.Height)*ratio-dust)
	return rect{left / ratio, top / ratio, max(1, right-left) / ratio, max(1, bottom-top) / ratio}
}

// moved is the box elsewhere, and larger or smaller.
func (r rect) moved(x, y, scale float64) rect {
	return rect{x + r.X*scale, y + r.Y*scale, r.Width * scale, r.Height * scale}
}

// within is the part of the box that lies in another.
func (r rect) within(other rect) rect {
	left, top := max(r.X, other.X), max(r.Y, other.Y)
	return rect{left, top, min(r.X+r.Width, other.X+other.Width) - left, min(r.Y+r.Height, other.Y+other.Height) - top}
}

// glass is what the browser's window shows of the page, and how.
type glass struct {
	Ratio   float64 `json:"ratio"` // device pixels of a CSS pixel
	Scale   float64 `json:"scale"` // how far fingers zoomed in
	ScrollX float64 `json:"scrollX"`
	ScrollY float64 `json:"scrollY"`
	X       float64 `json:"x"` // from the page's own corner
	Y       float64 `json:"y"`
	Width   float64 `json:"width"`
	Height  float64 `json:"height"`
}

func (g glass) shows(r rect) bool {
	return r.X >= g.X && r.Y >= g.Y && r.X+r.Width <= g.X+g.Width && r.Y+r.Height <= g.Y+g.Height
}

// wholePage is all there is, once what loads only when it is looked at has loaded.
func (t *Tab) wholePage(ctx context.Context) (rect, glass, error) {
	var g glass
	if err := t.callMain(ctx, "unroll", map[string]int{"most": longestSide}, nil); err != nil {
		return rect{}, g, err
	}
	if err := t.callMain(ctx, "glass", nil, &g); err != nil {
		return rect{}, g, err
	}
	m, err := proto.Call(ctx, t.session, cdppage.GetLayoutMetrics, proto.Empty{})
	if err != nil {
		return rect{}, g, err
	}
	return rect{Width: m.CSSContentSize.Width, Height: m.CSSContentSize.Height}, g, nil
}

// elementArea is where an element is on the page, after it was brought into view.
func (t *Tab) elementArea(ctx context.Context, l Locator, within time.Duration) (rect, glass, error) {
	var g glass
	if within <= 0 {
		within = shotWithin
	}
	at, err := t.locate(ctx, l, wanted{Visible: true, Stable: true}, within)
	if err != nil {
		return rect{}, g, err
	}
	if err := t.call(ctx, at.frame, "bringKept", map[string]int{"id": at.id}, nil); err != nil {
		return rect{}, g, notThere(err, l)
	}
	box, err := t.boxOf(ctx, at)
	if err != nil {
		return rect{}, g, notThere(err, l)
	}
	if err := t.callMain(ctx, "glass", nil, &g); err != nil {
		return rect{}, g, err
	}
	return box.moved(g.ScrollX, g.ScrollY, 1), g, nil
}

func notThere(err error, l Locator) error {
	if errors.Is(err, errWorldGone) {
		return fault.New(fault.ElementNotFound, "", "%s went away while it was photographed", l)
	}
	return err
}

// boxOf is where an element is in the top viewport.
func (t *Tab) boxOf(ctx context.Context, at found) (rect, error) {
	var box *rect
	if err := t.call(ctx, at.frame, "keptBox", map[string]int{"id": at.id}, &box); err != nil {
		return rect{}, err
	}
	if box == nil {
		return rect{}, errWorldGone
	}
	return t.toTop(ctx, at.frame, *box)
}

// toTop carries a box from a frame's viewport to the top one.
func (t *Tab) toTop(ctx context.Context, f frame, box rect) (rect, error) {
	for f.id != t.frames.main {
		parent, ok := t.frames.get(f.parent)
		if !ok {
			return rect{}, errWorldGone
		}
		h, err := t.holeOf(ctx, f, parent)
		if err != nil {
			return rect{}, err
		}
		box = box.moved(h.X, h.Y, h.Scale)
		f = parent
	}
	return box, nil
}

// hole is where a frame's document is drawn in its parent's viewport.
type hole struct {
	rect
	Scale float64 `json:"scale"`
}

func (t *Tab) holeOf(ctx context.Context, child, parent frame) (hole, error) {
	if err := t.seat(ctx, child); err != nil {
		return hole{}, err
	}
	var h *hole
	if err := t.call(ctx, parent, "holeOf", child.order, &h); err != nil {
		return hole{}, err
	}
	if h == nil {
		return hole{}, errWorldGone
	}
	return *h, nil
}

var errPanicked = errors.New("a part of it panicked")
