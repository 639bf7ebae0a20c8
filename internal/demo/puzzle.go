package demo

// The puzzle's measures, in CSS pixels; shop.css and shop.js have the same ones.
const (
	leaf      = "M14 116C12 92 26 74 54 74c0 28-16 44-40 42z"
	leastGap  = 90
	mostGap   = 205
	tolerance = 14

	// The box stands in the middle of the window.
	boxWide, boxHigh = 320.0, 400.0
	// The corner of the scene in it, and the middle of the leaf in the scene.
	sceneX, sceneY = 21.0, 115.0
	leafX, leafY   = 34.0, 95.0
)

func newGap() int { return leastGap + int(random(mostGap-leastGap+1)) }

// place is where the leaf belongs, in a window of that size.
func place(wide, high float64, gap int) (x, y float64) {
	return wide/2 - boxWide/2 + sceneX + leafX + float64(gap), high/2 - boxHigh/2 + sceneY + leafY
}
