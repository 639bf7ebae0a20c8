package store

import (
	"errors"
	"io/fs"

	"tapin/internal/fault"
)

// A home that cannot be exchanged as a whole, since it is where a file system
// begins, is exchanged entry by entry. While one of these marks lies in it what
// is there may be a mixture of two homes, and nobody opens it.
const (
	SwapOut  = ".swap-out"  // what was there is moved out
	SwapIn   = ".swap-in"   // what is new is moved in
	SwapBack = ".swap-back" // what was there is moved back
)

// Swaps lists the marks.
func Swaps() []string { return []string{SwapOut, SwapIn, SwapBack} }

// checkSwap refuses a home that is being exchanged.
func (h *Home) checkSwap(op string) error {
	for _, name := range Swaps() {
		switch _, err := h.root.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return openError(op, err)
		default:
			return fault.New(fault.Forbidden, op, "a backup is being restored here, and that has not ended").
				WithHint("If no tapin restore runs any more, tapin up ends it: it is cut off nowhere that it could not go on from.")
		}
	}
	return nil
}
