package local

import (
	"context"
	"slices"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/store"
)

const (
	spareMark  = "spare"          // what their names begin with: of no session
	spareLease = 2 * time.Minute  // how long one outlives a sidecar that was killed
	spareRenew = 30 * time.Second // how often that is put off
	// spareAfter leaves the machine to whoever has just begun.
	spareAfter = time.Second
	// spareWithin bounds its answer: starting another takes less than waiting longer.
	spareWithin = 2 * time.Second
)

// spares are browsers that were started before anybody asked: each has a
// private context and a blank tab, and is used once.
type spares struct {
	mu    sync.Mutex
	ready []*instance
	taken chan struct{} // told when one was taken; nil while none are kept
}

// KeepSpares keeps n browsers ready until ctx ends; then they end too.
func (p *Provider) KeepSpares(ctx context.Context, n int, spec browser.Spec) {
	if n <= 0 {
		return
	}
	taken := make(chan struct{}, 1)
	p.spares.mu.Lock()
	p.spares.taken = taken
	p.spares.mu.Unlock()
	defer p.endSpares()
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-taken:
			wait = spareAfter
		case <-time.After(wait):
			wait = spareRenew
			p.renewSpares(ctx)
			if p.Spares() >= n {
				continue
			}
			made, err := p.spare(ctx, spec)
			switch {
			case err == nil:
				p.spares.put(made)
				wait = 0
			case ctx.Err() == nil:
				p.log.Warn("no browser could be made ready", "error", err)
			}
		}
	}
}

// Spares is how many are ready now.
func (p *Provider) Spares() int {
	p.spares.mu.Lock()
	defer p.spares.mu.Unlock()
	return len(p.spares.ready)
}

// spare makes one.
func (p *Provider) spare(ctx context.Context, spec browser.Spec) (*instance, error) {
	spec.ID, spec.KeepUntil = store.NewID(spareMark), time.Now().Add(spareLease)
	inst, err := p.start(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := inst.rehearse(ctx); err != nil {
		_ = inst.End(context.WithoutCancel(ctx))
		return nil, err
	}
	return inst, nil
}

// rehearsal is a little of what pages are made of.
const rehearsal = `document.body.innerHTML = '<h1>A page</h1><p>Text, <b>bold</b>, <i>italic</i>, <tt>typed</tt>, <a href="#">a link</a>' +
	'<p style="font-family:sans-serif">Text</p><button>A button</button><input value="A field"><select><option>A choice</select>'; document.body.innerText`

// rehearse opens the tab and has it draw something once: what a browser does for
// its first picture alone, it has done then. Nothing of it stays.
func (i *instance) rehearse(ctx context.Context) error {
	root, flat := i.conn.Root(), true
	made, err := proto.Call(ctx, root, target.CreateTarget, target.CreateTargetParams{
		URL: "about:blank", BrowserContextID: proto.BrowserContextID(i.ref.Context),
	})
	if err != nil {
		return err
	}
	at, err := proto.Call(ctx, root, target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: &flat})
	if err != nil {
		return err
	}
	tab := i.conn.Session(at.SessionID)
	if _, err := proto.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: rehearsal}); err != nil {
		return err
	}
	if _, err := proto.Call(ctx, tab, page.CaptureScreenshot, page.CaptureScreenshotParams{}); err != nil {
		return err
	}
	if _, err := proto.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "document.body.replaceChildren()"}); err != nil {
		return err
	}
	_, err = proto.Call(ctx, root, target.DetachFromTarget, target.DetachFromTargetParams(at))
	return err
}

// takeSpare gives one away as the browser that spec wants; nil means that there
// is none. One that has died is no reason not to start another.
func (p *Provider) takeSpare(ctx context.Context, spec browser.Spec) *instance {
	for {
		inst := p.spares.pop()
		if inst == nil {
			return nil
		}
		err := inst.become(ctx, spec)
		if err == nil {
			return inst
		}
		p.log.Warn("a browser that was kept ready is of no use", "error", err)
		_ = inst.End(context.WithoutCancel(ctx))
	}
}

// become makes a spare browser the one that spec wants.
func (i *instance) become(ctx context.Context, spec browser.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, spareWithin)
	defer cancel()
	if err := i.KeepUntil(ctx, spec.KeepUntil); err != nil {
		return err
	}
	if err := i.SetPolicy(ctx, spec.Policy); err != nil {
		return err
	}
	return browser.Prepare(ctx, i.conn, i.ref.Context, spec)
}

// renewSpares puts their ends off, with the lock held: one that is given away
// meanwhile has another end. Those that are dead are cleared away after that.
func (p *Provider) renewSpares(ctx context.Context) {
	renewing, cancel := context.WithTimeout(ctx, spareWithin)
	defer cancel()
	var dead []*instance
	s := &p.spares
	s.mu.Lock()
	s.ready = slices.DeleteFunc(s.ready, func(inst *instance) bool {
		if inst.KeepUntil(renewing, time.Now().Add(spareLease)) == nil {
			return false
		}
		dead = append(dead, inst)
		return true
	})
	s.mu.Unlock()
	for _, inst := range dead {
		_ = inst.End(context.WithoutCancel(ctx))
	}
}

func (p *Provider) endSpares() {
	p.spares.mu.Lock()
	p.spares.taken = nil
	p.spares.mu.Unlock()
	for inst := p.spares.pop(); inst != nil; inst = p.spares.pop() {
		_ = inst.End(context.Background())
	}
}

func (s *spares) put(inst *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, inst)
}

func (s *spares) pop() *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		return nil
	}
	inst := s.ready[0]
	s.ready = s.ready[1:]
	select {
	case s.taken <- struct{}{}: // a nil channel is never ready
	default:
	}
	return inst
}
