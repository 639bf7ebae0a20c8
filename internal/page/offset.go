package page

import (
	"context"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
)

// outwards carries a point from the viewport of its frame to the top one, and
// makes sure that in each document on the way the frame is not covered.
func (t *Tab) outwards(ctx context.Context, f frame, at sighting) (sighting, error) {
	for f.id != t.frames.main {
		parent, ok := t.frames.get(f.parent)
		if !ok {
			return sighting{}, errWorldGone
		}
		owner, err := proto.Call(ctx, parent.session, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: f.id})
		if err != nil {
			return sighting{}, worldError(err)
		}
		args := map[string]float64{"x": at.Point.X, "y": at.Point.Y, "width": at.View.Width, "height": at.View.Height}
		var out sighting
		if err := t.callOn(ctx, parent, owner.BackendNodeID, "function(args) { return globalThis.tapin.outward(this, args) }", args, &out); err != nil {
			return sighting{}, err
		}
		if out.State != "ok" {
			return out, nil
		}
		f, at = parent, out
	}
	return at, nil
}

// callOn runs a function in our world with a node of the document as `this`.
func (t *Tab) callOn(ctx context.Context, f frame, node proto.BackendNodeID, function string, args, result any) error {
	if f.world == 0 {
		// Any question brings our world about.
		if err := t.call(ctx, f, "here", nil, nil); err != nil {
			return err
		}
		var ok bool
		if f, ok = t.frames.get(f.id); !ok || f.world == 0 {
			return errWorldGone
		}
	}
	if err := t.equip(ctx, f, hands); err != nil {
		return worldError(err)
	}
	got, err := proto.Call(ctx, f.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node, ExecutionContextID: f.world})
	if err != nil {
		return goneNode(err)
	}
	defer func() {
		_ = f.session.Send(ctx, runtime.ReleaseObject.Method, runtime.ReleaseObjectParams{ObjectID: got.Object.ObjectID})
	}()
	raw, err := jsonv2.Marshal(args)
	if err != nil {
		return err
	}
	yes := true
	answer, err := proto.Call(ctx, f.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: function, ObjectID: got.Object.ObjectID, ReturnByValue: &yes, AwaitPromise: &yes,
		Arguments: []*runtime.CallArgument{{Value: raw}},
	})
	switch {
	case err != nil:
		return goneNode(err)
	case answer.ExceptionDetails != nil:
		return &thrown{text: answer.ExceptionDetails.Text}
	case result == nil:
		return nil
	}
	return jsonv2.Unmarshal(answer.Result.Value, result, jsonv2.AllowInvalidUTF8(true))
}
