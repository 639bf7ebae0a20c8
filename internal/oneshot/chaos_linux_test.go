package oneshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/testwait"
)

// rounds is how often a chaos test does its thing: a few times in every run,
// as often as TAPIN_CHAOS says in make chaos.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil && n > 0 {
		return n
	}
	return few
}

// crowded is a site with everything that could stay behind.
func crowded() *http.ServeMux {
	mux := http.NewServeMux()
	html(mux, "/plain", `<title>plain</title><p>plain`)
	html(mux, "/frames", `<title>frames</title><iframe src="/plain"></iframe><iframe srcdoc="<p>inner"></iframe>`)
	html(mux, "/workers", `<title>workers</title><p>words</p><script>new Worker(URL.createObjectURL(new Blob(["setInterval(() => 1, 10)"])));
		new SharedWorker(URL.createObjectURL(new Blob(["1"]))); navigator.serviceWorker.register("/sw.js")</script>`)
	html(mux, "/popups", `<title>popups</title><p>words</p><script>open("/plain"); open("/frames")</script>`)
	html(mux, "/asks", `<title>asks</title><p>words</p><script>alert(1); onbeforeunload = e => e.preventDefault()</script>`)
	html(mux, "/busy", `<title>busy</title><p>words</p><script>setTimeout(() => { for (;;) ; }, 50)</script>`)
	html(mux, "/moves", `<title>moves</title><p>words</p><script>location = "/plain"</script>`)
	mux.HandleFunc("/sw.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprint(w, "onfetch = () => {}")
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

// use is what one-shots could leave behind.
type use struct {
	goroutines, files, contexts int
	heap                        float64
}

func (w *world) use() use {
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	files, _ := os.ReadDir("/proc/self/fd")
	return use{runtime.NumGoroutine(), len(files), w.house.guestsNow(), float64(mem.HeapAlloc) / (1 << 20)}
}

// calm waits until nothing is under way.
func (w *world) calm(t *testing.T) {
	t.Helper()
	testwait.For(t, "calm", func() bool {
		w.pool.mu.Lock()
		quiet := w.pool.waiting == 0 && w.pool.making == 0
		w.pool.mu.Unlock()
		return quiet && len(w.pool.slots) == 0 && w.pool.readyNow() == 2 && w.house.guestsNow() == 2
	})
}

func TestChaosOneShotsLeaveNothingBehind(t *testing.T) {
	browsertest.Long(t)
	total := rounds(12)
	w := newWorld(t, crowded(), func(o *Options) { o.Warm = 2 })
	w.Begin()
	paths := []string{"/plain", "/frames", "/workers", "/popups", "/asks", "/busy", "/moves", "/slow"}
	var ok, failed, cancelled, kills atomic.Int32
	codes := sync.Map{}
	batch := func(n int, kill bool) {
		next := make(chan int)
		go func() {
			defer close(next)
			for i := range n {
				if kill && i%25 == 12 {
					w.kill(t)
					kills.Add(1)
				}
				next <- i
			}
		}()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range next {
					ctx, cancel := context.WithCancel(t.Context())
					leaves := rand.IntN(4) == 0 //nolint:gosec // a random choice
					if leaves {
						time.AfterFunc(time.Duration(rand.IntN(900))*time.Millisecond, cancel) //nolint:gosec // a random moment
					}
					c := w.at(paths[i%len(paths)])
					c.Within = 6 * time.Second // no time to try again: what is lost is lost
					var err error
					if i%2 == 0 {
						_, err = w.Screenshot(ctx, ShotCall{Call: c})
					} else {
						_, err = w.Extract(ctx, ExtractCall{Call: c})
					}
					cancel()
					switch {
					case err == nil:
						ok.Add(1)
					case leaves:
						cancelled.Add(1)
					default:
						failed.Add(1)
						n, _ := codes.LoadOrStore(fault.Of(err).Code, new(atomic.Int32))
						n.(*atomic.Int32).Add(1)
					}
				}
			})
		}
		wg.Wait()
		w.calm(t)
	}
	batch(8, false) // what is made once and kept is made now
	before := w.use()
	for left := total; left > 0; left -= 50 {
		batch(min(50, left), true)
	}
	testwait.For(t, "one browser", func() bool { return len(w.browsers()) == 1 })
	after := w.use()
	summary := map[fault.Code]int32{}
	codes.Range(func(code, n any) bool {
		summary[code.(fault.Code)] = n.(*atomic.Int32).Load()
		return true
	})
	t.Logf("%d one-shots: %d ok, %d left by their callers, %d failed %v; %d kills; contexts warm %v cold %v", total+8, ok.Load(), cancelled.Load(), failed.Load(), summary,
		kills.Load(), w.contexts("warm"), w.contexts("cold"))
	t.Logf("before %+v, after %+v", before, after)
	for code := range summary {
		if !slices.Contains([]fault.Code{fault.BrowserLost, fault.NavigationTimeout, fault.WaitTimeout, fault.SessionCreateFailed, fault.Busy}, code) {
			t.Errorf("a call failed with %s", code)
		}
	}
	if after.goroutines > before.goroutines+8 || after.files > before.files+8 || after.heap > before.heap+12 || after.contexts > 2 {
		t.Errorf("something stays behind: %+v before, %+v after", before, after)
	}
	if got, err := w.Extract(browsertest.Context(t), ExtractCall{Call: w.at("/plain")}); err != nil || got.Title != "plain" {
		t.Errorf("after all that: %+v, %v", got, err)
	}
}
