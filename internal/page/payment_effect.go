package page

import (
	"context"
	"errors"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
)

// settle says what became of a permission.
func (p *passage) settle(ctx context.Context, effect string) {
	if p.pays() && p.guard.Settled != nil {
		p.guard.Settled(context.WithoutCancel(ctx), effect)
	}
}

// goneOn is how long a page may take to show that it went on.
const goneOn = 5 * time.Second

// concluded waits until the page that took a payment shows it: by another
// document, or other sums. A click that arrived is not yet a payment, and one
// that nobody saw the end of is not called paid.
func (p *passage) concluded(ctx context.Context, t *Tab, effect string) string {
	if !p.pays() || effect != Confirmed || p.mark == "" {
		return effect
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneOn)
	defer cancel()
	for {
		if t.Dialog() != nil {
			return Unknown // the page asks something first
		}
		select {
		case <-t.session.Ended():
			return Unknown
		default:
		}
		var still bool
		err := t.call(ctx, p.at, "payStill", map[string]any{"mark": p.mark, "id": p.id}, &still)
		if err != nil && (!errors.Is(err, errWorldGone) || t.session.Conn().Settle(ctx) != nil) {
			return Unknown
		}
		if err != nil || !still { // other sums, or another document, which may be the one that said so
			at, ok := t.frames.get(p.at.id)
			if !ok {
				at, ok = t.frames.get(t.frames.main)
			}
			if ok && t.answered(ctx, at) {
				return Confirmed
			}
			return Unknown
		}
		if rest(ctx, 50*time.Millisecond) != nil {
			return Unknown
		}
	}
}

// answered tells whether a document is a server's answer, and not the browser's
// word that there was none, nor an error.
func (t *Tab) answered(ctx context.Context, f frame) bool {
	for {
		var well bool
		err := t.call(ctx, f, "payAnswered", nil, &well)
		if !errors.Is(err, errWorldGone) {
			return err == nil && well
		}
		if rest(ctx, 50*time.Millisecond) != nil {
			return false
		}
		if now, ok := t.frames.get(f.id); ok { // it goes on to the next
			f = now
		}
	}
}

// WentOn tells whether a tab has left the document in which a payment was sent,
// for another that a server answered with. It waits for that a little.
func (t *Tab) WentOn(ctx context.Context, from Trace) bool {
	if from.Document == "" || from.Tab != t.ID() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, goneOn)
	defer cancel()
	for {
		tree, err := proto.Call(ctx, t.session, cdppage.GetFrameTree, proto.Empty{})
		if err != nil || tree.FrameTree == nil || tree.FrameTree.Frame == nil {
			return false
		}
		if string(tree.FrameTree.Frame.LoaderID) != from.Document {
			f, ok := t.frames.get(t.frames.main)
			return ok && t.answered(ctx, f)
		}
		if rest(ctx, 100*time.Millisecond) != nil {
			return false
		}
	}
}
