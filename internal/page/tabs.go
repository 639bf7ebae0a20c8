// Package page is what can be done in one browser: its tabs, and in each tab
// navigation, pictures and dialogs. It owns the setup that every tab gets and
// the knowledge of which one is in front. It must never act in a tab that is
// not ours, and never wait without an end.
package page

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/guard"
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
	// Unattended says that nobody will ever answer: dialogs are closed as they
	// open, as by a person who does not read them.
	Unattended bool
	// Judge refuses requests of pages by their addresses, where no guard of ours
	// stands at the network; it must be quick. Nil lets all pass.
	Judge  func(address string) error
	Logger *slog.Logger
}

// Recipes are how each tab came into its state, by its id.
type Recipes map[string][]cdp.Step

// Tabs are the pages of one browser context. It is safe for concurrent use.
type Tabs struct {
	inst   browser.Instance
	root   *cdp.Session
	past   Recipes
	called string // what the browser calls itself; empty means not asked yet
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // the lifetime of what this owner starts
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	lane       *string // whose news of the guard are ours; nil means all
	unattended bool    // nobody will answer what a page asks
	judge      func(address string) error
	onBlock    func(egress.Block)
	off        []func() // what stops listening to the browser

	guard      guardNews
	downloads  downloads
	passkeys   passkeys
	owner      atomic.Pointer[owner]
	worn       atomic.Pointer[clothes]
	logins     knownLogins
	state      stateDesk
	changes    news            // of what Glances tell
	refreshed  atomic.Int64    // when the browser was last asked beside an action
	layouts    chan struct{}   // holds one token: who lays out a page
	stubborn   map[string]bool // origins that start over when they are; belongs to the holder
	everFitted atomic.Bool     // since the wheel changed hands
	moved      atomic.Int64    // when a page last went elsewhere, or a tab came

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
		inst: inst, root: inst.Conn().Root(), past: opts.Recipes, log: opts.Logger,
		decided: map[permission]bool{}, layouts: make(chan struct{}, 1), passkeys: passkeys{acted: make(chan struct{}, 1)},
	}
	t.unattended, t.judge, t.onBlock = opts.Unattended, opts.Judge, opts.OnBlock
	if r, ok := inst.(browser.Roommate); ok {
		lane := r.Lane()
		t.lane, t.called = &lane, r.Agent()
	}
	t.state.open()
	t.belong(opts)
	t.worn.Store(&clothes{look: opts.Look.orDefaults()})
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

// begin attaches to what is there. In a browser that is all ours the browser
// attaches us to every page, also popups, before their first script runs. In a
// shared one we attach to our own only, and others never notice us.
func (t *Tabs) begin(ctx context.Context) error {
	if err := t.dress(ctx, t.Look()); err != nil {
		return err
	}
	if t.lane != nil {
		_, err := t.Front(ctx) // all that concerns the whole browser is seen to by who shares it
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
		t.bringAllBack(ctx)
		return t.sweep(ctx)
	}
	_, err := t.Front(ctx)
	return err
}

// Refresh asks the browser itself what its tabs show now; no page needs to
// answer for that, so it works under dialogs and with hung pages too.
func (t *Tabs) Refresh(ctx context.Context) error {
	if asked := t.refreshed.Load(); asked > t.moved.Load() && time.Since(time.UnixMicro(asked)) < justNow {
		return nil
	}
	return t.refresh(ctx)
}

// justNow is how old an answer may be that was asked for with an action's last
// question to its page: both are over at about the same time. Whatever went
// elsewhere since then is asked about again.
const justNow = 15 * time.Millisecond

// refreshBeside refreshes while fn asks the page; whoever asks right after it has
// the answer. A passkey that an action made a page ask for is noticed later than that.
func (t *Tabs) refreshBeside(ctx context.Context, fn func() error) error {
	began := time.Now()
	var asked sync.WaitGroup
	asked.Go(func() {
		defer guard.Catch("page")
		if t.readAddresses(ctx) == nil {
			t.refreshed.Store(began.UnixMicro())
		}
	})
	defer t.passkeys.actedNow()
	defer asked.Wait()
	return fn()
}

// refreshedBy notes what a document has said of itself with its answer, instead of
// asking the browser: where it is was told before.
func (t *Tabs) refreshedBy(tab *Tab, title string) {
	t.passkeys.actedNow()
	t.entitle(tab, title)
	t.refreshed.Store(time.Now().UnixMicro())
}

func (t *Tabs) refresh(ctx context.Context) error {
	var looked sync.WaitGroup
	// two questions, one wait
	looked.Go(func() {
		defer guard.Catch("page")
		t.lookForPasskeys(ctx)
	})
	err := t.readAddresses(ctx)
	looked.Wait()
	return err
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
		made, err := proto.Call(ctx, t.root, target.CreateTarget, browser.FirstTab(t.inst, "about:blank"))
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
func (t *Tabs) Look() Look { return t.worn.Load().look }

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
	t.mu.Lock()
	repeats := t.gap // whoever holds the browser tells the next one of open dialogs
	t.mu.Unlock()
	for _, tab := range t.List() {
		steps := tab.session.Recipe().Steps()
		if address, _ := tab.Address(); !repeats && tab.Dialog() != nil && address != "" {
			steps = append([]cdp.Step{{Method: cdppage.Navigate.Method, Params: cdppage.NavigateParams{URL: address}}}, steps...)
		}
		out[tab.ID()] = steps
	}
	return out
}

// unstick loads a page anew whose dialog was open when an earlier connection was
// lost: nobody can answer that dialog any more, and until somebody does the page
// answers nothing. What was in it is lost, and that is told.
func (t *Tabs) unstick(tab *Tab) {
	steps := t.past[tab.ID()]
	if len(steps) == 0 || steps[0].Method != cdppage.Navigate.Method {
		return
	}
	_ = tab.session.Send(t.ctx, steps[0].Method, steps[0].Params)
	t.log.Warn("a page is loaded anew, because a dialog of it was open when the line was lost")
	t.tell(Surprise{Kind: SurpriseReloaded, Tab: tab.ID()})
}

// steps are what brings that tab into its state.
func (t *Tabs) steps(id string) []cdp.Step {
	if known := t.past[id]; len(known) > 0 {
		if known[0].Method == cdppage.Navigate.Method {
			known = known[1:] // that was done, once
		}
		return append(slices.Clone(known), goOn())
	}
	worn := t.worn.Load()
	return slices.Concat(worn.agent, t.judging(), worn.look.steps())
}

// childSteps are for frames and workers: what they are seen as, as their page
// is, what they open, and that they run. A service worker takes the half of
// another name only, which is worse than its own.
func (t *Tabs) childSteps(kind string) []cdp.Step {
	var steps []cdp.Step
	worn := t.worn.Load()
	if kind != "service_worker" {
		steps = slices.Clone(worn.agent)
	}
	if kind == "iframe" {
		steps = append(steps,
			cdp.Step{Method: cdppage.Enable.Method, Params: cdppage.EnableParams{}},
			cdp.Step{Method: inspector.Enable.Method, Params: struct{}{}},
			install(), catchChoosers(), autoAttach())
		steps = append(steps, worn.look.place()...)
		steps = append(steps, t.judging()...)
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
		defer guard.Catch("page")
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
		t.tasks.Go(func() {
			defer guard.Catch("page")
			fn(t.ctx)
		})
	}
}

// Close lets go of the tabs; they stay open.
func (t *Tabs) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.tasks.Wait()
	for _, off := range t.off {
		off()
	}
}
