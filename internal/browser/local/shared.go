package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/browser/local/holder"
	"tapin/internal/cdp"
	"tapin/internal/fault"
)

var (
	_ browser.Sharer   = (*Provider)(nil)
	_ browser.Shared   = (*shared)(nil)
	_ browser.Roommate = (*roommate)(nil)
)

// leaveWithin bounds the end of one context.
const leaveWithin = 5 * time.Second

// shared is one browser with many contexts. It owns what concerns the whole
// browser: that everything that opens anywhere is attached before it runs.
type shared struct {
	inst  *instance
	agent string // what the browser calls itself

	mu    sync.Mutex
	rooms map[proto.BrowserContextID]bool // whose tabs look after their own targets
}

// Share starts a browser for contexts of others.
func (p *Provider) Share(ctx context.Context, spec browser.Spec) (browser.Shared, error) {
	s := &shared{rooms: map[proto.BrowserContextID]bool{}}
	_, err := p.begin(ctx, spec, func(inst *instance) error {
		s.inst = inst
		return s.open(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// open has the browser attach us to everything. What belongs to no room, a
// worker of the browser's own say, is let run by us.
func (s *shared) open(ctx context.Context) error {
	root := s.inst.conn.Root()
	cdp.Listen(root, target.AttachedToTarget, func(e target.EventAttachedToTarget) {
		s.mu.Lock()
		known := s.rooms[e.TargetInfo.BrowserContextID]
		s.mu.Unlock()
		if !known {
			_ = s.inst.conn.Session(e.SessionID).Send(context.Background(), runtime.RunIfWaitingForDebugger.Method, proto.Empty{})
		}
	})
	s.inst.conn.Dispatch()
	if err := root.Setup(ctx, browser.AttachAll()); err != nil {
		return fmt.Errorf("follow the tabs: %w", err)
	}
	version, err := proto.Call(ctx, root, cdpbrowser.GetVersion, proto.Empty{})
	if err != nil {
		return fmt.Errorf("ask the browser for its version: %w", err)
	}
	s.agent = version.UserAgent
	return nil
}

func (s *shared) Ref() browser.Ref      { return s.inst.Ref() }
func (s *shared) Done() <-chan struct{} { return s.inst.conn.Done() }

func (s *shared) KeepUntil(ctx context.Context, t time.Time) error { return s.inst.KeepUntil(ctx, t) }

func (s *shared) End(ctx context.Context) error { return s.inst.End(ctx) }

// Context makes a context behind a guard of its own. The bypass list is what
// keeps loopback from going around it.
func (s *shared) Context(ctx context.Context) (browser.Roommate, error) {
	const op = "make a private browser context"
	lane, err := s.inst.client.OpenLane(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.BrowserLost, op, err)
	}
	r := &roommate{instance: *s.inst, shared: s, lane: lane}
	keep := false
	made, err := proto.Call(ctx, s.inst.conn.Root(), target.CreateBrowserContext, target.CreateBrowserContextParams{
		DisposeOnDetach: &keep, ProxyServer: lane.Proxy, ProxyBypassList: "<-loopback>",
	})
	if err != nil {
		r.leave(ctx)
		return nil, fault.Wrap(fault.BrowserLost, op, err)
	}
	r.ref.Context = string(made.BrowserContextID)
	s.mu.Lock()
	s.rooms[made.BrowserContextID] = true
	s.mu.Unlock()
	if err := browser.Prepare(ctx, s.inst.conn, r.ref.Context, browser.Spec{}); err != nil {
		_ = r.End(context.WithoutCancel(ctx))
		return nil, fault.Wrap(fault.BrowserLost, op, err)
	}
	return r, nil
}

// roommate is one context of a shared browser as an instance. Letting it go
// leaves the browser to the others.
type roommate struct {
	instance
	shared *shared
	lane   holder.Lane
}

func (r *roommate) Lane() string  { return r.lane.ID }
func (r *roommate) Agent() string { return r.shared.agent }

// Release does nothing: the connection is everybody's.
func (r *roommate) Release() error { return nil }

// End takes the context away: its tabs, workers and storage first, then its
// way to the network with whatever is still connected.
func (r *roommate) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	id := proto.BrowserContextID(r.ref.Context)
	_, err := proto.Call(ctx, r.conn.Root(), target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: id})
	r.shared.mu.Lock()
	delete(r.shared.rooms, id)
	r.shared.mu.Unlock()
	r.leave(ctx)
	return fault.Wrap(fault.BrowserLost, "end a browser context", err)
}

func (r *roommate) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	_ = r.client.CloseLane(ctx, r.lane.ID)
}
