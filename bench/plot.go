package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Plots are drawn by hand: a few lines of SVG that work in light and in dark.

const (
	plotWide, plotHigh = 690.0, 260.0
	left, right        = 56.0, 200.0
	top, bottom        = 18.0, 40.0
)

var inks = []string{"#3b82f6", "#ef4444", "#10b981", "#f59e0b", "#8b5cf6", "#ec4899"}

func (c curve) file() string {
	return "bench-" + regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(c.Name), "-") + ".svg"
}

// svg draws every line relative to its first value, so that different units
// share one picture; the axis of numbers is logarithmic, unless it is even.
func (c curve) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="system-ui,sans-serif" font-size="11">
<style>text{fill:#555}.grid{stroke:#8884;stroke-width:1}@media(prefers-color-scheme:dark){text{fill:#bbb}}</style>
`, plotWide, plotHigh)
	most := 1.0
	for _, l := range c.Lines {
		for _, v := range l.relative() {
			most = max(most, v)
		}
	}
	most *= 1.1
	scale := math.Log
	if c.Even {
		scale = func(v float64) float64 { return v }
	}
	first, last := scale(c.Points[0]), scale(c.Points[len(c.Points)-1])
	x := func(v float64) float64 {
		return left + (plotWide-left-right)*(scale(v)-first)/max(1e-9, last-first)
	}
	y := func(v float64) float64 { return plotHigh - bottom - (plotHigh-top-bottom)*v/most }
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">×%s</text>`+"\n", left, plotWide-right, y(v), y(v), left-6, y(v)+4, brief(v))
	}
	for _, p := range c.Points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(p), plotHigh-bottom+16, whole(p))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", (left+plotWide-right)/2, plotHigh-8, c.X)
	for i, l := range c.Lines {
		var at []string
		for j, v := range l.relative() {
			at = append(at, fmt.Sprintf("%.1f,%.1f", x(c.Points[j]), y(v)))
		}
		ink := inks[i%len(inks)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/><text x="%.1f" y="%.1f" style="fill:%s">%s, %s</text>`+"\n",
			ink, strings.Join(at, " "), plotWide-right+10, top+14*float64(i)+6, ink, l.Name, l.Unit)
	}
	return b.String() + "</svg>\n"
}

// relative is a line as multiples of its first value that is not nothing.
func (l line) relative() []float64 {
	at := slices.IndexFunc(l.Values, func(v float64) bool { return v > 0 })
	all := make([]float64, len(l.Values))
	for i, v := range l.Values {
		if at >= 0 {
			all[i] = v / l.Values[at]
		}
	}
	return all
}

// table is the same as the picture, in figures.
func (c curve) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", c.X)
	for _, l := range c.Lines {
		fmt.Fprintf(&b, " %s, %s |", l.Name, l.Unit)
	}
	b.WriteString("\n|---:|" + strings.Repeat("---:|", len(c.Lines)) + "\n")
	for i, p := range c.Points {
		fmt.Fprintf(&b, "| %s |", whole(p))
		for _, l := range c.Lines {
			fmt.Fprintf(&b, " %s |", brief(l.Values[i]))
		}
		b.WriteByte('\n')
	}
	if c.Note != "" {
		b.WriteString("\n" + c.Note + "\n")
	}
	return b.String()
}

func whole(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f,000", v/1000)
	case v != math.Trunc(v): // the minutes of a short soak
		return brief(v)
	}
	return fmt.Sprintf("%.0f", v)
}
