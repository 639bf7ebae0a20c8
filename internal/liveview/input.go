package liveview

import (
	"context"
	"strconv"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/link"
	"tapin/internal/page"
)

const (
	// presentEvery is how often the hand-off hears of a person at work.
	presentEvery = 10 * time.Second
	// actWithin bounds what one thing that a person did may take, moveWithin what
	// takes as long as a page takes to load.
	actWithin  = 20 * time.Second
	moveWithin = 30 * time.Second
)

// act does what a person did, one after the other. Nothing is kept for later:
// what comes at the wrong time is refused.
func (v *viewer) act(ctx context.Context) {
	for {
		select {
		case m := <-v.input:
			if ctx.Err() != nil {
				return // a link that was taken back does nothing more, whatever waits
			}
			if err := v.hub.do(ctx, v, m); err != nil && ctx.Err() == nil {
				v.say(encode(noteOf(err)))
			}
			if f, ok := m.part.(*onField); ok && m.kind == "focus" {
				v.say(encode(reached{"reached", f.Number})) // refused or not: until then its page follows no other
			}
		case <-ctx.Done():
			return
		}
	}
}

// do decides whether a viewer may, and does it.
func (h *hub) do(ctx context.Context, v *viewer, m message) error {
	d, isDeed := m.part.(*deed)
	switch {
	case isDeed && d.A == "end":
		v.cancel(leave{closedOver, ""})
		return nil
	case v.mode != link.Drive:
		return fault.New(fault.Forbidden, "", "this link only lets you watch")
	case isDeed && (d.A == "takeover" || decisions[d.A] != nil):
		return h.decide(ctx, m.handoff, d)
	}
	if err := h.seize(v, m.handoff); err != nil {
		return err
	}
	if isDeed && d.A == "layout" {
		return h.choose(page.Fitting(d.Choice))
	}
	if !isDeed || !moves[d.A] {
		return h.pass(ctx, v, m, actWithin)
	}
	// A page on its way must not keep a person from anything else.
	if !h.moving.CompareAndSwap(false, true) {
		return fault.New(fault.Busy, "", "the page is on its way already")
	}
	h.door.sockets.Go(func() {
		defer guard.Catch("live view")
		defer h.moving.Store(false)
		if err := h.pass(ctx, v, m, moveWithin); err != nil && ctx.Err() == nil {
			v.say(encode(noteOf(err)))
		}
	})
	return nil
}

// moves are the deeds after which a page loads.
var moves = map[string]bool{"back": true, "forward": true, "reload": true, "auth": true}

// decisions are what a person says to the hand-off, and not to the page.
var decisions = map[string]func(context.Context, Handoffs, string, *deed) error{
	"done":             func(ctx context.Context, o Handoffs, id string, d *deed) error { return o.Finish(ctx, id, d.Anyway) },
	"abort":            func(ctx context.Context, o Handoffs, id string, _ *deed) error { return o.Cancel(ctx, id) },
	"later":            func(ctx context.Context, o Handoffs, id string, _ *deed) error { return o.Park(ctx, id) },
	"resume":           func(ctx context.Context, o Handoffs, id string, _ *deed) error { return o.Resume(ctx, id) },
	"cancel_countdown": func(ctx context.Context, o Handoffs, id string, _ *deed) error { return o.Present(ctx, id) },
	"extend": func(ctx context.Context, o Handoffs, id string, d *deed) error {
		return o.Extend(ctx, id, time.Duration(min(max(d.Minutes, 0), 60))*time.Minute)
	},
}

// decide carries a decision to the hand-off it was meant for.
func (h *hub) decide(ctx context.Context, handoff string, d *deed) error {
	ctx, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	defer h.changed()
	h.mu.Lock()
	now := h.status
	h.drove = time.Now()
	h.mu.Unlock()
	open := now.Handoff != nil && now.Handoff.Status == "RUNNING"
	switch {
	case d.A == "takeover" && open:
		return fault.New(fault.HandoffActive, "", "this browser is yours already")
	case d.A == "takeover":
		return h.door.deps.Handoffs.Takeover(ctx, h.session)
	case !open || now.Handoff.ID != handoff:
		return stale()
	}
	return decisions[d.A](ctx, h.door.deps.Handoffs, handoff, d)
}

func stale() error {
	return fault.New(fault.HandoffNotRunning, "", "this was meant for a hand-off that is over").WithHint("Look at what the page shows now.")
}

// seize gives a viewer the wheel, if the hand-off it means runs and nobody else
// is at work.
func (h *hub) seize(v *viewer, handoff string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.status.running():
		return fault.New(fault.HandoffNotRunning, "", "the agent drives now").WithHint("Take over first.")
	case h.status.Handoff.ID != handoff:
		return stale()
	case h.driver != nil && h.driver != v && time.Since(h.drove) < driverFor:
		return fault.New(fault.HumanInControl, "", "somebody else has the wheel at this moment")
	}
	if h.driver != v {
		h.driver = v
		h.changed()
	}
	h.drove = time.Now()
	return nil
}

// pass does in the page what was done at the live view.
func (h *hub) pass(ctx context.Context, v *viewer, m message, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	h.sign(ctx, m.handoff)
	return h.screen.Act(ctx, m.handoff, func(ctx context.Context, tabs *page.Tabs) error {
		if d, ok := m.part.(*deed); ok {
			defer h.changed() // most of them answer something that the state tells of
			return h.perform(ctx, tabs, d)
		}
		tab, err := tabs.Front(ctx)
		if err != nil {
			return err
		}
		return v.touch(ctx, tab, m)
	})
}

// sign tells the hand-off that a person is at work: now and then, and at once
// where that stops a countdown. The hand-off writes it to the disk, and no tap
// waits for that.
func (h *hub) sign(ctx context.Context, handoff string) {
	h.mu.Lock()
	counting := h.status.Handoff != nil && !h.status.Handoff.FinishesAt.IsZero()
	due := counting || time.Since(h.noted) >= presentEvery
	if due {
		h.noted = time.Now()
	}
	h.mu.Unlock()
	if !due {
		return
	}
	ctx = context.WithoutCancel(ctx)
	h.door.sockets.Go(func() {
		defer guard.Catch("live view")
		if err := h.door.deps.Handoffs.Present(ctx, handoff); err != nil {
			h.door.log.Debug("a sign of life was not taken", "error", fault.Of(err).Code)
		}
	})
}

// presence tells when somebody last did something, and whether somebody who may
// drive looks on.
func (h *hub) presence() (last time.Time, watching bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		watching = watching || v.mode == link.Drive && !v.hidden
	}
	return h.drove, watching
}

// touch passes on what a hand, a keyboard or a stand-in did.
func (v *viewer) touch(ctx context.Context, tab *page.Tab, m message) error {
	switch p := m.part.(type) {
	case *ptr:
		fingers := make([]page.Pointer, len(p.Fingers))
		for i, f := range p.Fingers {
			fingers[i] = page.Pointer{X: f.X, Y: f.Y, Finger: f.F}
		}
		return tab.Point(ctx, page.Pointer{Kind: p.K, X: p.X, Y: p.Y, Finger: p.F, Button: p.B, Clicks: p.C, Held: p.M & 15}, fingers)
	case *wheel:
		return tab.Wheel(ctx, page.Wheel{X: p.X, Y: p.Y, DX: p.DX, DY: p.DY, Held: p.M & 15})
	case *key:
		return tab.Strike(ctx, page.Stroke{Kind: p.K, Key: p.Key, Code: p.Code, Held: p.M & 15, Repeated: p.R})
	case *text:
		return tab.Insert(ctx, p.S)
	case *compose:
		return tab.Compose(ctx, p.S, p.A, p.B)
	case *nothing:
		got, err := tab.Selected(ctx)
		if err == nil {
			v.say(encode(clip{"clip", got.Reveal()}))
		}
		return err
	case *edit:
		return v.edit(ctx, tab, p)
	case *choose:
		return tab.Choose(ctx, p.ID, p.Values)
	}
	return v.visit(ctx, tab, m)
}

// visit is what is done to a field as a whole.
func (v *viewer) visit(ctx context.Context, tab *page.Tab, m message) error {
	f, ok := m.part.(*onField)
	if !ok {
		return fault.New(fault.InvalidRequest, "", "there is no message of that kind")
	}
	switch m.kind {
	case "focus":
		return tab.Focus(ctx, f.ID)
	case "blur":
		return tab.Blur(ctx, f.ID)
	case "enter":
		return tab.Enter(ctx, f.ID)
	}
	return nil // files: an upload follows
}

// edit answers with what the page made of it, so that the stand-in shows the same.
func (v *viewer) edit(ctx context.Context, tab *page.Tab, e *edit) error {
	caret := -1
	if n := len(e.Selection); n > 0 {
		caret = e.Selection[n-1]
	}
	now, err := tab.Edit(ctx, page.NativeEdit{ID: e.ID, Value: e.Value, Base: e.Base, Caret: caret})
	if err != nil {
		return err
	}
	v.say(encode(struct {
		T   string `json:"t"`
		ID  string `json:"id"`
		Seq int64  `json:"seq"`
		page.NativeState
	}{"caret", e.ID, e.Seq, now}))
	return nil
}

// perform is what a person does to the browser around the page.
func (h *hub) perform(ctx context.Context, tabs *page.Tabs, d *deed) error {
	switch d.A {
	case "tab":
		return tabs.Switch(ctx, d.ID)
	case "close_tab":
		return tabs.CloseTab(ctx, d.ID)
	case "permission":
		return tabs.Permission(ctx, d.Origin, d.Name, d.Grant)
	}
	tab, err := tabs.Front(ctx)
	if err != nil {
		return err
	}
	switch d.A {
	case "back":
		_, err = tab.Travel(ctx, -1, page.WaitCommit)
	case "forward":
		_, err = tab.Travel(ctx, 1, page.WaitCommit)
	case "reload":
		_, err = tab.Reload(ctx, page.WaitCommit)
	case "dialog":
		turn, _ := strconv.Atoi(d.ID) // none has another
		err = tab.AnswerTurn(ctx, turn, d.Accept, d.Text.Reveal())
	case "auth":
		if d.Username.IsEmpty() && d.Password.IsEmpty() {
			return tab.DeclineLogin()
		}
		err = tab.AuthenticateAt(ctx, d.Origin, d.Username.Reveal(), d.Password)
	case "no_files":
		err = tab.ChooseFiles(ctx, nil)
	default:
		err = fault.New(fault.InvalidRequest, "", "nobody can do that here")
	}
	return err
}
