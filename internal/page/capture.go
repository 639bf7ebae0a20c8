package page

import (
	"context"
	"errors"
	"fmt"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/fault"
)

// defaultQuality is what JPEG and WebP get when nobody says.
const defaultQuality = 80

// Screenshot takes a picture of the tab as a person would see it.
func (t *Tab) Screenshot(ctx context.Context, o ShotOptions) (Image, error) {
	const op = "take a screenshot"
	params, err := o.params()
	if err != nil {
		return Image{}, err
	}
	// Only the data, and that as it came: it goes out as base64 again.
	var got struct {
		Data string `json:"data"`
	}
	if t.hasCrashed() {
		return Image{}, crashFault()
	}
	err = t.unlessDialog(ctx, func(ctx context.Context) error {
		if o.FullPage {
			if params.Clip, err = t.wholePage(ctx); err != nil {
				return err
			}
		}
		return t.session.Call(ctx, cdppage.CaptureScreenshot.Method, params, &got)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return Image{}, fault.New(fault.WaitTimeout, op, "the page did not paint in time")
	}
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", op, err)
	}
	history, err := proto.Call(ctx, t.session, cdppage.GetNavigationHistory, proto.Empty{})
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", op, err)
	}
	shot := Image{Format: Format(params.Format), Base64: got.Data}
	if i := history.CurrentIndex; i >= 0 && i < int64(len(history.Entries)) {
		shot.URL, shot.Title = history.Entries[i].URL, history.Entries[i].Title
	}
	return shot, nil
}

func (o ShotOptions) params() (cdppage.CaptureScreenshotParams, error) {
	p := cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatPng}
	switch o.Format {
	case "", PNG:
		fast := true
		p.OptimizeForSpeed = &fast
	case JPEG, WebP:
		quality := int64(o.Quality)
		if quality == 0 {
			quality = defaultQuality
		}
		p.Format, p.Quality = cdppage.CaptureScreenshotFormat(o.Format), &quality
	default:
		return p, fault.New(fault.InvalidRequest, "take a screenshot", "%q is no picture format", o.Format).WithHint("Use png, jpeg or webp.")
	}
	if o.Quality < 0 || o.Quality > 100 {
		return p, fault.New(fault.InvalidRequest, "take a screenshot", "quality is from 1 to 100, not %d", o.Quality)
	}
	if o.FullPage {
		beyond := true
		p.CaptureBeyondViewport = &beyond
	}
	return p, nil
}

func (t *Tab) wholePage(ctx context.Context) (*cdppage.Viewport, error) {
	m, err := proto.Call(ctx, t.session, cdppage.GetLayoutMetrics, proto.Empty{})
	if err != nil {
		return nil, err
	}
	return &cdppage.Viewport{Width: m.CSSContentSize.Width, Height: m.CSSContentSize.Height, Scale: 1}, nil
}
