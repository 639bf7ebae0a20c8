package page

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"time"

	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// maskWithin is how long an element that is to be masked is looked for.
const maskWithin = 2 * time.Second

// Masks are painted into the finished picture. Anything laid over the page
// itself would be seen by the page, would be in the picture of whoever watches,
// and could be moved or kept by a script. What is to be masked may move while
// the picture is taken, so it is measured before and after, and a picture in
// between two answers is taken again; in the end both places are black.

// masked takes the picture with everything blackened that the options name.
func (t *Tab) masked(ctx context.Context, o ShotOptions, params cdppage.CaptureScreenshotParams) (string, error) {
	targets := make([]found, len(o.Mask))
	for i, l := range o.Mask {
		at, err := t.locate(ctx, l, wanted{}, maskWithin)
		if err != nil {
			return "", err
		}
		targets[i] = at
	}
	if o.MaskSecrets {
		// A closed shadow root hides its fields from scripts, not from the camera.
		if err := t.adoptClosed(ctx); err != nil {
			return "", err
		}
	}
	plain := params
	plain.Format, plain.Quality = cdppage.CaptureScreenshotFormatPng, nil
	before, err := t.maskBoxes(ctx, o.MaskSecrets, targets)
	if err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		shoot := params
		if len(before.boxes) > 0 {
			shoot = plain // what is painted upon must not have lost anything yet
		}
		data, err := t.capture(ctx, shoot)
		if err != nil {
			return "", err
		}
		after, err := t.maskBoxes(ctx, o.MaskSecrets, targets)
		if err != nil {
			return "", err
		}
		still := before.same(after)
		switch {
		case still && len(before.boxes) == 0:
			return data, nil
		case still || try == maskTries && len(before.boxes) > 0:
			return t.paint(ctx, o, data, params.Clip, before, after)
		}
		before = after
	}
}

// masks are what is to be black, from the page's own corner, and what the
// window showed then.
type masks struct {
	glass glass
	boxes []rect
}

func (m masks) same(o masks) bool { return m.glass == o.glass && slices.Equal(m.boxes, o.boxes) }

// maskBoxes measures. A frame that does not say where its secrets are is itself one.
func (t *Tab) maskBoxes(ctx context.Context, secrets bool, targets []found) (masks, error) {
	var m masks
	if err := t.callMain(ctx, "glass", nil, &m.glass); err != nil {
		return m, err
	}
	add := func(r rect) { m.boxes = append(m.boxes, r.moved(m.glass.ScrollX, m.glass.ScrollY, 1)) }
	for _, at := range targets {
		box, err := t.boxOf(ctx, at)
		switch {
		case errors.Is(err, errWorldGone):
			continue // nothing left to mask
		case err != nil:
			return m, err
		}
		add(box)
	}
	if !secrets {
		return m, nil
	}
	all := t.seatFrames(ctx)
	boxes := make([][]rect, len(all))
	failed := make([]error, len(all))
	var busy guard.Group
	for i, f := range all {
		busy.Run(func() {
			ctx, cancel := context.WithTimeout(ctx, frameWithin)
			defer cancel()
			boxes[i], failed[i] = t.secretsIn(ctx, f)
		})
	}
	busy.Wait()
	for i := range all {
		if failed[i] != nil && !errors.Is(failed[i], errWorldGone) {
			return m, fmt.Errorf("find the secret fields: %w", failed[i])
		}
		for _, box := range boxes[i] {
			add(box)
		}
	}
	return m, nil
}

// secretsIn are the boxes of a frame's secret fields in the top viewport.
func (t *Tab) secretsIn(ctx context.Context, f frame) ([]rect, error) {
	var boxes []rect
	if err := t.call(ctx, f, "secretBoxes", nil, &boxes); err != nil {
		return nil, err
	}
	for i, box := range boxes {
		var err error
		if boxes[i], err = t.toTop(ctx, f, box); err != nil {
			return nil, err
		}
	}
	return boxes, nil
}

// paint blackens boxes in a PNG and encodes it as wanted.
func (t *Tab) paint(ctx context.Context, o ShotOptions, data string, clip *cdppage.Viewport, before, after masks) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fault.New(fault.ProviderError, "", "the browser sent something that is no picture")
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return "", fault.New(fault.ProviderError, "", "the browser sent something that is no picture")
	}
	canvas := image.NewRGBA(picture.Bounds())
	draw.Draw(canvas, canvas.Bounds(), picture, picture.Bounds().Min, draw.Src)
	for _, m := range []masks{before, after} {
		area := rect{m.glass.X, m.glass.Y, m.glass.Width, m.glass.Height}
		if clip != nil {
			area = rect{clip.X, clip.Y, clip.Width, clip.Height}
		}
		scale := float64(canvas.Bounds().Dx()) / area.Width
		for _, box := range m.boxes {
			blacken(canvas, box.moved(-area.X, -area.Y, 1).moved(0, 0, scale))
		}
	}
	return t.encode(ctx, o, canvas)
}

// blacken paints a box of the picture's pixels, and a rim for what glows around it.
func blacken(canvas *image.RGBA, r rect) {
	const rim = 2
	box := image.Rect(
		int(math.Floor(r.X))-rim, int(math.Floor(r.Y))-rim,
		int(math.Ceil(r.X+r.Width))+rim, int(math.Ceil(r.Y+r.Height))+rim,
	)
	draw.Draw(canvas, box, image.NewUniform(color.Black), image.Point{}, draw.Src)
}

// encode writes the picture in its format. Of WebP only the browser knows how.
func (t *Tab) encode(ctx context.Context, o ShotOptions, canvas *image.RGBA) (string, error) {
	var out bytes.Buffer
	var err error
	if o.Format == JPEG {
		err = jpeg.Encode(&out, canvas, &jpeg.Options{Quality: o.quality()})
	} else {
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, canvas)
	}
	if err != nil {
		return "", fmt.Errorf("encode the picture: %w", err)
	}
	data := base64.StdEncoding.EncodeToString(out.Bytes())
	if o.Format != WebP {
		return data, nil
	}
	var encoded string
	err = t.callMain(ctx, "encode", map[string]any{"png": data, "type": WebP.MIME(), "quality": float64(o.quality()) / 100}, &encoded)
	return encoded, err
}
