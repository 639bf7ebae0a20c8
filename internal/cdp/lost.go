package cdp

import (
	"errors"
	"io"

	"tapin/internal/fault"
)

// ErrDetached answers calls whose target went away while they were under way.
var ErrDetached = errors.New("the page went away")

// errClosed is the cause when we ended the connection ourselves.
var errClosed = errors.New("the connection was closed by tapin")

// Lost says why a connection ended. It is a BROWSER_LOST fault's cause.
type Lost struct {
	Cause string
	Ended bool // the browser itself is gone: there is nothing to connect to again
}

func (l *Lost) Error() string { return "the connection to the browser was lost: " + l.Cause }

// IsLost reports whether err comes from a lost connection, and why.
func IsLost(err error) (*Lost, bool) { return errors.AsType[*Lost](err) }

// lostError keeps the words of causes that are ours and describes all others:
// a transport's own errors may name an address with its key.
func lostError(cause error) error {
	lost, ok := errors.AsType[*Lost](cause)
	switch {
	case ok:
	case errors.Is(cause, io.EOF), errors.Is(cause, io.ErrUnexpectedEOF):
		lost = &Lost{Cause: "the other end closed it"}
	default:
		lost = &Lost{Cause: describe(cause)}
	}
	return &fault.Error{Code: fault.BrowserLost, Err: lost}
}
