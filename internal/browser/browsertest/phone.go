package browsertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
	"tapin/internal/secret"
)

// Network is what lies between a phone and the world; the zero value is nothing.
type Network struct {
	Latency time.Duration
	Down    int // bytes a second
	Up      int
}

// Cellular is a phone in a shop: not fast, not dead.
var Cellular = Network{Latency: 60 * time.Millisecond, Down: 400_000, Up: 120_000}

// Phone is a real Chromium that behaves as a phone does: a small and sharp
// screen, fingers, a network that is not the machine's own. What a person would
// do is done by touch and key events alone; scripts only look.
type Phone struct {
	Tab
	t    *testing.T
	ctx  context.Context //nolint:containedctx // of one test
	conn *cdp.Conn

	mu    sync.Mutex
	files []string // what its file dialog answers next
}

// NewPhone starts one. Everything ends with the test.
func NewPhone(ctx context.Context, t *testing.T, net Network) *Phone {
	t.Helper()
	transport, err := cdp.Dial(ctx, secret.New(Chromium(t).String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Phone{t: t, ctx: ctx, conn: cdp.New(transport, nil)}
	p.conn.Dispatch()
	t.Cleanup(func() { _ = p.conn.Close() })
	made, err := proto.Call(ctx, p.conn.Root(), target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	if err != nil {
		t.Fatal(err)
	}
	flat := true
	at, err := proto.Call(ctx, p.conn.Root(), target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: &flat})
	if err != nil {
		t.Fatal(err)
	}
	p.Tab = Tab{Session: p.conn.Session(at.SessionID), Target: made.TargetID}
	p.do("Page.enable", nil)
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": true})
	p.do("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true, "maxTouchPoints": 5})
	p.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	p.do("Page.setInterceptFileChooserDialog", map[string]any{"enabled": true})
	if net != (Network{}) {
		p.do("Network.enable", nil)
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

func (p *Phone) do(method string, params any) {
	p.t.Helper()
	if params == nil {
		params = struct{}{}
	}
	if err := p.Session.Call(p.ctx, method, params, nil); err != nil {
		p.t.Fatal(err)
	}
}

// Open goes to an address, as a tap on a link does.
func (p *Phone) Open(url string) {
	p.t.Helper()
	p.do("Page.navigate", map[string]any{"url": url})
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
	deadline := time.Now().Add(20 * time.Second)
	said := ""
	for time.Now().Before(deadline) && p.ctx.Err() == nil {
		got, err := p.TryEval(p.ctx, `new Promise(done => {
			const end = performance.now() + 500
			const look = () => {
				let is; try { is = Boolean(`+script+`) } catch (e) { is = false }
				if (is || performance.now() > end) return done(is)
				setTimeout(look, 10)
			}
			look()
		})`)
		if got == "true" {
			return
		}
		if err != nil {
			said = err.Error() // the page is on its way
			time.Sleep(20 * time.Millisecond)
		}
	}
	p.t.Fatalf("the phone never saw: %s (%s); it shows %s; %s", what, said, p.Words(), p.geometry())
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

// Point is a place on the glass.
type Point struct{ X, Y float64 }

// Where is the middle of an element, once a finger there would touch it. A finger
// comes down some time after the eye has looked, so that what is still on its way,
// with the sheet that it lies in for instance, is waited for.
func (p *Phone) Where(selector string) Point {
	p.t.Helper()
	quoted := strconv.Quote(selector)
	p.Until("something at rest to touch at "+selector, `(() => {
		const el = document.querySelector(`+quoted+`)
		if (!el) return false
		for (let moved = el; moved; moved = moved.parentElement) {
			if (moved.getAnimations().some(a => a.playState === "running" && a.effect.getComputedTiming().iterations !== Infinity)) return false
		}
		const r = el.getBoundingClientRect(), hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)
		return r.width > 0 && el.contains(hit)
	})()`)
	var at [2]float64
	p.read(`JSON.stringify((r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector(`+quoted+`).getBoundingClientRect()))`, &at)
	return Point{at[0], at[1]}
}

func (p *Phone) read(script string, into any) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.See(script)), into); err != nil {
		p.t.Fatal(err)
	}
}

// Tap touches an element with a finger.
func (p *Phone) Tap(selector string) {
	p.t.Helper()
	p.TapAt(p.Where(selector))
}

// TapAt touches a place on the glass.
func (p *Phone) TapAt(at Point) {
	p.t.Helper()
	p.touch("touchStart", at)
	p.touch("touchEnd")
}

// Hold keeps a finger on an element until something is so.
func (p *Phone) Hold(selector, until string) {
	p.t.Helper()
	p.touch("touchStart", p.Where(selector))
	p.Until(until+" under the finger", until)
	p.touch("touchEnd")
}

// Drag moves fingers together, all by the same way.
func (p *Phone) Drag(dx, dy float64, fingers ...Point) {
	p.t.Helper()
	p.touch("touchStart", fingers...)
	const steps = 8
	for i := 1; i <= steps; i++ {
		moved := make([]Point, len(fingers))
		for j, f := range fingers {
			moved[j] = Point{f.X + dx*float64(i)/steps, f.Y + dy*float64(i)/steps}
		}
		p.touch("touchMove", moved...)
	}
	p.touch("touchEnd")
}

func (p *Phone) touch(kind string, fingers ...Point) {
	p.t.Helper()
	points := []map[string]any{}
	for i, f := range fingers {
		points = append(points, map[string]any{"x": f.X, "y": f.Y, "id": i})
	}
	p.do("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": points})
}

// Type strikes the keys of a text, one after the other.
func (p *Phone) Type(text string) {
	p.t.Helper()
	for _, c := range text {
		p.Strike(string(c), string(c), 0)
	}
}

// Key strikes one that writes nothing by itself.
func (p *Phone) Key(name string) {
	p.t.Helper()
	codes := map[string]int{"Enter": 13, "Tab": 9, "Backspace": 8, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Escape": 27}
	text := ""
	if name == "Enter" {
		text = "\r"
	}
	p.Strike(name, text, codes[name])
}

// Strike strikes a key by its name, the text it writes and its number.
func (p *Phone) Strike(key, text string, code int) {
	p.t.Helper()
	down := map[string]any{"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": code}
	if text != "" {
		down["type"], down["text"] = "keyDown", text
	}
	p.do("Input.dispatchKeyEvent", down)
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})
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
	var shot struct{ Data string }
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), 5*time.Second) // also after the test's own end
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
