// Package page is what can be done in one browser: its tabs, and in each tab
// navigation, pictures and dialogs. It owns the setup that every tab gets and
// the knowledge of which one is in front. It must never act in a tab that is
// not ours, and never wait without an end.
package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
)

// setupWithin bounds the setup of a tab; a page that hangs from its first
// script on must not hang us.
const setupWithin = 10 * time.Second

// maxTabs bounds what pages may open. Past it new windows are closed before they
// show anything: a page that opens them without end must not fill the machine.
const maxTabs = 20

// Options say what the tabs are like; nil means the defaults.
type Options struct {
	Look Look
	// Recipes are those of the same tabs over an earlier connection; a tab found
	// again gets its own back.
	Recipes Recipes
	// OnBlock hears of every request the guard refused; it must be quick.
	OnBlock func(egress.Block)
	// OnSurprise hears what happens without being asked for; it must be quick.
	OnSurprise func(Surprise)
	// Hidden is what was hidden over an earlier connection; nil means nothing.
	Hidden *Hidden
	// Origins are those that an earlier Tabs of the same browser had seen.
	Origins []string
	// OnOrigin hears of every origin seen for the first time; it must be quick.
	OnOrigin func(origin string)
	Logger   *slog.Logger
}

// Recipes are how each tab came into its state, by its id.
type Recipes map[string][]cdp.Step

// Tabs are the pages of one browser context. It is safe for concurrent use.
type Tabs struct {
	inst  browser.Instance
	root  *cdp.Session
	look  Look
	past  Recipes
	agent []cdp.Step // what a headless browser elsewhere needs to look like one
	log   *slog.Logger
	ctx   context.Context //nolint:containedctx // the lifetime of what this owner starts
	stop  context.CancelFunc
	tasks sync.WaitGroup

	guard      guardNews
	downloads  downloads
	passkeys   passkeys
	hidden     *Hidden
	logins     knownLogins
	onSurprise func(Surprise)
	state      stateDesk
	changes    news // of what Glances tell

	mu      sync.Mutex
	stack   []*Tab              // the last one is in front
	came    int                 // how many tabs there have been
	decided map[permission]bool // what somebody has granted or refused
	gap     bool                // the replay is over: tabs from here on are new
	closed  bool                // nothing new is begun
	cast    *Cast               // what shows the tab in front, if anything does
	native  *NativeWatch        // what reports its fields, if anything does
}

// Open takes the tabs of an instance under control and makes sure that there is one.
func Open(ctx context.Context, inst browser.Instance, opts *Options) (*Tabs, error) {
	if opts == nil {
		opts = &Options{}
	}
	t := &Tabs{
		inst: inst, root: inst.Conn().Root(), look: opts.Look.orDefaults(), past: opts.Recipes, log: opts.Logger,
		onSurprise: opts.OnSurprise, hidden: opts.Hidden, decided: map[permission]bool{},
	}
	if t.hidden == nil {
		t.hidden = NewHidden(false)
	}
	t.state.open(opts)
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.listen(opts.OnBlock)
	inst.Conn().Dispatch()
	if err := t.begin(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// listen installs what must be in place before the first event is handled.
func (t *Tabs) listen(onBlock func(egress.Block)) {
	cdp.Listen(t.root, target.AttachedToTarget, t.attached)
	cdp.Listen(t.root, target.DetachedFromTarget, func(e target.EventDetachedFromTarget) { t.detached(e.SessionID) })
	cdp.Listen(t.root, target.TargetCreated, func(e target.EventTargetCreated) { t.created(e.TargetInfo) })
	t.root.On(browser.EventGap, func(jsonv2.Value) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.gap = true
	})
	cdp.Listen(t.root, proto.Event[egress.Block]{Method: browser.EventBlocked}, func(b egress.Block) {
		t.guard.blocked(b)
		if onBlock != nil {
			onBlock(b)
		}
	})
	cdp.Listen(t.root, proto.Event[egress.Failure]{Method: browser.EventFailed}, t.guard.failed)
	t.listenForDownloads()
}

// begin attaches to what is there. In a browser that is all ours the browser
// attaches us to every page, also popups, before their first script runs. In a
// shared one we attach to our own only, and others never notice us.
func (t *Tabs) begin(ctx context.Context) error {
	if err := t.dress(ctx); err != nil {
		return err
	}
	if t.inst.Exclusive() {
		if err := t.root.Setup(ctx, autoAttach()); err != nil {
			return fmt.Errorf("follow the tabs: %w", err)
		}
	} else if err := t.adopt(ctx); err != nil {
		return err
	}
	t.countPasskeys(ctx)
	if err := t.root.Conn().Settle(ctx); err != nil {
		return err
	}
	if t.front() != nil {
		// Somebody's page, in whatever state it is: it need not answer now.
		return t.sweep(ctx)
	}
	_, err := t.Front(ctx)
	return err
}

// dress finds out what the browser must call itself. One of our own on a desk
// does so rightly by itself.
func (t *Tabs) dress(ctx context.Context) error {
	if t.inst.Exclusive() && !t.look.Mobile {
		return nil
	}
	version, err := proto.Call(ctx, t.root, cdpbrowser.GetVersion, proto.Empty{})
	if err != nil {
		return fmt.Errorf("ask the browser for its version: %w", err)
	}
	t.agent = t.look.agent(version.UserAgent)
	return nil
}

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
	if string(info.TargetID) == ref.Target {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return info.OpenerID != "" && slices.ContainsFunc(t.stack, func(tab *Tab) bool { return tab.id == info.OpenerID })
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
	t.mu.Unlock()
	t.follow(tab, s)
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
			cdp.Listen(child, inspector.TargetCrashed, func(inspector.EventTargetCrashed) { tab.frames.lose(child.ID()) })
		}
		t.start(func(ctx context.Context) { _ = child.Setup(ctx, t.childSteps(e.TargetInfo.Type)...) })
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

// Switch puts a tab in front.
func (t *Tabs) Switch(ctx context.Context, id string) error {
	const op = "switch tabs"
	tab := t.byTarget(target.ID(id))
	if tab == nil {
		return noTab(op, id)
	}
	// The browser does that by itself, whatever state the page is in.
	if _, err := proto.Call(ctx, tab.session, cdppage.BringToFront, proto.Empty{}); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	t.mu.Lock()
	i := slices.Index(t.stack, tab)
	if i >= 0 {
		t.raise(i)
	}
	t.mu.Unlock()
	if i < 0 {
		return noTab(op, id)
	}
	t.refocus()
	return nil
}

// CloseTab closes a tab; an empty id means the one in front. A page that wants
// to ask first may, once: the answer is DIALOG_OPEN, and accepting the dialog
// closes the tab. Where a dialog is open already, or the page does not answer,
// it is closed without being asked.
func (t *Tabs) CloseTab(ctx context.Context, id string) error {
	const op = "close a tab"
	tab := t.front()
	if id != "" {
		tab = t.byTarget(target.ID(id))
	}
	if tab == nil {
		return noTab(op, id)
	}
	if err := t.close(ctx, tab); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return t.root.Conn().Settle(ctx)
}

func (t *Tabs) close(ctx context.Context, tab *Tab) error {
	if tab.Dialog() == nil && !tab.hasCrashed() {
		err := tab.unlessDialog(ctx, func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, closeWithin)
			defer cancel()
			if err := tab.session.Send(limited, cdppage.Close.Method, proto.Empty{}); err != nil {
				return err
			}
			return tab.gone(limited)
		})
		if err == nil || errors.Is(err, fault.DialogOpen) || ctx.Err() != nil {
			return err
		}
	}
	if _, err := proto.Call(ctx, t.root, target.CloseTarget, target.CloseTargetParams{TargetID: tab.id}); err != nil {
		return err
	}
	return tab.gone(ctx)
}

func noTab(op, id string) error {
	return fault.New(fault.NotFound, op, "there is no tab %q", id).WithHint("The status lists the tabs that are open.")
}

// Refresh asks the browser itself what its tabs show now; no page needs to
// answer for that, so it works under dialogs and with hung pages too.
func (t *Tabs) Refresh(ctx context.Context) error {
	if err := t.readAddresses(ctx); err != nil {
		return err
	}
	t.lookForPasskeys(ctx)
	return nil
}

func (t *Tabs) readAddresses(ctx context.Context) error {
	got, err := proto.Call(ctx, t.root, target.GetTargets, target.GetTargetsParams{Filter: target.Filter{{Type: "page"}}})
	if err != nil {
		return fmt.Errorf("list the tabs: %w", err)
	}
	for _, info := range got.TargetInfos {
		if tab := t.byTarget(info.TargetID); tab != nil {
			tab.rename(info)
		}
	}
	return nil
}

func (t *Tabs) byTarget(id target.ID) *Tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.stack, func(tab *Tab) bool { return tab.id == id }); i >= 0 {
		return t.stack[i]
	}
	return nil
}

// Front is the tab in front, ready to be used. When the last one was closed,
// there is a new, blank one.
func (t *Tabs) Front(ctx context.Context) (*Tab, error) {
	tab := t.front()
	if tab == nil {
		made, err := proto.Call(ctx, t.root, target.CreateTarget, target.CreateTargetParams{
			URL: "about:blank", BrowserContextID: proto.BrowserContextID(t.inst.Ref().Context),
		})
		if err != nil {
			return nil, fmt.Errorf("open a tab: %w", err)
		}
		if !t.inst.Exclusive() && t.byTarget(made.TargetID) == nil {
			if err := t.attach(ctx, made.TargetID); err != nil {
				return nil, err
			}
		}
		if err := t.root.Conn().Settle(ctx); err != nil {
			return nil, err
		}
		if tab = t.byTarget(made.TargetID); tab == nil {
			return nil, fault.New(fault.BrowserLost, "open a tab", "the browser did not report the tab it opened")
		}
	}
	return tab, tab.usable(ctx)
}

// Pick is the tab of that id, ready to be used; none means the one in front.
func (t *Tabs) Pick(ctx context.Context, id string) (*Tab, error) {
	if id == "" {
		return t.Front(ctx)
	}
	tab := t.byTarget(target.ID(id))
	if tab == nil {
		return nil, noTab("find a tab", id)
	}
	return tab, tab.usable(ctx)
}

// Look is what the browser shows itself as.
func (t *Tabs) Look() Look { return t.look }

func (t *Tabs) front() *Tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.stack) == 0 {
		return nil
	}
	return t.stack[len(t.stack)-1]
}

// List is what is open, the tab in front last.
func (t *Tabs) List() []*Tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.stack)
}

// Recipes are how each tab came into its state, for a later Open.
func (t *Tabs) Recipes() Recipes {
	out := Recipes{}
	for _, tab := range t.List() {
		out[tab.ID()] = tab.session.Recipe().Steps()
	}
	return out
}

// steps are what brings that tab into its state.
func (t *Tabs) steps(id string) []cdp.Step {
	if known := t.past[id]; len(known) > 0 {
		return append(slices.Clone(known), goOn())
	}
	return append(slices.Clone(t.agent), t.look.steps()...)
}

// childSteps are for frames and workers: what they are seen as, as their page
// is, what they open, and that they run. A service worker takes the half of
// another name only, which is worse than its own.
func (t *Tabs) childSteps(kind string) []cdp.Step {
	var steps []cdp.Step
	if kind != "service_worker" {
		steps = slices.Clone(t.agent)
	}
	if kind == "iframe" {
		steps = append(steps,
			cdp.Step{Method: cdppage.Enable.Method, Params: cdppage.EnableParams{}},
			cdp.Step{Method: inspector.Enable.Method, Params: struct{}{}},
			install(), catchChoosers(), autoAttach())
		steps = append(steps, t.look.place()...)
	}
	return append(steps, goOn())
}

// start runs fn until it ends or the tabs are closed.
func (t *Tabs) start(fn func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, setupWithin)
		defer cancel()
		fn(ctx)
	})
}

// watch runs fn until it ends or the tabs are closed, however long that is.
func (t *Tabs) watch(fn func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.tasks.Go(func() { fn(t.ctx) })
	}
}

// Close lets go of the tabs; they stay open.
func (t *Tabs) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.tasks.Wait()
}
