package page

import (
	"errors"

	"tapin/internal/fault"
)

// deed tells a dialog that opened because of what we did from one that opened
// while we still waited: after the first the deed is done, as far as anybody can
// tell before the dialog is answered.
type deed struct{ underWay bool }

// do is the moment from which on the page can answer; nil notes nothing.
func (d *deed) do(fn func() error) error {
	if d == nil {
		return fn()
	}
	d.underWay = true
	err := fn()
	d.underWay = err != nil
	return err
}

// provoked reports whether the error is a dialog that the deed itself opened.
func (d *deed) provoked(err error) bool { return d.underWay && errors.Is(err, fault.DialogOpen) }

// errProvoked goes with the dialog that a deed opened.
var errProvoked = errors.New("it was done, and the page answered")
