package page

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/indexeddb"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// blankDocument is what an origin is shown as when only its storage matters. No
// script runs in it and nothing is loaded by it.
const blankDocument = `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'">`

// stateSource is the part of the engine that blank documents need.
var stateSource = sync.OnceValue(func() string { return readEngine("engine/6-state*.js") })

// blanks shows blank documents under any origin, in one target. The requests
// for them are answered by us: the site's server hears nothing.
type blanks struct {
	session *cdp.Session
	life    *lifecycle
	origin  string                     // of the document shown; empty means none of ours
	has     runtime.ExecutionContextID // the world that has its part of the engine
	off     func()                     // stops listening
	target  target.ID                  // the helper's, to be closed; empty where the tab is somebody's
}

// helper opens a target that is no tab: the browser shows it nowhere, and tells
// of it as something other than a page. A browser that knows no hidden targets
// makes a tab of it, which is told from ours by its address.
func (t *Tabs) helper(ctx context.Context) (*blanks, error) {
	// Whoever gives up must still learn which target to close.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), originWithin)
	defer cancel()
	yes := true
	made, err := proto.Call(making, t.root, target.CreateTarget, target.CreateTargetParams{
		URL: t.state.helperURL, BrowserContextID: proto.BrowserContextID(t.inst.Ref().Context), Hidden: &yes, Background: &yes,
	})
	if err != nil {
		return nil, fmt.Errorf("open a helper: %w", err)
	}
	b := &blanks{target: made.TargetID, life: newLifecycle(proto.FrameID(made.TargetID)), off: func() {}}
	at, err := proto.Call(ctx, t.root, target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: &yes})
	if err != nil {
		b.close(ctx, t)
		return nil, fmt.Errorf("open a helper: %w", err)
	}
	b.session = t.root.Conn().Session(at.SessionID)
	cdp.Listen(b.session, cdppage.FrameNavigated, b.life.navigated)
	err = b.session.Setup(ctx,
		cdp.Step{Method: cdppage.Enable.Method, Params: cdppage.EnableParams{}},
		cdp.Step{Method: network.Enable.Method, Params: network.EnableParams{}},
		// A worker of the site must neither answer for it nor hear of us.
		cdp.Step{Method: network.SetBypassServiceWorker.Method, Params: network.SetBypassServiceWorkerParams{Bypass: true}},
		goOn())
	if err == nil {
		err = b.intercept(ctx)
	}
	if err != nil {
		b.close(ctx, t)
		return nil, fmt.Errorf("set up a helper: %w", err)
	}
	return b, nil
}

// isHelper tells helpers from tabs where the browser does not.
func (t *Tabs) isHelper(info *target.Info) bool { return info.URL == t.state.helperURL }

// sweep closes helpers that an earlier process left behind. Nothing else in a
// context of ours is a hidden target.
func (t *Tabs) sweep(ctx context.Context) error {
	own := t.inst.Ref().Context
	if own == "" {
		return nil // what else is hidden there may be the provider's
	}
	got, err := proto.Call(ctx, t.root, target.GetTargets, target.GetTargetsParams{Filter: target.Filter{{Type: "other"}}})
	if err != nil {
		return fmt.Errorf("look for what an earlier process left: %w", err)
	}
	for _, info := range got.TargetInfos {
		if string(info.BrowserContextID) == own {
			_ = t.root.Send(ctx, target.CloseTarget.Method, target.CloseTargetParams{TargetID: info.TargetID})
		}
	}
	return nil
}

// borrow shows blank documents in a tab that shows nothing yet, for what
// belongs to the tab: its sessionStorage.
func (t *Tab) borrow(ctx context.Context) (*blanks, error) {
	var here struct {
		URL string `json:"url"`
	}
	if err := t.callMain(ctx, "here", nil, &here); err != nil {
		return nil, fmt.Errorf("look at the tab in front: %w", err)
	}
	if here.URL != "about:blank" {
		return nil, fault.New(fault.InvalidRequest, "", "a page is open already").WithHint("State is put into a browser before anything is opened in it.")
	}
	b := &blanks{session: t.session, life: t.life, off: func() {}}
	if err := b.intercept(ctx); err != nil {
		b.off()
		return nil, err
	}
	return b, nil
}

// intercept answers every request of the target from here on.
func (b *blanks) intercept(ctx context.Context) error {
	s := b.session
	sending := context.WithoutCancel(ctx) // a request that nobody answers would hang its page
	b.off = cdp.Listen(s, fetch.RequestPaused, func(e fetch.EventRequestPaused) {
		if e.FrameID != b.life.frame || e.ResourceType != network.ResourceTypeDocument {
			_ = s.Send(sending, fetch.FailRequest.Method, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
			return
		}
		_ = s.Send(sending, fetch.FulfillRequest.Method, fetch.FulfillRequestParams{
			RequestID: e.RequestID, ResponseCode: 200, Body: []byte(blankDocument),
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html; charset=utf-8"}, {Name: "Cache-Control", Value: "no-store"}},
		})
	})
	_, err := proto.Call(ctx, s, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*"}}})
	return err
}

// show opens the blank document of an origin.
func (b *blanks) show(ctx context.Context, origin string) error {
	ctx, cancel := context.WithTimeout(ctx, originWithin)
	defer cancel()
	b.origin, b.has = "", 0 // a new process gives worlds the same numbers again
	got, err := proto.Call(ctx, b.session, cdppage.Navigate, cdppage.NavigateParams{URL: origin + "/"})
	if err != nil {
		return err
	}
	if got.ErrorText != "" {
		return fmt.Errorf("the browser does not open it: %s", got.ErrorText)
	}
	if err := b.life.await(ctx, got.LoaderID, "commit"); err != nil {
		return err
	}
	var place place
	if err := b.ask(ctx, "place", nil, &place); err != nil {
		return err
	}
	if place.Origin != origin {
		return errors.New("the browser opens it under another name")
	}
	b.origin = origin
	return nil
}

// ask runs a function of the engine in the document shown.
func (b *blanks) ask(ctx context.Context, fn string, args, result any) error {
	made, err := proto.Call(ctx, b.session, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: b.life.frame, WorldName: worldName})
	if err != nil {
		return worldError(err)
	}
	if b.has != made.ExecutionContextID {
		err := b.session.Send(ctx, runtime.Evaluate.Method, runtime.EvaluateParams{Expression: stateSource(), ContextID: made.ExecutionContextID})
		if err != nil {
			return worldError(err)
		}
		b.has = made.ExecutionContextID
	}
	return worldError(callIn(ctx, frame{id: b.life.frame, session: b.session, world: made.ExecutionContextID}, fn, args, result))
}

// dropDatabases removes the databases of the origin shown. A page may hold on to
// one: a script that asks for its removal would wait for that page, in the way
// of all others, and could not take it back. The browser closes it on the page.
func (b *blanks) dropDatabases(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, originWithin)
	defer cancel()
	var names []wireText
	if err := b.ask(ctx, "databaseNames", nil, &names); err != nil {
		return err
	}
	for _, each := range names {
		name := secret.Text(each).Reveal()
		if !utf8.ValidString(name) {
			continue // no message can name it; the script that writes removes it
		}
		_, err := proto.Call(ctx, b.session, indexeddb.DeleteDatabase, indexeddb.DeleteDatabaseParams{SecurityOrigin: b.origin, DatabaseName: name})
		if err != nil {
			return fmt.Errorf("remove a database: %w", err)
		}
	}
	return nil
}

// close ends the helper, or gives the tab back as it was: blank, and without a
// history that would lead to blanks.
func (b *blanks) close(ctx context.Context, t *Tabs) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), originWithin)
	defer cancel()
	defer b.off()
	if b.target != "" {
		_, err := proto.Call(ctx, t.root, target.CloseTarget, target.CloseTargetParams{TargetID: b.target})
		if err != nil && !browser.HasEnded(err) {
			t.log.Debug("a helper could not be closed", "error", err)
		}
		return
	}
	if got, err := proto.Call(ctx, b.session, cdppage.Navigate, cdppage.NavigateParams{URL: "about:blank"}); err == nil {
		_ = b.life.await(ctx, got.LoaderID, "commit")
	}
	b.forgetHistory(ctx)
	_, _ = proto.Call(ctx, b.session, fetch.Disable, proto.Empty{})
}

// forgetHistory leaves nothing to go back to. The document tells that it is
// there a moment before the browser has it in its history, and until then the
// history cannot be cut; no event says when.
func (b *blanks) forgetHistory(ctx context.Context) {
	for {
		_, err := proto.Call(ctx, b.session, cdppage.ResetNavigationHistory, proto.Empty{})
		var history cdppage.GetNavigationHistoryResult
		if err == nil {
			history, err = proto.Call(ctx, b.session, cdppage.GetNavigationHistory, proto.Empty{})
		}
		if err == nil && len(history.Entries) == 1 && history.Entries[0].URL == "about:blank" {
			return
		}
		if _, refused := errors.AsType[*cdp.Error](err); err != nil && !refused {
			return // there is nobody to ask any more
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// place is whose storage a document sees.
type place struct {
	Origin    string   `json:"origin"`
	Ancestors []string `json:"ancestors"` // the nearest first
}

// firstParty reports whether the document shares the storage of its origin as a
// page of its own: only where all around it are of its site.
func (p place) firstParty() bool {
	for _, around := range p.Ancestors {
		if !sameSite(p.Origin, around) {
			return false
		}
	}
	return p.Origin != "" && p.Origin != "null"
}

// spot is a document that is loaded and sees an origin's storage.
type spot struct {
	origin string
	tab    *Tab
	frame  frame
	front  bool // so that its sessionStorage is the one that counts
}

// ask runs a function of the engine there, unless a dialog stops the page.
func (s spot) ask(ctx context.Context, fn string, args, result any) error {
	return s.tab.unlessDialog(ctx, func(ctx context.Context) error { return s.tab.call(ctx, s.frame, fn, args, result) })
}

// survey finds out which origins are loaded, those of the tab in front first.
// A page that does not answer is as good as one that is not there.
func (t *Tabs) survey(ctx context.Context) []spot {
	var out []spot
	tabs := t.List()
	for i := len(tabs) - 1; i >= 0; i-- {
		tab := tabs[i]
		if tab.Dialog() != nil || tab.hasCrashed() {
			continue
		}
		func() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if tab.usable(ctx) != nil {
				return
			}
			for _, f := range tab.frames.list() {
				at := spot{tab: tab, frame: f, front: i == len(tabs)-1}
				var p place
				if at.ask(ctx, "place", nil, &p) == nil && p.firstParty() {
					at.origin = p.Origin
					out = append(out, at)
				}
			}
		}()
	}
	return out
}
