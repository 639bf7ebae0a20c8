package page

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	cdppage "github.com/chromedp/cdproto/page"
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
func formatOf(encoded string) (Format, bool) {
	for begin, format := range map[string]Format{"iVBORw0KGgo": PNG, "/9j/": JPEG, "UklGR": WebP} {
		if strings.HasPrefix(encoded, begin) {
			return format, true
		}
	}
	return "", false
}

// cutData takes base64 out of what begins with it, as a browser's pictures do. The
// decoder would go through it letter by letter. What follows the text is the rest.
func cutData(object []byte) (data, rest []byte, ok bool) {
	data, ok = bytes.CutPrefix(object, []byte(`{"data":"`))
	end := bytes.IndexByte(data, '"')
	if !ok || end < 0 || bytes.IndexByte(data[:end], '\\') >= 0 {
		return nil, nil, false
	}
	return data[:end], data[end+1:], true
}

// frameOf reads a frame of a cast.
func frameOf(raw jsonv2.Value) (e cdppage.EventScreencastFrame, ok bool) {
	data, rest, cut := cutData(raw)
	if other, more := bytes.CutPrefix(rest, []byte(",")); cut && more {
		picture, err := base64.StdEncoding.AppendDecode(nil, data)
		if err != nil || jsonv2.Unmarshal(slices.Concat([]byte("{"), other), &e, jsonv2.AllowInvalidUTF8(true)) != nil {
			return e, false
		}
		e.Data = picture
		return e, true
	}
	return e, jsonv2.Unmarshal(raw, &e, jsonv2.AllowInvalidUTF8(true)) == nil
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
	// ForDriver is a picture for the eyes of the person who drives: they must see
	// what they have typed, and nothing is blacked out.
	ForDriver bool
	// Asked has the browser asked where the page is at that moment. Without it, that is
	// what was last heard, which is right but for milliseconds.
	Asked bool
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
