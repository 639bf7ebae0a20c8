package mcpserver

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"tapin/internal/fault"
)

const (
	longSide    = 1568 // pixels; models shrink what is larger, and charge for it
	maxTiles    = 4    // of a long page
	jpegQuality = 80
	asItIs      = 1_500_000  // bytes; what hosts pass on without complaint
	maxPixels   = 60_000_000 // of a picture that is opened at all
)

// picture is one image for a model.
type picture struct {
	bytes []byte
	mime  string
}

// pictures makes of a screenshot what a model can read: no side longer than it
// takes, a long page in several parts. Left counts the pixels of height that
// did not fit.
func pictures(raw []byte) (parts []picture, left int, err error) {
	size, kind, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || size.Width <= 0 || size.Height <= 0 {
		return nil, 0, fault.New(fault.ProviderError, "", "the browser's picture cannot be read")
	}
	if size.Width*size.Height > maxPixels {
		return nil, 0, fault.New(fault.ImageTooLarge, "", "a picture of %d × %d pixels is too large", size.Width, size.Height).
			WithHint("Photograph the viewport or one element, and scroll.")
	}
	if size.Width <= longSide && size.Height <= longSide && len(raw) <= asItIs {
		// The browser's own bytes: to encode them again takes longer than the
		// picture itself, and a model is charged by its sides.
		return []picture{{raw, "image/" + kind}}, 0, nil
	}
	whole, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, 0, fault.New(fault.ProviderError, "", "the browser's picture cannot be read")
	}
	bounds := whole.Bounds()
	width := min(bounds.Dx(), longSide)
	step := longSide * bounds.Dx() / width // of the original, for one part
	for top := bounds.Min.Y; top < bounds.Max.Y; top += step {
		if len(parts) == maxTiles {
			return parts, bounds.Max.Y - top, nil
		}
		part := image.Rect(bounds.Min.X, top, bounds.Max.X, min(top+step, bounds.Max.Y))
		one, err := encode(shrink(whole, part, width))
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, one)
	}
	return parts, 0, nil
}

// shrink cuts a part out of a picture and makes it so wide; each pixel is the
// average of those that it stands for.
func shrink(from image.Image, part image.Rectangle, width int) image.Image {
	height := max(1, part.Dy()*width/part.Dx())
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		top, bottom := span(y, height, part.Dy())
		for x := range width {
			left, right := span(x, width, part.Dx())
			var r, g, b, n uint32
			for sy := top; sy < bottom; sy++ {
				for sx := left; sx < right; sx++ {
					pr, pg, pb, _ := from.At(part.Min.X+sx, part.Min.Y+sy).RGBA()
					r, g, b, n = r+pr>>8, g+pg>>8, b+pb>>8, n+1
				}
			}
			to.SetRGBA(x, y, color.RGBA{uint8(r / n), uint8(g / n), uint8(b / n), 255}) //nolint:gosec // averages of bytes
		}
	}
	return to
}

// span is what the i-th of so many small pixels stands for.
func span(i, many, of int) (from, to int) {
	from = i * of / many
	return from, max(from+1, (i+1)*of/many)
}

// encode takes the smaller of two encodings: drawings are smaller as PNG,
// photographs as JPEG.
func encode(i image.Image) (picture, error) {
	var small, sharp bytes.Buffer
	if err := jpeg.Encode(&small, i, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return picture{}, err
	}
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&sharp, i); err != nil {
		return picture{}, err
	}
	if sharp.Len() <= small.Len() {
		return picture{sharp.Bytes(), "image/png"}, nil
	}
	return picture{small.Bytes(), "image/jpeg"}, nil
}
