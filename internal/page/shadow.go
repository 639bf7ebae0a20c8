package page

import (
	"context"
	"errors"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"

	"tapin/internal/cdp"
)

// node is what is needed of a document to find its closed shadow roots.
type node struct {
	Backend  proto.BackendNodeID `json:"backendNodeId"`
	Children []*node             `json:"children"`
	Shadows  []*node             `json:"shadowRoots"`
	Kind     string              `json:"shadowRootType"`
	Content  *node               `json:"contentDocument"`
	Frame    proto.FrameID       `json:"frameId"`
}

// hungFrame is how long a frame of another process is waited for before it
// counts as one that shows nothing.
const hungFrame = 700 * time.Millisecond

// adoptClosed hands the engine the closed shadow roots of all documents: no
// script can reach them by itself. It reads whole documents, so it is done only
// after a search without them has failed.
func (t *Tab) adoptClosed(ctx context.Context) error {
	asked := map[*cdp.Session]bool{}
	for _, f := range t.frames.list() {
		if asked[f.session] {
			continue
		}
		asked[f.session] = true
		var got struct {
			Root *node `json:"root"`
		}
		all, pierce := int64(-1), true
		limited, cancel := ctx, context.CancelFunc(func() {})
		if f.session != t.session {
			// A frame that hangs keeps nobody from looking into the others.
			limited, cancel = context.WithTimeout(ctx, hungFrame)
		}
		err := f.session.Call(limited, dom.GetDocument.Method, dom.GetDocumentParams{Depth: &all, Pierce: &pierce}, &got)
		cancel()
		// From here on the browser would tell of every change.
		_ = f.session.Send(ctx, dom.Disable.Method, proto.Empty{})
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue // it went away, or is not there yet
		}
		if got.Root != nil {
			if err := t.adoptIn(ctx, f.id, got.Root); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tab) adoptIn(ctx context.Context, in proto.FrameID, n *node) error {
	for _, root := range n.Shadows {
		if root.Kind == "closed" {
			f, ok := t.frames.get(in)
			if !ok {
				return nil
			}
			err := t.callOn(ctx, f, root.Backend, "function() { globalThis.tapin.adopt(this.host, this) }", nil, nil)
			if err != nil && !errors.Is(err, errWorldGone) {
				return err
			}
		}
		if root.Kind != "user-agent" {
			if err := t.adoptIn(ctx, in, root); err != nil {
				return err
			}
		}
	}
	for _, child := range n.Children {
		if err := t.adoptIn(ctx, in, child); err != nil {
			return err
		}
	}
	if n.Content != nil && n.Frame != "" {
		return t.adoptIn(ctx, n.Frame, n.Content)
	}
	return nil
}

// goneNode tells nodes that went away from everything else.
func goneNode(err error) error {
	if refused, ok := errors.AsType[*cdp.Error](err); ok {
		for _, gone := range []string{"No node with given id", "does not belong to the document", "Node with given id", "Could not find object", "Cannot find context"} {
			if strings.Contains(refused.Message, gone) {
				return errWorldGone
			}
		}
	}
	return worldError(err)
}
