// Package phone is a Chromium tab that behaves as a phone in a hand: a small,
// sharp screen, fingers and keys. It owns how touches and keys are made, and how
// one waits for what the screen shows. It must never act by a script: scripts
// only look, and what a person would do is done by touch and key events alone.
package phone

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
)

// The glass, in CSS pixels.
const (
	Width  = 390
	Height = 844
)

// patience is how long a person looks for something before they give up.
const patience = 20 * time.Second

// Phone is one tab. It is for one user at a time.
type Phone struct {
	Session  *cdp.Session
	Target   target.ID
	Patience time.Duration // how long something is looked for; 20 s
}

// New opens a tab in a browser, in the browser context named or in the default
// one, and gives it the shape and the senses of a phone. The connection has to
// dispatch its events.
func New(ctx context.Context, conn *cdp.Conn, browserContext string) (*Phone, error) {
	made, err := proto.Call(ctx, conn.Root(), target.CreateTarget, target.CreateTargetParams{
		URL: "about:blank", BrowserContextID: proto.BrowserContextID(browserContext),
	})
	if err != nil {
		return nil, err
	}
	flat := true
	at, err := proto.Call(ctx, conn.Root(), target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: &flat})
	if err != nil {
		return nil, err
	}
	p := &Phone{Session: conn.Session(at.SessionID), Target: made.TargetID, Patience: patience}
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"Page.enable", map[string]any{}},
		{"Emulation.setDeviceMetricsOverride", map[string]any{"width": Width, "height": Height, "deviceScaleFactor": 3, "mobile": true}},
		{"Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true, "maxTouchPoints": 5}},
		{"Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}},
	} {
		if err := p.Do(ctx, c.method, c.params); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Do sends a command whose answer does not matter.
func (p *Phone) Do(ctx context.Context, method string, params map[string]any) error {
	return p.Session.Call(ctx, method, params, nil)
}

// Open goes to an address, as a tap on a link does.
func (p *Phone) Open(ctx context.Context, url string) error {
	return p.Do(ctx, "Page.navigate", map[string]any{"url": url})
}

// See is what a script that only looks evaluates to, as text.
func (p *Phone) See(ctx context.Context, script string) (string, error) {
	yes := true
	got, err := proto.Call(ctx, p.Session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "Promise.resolve(" + script + ").then(String)", AwaitPromise: &yes, ReturnByValue: &yes, UserGesture: &yes,
	})
	if err != nil {
		return "", err
	}
	if got.ExceptionDetails != nil {
		return "", fmt.Errorf("the page threw: %s", got.ExceptionDetails.Text)
	}
	text, err := strconv.Unquote(string(got.Result.Value))
	if err != nil {
		return string(got.Result.Value), nil
	}
	return text, nil
}

// Read decodes what a script evaluates to, which is JSON.
func (p *Phone) Read(ctx context.Context, script string, into any) error {
	said, err := p.See(ctx, script)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(said), into)
}

// Missed is the error of a wait that came to nothing. It does not say what the
// screen showed, which may be anybody's.
type Missed struct {
	What string // that was waited for
	Err  error  // the last trouble of looking, nil if it was simply not there
}

func (m *Missed) Error() string { return "the phone never saw: " + m.What }

// Until waits until a script that only looks is true.
func (p *Phone) Until(ctx context.Context, what, script string) error {
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	missed := &Missed{What: what}
	for ctx.Err() == nil {
		got, err := p.See(ctx, `new Promise(done => {
			const end = performance.now() + 500
			const look = () => {
				let is; try { is = Boolean(`+script+`) } catch (e) { is = false }
				if (is || performance.now() > end) return done(is)
				setTimeout(look, 10)
			}
			look()
		})`)
		if got == "true" {
			return nil
		}
		if err != nil {
			missed.Err = err // the page is on its way
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	return missed
}

// Point is a place on the glass.
type Point struct{ X, Y float64 }

// Where is the middle of an element, once a finger there would touch it. A finger
// comes down some time after the eye has looked, so that what is still on its way,
// with the sheet that it lies in for instance, is waited for.
func (p *Phone) Where(ctx context.Context, selector string) (Point, error) {
	quoted := strconv.Quote(selector)
	err := p.Until(ctx, "something at rest to touch at "+selector, `(() => {
		const el = document.querySelector(`+quoted+`)
		if (!el) return false
		for (let moved = el; moved; moved = moved.parentElement) {
			if (moved.getAnimations().some(a => a.playState === "running" && a.effect.getComputedTiming().iterations !== Infinity)) return false
		}
		const r = el.getBoundingClientRect(), hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)
		return r.width > 0 && el.contains(hit)
	})()`)
	if err != nil {
		return Point{}, err
	}
	var at [2]float64
	err = p.Read(ctx, `JSON.stringify((r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector(`+quoted+`).getBoundingClientRect()))`, &at)
	return Point{at[0], at[1]}, err
}
