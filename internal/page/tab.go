package page

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// Tab is one page of ours.
type Tab struct {
	tabs    *Tabs
	id      target.ID
	session *cdp.Session
	life    *lifecycle
	frames  *frames
	refs    *refs
	// equipping is held by who puts the engine into a document: what others ask
	// there comes after it.
	equipping sync.Mutex
	number    int       // in the order in which tabs came
	opener    target.ID // the tab it was opened from; empty means none

	questions questions
	echoes    echoes
	composing atomic.Bool            // a person's input method has shown text that is not final
	laid      atomic.Pointer[layout] // for a person's screen; nil is the agent's layout
	fitted    atomic.Pointer[Fitted] // what was last seen of its layout
	misfit    proto.LoaderID         // a document that is only said to be made for phones; as agents
	agents    *scrolled              // where the agent had scrolled to; belongs to who lays out
	hovers    atomic.Pointer[Point]  // where a person's mouse came to, if that was the last it did
	reads     atomic.Bool            // its documents come with the engine's eyes
	setUpAt   atomic.Int64           // when it had been set up, in microseconds

	settingUp chan struct{} // holds one token: who sets the tab up
	isSetUp   bool          // belongs to the holder of the token
	known     bool          // an earlier client has set it up

	mu      sync.Mutex
	url     string
	title   string
	shown   string // the address of the document in it, as the browser last told
	dialog  *Dialog
	crashed bool
	loading bool
	opened  chan struct{} // closed when a dialog opens or the page crashes, then replaced
	turns   map[string]int
}

// Dialog is an open alert, confirm, prompt or beforeunload.
type Dialog struct {
	Kind    string
	Message string
	Default string
	Origin  string // of the page or frame that opened it
	Turn    int    // tells it from one before that said the same
}

func newTab(tabs *Tabs, info *target.Info, s *cdp.Session) *Tab {
	t := &Tab{
		tabs: tabs, id: info.TargetID, opener: info.OpenerID, session: s, url: info.URL, title: info.Title,
		life: newLifecycle(proto.FrameID(info.TargetID)), settingUp: make(chan struct{}, 1), opened: make(chan struct{}), refs: newRefs(), turns: map[string]int{},
	}
	t.frames = newFrames(t.life.frame, s)
	cdp.Listen(s, cdppage.LifecycleEvent, t.life.event)
	cdp.Listen(s, cdppage.FrameNavigated, t.life.navigated)
	cdp.Listen(s, cdppage.NavigatedWithinDocument, t.life.moved)
	cdp.Listen(s, cdppage.FrameNavigated, func(cdppage.EventFrameNavigated) { t.tabs.moved.Store(time.Now().UnixMicro()) })
	cdp.Listen(s, cdppage.NavigatedWithinDocument, func(cdppage.EventNavigatedWithinDocument) { t.tabs.moved.Store(time.Now().UnixMicro()) })
	cdp.Listen(s, cdppage.JavascriptDialogOpening, func(e cdppage.EventJavascriptDialogOpening) {
		if tabs.unattended {
			// Whoever leaves a page unread also leaves it when it asks to stay.
			leave := e.Type == cdppage.DialogTypeBeforeunload
			_ = s.Send(tabs.ctx, cdppage.HandleJavaScriptDialog.Method, cdppage.HandleJavaScriptDialogParams{Accept: leave})
			return
		}
		d := &Dialog{Kind: string(e.Type), Message: tabs.hidden().conceal(e.Message), Default: tabs.hidden().conceal(e.DefaultPrompt), Origin: originOf(e.URL)}
		t.mu.Lock()
		d.Turn = t.turns[AskDialog] + 1 // as ask counts
		t.dialog = d
		t.interrupt()
		t.mu.Unlock()
		t.ask(d.question())
	})
	cdp.Listen(s, inspector.TargetCrashed, func(inspector.EventTargetCrashed) {
		t.mu.Lock()
		t.crashed = true
		t.interrupt()
		t.mu.Unlock()
		tabs.tell(Surprise{Kind: SurpriseCrash, Tab: t.ID()})
	})
	cdp.Listen(s, cdppage.FrameNavigated, func(e cdppage.EventFrameNavigated) {
		if e.Frame.ParentID == "" {
			t.mu.Lock()
			t.crashed = false // there is a new page
			t.mu.Unlock()
			t.noticeLogin(e.Frame)
		}
	})
	cdp.Listen(s, cdppage.JavascriptDialogClosed, func(cdppage.EventJavascriptDialogClosed) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dialog = nil
	})
	s.On(cdppage.ScreencastFrame.Method, func(raw jsonv2.Value) {
		if e, ok := frameOf(raw); ok {
			tabs.framed(t, e)
		}
	})
	t.listenForQuestions(s)
	t.listenForOrigins(s)
	tabs.listenForRequests(s)
	t.listenForMoves(s)
	t.listenForEchoes(s)
	return t
}

// listenForQuestions hears what a page, or a frame in a process of its own, asks.
func (t *Tab) listenForQuestions(s *cdp.Session) {
	t.listenForChoosers(s)
	cdp.Listen(s, cdppage.FrameNavigated, func(e cdppage.EventFrameNavigated) {
		t.questions.forget(e.Frame.ID, e.Frame.ID == t.life.frame)
	})
}

// usable brings the tab into its state, once; whoever needs the tab waits for
// it, and tries again what did not work before. Nobody may navigate before it
// has ended: a new renderer only inherits what the old one has acknowledged.
//
// A tab that an earlier client set up has its state already. There it is only
// made sure of, and not while a dialog, a crash or a site that does not answer
// keeps the page from answering: the tab can be used, to leave it for instance,
// and whoever comes next tries again.
func (t *Tab) usable(ctx context.Context) error {
	select {
	case t.settingUp <- struct{}{}:
		defer func() { <-t.settingUp }()
	case <-ctx.Done():
		return fmt.Errorf("set up a tab: %w", ctx.Err())
	}
	if t.isSetUp {
		return nil
	}
	if t.known {
		if err := t.session.Conn().Settle(ctx); err != nil {
			return err
		}
		if t.Dialog() != nil || t.hasCrashed() {
			return nil
		}
		if !t.learnFrames(ctx) {
			return nil
		}
		// A client that went while it gave a password would leave requests waiting.
		_ = t.session.Send(ctx, fetch.Disable.Method, proto.Empty{})
		// One that went while a page came would have all that is logged told to us.
		_ = t.session.Send(ctx, consoleOff.Method, proto.Empty{})
	}
	ctx, cancel := context.WithTimeout(ctx, setupWithin)
	defer cancel()
	err := t.session.Setup(ctx, t.tabs.steps(t.ID())...)
	if err != nil && t.Dialog() == nil {
		return fmt.Errorf("set up a tab: %w", err)
	}
	if err == nil {
		t.isSetUp = true
		t.setUpAt.Store(time.Now().UnixMicro())
		t.declinePasskeys(ctx)
		if !t.tabs.unattended {
			t.tabs.watch(t.watchRefusals)
		}
	}
	return nil
}

// learnFrames asks for the frames that came before we did, and reports whether
// the page answers. While a site leaves a navigation unanswered the browser
// keeps back what is for the page.
func (t *Tab) learnFrames(ctx context.Context) bool {
	for _, f := range t.frames.list() {
		limited, cancel := context.WithTimeout(ctx, frameWithin)
		got, err := proto.Call(limited, f.session, cdppage.GetFrameTree, proto.Empty{})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && f.id == t.frames.main {
			return false
		}
		if err != nil {
			continue // it went away, and events tell, or it hangs by itself
		}
		var walk func(*cdppage.FrameTree)
		walk = func(tree *cdppage.FrameTree) {
			t.frames.put(tree.Frame.ID, tree.Frame.ParentID, f.session)
			for _, child := range tree.ChildFrames {
				walk(child)
			}
		}
		walk(got.FrameTree)
	}
	return true
}

// Agent is what the browser calls itself in this tab.
func (t *Tab) Agent(ctx context.Context) (string, error) {
	var agent struct {
		Name string `json:"name"`
	}
	err := t.callMain(ctx, "agent", nil, &agent)
	return agent.Name, err
}

// ID names the tab; it stays the same for as long as the tab is open.
func (t *Tab) ID() string { return string(t.id) }

// Address is the tab's URL and title as of the last Refresh.
func (t *Tab) Address() (url, title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tabs.hidden().conceal(t.url), t.tabs.hidden().conceal(t.title)
}

// untouched reports whether no page has been in the tab since it was opened, by
// nobody's page.
func (t *Tab) untouched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opener == "" && t.url == "about:blank" && t.shown == ""
}

func (t *Tab) rename(info *target.Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if info.URL != "" { // it has none for a moment while a page comes
		t.url, t.title = info.URL, info.Title
	}
}

// Dialog is the open dialog, nil when there is none.
func (t *Tab) Dialog() *Dialog {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dialog
}

// gone waits until the tab is closed.
func (t *Tab) gone(ctx context.Context) error {
	select {
	case <-t.session.Ended():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HasCrashed reports whether the tab has no page because its renderer died. It
// can be reloaded, or sent elsewhere.
func (t *Tab) HasCrashed() bool { return t.hasCrashed() }

// Answer closes the open dialog. A page may open the next one at once; Dialog
// tells. What the dialog kept waiting, such as a navigation that the page asked
// about, goes on by itself.
func (t *Tab) Answer(ctx context.Context, accept bool, text string) error {
	open := t.Dialog()
	if open == nil {
		return fault.New(fault.NotFound, "answer a dialog", "no dialog is open")
	}
	return t.answer(ctx, open, accept, text)
}

// AnswerTurn is Answer for somebody who has seen one dialog and means no other: a
// page may have closed it and opened the next, which asks something else.
func (t *Tab) AnswerTurn(ctx context.Context, turn int, accept bool, text string) error {
	open := t.Dialog()
	if open == nil || open.Turn != turn {
		return fault.New(fault.NotFound, "answer a dialog", "that dialog is no longer open").WithHint("Look at what the page asks now.")
	}
	return t.answer(ctx, open, accept, text)
}

func (t *Tab) answer(ctx context.Context, open *Dialog, accept bool, text string) error {
	var gate *passage
	if accept {
		var err error
		if gate, err = t.permitDialog(ctx, open); err != nil {
			return err
		}
	}
	_, err := proto.Call(ctx, t.session, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: accept, PromptText: text})
	if err != nil && !errors.Is(err, cdp.ErrDetached) { // the answer may have closed the tab
		gate.settle(ctx, Unknown)
		return fmt.Errorf("answer a dialog: %w", err)
	}
	gate.settle(ctx, Confirmed)
	return t.session.Conn().Settle(ctx)
}

// unlessDialog runs fn with a context that ends when a dialog opens or the page
// crashes: from then on the page answers nothing.
func (t *Tab) unlessDialog(ctx context.Context, fn func(context.Context) error) error {
	t.mu.Lock()
	open, opened, crashes := t.dialog, t.opened, t.crashed
	t.mu.Unlock()
	if open != nil {
		return dialogFault(open)
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer guard.Catch("page")
		select {
		case <-opened:
			cancel(errInterrupted)
		case <-over:
		}
	}()
	err := fn(watched)
	if err != nil && errors.Is(context.Cause(watched), errInterrupted) {
		if d := t.Dialog(); d != nil {
			return dialogFault(d)
		}
		if !crashes && t.hasCrashed() {
			return crashFault()
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// Pages that share a process wait for each other's dialogs.
		for _, other := range t.tabs.List() {
			if d := other.Dialog(); d != nil && other != t {
				return fault.New(fault.DialogOpen, "", "the page waits for a dialog of kind %s in another tab", d.Kind).With("tab_id", other.ID())
			}
		}
	}
	return err
}

// interrupt ends what waits for the page to answer. Called with the lock held.
func (t *Tab) interrupt() {
	close(t.opened)
	t.opened = make(chan struct{})
}

var errInterrupted = errors.New("a dialog opened, or the page crashed")

func (t *Tab) hasCrashed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.crashed
}

func crashFault() error {
	return fault.New(fault.BrowserLost, "", "the page crashed").WithHint("Reload it, or open another address; the session goes on.")
}

func dialogFault(d *Dialog) error {
	return fault.New(fault.DialogOpen, "", "the page has a dialog of kind %s open", d.Kind)
}
