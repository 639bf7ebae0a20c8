package page

import (
	"context"
	"fmt"
	"slices"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
)

// adopt finds the tabs of ours in a shared browser.
func (t *Tabs) adopt(ctx context.Context) error {
	if err := t.root.Setup(ctx, discover()); err != nil {
		return fmt.Errorf("follow the tabs: %w", err)
	}
	got, err := proto.Call(ctx, t.root, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return fmt.Errorf("follow the tabs: %w", err)
	}
	for _, info := range got.TargetInfos {
		if info.Type == "page" && t.ours(info) {
			if err := t.attach(ctx, info.TargetID); err != nil {
				return err
			}
		}
	}
	return nil
}

// ours tells our pages from others': by their context, or by who opened them.
func (t *Tabs) ours(info *target.Info) bool {
	ref := t.inst.Ref()
	if ref.Context != "" {
		return string(info.BrowserContextID) == ref.Context
	}
	if t.whole() {
		return true
	}
	if string(info.TargetID) == ref.Target {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return info.OpenerID != "" && slices.ContainsFunc(t.stack, func(tab *Tab) bool { return tab.id == info.OpenerID })
}

// whole reports whether the browser's own context is ours: it was made for us,
// somewhere else, and there is nothing in it but what we do.
func (t *Tabs) whole() bool {
	ref := t.inst.Ref()
	return t.inst.Exclusive() && ref.Context == "" && ref.Target == ""
}

func (t *Tabs) attach(ctx context.Context, id target.ID) error {
	flat := true
	_, err := proto.Call(ctx, t.root, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &flat})
	if err != nil {
		return fmt.Errorf("attach to a tab: %w", err)
	}
	return nil
}

// created follows popups in a shared browser; elsewhere the browser attaches by itself.
func (t *Tabs) created(info *target.Info) {
	if t.inst.Exclusive() || info.Type != "page" || info.Attached || t.isHelper(info) || !t.ours(info) || t.byTarget(info.TargetID) != nil {
		return
	}
	t.start(func(ctx context.Context) {
		if err := t.attach(ctx, info.TargetID); err != nil {
			t.log.Debug("a new tab could not be followed", "error", err)
		}
	})
}

// attached makes a tab of a page, and lets everything else run: frames and
// workers wait for us until told to go on.
func (t *Tabs) attached(e target.EventAttachedToTarget) {
	if t.lane != nil && string(e.TargetInfo.BrowserContextID) != t.inst.Ref().Context {
		return // a neighbour's
	}
	s := t.root.Conn().Session(e.SessionID)
	if e.TargetInfo.Type != "page" || t.isHelper(e.TargetInfo) || !t.ours(e.TargetInfo) {
		t.start(func(ctx context.Context) { _ = s.Setup(ctx, t.childSteps(e.TargetInfo.Type)...) })
		return
	}
	tab := newTab(t, e.TargetInfo, s)
	t.mu.Lock()
	old := slices.IndexFunc(t.stack, func(o *Tab) bool { return o.id == tab.id })
	if old >= 0 {
		// A second session to a tab we have: the first one serves.
		t.mu.Unlock()
		return
	}
	known := !t.gap && !e.WaitingForDebugger
	if len(t.stack) >= maxTabs && !known {
		t.mu.Unlock()
		t.refuse(tab)
		return
	}
	t.came++
	tab.number, tab.known = t.came, known
	t.stack = append(t.stack, tab)
	t.moved.Store(time.Now().UnixMicro())
	t.mu.Unlock()
	t.follow(tab, s)
	t.unstick(tab)
	t.refocus()
	t.start(func(ctx context.Context) { _ = tab.usable(ctx) })
	if !known {
		t.tell(Surprise{Kind: SurpriseTabOpened, Tab: tab.ID()})
	}
}

// refuse closes a window that is one too many. Its opener waits until it is let
// run, also when it is closed.
func (t *Tabs) refuse(tab *Tab) {
	_ = tab.session.Send(t.ctx, goOn().Method, proto.Empty{})
	_ = t.root.Send(t.ctx, target.CloseTarget.Method, target.CloseTargetParams{TargetID: tab.id})
	t.log.Warn("a page opened more windows than a session may have", "most", maxTabs)
	t.tell(Surprise{Kind: SurprisePopupRefused})
}

// follow takes in what a page or frame opens inside itself: frames of other
// sites live in sessions of their own and are part of the tab, workers are let run.
func (t *Tabs) follow(tab *Tab, s *cdp.Session) {
	cdp.Listen(s, target.AttachedToTarget, func(e target.EventAttachedToTarget) {
		child := t.root.Conn().Session(e.SessionID)
		if e.TargetInfo.Type == "iframe" {
			tab.frames.follow(child)
			tab.frames.put(proto.FrameID(e.TargetInfo.TargetID), e.TargetInfo.ParentFrameID, child)
			t.follow(tab, child)
			tab.listenForQuestions(child)
			tab.listenForOrigins(child)
			t.listenForRequests(child)
			cdp.Listen(child, inspector.TargetCrashed, func(inspector.EventTargetCrashed) { tab.frames.lose(child.ID()) })
		}
		t.start(func(ctx context.Context) {
			if tab.laid.Load() != nil {
				fingers := tab.fingers()
				_ = child.Send(ctx, fingers.Method, fingers.Params)
			}
			_ = child.Setup(ctx, t.childSteps(e.TargetInfo.Type)...)
		})
	})
	cdp.Listen(s, target.DetachedFromTarget, func(e target.EventDetachedFromTarget) {
		tab.frames.lose(e.SessionID)
	})
}

func (t *Tabs) detached(id target.SessionID) {
	t.mu.Lock()
	at := slices.IndexFunc(t.stack, func(tab *Tab) bool { return tab.session.ID() == id })
	if at < 0 {
		t.mu.Unlock()
		return
	}
	gone := t.stack[at]
	wasFront := at == len(t.stack)-1
	t.stack = slices.Delete(slices.Clone(t.stack), at, at+1)
	var front *Tab
	if wasFront && len(t.stack) > 0 {
		// Who opened it waits for it; otherwise the one before comes back.
		if i := slices.IndexFunc(t.stack, func(tab *Tab) bool { return tab.id == gone.opener }); i >= 0 {
			t.raise(i)
		}
		front = t.stack[len(t.stack)-1]
	}
	t.mu.Unlock()
	if front != nil {
		_ = front.session.Send(t.ctx, cdppage.BringToFront.Method, proto.Empty{})
		t.refocus()
	}
	t.tell(Surprise{Kind: SurpriseTabClosed, Tab: gone.ID()})
}

// raise puts a tab in front. Called with the lock held.
func (t *Tabs) raise(i int) {
	tab := t.stack[i]
	t.stack = append(slices.Delete(slices.Clone(t.stack), i, i+1), tab)
}
