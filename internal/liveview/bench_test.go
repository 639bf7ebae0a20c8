package liveview_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"tapin/bench/timing"
	"tapin/internal/browser/browsertest"
	"tapin/internal/link"
	"tapin/internal/testwait"
)

// pulse is a page that changes its colour with every press.
const pulse = `<!doctype html><body style="margin:0;background:red"><script>let n = 0; onmousedown = () => { document.body.style.background = n++ % 2 ? 'red' : 'blue' }</script>`

// Of two browsers that are alike one may be faster than the other, as long as it lives: so
// several pairs play. And a tap takes a seventh more or less, by chance: of 140 rounds the
// same figure was 1.02 and 1.06. The first rounds of a pair warm up.
const (
	roundsOfAPair = 20
	warmUp        = 2
)

// rested is how long a finger lies on the screen before a tap is one. The mouse has come
// there by then.
const rested = 80 * time.Millisecond

// BenchmarkTapToPicture measures the time from a tap to the changed picture at
// the viewer's socket, beside raw CDP on the same browser: two browsers, the same
// page, one round after the other; and then the next two.
func BenchmarkTapToPicture(b *testing.B) {
	var took timing.Rounds[time.Duration]
	for begun := 0; begun < b.N; begun += roundsOfAPair {
		measure(b, func(t *testing.T) { tapBesideRaw(t, &took, begun, min(begun+roundsOfAPair, b.N)) })
	}
	counted := took.Counted()
	if len(counted["raw"]) == 0 {
		b.Fatal("raw CDP showed nothing to compare with")
	}
	for name, q := range map[string]float64{"p50": .5, "p95": .95} {
		ours, raw := timing.Quantile(counted["ours"], q), timing.Quantile(counted["raw"], q)
		b.ReportMetric(timing.Milliseconds(ours), "ours-ms-"+name)
		b.ReportMetric(timing.Milliseconds(raw), "raw-ms-"+name)
		b.ReportMetric(float64(ours)/float64(raw), "ratio-"+name)
	}
}

// tapBesideRaw plays the rounds from one to another with two browsers.
func tapBesideRaw(t *testing.T, took *timing.Rounds[time.Duration], from, to int) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*testwait.Limit())
	defer cancel()
	h := open(ctx, t, map[string]string{"/": pulse}, nil)
	h.lend("hof_1")
	p := h.enter(ctx, link.Drive)
	p.width = 1280
	p.until("a sharp still", func() bool { return len(p.frames) > 0 && p.frames[len(p.frames)-1].flags&1 != 0 })
	inst, end := h.launch(ctx, "ses_floor-1", h.Server)
	defer end()
	inst.Conn().Dispatch()
	tab := browsertest.NewTab(ctx, t, inst)
	bare := tab.Session
	frames, off := bare.Subscribe("Page.screencastFrame")
	defer off()
	call := func(method string, params any) {
		if err := bare.Send(ctx, method, params); err != nil {
			t.Fatal(err)
		}
	}
	// A tab that is told to go elsewhere before its first renderer has answered
	// may never get there.
	ready := func(method string, params any) {
		if err := bare.Call(ctx, method, params, nil); err != nil {
			t.Fatal(err)
		}
	}
	ready("Page.enable", struct{}{})
	ready("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": false})
	ready("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	loaded, deaf := bare.Subscribe("Page.loadEventFired")
	defer deaf()
	call("Page.navigate", map[string]any{"url": h.URL + "/"})
	select {
	case <-loaded:
	case <-testwait.Over():
		t.Fatal("the floor's page did not load")
	}
	call("Page.bringToFront", struct{}{})
	call("Page.startScreencast", map[string]any{"format": "jpeg", "quality": 65, "maxWidth": 1280, "maxHeight": 720, "maxFramesInFlight": 2, "sendLastFrame": true})
	press := func(kind string) {
		call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": 50, "y": 50, "button": "left", "clickCount": 1})
	}
	// take reports whether a picture came; one that did not counts for nothing.
	take := func() bool {
		select {
		case raw := <-frames:
			call("Page.screencastFrameAck", map[string]any{"sessionId": numberOf(raw)})
			return true
		case <-time.After(3 * time.Second): // short: a picture that does not come counts for nothing
			return false
		}
	}
	take()
	floor := func() {
		for len(frames) > 0 {
			take()
		}
		began := time.Now()
		press("mousePressed")
		press("mouseReleased")
		if take() {
			took.Add("raw", time.Since(began))
		}
	}
	rest := func() {
		p.hover(ctx, "hof_1", 50, 50)
		time.Sleep(rested)
	}
	own := func() {
		before := len(p.seen())
		began := time.Now()
		p.tap(ctx, "hof_1", 50, 50)
		p.until("the changed picture", func() bool { return len(p.frames) > before })
		took.Add("ours", p.seen()[before].at.Sub(began))
	}
	// What either does after its turn is in the way of whose turn is next: raw CDP is done
	// with the picture, here where the fields lie is looked at then. Sharp stills of the
	// page's two colours are taken in the first rounds.
	ourTurn := turn{rest, own, 150 * time.Millisecond}
	rawTurn := turn{func() {}, floor, 50 * time.Millisecond}
	counted := took
	took = new(timing.Rounds[time.Duration])
	for i := from - warmUp; i < to; i++ {
		if i == from {
			took = counted
		}
		took.Begin()
		turns := []turn{rawTurn, ourTurn}
		if i&1 == 1 {
			slices.Reverse(turns)
		}
		for _, t := range turns {
			t.prepare()
			timing.InPhase(i + warmUp)
			t.take()
			time.Sleep(t.leftAlone)
		}
		took.End()
	}
}

// turn is what one does in a round, before it counts and while it does; and for how long
// everybody is left alone afterwards.
type turn struct {
	prepare, take func()
	leftAlone     time.Duration
}

// BenchmarkTapAmongViewers measures the time from a tap to the changed picture
// for the one who drives: alone, among twenty, and beside one who gets 100 kbit a
// second. Three sessions, the same page, one round after the other.
func BenchmarkTapAmongViewers(b *testing.B) {
	names := []string{"alone", "twenty", "narrow"}
	took := map[string][]time.Duration{}
	measure(b, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // short: ten minutes, for a measurement
		defer cancel()
		drivers := map[string]*phone{}
		for _, name := range names {
			h := open(ctx, t, map[string]string{"/": pulse}, nil)
			h.lend("hof_1")
			drivers[name] = h.enter(ctx, link.Drive)
			drivers[name].width = 1280
			switch name {
			case "twenty":
				for range 19 {
					h.enter(ctx, link.Drive)
				}
			case "narrow":
				h.narrowly(ctx)
			}
			drivers[name].until("a picture", func() bool { return len(drivers[name].frames) > 0 })
		}
		for range b.N {
			for _, name := range names {
				time.Sleep(700 * time.Millisecond) // the page rests, and its still is taken
				p := drivers[name]
				before := len(p.seen())
				began := time.Now()
				p.tap(ctx, "hof_1", 50, 50)
				p.until("the changed picture", func() bool { return len(p.frames) > before })
				took[name] = append(took[name], p.seen()[before].at.Sub(began))
			}
		}
	})
	median := func(name string) float64 {
		all := slices.Sorted(slices.Values(took[name]))
		return float64(all[(len(all)-1)/2].Microseconds()) / 1000
	}
	for _, name := range names {
		b.ReportMetric(median(name), name+"-ms-p50")
	}
	b.ReportMetric(median("twenty")/median("alone"), "twenty-ratio")
	b.ReportMetric(median("narrow")/median("alone"), "narrow-ratio")
}

// measure lends a benchmark what tests have.
func measure(b *testing.B, fn func(*testing.T)) {
	b.Helper()
	if !testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: b.Name(), F: fn}}) {
		b.Fatal("it did not hold")
	}
}
