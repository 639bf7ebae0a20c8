package browserbase

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// lookAfter are the pauses before each look for a session whose making was not
// answered, and lateAfter those of whoever goes on looking when nobody waits
// any more.
var (
	lookAfter = []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
	lateAfter = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute}
)

// cleanWithin bounds what is undone after a failure.
const cleanWithin = 15 * time.Second

// Create makes a session and connects to it. A wish is sent once: when its
// answer is lost, the session is looked for by its mark.
func (p *Provider) Create(ctx context.Context, spec browser.Spec) (_ browser.Instance, err error) {
	const op = "make a browser at Browserbase"
	if left := p.rest.waiting(); left > 0 {
		if left > patience {
			return nil, blame(op, fault.RateLimited, &refusal{status: http.StatusTooManyRequests, after: left})
		}
		if err := wait(ctx, left); err != nil {
			return nil, fault.Wrap(fault.SessionCreateFailed, op, err)
		}
	}
	p.hold(spec.ID)
	defer func() {
		if err != nil {
			p.let(spec.ID)
		}
	}()
	s, err := p.make(ctx, spec)
	if err != nil {
		return nil, blame(op, fault.SessionCreateFailed, err)
	}
	inst, err := p.enter(ctx, spec, s)
	if err != nil {
		p.clean(ctx, spec.ID, s.ID)
		return nil, blame(op, fault.SessionCreateFailed, err)
	}
	return inst, nil
}

// make wishes for a session, in the best form that the plan allows.
func (p *Provider) make(ctx context.Context, spec browser.Spec) (remote, error) {
	account, err := p.rest.who(ctx)
	if err != nil {
		return remote{}, err
	}
	timeout := min(max(time.Until(spec.KeepUntil)+p.opts.Spare, minTimeout), maxTimeout)
	if timeout, err = p.opts.Ledger.Ask(spec.ID, Name, timeout); err != nil {
		return remote{}, err
	}
	forms := p.forms(account, spec, timeout)
	for i, form := range forms {
		var s remote
		err := p.rest.call(ctx, http.MethodPost, "/v1/sessions", form, &s)
		if err == nil && s.ID == "" {
			err = &unheard{"the answer names no session"}
		}
		switch {
		case err == nil:
			return p.made(spec.ID, s), nil
		case isUnheard(err):
			return p.lookFor(ctx, spec.ID, err)
		case i < len(forms)-1 && (refusedWith(err, http.StatusForbidden) || refusedWith(err, http.StatusBadRequest)):
			// Not done, perhaps because the plan does not allow it: more modestly.
			p.log.Info("Browserbase refused a form of session, and is asked for a simpler one", "browser", spec.ID, "keep_alive", form.KeepAlive, "timeout_s", form.Timeout, "error", err)
		default:
			p.opts.Ledger.Drop(spec.ID)
			if spec.Kept != "" && refusedWith(err, http.StatusNotFound) {
				err = errors.Join(browser.ErrNoKept, err)
			}
			return remote{}, err
		}
	}
	return remote{}, errors.New("nothing was asked for")
}

// forms are what a session may be like, the best first. Which of them a plan
// allows is nowhere told but in the answer.
func (p *Provider) forms(account Account, spec browser.Spec, timeout time.Duration) []wish {
	record := p.opts.Record || spec.Record
	w := wish{
		ProjectID: account.Project, Region: p.opts.Region, KeepAlive: true, Timeout: int(timeout / time.Second),
		UserMetadata: map[string]string{markKey: p.mark, browserKey: spec.ID},
		BrowserSettings: settings{
			BlockAds: p.opts.BlockAds, SolveCaptchas: p.opts.SolveCaptchas,
			// A log there holds what pages were sent: it goes with the recording.
			RecordSession: record, LogSession: record,
		},
	}
	if spec.Kept != "" {
		w.BrowserSettings.Context = &keptContext{ID: spec.Kept, Persist: spec.Persist}
	}
	if spec.Width > 0 && spec.Height > 0 {
		w.BrowserSettings.Viewport = &viewport{Width: spec.Width, Height: spec.Height}
	}
	plain := w
	plain.KeepAlive = false
	p.mu.Lock()
	known := time.Since(p.noKeepAlive) < noKeepAliveFor
	p.mu.Unlock()
	forms := []wish{w, plain}
	if known {
		forms = forms[1:]
	}
	if timeout > freeTimeout {
		short := plain
		short.Timeout = int(freeTimeout / time.Second)
		forms = append(forms, short)
	}
	return forms
}

// made notes what was made.
func (p *Provider) made(id string, s remote) remote {
	if !s.KeepAlive {
		p.mu.Lock()
		if time.Since(p.noKeepAlive) >= noKeepAliveFor {
			p.noKeepAlive = time.Now()
		}
		p.mu.Unlock()
	}
	p.opts.Ledger.Begin(id, s.ID, s.StartedAt, s.ExpiresAt)
	return s
}

// lookFor finds the session of a wish whose answer was lost. It may still be
// in the making; a second wish would be a second session.
func (p *Provider) lookFor(ctx context.Context, id string, lost error) (remote, error) {
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	for _, pause := range lookAfter {
		if wait(looking, pause) != nil {
			break
		}
		running, err := p.named(looking, id)
		if err != nil || len(running) == 0 {
			if ctx.Err() != nil {
				break // nobody waits for it any more
			}
			continue
		}
		s, err := p.retrieve(looking, running[0].ID) // the list does not tell the way in
		if err != nil {
			continue
		}
		if ctx.Err() != nil {
			p.clean(ctx, id, s.ID)
			return remote{}, ctx.Err()
		}
		p.log.Info("a session whose making was not answered was found by its mark", "browser", id)
		return p.made(id, s), nil
	}
	p.lookLater(id)
	if ctx.Err() != nil {
		return remote{}, ctx.Err()
	}
	return remote{}, fmt.Errorf("%w; no such session was found, and one that appears later is released", lost)
}

// lookLater goes on looking for a session that nobody waits for, and releases it.
func (p *Provider) lookLater(id string) {
	p.mu.Lock()
	known := p.doubts[id]
	p.doubts[id] = true
	p.mu.Unlock()
	if known || p.life.Err() != nil {
		return
	}
	p.tasks.Go(func() {
		defer guard.Catch("browserbase")
		for _, pause := range lateAfter {
			if wait(p.life, pause) != nil {
				return // the account still names it, and the next process looks
			}
			running, err := p.named(p.life, id)
			if err != nil || len(running) == 0 || p.held(id) {
				continue
			}
			p.log.Warn("a session that came after nobody waited for it is released", "browser", id)
			for _, s := range running {
				_ = p.release(p.life, s.ID)
			}
		}
		p.mu.Lock()
		delete(p.doubts, id)
		p.mu.Unlock()
		p.opts.Ledger.Drop(id)
	})
}

func (p *Provider) inDoubt(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubts[id]
}

// enter connects to a new session and prepares its browser. Whatever else was
// made for the same wish is released meanwhile.
func (p *Provider) enter(ctx context.Context, spec browser.Spec, s remote) (*instance, error) {
	alone := make(chan error, 1)
	go func() {
		alone <- guard.Call("browserbase", func() error { return p.onlyOne(ctx, spec.ID, s.ID) }, errPanicked)
	}()
	inst, err := p.dial(ctx, spec.ID, s)
	if single := <-alone; err == nil && single != nil {
		_ = inst.Release()
		err = single
	}
	if err != nil {
		return nil, err
	}
	prepared := spec
	prepared.Downloads = "" // there is no folder that both see
	if err := browser.Prepare(ctx, inst.conn, "", prepared); err != nil {
		_ = inst.Release()
		return nil, err
	}
	return inst, nil
}

// dial tries more than once: a session that is not entered is lost after some
// minutes, and one that was just made may need a moment.
func (p *Provider) dial(ctx context.Context, id string, s remote) (inst *instance, err error) {
	for _, pause := range []time.Duration{0, time.Second, 3 * time.Second} {
		if pause > 0 {
			if wait(ctx, pause) != nil {
				break
			}
			if s, err = p.retrieve(ctx, s.ID); err != nil {
				continue
			}
		}
		inst, err = p.connect(ctx, id, s)
		if _, refused := errors.AsType[*cdp.Refused](err); err == nil || !refused && ctx.Err() != nil {
			return inst, err
		}
	}
	return inst, err
}

// onlyOne releases what a wish that was carried out twice has made.
func (p *Provider) onlyOne(ctx context.Context, id, keep string) error {
	running, err := p.named(ctx, id)
	if err != nil {
		return err
	}
	for _, s := range running {
		if s.ID == keep {
			continue
		}
		p.log.Warn("a session that was made twice is released", "browser", id)
		if err := p.release(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// clean releases what a failed start has made. What cannot be released now is
// looked for later.
func (p *Provider) clean(ctx context.Context, id, session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	if err := p.release(ctx, session); err != nil {
		p.log.Warn("a session that could not be used is released later", "browser", id, "error", err)
		p.let(id)
		p.lookLater(id)
	}
}

// settle closes the account of sessions that are over, and looks for those of
// an earlier process whose making was not answered.
func (p *Provider) settle(ctx context.Context, own []browser.Ref) {
	for _, open := range p.opts.Ledger.Running(Name) {
		running := false
		for _, ref := range own {
			running = running || ref.ID == open.ID
		}
		switch {
		case p.held(open.ID) || running:
		case open.Remote == "":
			p.lookLater(open.ID)
		default:
			s, err := p.retrieve(ctx, open.Remote)
			switch {
			case refusedWith(err, http.StatusNotFound):
				p.ended(open.ID, open.Until)
			case err == nil && !s.runs():
				p.ended(open.ID, s.EndedAt)
			}
		}
	}
}

// ended notes that a browser costs nothing any more.
func (p *Provider) ended(id string, at time.Time) {
	if at.IsZero() {
		at = time.Now()
	}
	p.opts.Ledger.End(id, at)
}

var errPanicked = errors.New("a part of it panicked")
