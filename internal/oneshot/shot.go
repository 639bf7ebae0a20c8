package oneshot

import (
	"context"
	"strings"

	"tapin/internal/fault"
	"tapin/internal/page"
)

const (
	// mostImage is how large a picture may be, decoded.
	mostImage = 1_500_000
	// smallQuality is that of the JPEG that takes the place of a PNG over the limit.
	smallQuality = 60
)

// phone is the standard look of a screenshot: what it is looked at on.
var phone = page.Look{Width: 390, Height: 844, Scale: 1, Mobile: true}

// ShotCall asks for a picture.
type ShotCall struct {
	Call
	FullPage bool
}

// Shot is a picture of a page.
type Shot struct {
	Seen
	Base64    string
	MIME      string // what the picture is, always
	Truncated bool   // it was over the limit as PNG, and is a JPEG of lower quality
}

// Screenshot photographs the page at an address.
func (r *Room) Screenshot(ctx context.Context, c ShotCall) (Shot, error) {
	look, err := r.lookOf(c.Call, phone)
	if err != nil {
		return Shot{}, err
	}
	var shot Shot
	shot.Seen, err = r.visit(ctx, "screenshot", c.Call, look, func(ctx context.Context, tab *page.Tab) error {
		shot = Shot{}
		return shot.take(ctx, tab, c.FullPage)
	})
	if err != nil {
		shot = Shot{}
	}
	r.cards.add(Card{Kind: "screenshot", URL: c.URL, Shot: &shot, Err: err, shot: &c})
	return shot, err
}

// take photographs the page as PNG, and as JPEG where that is over the limit.
func (s *Shot) take(ctx context.Context, tab *page.Tab, full bool) error {
	picture, err := tab.Screenshot(ctx, page.ShotOptions{FullPage: full})
	if err != nil {
		return err
	}
	if bytesOf(picture.Base64) > mostImage {
		s.Truncated = true
		if picture, err = tab.Screenshot(ctx, page.ShotOptions{FullPage: full, Format: page.JPEG, Quality: smallQuality}); err != nil {
			return err
		}
	}
	if size := bytesOf(picture.Base64); size > mostImage {
		return fault.New(fault.ImageTooLarge, "", "the picture has %d bytes even as a JPEG; %d is the most", size, mostImage).
			WithHint("Ask for the viewport instead of the full page, or for a smaller viewport.")
	}
	s.Base64, s.MIME = picture.Base64, picture.Format.MIME()
	return nil
}

// bytesOf is how many bytes a base64 text stands for.
func bytesOf(base64 string) int {
	return len(base64)/4*3 - strings.Count(base64[max(0, len(base64)-2):], "=")
}
