package local

import (
	"context"
	"net/url"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
)

// rehearsal is a little of what pages are made of.
const rehearsal = `<h1>A page</h1><p>Text, <b>bold</b>, <i>italic</i>, <tt>typed</tt>, <a href="#">a link</a>` +
	`<p style="font-family:sans-serif">Text</p><button>A button</button><input value="A field"><select><option>A choice</select>`

// rehearse opens the tab and has it draw something once, and has another one load
// a page and go: what a browser does for its first page and its first picture
// alone, it has done then. Nothing of it stays.
func (i *instance) rehearse(ctx context.Context) error {
	i.conn.Dispatch() // what is told of the rehearsal is for nobody
	tab, id, err := i.openTab(ctx, browser.FirstTab(i, "about:blank"))
	if err != nil {
		return err
	}
	if _, err := proto.Call(ctx, tab, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: proto.FrameID(id)}); err != nil {
		return err
	}
	if _, err := proto.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "document.body.innerHTML = `" + rehearsal + "`; document.body.innerText"}); err != nil {
		return err
	}
	if _, err := proto.Call(ctx, tab, page.CaptureScreenshot, page.CaptureScreenshotParams{}); err != nil {
		return err
	}
	if _, err := proto.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "document.body.replaceChildren()"}); err != nil {
		return err
	}
	if _, err := proto.Call(ctx, i.conn.Root(), target.DetachFromTarget, target.DetachFromTargetParams{SessionID: tab.ID()}); err != nil {
		return err
	}
	other, _, err := i.openTab(ctx, target.CreateTargetParams{
		URL: "data:text/html," + url.PathEscape(rehearsal), BrowserContextID: proto.BrowserContextID(i.ref.Context),
	})
	if err != nil {
		return err
	}
	if _, err := proto.Call(ctx, other, page.CaptureScreenshot, page.CaptureScreenshotParams{}); err != nil {
		return err
	}
	if err := other.Send(ctx, page.Close.Method, proto.Empty{}); err != nil {
		return err
	}
	select {
	case <-other.Ended():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openTab opens a tab, and a session with it.
func (i *instance) openTab(ctx context.Context, tab target.CreateTargetParams) (*cdp.Session, target.ID, error) {
	root, flat := i.conn.Root(), true
	made, err := proto.Call(ctx, root, target.CreateTarget, tab)
	if err != nil {
		return nil, "", err
	}
	at, err := proto.Call(ctx, root, target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: &flat})
	if err != nil {
		return nil, "", err
	}
	return i.conn.Session(at.SessionID), made.TargetID, nil
}
