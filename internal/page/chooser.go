package page

import (
	"context"
	"fmt"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/cdp"
	"tapin/internal/fault"
)

// catchChoosers keeps the browser from opening a window of its own that nobody
// could use; it tells us instead.
func catchChoosers() cdp.Step {
	return cdp.Step{Method: cdppage.SetInterceptFileChooserDialog.Method, Params: cdppage.SetInterceptFileChooserDialogParams{Enabled: true}}
}

// listenForChoosers notes what a page or frame asks files for.
func (t *Tab) listenForChoosers(s *cdp.Session) {
	cdp.Listen(s, cdppage.FileChooserOpened, func(e cdppage.EventFileChooserOpened) {
		if e.BackendNodeID == 0 {
			return // the browser has told the page already that there is none
		}
		c := &chooser{frame: e.FrameID, session: s, node: e.BackendNodeID, multiple: e.Mode == cdppage.FileChooserOpenedModeSelectMultiple}
		t.questions.mu.Lock()
		t.questions.chooser = c
		t.questions.mu.Unlock()
		t.ask(Question{Kind: AskFileChooser, Multiple: c.multiple})
	})
}

// chosen says that the field which asked has its answer, however it came there.
func (t *Tab) chosen() {
	t.questions.mu.Lock()
	defer t.questions.mu.Unlock()
	t.questions.chooser = nil
}

// ChooseFiles answers an open file chooser with files of this machine; no files
// means that it is cancelled. The caller has checked that the files may leave.
func (t *Tab) ChooseFiles(ctx context.Context, files []string) error {
	const op = "choose files"
	t.questions.mu.Lock()
	c := t.questions.chooser
	t.questions.mu.Unlock()
	switch {
	case c == nil:
		return fault.New(fault.NotFound, op, "no file chooser is open")
	case len(files) > 1 && !c.multiple:
		return fault.New(fault.InvalidRequest, op, "the page takes one file, not %d", len(files))
	}
	files, err := t.carried(ctx, files, false)
	if err != nil {
		return err
	}
	var d deed
	err = t.unlessDialog(ctx, func(ctx context.Context) error {
		return d.do(func() error {
			if len(files) > 0 {
				return t.setFiles(ctx, c.session, dom.SetFileInputFilesParams{Files: files, BackendNodeID: c.node})
			}
			return c.cancel(ctx)
		})
	})
	if err != nil && !d.provoked(err) {
		return fmt.Errorf("%s: %w", op, err)
	}
	t.chosen()
	return nil
}

// cancel tells the page what a person's cancel would.
func (c *chooser) cancel(ctx context.Context) error {
	node, err := proto.Call(ctx, c.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: c.node})
	if err != nil {
		return err
	}
	defer func() {
		_ = c.session.Send(ctx, runtime.ReleaseObject.Method, runtime.ReleaseObjectParams{ObjectID: node.Object.ObjectID})
	}()
	_, err = proto.Call(ctx, c.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		ObjectID:            node.Object.ObjectID,
		FunctionDeclaration: "function() { this.dispatchEvent(new Event('cancel', {bubbles: true})) }",
	})
	return err
}
