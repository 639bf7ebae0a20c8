package oneshot

import (
	"context"
	"errors"
	"time"

	"tapin/internal/fault"
)

// The times of a call, from the outside in: each ends before the one around it.
const (
	callWithin    = 90 * time.Second // all attempts and pauses
	attemptWithin = 30 * time.Second // a context, the page, the reading
	openWithin    = 15 * time.Second // until DOMContentLoaded
	quietWithin   = 5 * time.Second  // until the network is quiet; after that what is there counts
	readWithin    = 8 * time.Second  // for the picture or the content
)

// pauses come before the second, third, fourth and fifth attempt.
var pauses = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// passing are failures that another attempt may not meet. All others are the
// caller's own, or will be the same again.
var passing = map[fault.Code]bool{
	fault.NavigationTimeout:   true,
	fault.WaitTimeout:         true,
	fault.SessionCreateFailed: true,
	fault.ProviderError:       true,
	fault.BrowserLost:         true,
	fault.RateLimited:         true,
}

// passingReasons are why an address that may be reached was not. A name that
// does not exist and a certificate that is wrong stay so.
var passingReasons = map[string]bool{
	"refused": true, "timeout": true, "unreachable": true, "reset": true, "upstream": true, "failed": true,
	"net::ERR_CONNECTION_RESET": true, "net::ERR_CONNECTION_CLOSED": true, "net::ERR_CONNECTION_REFUSED": true,
	"net::ERR_CONNECTION_TIMED_OUT": true, "net::ERR_TIMED_OUT": true, "net::ERR_EMPTY_RESPONSE": true,
	"net::ERR_NETWORK_CHANGED": true, "net::ERR_INTERNET_DISCONNECTED": true, "net::ERR_ADDRESS_UNREACHABLE": true,
	"net::ERR_HTTP2_PROTOCOL_ERROR": true, "net::ERR_TUNNEL_CONNECTION_FAILED": true, "net::ERR_CONTENT_LENGTH_MISMATCH": true,
	"net::ERR_INCOMPLETE_CHUNKED_ENCODING": true,
}

// mayPass reports whether it makes sense to try again.
func mayPass(err error) bool {
	f := fault.Of(err)
	if f.Code == fault.NavigationFailed {
		reason, _ := f.Data["reason"].(string)
		return passingReasons[reason]
	}
	return passing[f.Code]
}

// persist tries until it works, the failure is one that stays, or another
// attempt could not end in time. It tells how many times it tried again.
func persist[T any](ctx context.Context, within time.Duration, attempt func(context.Context) (T, error)) (T, int, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for n := 0; ; n++ {
		got, err := once(ctx, attempt)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return got, n, outOfTime(err, within)
		}
		if err == nil || ctx.Err() != nil || n == len(pauses) || !mayPass(err) {
			return got, n, err
		}
		if time.Since(began)+pauses[n]+attemptWithin > within {
			return got, n, err
		}
		pause := time.NewTimer(pauses[n])
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return got, n, err
		}
	}
}

// outOfTime is a failure after the caller's own limit: a browser that was still
// being made ready by then is none that could not be had.
func outOfTime(err error, within time.Duration) error {
	if err == nil || fault.Of(err).Code != fault.SessionCreateFailed {
		return err
	}
	return fault.New(fault.NavigationTimeout, "open the page", "the browser was not ready within %s", within).
		WithHint("Give it more time with timeout_ms; the browser is kept warm for the next call.")
}

// once is one attempt within its time.
func once[T any](ctx context.Context, attempt func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	got, err := attempt(limited)
	if _, coded := errors.AsType[*fault.Error](err); err != nil && !coded && errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.NavigationTimeout, "open the page", "it was not done in time")
	}
	return got, err
}
