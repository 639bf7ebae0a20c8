package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"

	"tapin/bench/timing"
)

// relayPage is the least that shows another browser: a socket, a canvas, taps.
const relayPage = `<!doctype html><meta name=viewport content="width=device-width"><style>body{margin:0}#stage{position:absolute;overflow:hidden}canvas{position:absolute}</style><div id=stage><canvas id=picture></canvas></div>
<script>const ws = new WebSocket("ws://" + location.host + "/ws"), pen = picture.getContext("2d", { alpha: false, desynchronized: true })
ws.binaryType = "blob"
ws.onmessage = async e => {
  const b = await createImageBitmap(e.data)
  if (picture.width !== b.width) { picture.width = b.width; picture.height = b.height }
  pen.drawImage(b, 0, 0); b.close(); ws.send("drawn")
}
picture.onpointerup = e => ws.send(JSON.stringify({ x: e.offsetX / picture.clientWidth, y: e.offsetY / picture.clientHeight }))
const put = (el, at, from) => Object.assign(el.style, { left: at.x - from.x + "px", top: at.y - from.y + "px", width: at.width + "px", height: at.height + "px" })
const place = (outer, inner) => { put(stage, outer, { x: 0, y: 0 }); put(picture, inner, outer) }</script>`

// relay is the floor of the live view: frames of a browser passed on as they
// are, taps passed back, with nothing in between.
type relay struct {
	*httptest.Server
	tab *rawTab
}

func newRelay(ctx context.Context, chromium string) (*relay, error) {
	b, err := startRaw(ctx, chromium)
	if err != nil {
		return nil, err
	}
	t, err := b.open(true)
	if err != nil {
		return nil, err
	}
	r := &relay{tab: t}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ws" {
			r.serve(ctx, w, req)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(relayPage))
	}))
	if err := t.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": false}); err != nil {
		return nil, err
	}
	return r, t.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
}

func (r *relay) serve(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	conn, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	frames, deaf := r.tab.hear(r.tab.session, "Page.screencastFrame", 8)
	defer deaf()
	if r.tab.do("Page.startScreencast", map[string]any{"format": "jpeg", "quality": 65, "maxWidth": 1280, "maxHeight": 720}) != nil {
		return
	}
	acks := make(chan int, 8)
	go func() {
		for frame := range frames {
			var f struct {
				Data string `json:"data"`
				ID   int    `json:"sessionId"`
			}
			if json.Unmarshal(frame, &f) != nil {
				return
			}
			jpeg, err := base64.StdEncoding.DecodeString(f.Data)
			if err != nil || conn.Write(ctx, websocket.MessageBinary, jpeg) != nil {
				return
			}
			acks <- f.ID
		}
	}()
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if string(raw) == "drawn" {
			_, _ = r.tab.send(r.tab.session, "Page.screencastFrameAck", map[string]any{"sessionId": <-acks})
			continue
		}
		var at struct{ X, Y float64 }
		if json.Unmarshal(raw, &at) != nil {
			return
		}
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			_, _ = r.tab.send(r.tab.session, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X * 1280, "y": at.Y * 720, "button": "left", "clickCount": 1})
		}
	}
}

func (r *relay) close() {
	r.tab.end()
	r.CloseClientConnections()
	r.Close()
}

// phone is a browser that shows a live view, ours or the bare one.
type phone struct{ *rawTab }

// glassEyes note every picture that is drawn, and when the first one with
// another colour comes after a finger was lifted.
const glassEyes = `(() => {
  const draw = CanvasRenderingContext2D.prototype.drawImage
  window.drawn = 0
  let from = 0, was = ""
  const colour = () => { const c = document.querySelector("#picture"), d = c.getContext("2d").getImageData(c.width >> 1, c.height >> 1, 1, 1).data; return d[0] > 128 ? "red" : "blue" }
  CanvasRenderingContext2D.prototype.drawImage = function (...all) {
    draw.apply(this, all)
    window.drawn++
    if (from && colour() !== was) { const took = performance.now() - from; from = 0; window.told?.(took) }
  }
  addEventListener("pointerup", () => { was = colour(); from = performance.now() }, true)
  window.next = () => new Promise((done, fail) => { window.told = done; setTimeout(fail, 5000, Error("nothing changed")) })
})()`

func newPhone(ctx context.Context, chromium, url, ready string) (*phone, error) {
	b, err := startRaw(ctx, chromium)
	if err != nil {
		return nil, err
	}
	t, err := b.open(false)
	if err != nil {
		return nil, err
	}
	for method, params := range map[string]map[string]any{
		"Emulation.setDeviceMetricsOverride": {"width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": true},
		"Emulation.setTouchEmulationEnabled": {"enabled": true, "maxTouchPoints": 5},
		"Emulation.setFocusEmulationEnabled": {"enabled": true},
	} {
		if err := t.do(method, params); err != nil {
			return nil, err
		}
	}
	if err := t.navigate(url, "Page.loadEventFired"); err != nil {
		return nil, err
	}
	if err := t.eval(`new Promise((done, fail) => { const end = performance.now() + 20000, look = () => { let is = false; try { is = `+ready+` } catch {} if (is) return done(); if (performance.now() > end) return fail(Error("never ready")); setTimeout(look, 20) }; look() })`, nil); err != nil {
		return nil, err
	}
	return &phone{t}, t.eval(glassEyes, nil)
}

// fingerRests is how long a finger lies on the glass before it lifts.
const fingerRests = 80 * time.Millisecond

// tap touches the middle of the picture, for the nth time, and tells how long after the
// finger has lifted it changed.
func (p *phone) tap(n int) (time.Duration, error) {
	var at [2]float64
	if err := p.eval(`(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector("#picture").getBoundingClientRect())`, &at); err != nil {
		return 0, err
	}
	if err := p.eval(`void (window.soon = next())`, nil); err != nil {
		return 0, err
	}
	if err := p.do("Input.dispatchTouchEvent", map[string]any{"type": "touchStart", "touchPoints": []any{map[string]any{"x": at[0], "y": at[1], "id": 0}}}); err != nil {
		return 0, err
	}
	time.Sleep(fingerRests)
	timing.InPhase(n)
	if err := p.do("Input.dispatchTouchEvent", map[string]any{"type": "touchEnd", "touchPoints": []any{}}); err != nil {
		return 0, err
	}
	var took float64
	err := p.eval(`soon`, &took)
	return time.Duration(took * float64(time.Millisecond)), err
}

// showLike has the bare page show its picture as large as another one does, and
// as much of it: a phone has to draw what it shows.
func (p *phone) showLike(other *phone) error {
	var places json.RawMessage
	if err := other.eval(`["stage", "picture"].map(id => document.getElementById(id).getBoundingClientRect().toJSON())`, &places); err != nil {
		return err
	}
	return p.eval("place(..."+string(places)+")", nil)
}

// pace is how many pictures a second are drawn.
func (p *phone) pace(during time.Duration) (float64, error) {
	var before, after int
	if err := p.eval("drawn", &before); err != nil {
		return 0, err
	}
	began := time.Now()
	time.Sleep(during)
	if err := p.eval("drawn", &after); err != nil {
		return 0, err
	}
	return float64(after-before) / time.Since(began).Seconds(), nil
}
