package browser

import (
	"context"
	"errors"
	"fmt"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
)

// ErrNoContexts says that a browser has no contexts but its own.
var ErrNoContexts = errors.New("the browser makes no contexts")

// PrivateContext makes an empty browser context that outlives the connection,
// and gives it the state and the downloads folder of the spec. The default
// context is never used: it would leave what pages store in clear on the disk.
func PrivateContext(ctx context.Context, conn *cdp.Conn, spec Spec) (string, error) {
	keep := false
	made, err := proto.Call(ctx, conn.Root(), target.CreateBrowserContext, target.CreateBrowserContextParams{DisposeOnDetach: &keep})
	if _, refused := errors.AsType[*cdp.Error](err); refused {
		return "", ErrNoContexts
	}
	if err != nil {
		return "", fmt.Errorf("make a private browser context: %w", err)
	}
	id := string(made.BrowserContextID)
	if err := Prepare(ctx, conn, id, spec); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = proto.Call(ctx, conn.Root(), target.DisposeBrowserContext, target.DisposeBrowserContextParams(made))
		return "", err
	}
	return id, nil
}

// Prepare gives a context the cookies and the downloads folder of the spec. A
// cookie that the browser refuses is left out; who must know which, and wants the
// rest of the state too, restores it through the page room.
func Prepare(ctx context.Context, conn *cdp.Conn, contextID string, spec Spec) error {
	events := true
	downloads := cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: proto.BrowserContextID(contextID), EventsEnabled: &events,
	}
	if spec.Downloads != "" {
		downloads.Behavior, downloads.DownloadPath = cdpbrowser.SetDownloadBehaviorBehaviorAllowAndName, spec.Downloads
	}
	if _, err := proto.Call(ctx, conn.Root(), cdpbrowser.SetDownloadBehavior, downloads); err != nil {
		return fmt.Errorf("set up downloads: %w", err)
	}
	if spec.State == nil {
		return nil
	}
	_, err := SetCookies(ctx, conn, contextID, spec.State.Cookies)
	return err
}

// AttachAll has the browser attach us to everything that can show or run
// something, before it does. The browser's own surfaces are not part of any page.
func AttachAll() cdp.Step {
	flat := true
	return cdp.Step{Method: target.SetAutoAttach.Method, Params: target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &flat,
		Filter: target.Filter{
			{Type: "browser", Exclude: true}, {Type: "browser_ui", Exclude: true}, {Type: "tab", Exclude: true}, {Type: "webview", Exclude: true}, {},
		},
	}}
}
