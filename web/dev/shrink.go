package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
)

// shrink gives every picture of a folder a palette: pages have few colours, and
// a palette takes a third of the room in the repository.
func shrink(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	for _, name := range names {
		if err := shrinkOne(name); err != nil {
			return fmt.Errorf("shrink %s: %w", name, err)
		}
	}
	return nil
}

func shrinkOne(name string) error {
	body, err := os.ReadFile(name) //nolint:gosec // the caller's own folder
	if err != nil {
		return err
	}
	from, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		return err
	}
	bounds := from.Bounds()
	to := image.NewPaletted(bounds, paletteOf(from))
	index := map[color.RGBA]uint8{} // finding the nearest colour is what takes time
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := rgba(from.At(x, y))
			i, ok := index[c]
			if !ok {
				i = uint8(to.Palette.Index(c)) //nolint:gosec // a palette has 256 at most
				index[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, to); err != nil {
		return err
	}
	return os.WriteFile(name, small.Bytes(), 0o644) //nolint:gosec // for everybody to read
}

// paletteOf takes the colours that are seen most, of each region of colour one,
// so that a rare but distinct one is not lost among many shades of another.
func paletteOf(m image.Image) color.Palette {
	type seen struct {
		c color.RGBA
		n int
	}
	for step := uint8(1); ; step *= 2 {
		regions := map[color.RGBA]map[color.RGBA]int{}
		for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
			for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
				c := rgba(m.At(x, y))
				region := color.RGBA{c.R / step, c.G / step, c.B / step, 255}
				if regions[region] == nil {
					regions[region] = map[color.RGBA]int{}
				}
				regions[region][c]++
			}
		}
		if len(regions) > 256 {
			continue
		}
		var palette color.Palette
		for _, colours := range regions {
			var all []seen
			for c, n := range colours {
				all = append(all, seen{c, n})
			}
			best := slices.MaxFunc(all, func(a, b seen) int {
				return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.c.R, b.c.R), cmp.Compare(a.c.G, b.c.G), cmp.Compare(a.c.B, b.c.B))
			})
			palette = append(palette, best.c)
		}
		slices.SortFunc(palette, func(a, b color.Color) int {
			x, y := rgba(a), rgba(b)
			return cmp.Or(cmp.Compare(x.R, y.R), cmp.Compare(x.G, y.G), cmp.Compare(x.B, y.B))
		})
		return palette
	}
}

func rgba(c color.Color) color.RGBA {
	r, _ := color.RGBAModel.Convert(c).(color.RGBA)
	return r
}
