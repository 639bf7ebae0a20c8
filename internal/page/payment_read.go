package page

import (
	"context"

	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/guard"
)

// Totals reads what the page says is to be paid, and which of the names it shows.
func (t *Tab) Totals(ctx context.Context, names []string) (Totals, error) {
	all := t.frames.list()
	docs := make([]sums, len(all))
	failed := make([]error, len(all))
	var wg guard.Group
	for i, f := range all {
		wg.Run(func() {
			limited, cancel := t.patient(ctx, f)
			defer cancel()
			failed[i] = t.call(limited, f, "paySums", map[string]any{"names": names}, &docs[i])
			docs[i].frame = f
		})
	}
	wg.Wait()
	var answered []sums
	for i := range docs {
		if all[i].id == t.frames.main && failed[i] != nil {
			return Totals{}, failed[i]
		}
		if failed[i] != nil {
			continue
		}
		if all[i].id == t.frames.main {
			answered = append([]sums{docs[i]}, answered...)
		} else {
			answered = append(answered, docs[i])
		}
	}
	return totalOf(answered), nil
}

// TotalsCrop is the part of the page where the total stands, with what is around
// it, or the window where there is none.
func (t *Tab) TotalsCrop(ctx context.Context, of Totals) (Image, error) {
	const around, widest, tallest = 120, 800, 360
	o := ShotOptions{Format: JPEG, Quality: 75, MaskSecrets: true}
	params, err := o.params()
	if err != nil {
		return Image{}, err
	}
	if of.box != nil && of.frame.id == t.frames.main {
		var g glass
		if err := t.callMain(ctx, "glass", nil, &g); err != nil {
			return Image{}, err
		}
		b := *of.box
		area := rect{max(0, b.X-2*around), max(0, b.Y-around), min(widest, b.Width+4*around), min(tallest, b.Height+2*around)}
		area = area.toPixels(g.Ratio)
		beyond := !g.shows(area)
		params.Clip, params.CaptureBeyondViewport = &cdppage.Viewport{X: area.X, Y: area.Y, Width: area.Width, Height: area.Height, Scale: 1}, &beyond
	}
	shot := Image{}
	err = t.unlessDialog(ctx, func(ctx context.Context) (err error) {
		shot.Base64, err = t.masked(ctx, o, params)
		return err
	})
	if err != nil {
		return Image{}, err
	}
	shot.Format, _ = formatOf(shot.Base64)
	return shot, nil
}
