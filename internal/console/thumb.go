package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"strconv"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
)

const (
	thumbWidth   = 480
	thumbQuality = 70
	thumbWithin  = 10 * time.Second
	maxShots     = 2 // pictures that are being taken
	// maxPixels is more than any window has.
	maxPixels = 32 << 20
)

// thumb answers with a small picture of what a session shows. It is taken anew
// each time and kept nowhere: whether there may be one at all can change with
// every moment, and is the house's to say.
func (d *Door) thumb(w http.ResponseWriter, r *http.Request) {
	if _, _, _, err := d.enter(r); err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), thumbWithin)
	defer cancel()
	select {
	case d.camera <- struct{}{}:
		defer func() { <-d.camera }()
	case <-ctx.Done():
		refuse(w, fault.New(fault.Busy, "", "too many pictures are being taken"))
		return
	}
	shot, err := d.deps.House.Picture(ctx, r.PathValue("session"))
	if err != nil {
		refuse(w, err)
		return
	}
	small, err := shrink(shot)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	w.Header().Set("Content-Length", strconv.Itoa(len(small)))
	_, _ = w.Write(small) //nolint:gosec // a JPEG that we encoded, under that type
}

// shrink makes a picture small, each pixel the mean of those it stands for.
func shrink(shot page.Image) ([]byte, error) {
	const op = "make a picture small"
	raw, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		return nil, fault.New(fault.ProviderError, op, "the browser sent something that is no picture")
	}
	size, err := jpeg.DecodeConfig(bytes.NewReader(raw))
	if err != nil || size.Width < 1 || size.Height < 1 || size.Width*size.Height > maxPixels {
		return nil, fault.New(fault.ProviderError, op, "the browser sent a picture of no use")
	}
	large, err := jpeg.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fault.New(fault.ProviderError, op, "the browser sent a broken picture")
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, smaller(large), &jpeg.Options{Quality: thumbQuality}); err != nil {
		return nil, fault.Wrap(fault.Internal, op, err)
	}
	return out.Bytes(), nil
}

func smaller(large image.Image) image.Image {
	from := large.Bounds()
	width := min(thumbWidth, from.Dx())
	height := max(1, from.Dy()*width/from.Dx())
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		top, bottom := y*from.Dy()/height, max(y*from.Dy()/height+1, (y+1)*from.Dy()/height)
		for x := range width {
			left, right := x*from.Dx()/width, max(x*from.Dx()/width+1, (x+1)*from.Dx()/width)
			small.SetRGBA(x, y, mean(large, image.Rect(left, top, right, bottom).Add(from.Min)))
		}
	}
	return small
}

func mean(of image.Image, area image.Rectangle) color.RGBA {
	var r, g, b, n uint32
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			cr, cg, cb, _ := of.At(x, y).RGBA()
			r, g, b, n = r+cr>>8, g+cg>>8, b+cb>>8, n+1
		}
	}
	return color.RGBA{uint8(r / n), uint8(g / n), uint8(b / n), 255} //nolint:gosec // means of bytes
}
