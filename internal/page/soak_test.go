package page_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// use is what actions could leave behind, here and in the page.
type use struct {
	Goroutines, Files, Documents, Listeners, Nodes int
	HeapMB                                         float64
}

func measure(t *testing.T, w *web, tab *page.Tab) use {
	t.Helper()
	ctx := browsertest.Context(t)
	at := browsertest.Attach(ctx, t, w.inst, target.ID(tab.ID()))
	for _, method := range []string{"Performance.enable", "HeapProfiler.collectGarbage"} {
		if err := at.Session.Call(ctx, method, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got struct {
		Metrics []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		} `json:"metrics"`
	}
	if err := at.Session.Call(ctx, "Performance.getMetrics", nil, &got); err != nil {
		t.Fatal(err)
	}
	if err := w.inst.Conn().Root().Call(ctx, "Target.detachFromTarget", map[string]any{"sessionId": at.Session.ID()}, nil); err != nil {
		t.Fatal(err)
	}
	if len(got.Metrics) == 0 {
		t.Fatal("the browser told nothing")
	}
	u := use{}
	for _, m := range got.Metrics {
		switch m.Name {
		case "Documents":
			u.Documents = int(m.Value)
		case "JSEventListeners":
			u.Listeners = int(m.Value)
		case "Nodes":
			u.Nodes = int(m.Value)
		}
	}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	u.HeapMB = float64(mem.HeapAlloc) / (1 << 20)
	u.Goroutines = runtime.NumGoroutine()
	files, _ := os.ReadDir("/proc/self/fd")
	u.Files = len(files)
	return u
}

// A long day's work must leave nothing behind. A few dozen actions in every run,
// a thousand in make soak.
func TestSoakManyActionsLeaveNothingBehind(t *testing.T) {
	browsertest.Long(t)
	rounds := 6
	if os.Getenv("TAPIN_TEST_SOAK") != "" {
		rounds = 100
	}
	ctx := browsertest.Context(t)
	w := visit(t, map[string]string{
		"/": `<title>one</title><body style="height:3000px"><form onsubmit="return false"><label>Name <input id=name></label>
			<label>Kind <select id=kind><option>a<option>b</select></label><label><input type=checkbox id=ok> Agree</label>
			<button onclick="document.title = 'sent ' + (window.n = (window.n || 0) + 1)">Send</button></form><a href="/two">Two</a>`,
		"/two": `<title>two</title><a href="/">One</a><iframe src="OTHER/frame"></iframe>`, "/frame": `<button>In the frame</button>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	var seen []use
	for round := range rounds {
		ctx := browsertest.Context(t)
		steps := []struct {
			name string
			do   func() error
		}{
			{"navigate", func() error { return second(tab.Navigate(ctx, w.URL+"/", "")) }},
			{"type", func() error {
				return second(tab.Type(ctx, secret.New("somebody"), page.TypeOptions{Locator: &page.Locator{CSS: "#name"}, Clear: true}))
			}},
			{"fill", func() error {
				return second(tab.Fill(ctx, []page.Field{{Locator: page.Locator{Label: "Agree"}, Value: secret.New("true")}}, 0))
			}},
			{"select", func() error { return second(tab.Select(ctx, page.Locator{CSS: "#kind"}, []string{"b"}, 0)) }},
			{"click", func() error { return second(tab.Click(ctx, page.Locator{Text: "Send"}, page.ClickOptions{})) }},
			{"press", func() error { return tab.Press(ctx, "Escape") }},
			{"scroll", func() error { return tab.Scroll(ctx, page.ScrollOptions{Direction: "down"}) }},
			{"hover", func() error { return second(tab.Hover(ctx, page.Locator{Text: "Two"}, 0)) }},
			{"snapshot", func() error { return second(tab.Snapshot(ctx, page.SnapshotOptions{})) }},
			{"screenshot", func() error { return second(tab.Screenshot(ctx, page.ShotOptions{Format: page.JPEG})) }},
			{"follow", func() error { return second(tab.Click(ctx, page.Locator{Text: "Two"}, page.ClickOptions{})) }},
			{"frame", func() error {
				return second(tab.Click(ctx, page.Locator{Text: "In the frame"}, page.ClickOptions{}))
			}},
		}
		for _, s := range steps {
			if err := s.do(); err != nil {
				t.Fatalf("round %d, %s: %v", round, s.name, err)
			}
		}
		seen = append(seen, measure(t, w, tab))
	}
	third := len(seen) / 3
	middle, last := worst(seen[third:2*third]), worst(seen[2*third:])
	t.Logf("%d actions: middle %+v, last %+v", rounds*12, middle, last)
	for name, pair := range map[string][2]float64{
		"goroutines": {float64(middle.Goroutines), float64(last.Goroutines)}, "files": {float64(middle.Files), float64(last.Files)},
		"documents": {float64(middle.Documents), float64(last.Documents)}, "listeners": {float64(middle.Listeners), float64(last.Listeners)},
		"nodes": {float64(middle.Nodes), float64(last.Nodes)}, "heap": {middle.HeapMB, last.HeapMB},
	} {
		// A few more than before is the noise of one browser; growth is not.
		if pair[1] > pair[0]*1.05+4 {
			t.Errorf("%s grow: %s", name, fmt.Sprint(pair))
		}
	}
}

// worst is the most of everything.
func worst(all []use) use {
	var out use
	for _, u := range all {
		out.Goroutines, out.Files = max(out.Goroutines, u.Goroutines), max(out.Files, u.Files)
		out.Documents, out.Listeners, out.Nodes = max(out.Documents, u.Documents), max(out.Listeners, u.Listeners), max(out.Nodes, u.Nodes)
		out.HeapMB = max(out.HeapMB, u.HeapMB)
	}
	return out
}
