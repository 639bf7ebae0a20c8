package page

import (
	"strings"
	"time"
)

// Format is the encoding of a picture.
type Format string

// The encodings the browser produces.
const (
	PNG  Format = "png"
	JPEG Format = "jpeg"
	WebP Format = "webp"
)

// MIME is the honest content type of the format.
func (f Format) MIME() string { return "image/" + string(f) }

// formatOf tells by its first bytes what a picture in base64 is.
func formatOf(base64 string) (Format, bool) {
	for begin, format := range map[string]Format{"iVBORw0KGgo": PNG, "/9j/": JPEG, "UklGR": WebP} {
		if strings.HasPrefix(base64, begin) {
			return format, true
		}
	}
	return "", false
}

// ShotOptions say what to photograph and how. The zero value is the viewport as PNG.
type ShotOptions struct {
	Format   Format // default PNG
	Quality  int    // 1–100, JPEG and WebP only; 0 means 80
	FullPage bool
	Locator  *Locator      // only this element, scrolled into view
	Timeout  time.Duration // how long the element is waited for; 0 means 5 s
	// Mask names elements to black out; one that cannot be found is an error,
	// because a picture that shows it would be one.
	Mask []Locator
	// MaskSecrets blacks out password, one-time-code and card fields, in all frames.
	MaskSecrets bool
}

// Image is an encoded picture. Base64 is as the browser sent it, so that a
// door that answers in JSON encodes nothing twice.
type Image struct {
	Format Format
	Base64 string
	URL    string
	Title  string
}

// Navigation is what became of a navigation.
type Navigation struct {
	URL    string // after redirects
	Title  string
	Status int // HTTP status of the document; 0 when there was none
	Took   time.Duration
}
