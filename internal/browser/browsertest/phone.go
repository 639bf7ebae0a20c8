package browsertest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/browser/phone"
	"tapin/internal/cdp"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// Network is what lies between a phone and the world; the zero value is nothing.
type Network struct {
	Latency time.Duration
	Down    int // bytes a second
	Up      int
}

// Cellular is a phone in a shop: not fast, not dead.
var Cellular = Network{Latency: 60 * time.Millisecond, Down: 400_000, Up: 120_000}

// Phone is a phone room's phone for a test: what it cannot do fails the test.
type Phone struct {
	Tab
	t    *testing.T
	ctx  context.Context //nolint:containedctx // of one test
	hand *phone.Phone

	mu    sync.Mutex
	files []string // what its file dialog answers next
}

// Point is a place on the glass.
type Point = phone.Point

// NewPhone starts one. Everything ends with the test.
func NewPhone(ctx context.Context, t *testing.T, net Network) *Phone {
	t.Helper()
	transport, err := cdp.Dial(ctx, secret.New(Chromium(t).String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn := cdp.New(transport, nil)
	conn.Dispatch()
	t.Cleanup(func() { _ = conn.Close() })
	hand, err := phone.New(ctx, conn, "")
	if err != nil {
		t.Fatal(err)
	}
	hand.Patience = testwait.Limit()
	p := &Phone{Tab: Tab{Session: hand.Session, Target: hand.Target}, t: t, ctx: ctx, hand: hand}
	if !testwait.Long() {
		// Fewer points to draw, which is done by the processor here; still not one a pixel.
		p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": phone.Width, "height": phone.Height, "deviceScaleFactor": 2, "mobile": true})
	}
	p.do("Page.setInterceptFileChooserDialog", map[string]any{"enabled": true})
	if net != (Network{}) {
		p.do("Network.enable", map[string]any{})
		p.do("Network.emulateNetworkConditions", map[string]any{
			"offline": false, "latency": net.Latency.Milliseconds(), "downloadThroughput": net.Down, "uploadThroughput": net.Up, "connectionType": "cellular4g",
		})
	}
	cdp.Listen(p.Session, fileChooser, p.choose)
	return p
}

// fileChooser is the phone's own dialog, which a test answers for its person.
var fileChooser = proto.Event[chooserOpened]{Method: "Page.fileChooserOpened"}

type chooserOpened struct {
	BackendNodeID int64 `json:"backendNodeId"`
}

func (p *Phone) choose(e chooserOpened) {
	p.mu.Lock()
	files := p.files
	p.files = nil
	p.mu.Unlock()
	_ = p.Session.Send(p.ctx, "DOM.setFileInputFiles", map[string]any{"files": files, "backendNodeId": e.BackendNodeID})
}

func (p *Phone) do(method string, params map[string]any) {
	p.t.Helper()
	p.must(p.hand.Do(p.ctx, method, params))
}

func (p *Phone) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// Open goes to an address, as a tap on a link does.
func (p *Phone) Open(url string) {
	p.t.Helper()
	p.must(p.hand.Open(p.ctx, url))
}

// Reload loads the page again.
func (p *Phone) Reload() {
	p.t.Helper()
	p.do("Page.reload", map[string]any{})
}

// See is what a script that only looks evaluates to.
func (p *Phone) See(script string) string {
	p.t.Helper()
	return p.Eval(p.ctx, p.t, script)
}

// Until waits until a script that only looks is true.
func (p *Phone) Until(what, script string) {
	p.t.Helper()
	p.saw(p.hand.Until(p.ctx, what, script))
}

// saw fails the test if something was not seen, and says what there was instead.
func (p *Phone) saw(err error) {
	p.t.Helper()
	if missed, ok := errors.AsType[*phone.Missed](err); ok {
		p.t.Fatalf("%v (%v); it shows %s; %s", missed, missed.Err, p.Words(), p.geometry())
	}
	p.must(err)
}

// geometry is where things are, for whoever has to find out what went wrong.
func (p *Phone) geometry() string {
	said, _ := p.TryEval(p.ctx, `JSON.stringify([...document.querySelectorAll("#stage, #picture, #fields > *")].map(e => [e.id || e.ariaLabel, ...["x", "y", "width", "height"].map(k => Math.round(e.getBoundingClientRect()[k]))].join(" ")))`)
	return said
}

// Words is what the screen says.
func (p *Phone) Words() string {
	said, err := p.TryEval(p.ctx, `document.body.innerText.replace(/\s+/g, " ")`)
	if err != nil {
		return err.Error()
	}
	return said
}

// Where is the middle of an element, once a finger there would touch it.
func (p *Phone) Where(selector string) Point {
	p.t.Helper()
	at, err := p.hand.Where(p.ctx, selector)
	p.saw(err)
	return at
}

// Tap touches an element with a finger.
func (p *Phone) Tap(selector string) {
	p.t.Helper()
	p.saw(p.hand.Tap(p.ctx, selector))
}

// TapAt touches a place on the glass.
func (p *Phone) TapAt(at Point) {
	p.t.Helper()
	p.must(p.hand.TapAt(p.ctx, at))
}

// Hold keeps a finger on an element until something is so.
func (p *Phone) Hold(selector, until string) {
	p.t.Helper()
	p.saw(p.hand.Hold(p.ctx, selector, until))
}

// Drag moves fingers together, all by the same way.
func (p *Phone) Drag(dx, dy float64, fingers ...Point) {
	p.t.Helper()
	p.must(p.hand.Drag(p.ctx, dx, dy, fingers...))
}

// Type strikes the keys of a text, one after the other.
func (p *Phone) Type(text string) {
	p.t.Helper()
	p.must(p.hand.Type(p.ctx, text))
}

// Key strikes one that writes nothing by itself.
func (p *Phone) Key(name string) {
	p.t.Helper()
	p.must(p.hand.Key(p.ctx, name))
}

// Strike strikes a key by its name, the text it writes and its number.
func (p *Phone) Strike(key, text string, code int) {
	p.t.Helper()
	p.must(p.hand.Strike(p.ctx, key, text, code))
}

// Insert puts in a text whole, as a paste, a suggestion or the choice of an emoji does.
func (p *Phone) Insert(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text})
}

// Compose shows a text that an input method has not finished; an empty one ends it.
func (p *Phone) Compose(text string) {
	p.t.Helper()
	n := len([]rune(text))
	p.do("Input.imeSetComposition", map[string]any{"text": text, "selectionStart": n, "selectionEnd": n})
}

// All selects everything in the control that has the focus, as a long press and
// its menu do.
func (p *Phone) All() {
	p.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		p.do("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2, "commands": []string{"selectAll"}})
	}
}

// Give says what its file dialog answers when it next opens.
func (p *Phone) Give(files ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files = files
}

// Photograph writes what the screen shows into a file and says what stands on it,
// for whoever has to find out what went wrong.
func (p *Phone) Photograph(path string) {
	p.t.Helper()
	var shot struct {
		Data string `json:"data"`
	}
	ctx, cancel := testwait.Within(context.WithoutCancel(p.ctx)) // also after the test's own end
	defer cancel()
	said, err := p.TryEval(ctx, `document.body.innerText.replace(/\s+/g, " ") + " | " + [...document.querySelectorAll("#fields > *")].map(f =>
		f.ariaLabel + (f.type === "password" ? "" : "=" + f.value) + (f === document.activeElement ? " has the focus" : "")).join(", ")`)
	p.t.Logf("the phone shows %s (%v)", said, err)
	if err := p.Session.Call(ctx, "Page.captureScreenshot", map[string]any{
		"format": "png", "clip": map[string]any{"x": 0, "y": 0, "width": 390, "height": 844, "scale": 0.5},
	}, &shot); err != nil {
		p.t.Log(err)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		p.t.Log(fmt.Errorf("photograph: %w", err))
	}
}
