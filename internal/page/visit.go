package page

import (
	"context"
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
	if state, _ := wait.lifecycleName(); o.Stir == 0 && toldAt[state] != "" {
		coming.ask(toldAt[state], o)
	}
	nav, err := t.come(ctx, "navigate", wait, coming, t.to(url))
	if err != nil {
		return Navigation{}, nil, err
	}
	told := coming.outline(ctx, o.Still)
	if told == nil {
		t.settle(ctx, o.Stir, o.Still)
	}
	shot, err := t.snapshot(ctx, o, told)
	if err != nil {
		return nav, nil, nil //nolint:nilerr // the navigation is done, and must not be done again
	}
	return nav, &shot, nil
}

// ask has the next document tell its outline by itself, once it has come so far
// and stands still.
func (a *arrival) ask(at string, o SnapshotOptions) {
	main, ok := a.tab.frames.get(a.tab.frames.main)
	args, err := jsonv2.Marshal(map[string]any{"at": at, "still": o.Still.Milliseconds(), "outline": a.tab.asking(main, o)})
	if !ok || err != nil {
		return
	}
	script := func(source string) cdppage.AddScriptToEvaluateOnNewDocumentParams {
		return cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: "if (self === top) {" + source + "}", WorldName: worldName}
	}
	a.asked = make(chan struct{})
	a.tab.tabs.start(func(ctx context.Context) {
		// The engine's eyes stay: who was asked for once is asked for again, and a
		// source that the browser has seen before costs it next to nothing.
		if a.tab.reads.CompareAndSwap(false, true) {
			_ = a.tab.session.Send(ctx, cdppage.AddScriptToEvaluateOnNewDocument.Method, script(engine[eyes]()))
		}
		got, err := proto.Call(ctx, a.tab.session, cdppage.AddScriptToEvaluateOnNewDocument, script(fmt.Sprintf("globalThis.tapin?.foretell?.(%s)", args)))
		close(a.asked)
		<-a.over
		if err == nil {
			_ = a.tab.session.Send(ctx, cdppage.RemoveScriptToEvaluateOnNewDocument.Method, cdppage.RemoveScriptToEvaluateOnNewDocumentParams(got))
		}
	})
}

// ready waits until what was asked is where the next document will find it. A page
// that is beyond answering is not waited for: the next one is asked when it is there.
func (a *arrival) ready(ctx context.Context) {
	if a.asked == nil {
		return
	}
	late := time.NewTimer(toldWithin)
	defer late.Stop()
	select {
	case <-a.asked:
	case <-late.C:
	case <-ctx.Done():
	}
}

// outlineWithin is how long a page that stands still may take to look at itself.
const outlineWithin = 2 * time.Second

// outline is what the document that is there has told that it shows; nil if it was
// not asked, cannot tell, or has moved since.
func (a *arrival) outline(ctx context.Context, still time.Duration) (told *outlined) {
	since := a.tab.life.now()
	if a.asked == nil || !a.heardOf(since) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, still+outlineWithin)
	defer cancel()
	_ = a.tab.unlessDialog(ctx, func(ctx context.Context) error {
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
				told = got.Outline
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
	return told
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
