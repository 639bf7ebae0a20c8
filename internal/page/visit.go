package page

import (
	"context"
	"errors"
	"fmt"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	cdppage "github.com/chromedp/cdproto/page"
)

// Visit opens an address and tells what the page shows, or nil where that cannot
// be told: the page is there all the same. A page that has loaded is drawn next,
// and who asks it something meanwhile waits; so it is asked before it comes.
func (t *Tab) Visit(ctx context.Context, url string, wait Wait, o SnapshotOptions) (Navigation, *Snapshot, error) {
	if err := o.check(); err != nil {
		return Navigation{}, nil, err
	}
	coming := t.expect(ctx)
	defer coming.end()
	unask := func() {}
	if state, _ := wait.lifecycleName(); o.Stir == 0 && toldAt[state] != "" && t.Dialog() == nil && !t.hasCrashed() {
		unask = coming.ask(toldAt[state], o)
	}
	nav, err := t.come(ctx, "navigate", wait, coming, t.to(url))
	unask() // where the page goes by itself now is no matter of this call
	if err != nil {
		return Navigation{}, nil, err
	}
	told, hung := coming.outline(ctx, o.Still)
	if hung {
		return nav, nil, nil // what tells nothing answers nothing either
	}
	if told == nil {
		t.settle(ctx, o.Stir, o.Still)
	}
	shot, err := t.snapshot(ctx, o, told)
	if err != nil {
		return nav, nil, nil //nolint:nilerr // the navigation is done, and must not be done again
	}
	return nav, &shot, nil
}

// ask has the next document tell its outline by itself once it has come so far and
// stands still, and those after it until unask is called.
func (a *arrival) ask(at string, o SnapshotOptions) (unask func()) {
	main, ok := a.tab.frames.get(a.tab.frames.main)
	args, err := jsonv2.Marshal(map[string]any{"at": at, "still": o.Still.Milliseconds(), "outline": a.tab.asking(main, o)})
	if !ok || err != nil {
		return func() {}
	}
	asked, over := make(chan bool, 1), make(chan struct{})
	a.asked = asked
	a.tab.tabs.watch(func(ctx context.Context) {
		// However long that takes: who does not know its number cannot take it away.
		number, err := a.tab.foretell(ctx, args)
		asked <- err == nil
		if err != nil {
			return
		}
		select {
		case <-over:
		case <-ctx.Done():
		}
		_ = a.tab.session.Send(context.WithoutCancel(ctx), cdppage.RemoveScriptToEvaluateOnNewDocument.Method, cdppage.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: number})
	})
	return func() { close(over) }
}

// foretell puts the question into documents to come. The engine's eyes are put
// there before it, and stay: what was asked once is asked again, and a source that
// the browser has seen before costs it next to nothing.
func (t *Tab) foretell(ctx context.Context, args []byte) (cdppage.ScriptIdentifier, error) {
	put := func(source string) (cdppage.ScriptIdentifier, error) {
		got, err := proto.Call(ctx, t.session, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
			Source: "if (self === top) {" + source + "}", WorldName: worldName,
		})
		return got.Identifier, err
	}
	if t.reads.CompareAndSwap(false, true) {
		if _, err := put(engine[eyes]()); err != nil {
			t.reads.Store(false)
			return "", err
		}
	}
	return put(fmt.Sprintf("globalThis.tapin?.foretell?.(%s)", args))
}

// askedWithin is how long the question may take to get there. The page has just
// answered another one.
const askedWithin = 500 * time.Millisecond

// ready waits until the question is where the next document will find it. One that
// will not is asked when it is there.
func (a *arrival) ready(ctx context.Context) {
	if a.asked == nil {
		return
	}
	late := time.NewTimer(askedWithin)
	defer late.Stop()
	select {
	case yes := <-a.asked:
		if yes {
			return
		}
	case <-late.C:
	case <-ctx.Done():
	}
	a.asked = nil
}

// outlineWithin is how long a page that stands still may take to look at itself.
const outlineWithin = 2 * time.Second

// outline is what the document that is there has told that it shows; nil if it was
// not asked, cannot tell, or has moved since. One that is hung will not tell
// anything else either.
func (a *arrival) outline(ctx context.Context, still time.Duration) (told *outlined, hung bool) {
	since := a.tab.life.now()
	if a.asked == nil || !a.heardOf(since) {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, still+outlineWithin)
	defer cancel()
	err := a.tab.unlessDialog(ctx, func(ctx context.Context) error {
		for {
			change := a.tab.life.change()
			a.mu.Lock()
			got, has := a.told["outline"]
			news := a.news
			a.mu.Unlock()
			switch {
			case a.tab.life.now() != since:
				return nil
			case has && got.when == since:
				if told = got.Outline; told != nil {
					told.loader = since.loader
				}
				return nil
			case has && got.when.loader == since.loader:
				return nil // it has moved since
			}
			select {
			case <-news:
			case <-change:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return told, errors.Is(err, context.DeadlineExceeded)
}

// heardOf reports whether the document that is there has said anything.
func (a *arrival) heardOf(now mark) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, said := range a.told {
		if said.when.loader == now.loader {
			return true
		}
	}
	return false
}
