package page

import (
	"context"
	"slices"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/guard"
)

// lifecycle follows how far the main frame's documents have come.
type lifecycle struct {
	frame proto.FrameID

	mu      sync.Mutex
	loader  proto.LoaderID
	reached map[string]bool
	past    []proto.LoaderID // the last few documents, newest last
	moves   int              // moves within a document, and returns from the cache
	leaving int              // how many are about to lead it elsewhere
	changed chan struct{}
}

func newLifecycle(frame proto.FrameID) *lifecycle {
	return &lifecycle{frame: frame, reached: map[string]bool{}, changed: make(chan struct{})}
}

func (l *lifecycle) event(e cdppage.EventLifecycleEvent) {
	if e.FrameID != l.frame {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(e.LoaderID)
	l.reached[e.Name] = true
	l.tell()
}

// navigated is a new document, or an old one back from the cache, which sends
// no further lifecycle events.
func (l *lifecycle) navigated(e cdppage.EventFrameNavigated) {
	if e.Frame == nil || e.Frame.ID != l.frame {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Type == cdppage.NavigationTypeBackForwardCacheRestore {
		l.loader = e.Frame.LoaderID
		l.reached = map[string]bool{"commit": true, "DOMContentLoaded": true, "load": true, "networkIdle": true}
		l.moves++
	} else {
		l.enter(e.Frame.LoaderID)
		l.reached["commit"] = true
	}
	l.tell()
}

func (l *lifecycle) moved(e cdppage.EventNavigatedWithinDocument) {
	if e.FrameID != l.frame {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves++
	l.tell()
}

func (l *lifecycle) enter(loader proto.LoaderID) {
	if loader == l.loader || slices.Contains(l.past, loader) {
		return
	}
	l.loader = loader
	l.reached = map[string]bool{}
	l.past = append(l.past, loader)
	if len(l.past) > 16 {
		l.past = l.past[1:]
	}
}

func (l *lifecycle) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// leave says that somebody leads the tab elsewhere, until stay is called.
func (l *lifecycle) leave() (stay func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leaving--
		l.tell()
	}
}

// idle waits until the document has had nothing to do with loading for so long.
func (l *lifecycle) idle(ctx context.Context, quiet time.Duration) error {
	for {
		var at mark
		err := l.until(ctx, func() bool {
			at = mark{l.loader, l.moves}
			return l.leaving == 0 && l.reached["load"]
		})
		if err == nil {
			err = rest(ctx, quiet)
		}
		if err != nil || l.rests(at) {
			return err
		}
	}
}

// rests reports whether it is still the document of the mark, and is not being left.
func (l *lifecycle) rests(since mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaving == 0 && since == mark{l.loader, l.moves}
}

// mark is a point in the life of a tab.
type mark struct {
	loader proto.LoaderID
	moves  int
}

// change is closed when something happens after this call.
func (l *lifecycle) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *lifecycle) now() mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mark{l.loader, l.moves}
}

// await waits until the document of that loader, or one that has followed it,
// has reached the state. A page that moves on by itself is waited for where it goes.
func (l *lifecycle) await(ctx context.Context, loader proto.LoaderID, state string) error {
	return l.until(ctx, func() bool {
		return (loader == l.loader || slices.Contains(l.past, loader)) && l.reached[state]
	})
}

// awaitChange waits until there is another document than at the mark and it has
// reached the state, or the same document has moved.
func (l *lifecycle) awaitChange(ctx context.Context, since mark, state string) error {
	return l.until(ctx, func() bool {
		return l.moves != since.moves || l.loader != since.loader && l.reached[state]
	})
}

const (
	// quietWindow is how long the network is quiet before the browser says so.
	quietWindow = 500 * time.Millisecond
	// nudgeEvery is how late it may be noticed.
	nudgeEvery = 20 * time.Millisecond
)

// nudge has the page notice in time that its network is quiet, until the returned
// function is called. The browser looks at the clock only when the page has
// something to do, and a page that is quiet has nothing: left alone it would
// tell up to two seconds late. One question is under way at a time.
func (t *Tab) nudge(ctx context.Context, state string) (stop func()) {
	if quiet, _ := WaitNetwork.lifecycleName(); state != quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer guard.Catch("page")
		defer close(ended)
		next := time.NewTimer(quietWindow)
		defer next.Stop()
		for {
			select {
			case <-next.C:
			case <-ctx.Done():
				return
			}
			_, _ = proto.Call(ctx, t.session, runtime.GetIsolateID, proto.Empty{})
			next.Reset(nudgeEvery)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (l *lifecycle) until(ctx context.Context, is func() bool) error {
	for {
		l.mu.Lock()
		done, changed := is(), l.changed
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
