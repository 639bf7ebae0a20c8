package page

import (
	"context"
	"errors"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/fault"
)

const (
	// answerWithin is how long a page that is about to be left may keep us waiting.
	answerWithin = 2 * time.Second
	// freshFor is how long a tab counts as one that answers after it was set up.
	freshFor = 50 * time.Millisecond
	// closeWithin is how long a tab may take to go by itself.
	closeWithin = 3 * time.Second
)

// free makes sure that a page that is about to be left can be left. A script
// without an end keeps its renderer from ever showing another page of the same
// site, and once the navigation is under way it can no longer be stopped. It is
// asked for something that is needed anyway: see arrival.
func (t *Tab) free(ctx context.Context) {
	if t.hasCrashed() {
		return
	}
	if time.Since(time.UnixMicro(t.setUpAt.Load())) < freshFor { // it has answered all that it was set up with
		_ = t.session.Send(ctx, consoleOn.Method, proto.Empty{})
		return
	}
	if !timedOut(ctx, answerWithin, func(ctx context.Context) error {
		_, err := proto.Call(ctx, t.session, consoleOn, proto.Empty{})
		return err
	}) {
		return
	}
	if !timedOut(ctx, answerWithin, func(ctx context.Context) error {
		_, err := proto.Call(ctx, t.session, runtime.TerminateExecution, proto.Empty{})
		return err
	}) {
		t.tabs.log.Debug("a script without an end was stopped")
		return
	}
	// It is past stopping: without its renderer the tab is usable again.
	_ = t.session.Send(ctx, cdppage.StopLoading.Method, proto.Empty{})
	_ = t.session.Send(ctx, cdppage.Crash.Method, proto.Empty{})
	t.tabs.log.Debug("a page that answered nothing was ended")
}

// timedOut reports whether fn did not end by itself; the caller's own limit and
// a dialog are no sign of a hung page.
func timedOut(ctx context.Context, within time.Duration, fn func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return errors.Is(fn(limited), context.DeadlineExceeded) && ctx.Err() == nil
}

// silent gives a page that did not answer in time its code; other errors stay.
func silent(op string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && fault.Of(err).Code == fault.Busy {
		return fault.New(fault.WaitTimeout, op, "the page does not answer: %w", context.DeadlineExceeded).
			WithHint("It may be busy for ever: reload it, or open another address.")
	}
	return err
}
