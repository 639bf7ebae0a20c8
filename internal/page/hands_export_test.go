package page

import (
	"context"

	"tapin/internal/testwait"
)

// Belongs refuses a place that is not of the site.
func Belongs(place, only string) error { return belongs(place, only, false) }

// ClickBy clicks by one rung of the ladder alone.
func (t *Tab) ClickBy(ctx context.Context, rung string, l Locator) (effect string, err error) {
	o := ClickOptions{}
	if err := o.check("click"); err != nil {
		return "", err
	}
	effect, _, err = t.rung(ctx, rung, l, o, testwait.End())
	return effect, err
}

// KeptAddress is what an observation keeps of an address.
func KeptAddress(address string) string { return keptAddress(address) }

// AddressHas is how a condition's pattern is held against an address.
func AddressHas(address, pattern string) bool { return addressHas(address, pattern) }

// PressAt finds a point as who acts does, and presses there at once.
func (t *Tab) PressAt(ctx context.Context, x, y float64) error {
	got, err := t.locate(ctx, Locator{X: &x, Y: &y}, toAct, testwait.Limit())
	if err != nil {
		return err
	}
	if err := t.comeThrough(ctx, got.point); err != nil {
		return err
	}
	return t.play(ctx, ClickOptions{Button: "left", Count: 1}.mouse(got.point))
}
