package oneshot

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/fault"
	"tapin/internal/testwait"
)

// browsers are the folders of those that run.
func (w *world) browsers() []string {
	found, _ := filepath.Glob(filepath.Join(w.run, mark+"*"))
	for i, dir := range found {
		found[i] = filepath.Base(dir)
	}
	return found
}

// kill ends the one-shot Chromium as a crash would.
func (w *world) kill(t *testing.T) {
	t.Helper()
	for _, id := range w.browsers() {
		if pid := chromiumOf(id); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// chromiumOf is the browser's process, 0 when it is on its way in or out.
func chromiumOf(id string) int { return browsertest.BrowserOf(id) }

// slowly serves a page that comes when it is let, and one that comes at once.
func slowly() (mux *http.ServeMux, arrived chan struct{}) {
	mux, arrived = http.NewServeMux(), make(chan struct{}, 100)
	html(mux, "/", `<title>quick</title>quick`)
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	return mux, arrived
}

func TestABrowserThatIsKilledIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	mux := http.NewServeMux()
	var once sync.Once
	var w *world
	mux.HandleFunc("/", func(out http.ResponseWriter, r *http.Request) {
		first := false
		once.Do(func() { first = true })
		if first {
			w.kill(t)
			<-r.Context().Done()
			return
		}
		_, _ = out.Write([]byte("<title>here</title>here"))
	})
	w = newWorld(t, mux, nil)
	got, err := w.Extract(ctx, ExtractCall{Call: w.at("/")})
	if err != nil || got.Title != "here" || got.Retries != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	testwait.For(t, "one browser", func() bool { return len(w.browsers()) == 1 })
}

func TestACallWithoutTimeForAnotherAttemptSaysThatTheBrowserIsGone(t *testing.T) {
	t.Parallel()
	mux, arrived := slowly()
	w := newWorld(t, mux, nil)
	go func() {
		<-arrived
		w.kill(t)
	}()
	c := ExtractCall{Call: w.at("/slow")}
	c.Within = 20 * time.Second
	_, err := w.Extract(browsertest.Context(t), c)
	if f := wantCode(t, err, fault.BrowserLost); f.Data["retries"] != 0 {
		t.Errorf("%v", f.Data)
	}
}

func TestACallerWhoLeavesTakesTheContextAlong(t *testing.T) {
	t.Parallel()
	mux, arrived := slowly()
	w := newWorld(t, mux, nil)
	ctx, cancel := context.WithCancel(browsertest.Context(t))
	go func() {
		<-arrived
		cancel()
	}()
	began := time.Now()
	if _, err := w.Screenshot(ctx, ShotCall{Call: w.at("/slow")}); err == nil || time.Since(began) > openWithin {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	testwait.For(t, "the context to go", func() bool { return w.house.guestsNow() == 0 && !w.pool.busy() })
}

func TestABrowserThatNobodyNeedsIsEnded(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	mux, _ := slowly()
	w := newWorld(t, mux, nil)
	w.house.rhythm.tick, w.house.rhythm.idle = 50*time.Millisecond, 100*time.Millisecond
	for range 2 {
		if _, err := w.Extract(browsertest.Context(t), ExtractCall{Call: w.at("/")}); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, "the browser to end", func() bool { return len(w.browsers()) == 0 })
	}
}

func TestABrowserThatIsWornOutIsReplaced(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	mux, _ := slowly()
	w := newWorld(t, mux, nil)
	w.house.rhythm.uses = 2
	seen := map[string]bool{}
	for range 4 {
		if _, err := w.Extract(browsertest.Context(t), ExtractCall{Call: w.at("/")}); err != nil {
			t.Fatal(err)
		}
		for _, id := range w.browsers() {
			seen[id] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("there were %d browsers", len(seen))
	}
	testwait.For(t, "the worn ones to end", func() bool { return len(w.browsers()) == 0 })
}

func TestWarmContexts(t *testing.T) {
	t.Parallel()
	mux, _ := slowly()
	ctx := browsertest.Context(t)
	t.Run("are taken first and made again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, mux, func(o *Options) { o.Warm = 2 })
		w.Begin()
		testwait.For(t, "two contexts", func() bool { return w.pool.readyNow() == 2 })
		for range 2 {
			if _, err := w.Extract(ctx, ExtractCall{Call: w.at("/")}); err != nil {
				t.Fatal(err)
			}
		}
		if w.contexts("warm") != 2 || w.contexts("cold") != 0 {
			t.Errorf("%v warm, %v cold", w.contexts("warm"), w.contexts("cold"))
		}
		testwait.For(t, "two contexts again", func() bool { return w.pool.readyNow() == 2 })
	})
	t.Run("that have waited too long give way to fresh ones", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, mux, func(o *Options) { o.Warm = 1 })
		w.pool.oldest = 300 * time.Millisecond
		w.Begin()
		made := map[*place]bool{}
		testwait.For(t, "three generations", func() bool {
			w.pool.mu.Lock()
			defer w.pool.mu.Unlock()
			for _, p := range w.pool.ready {
				made[p] = true
			}
			return len(made) >= 3
		})
		if n := w.house.guestsNow(); n > 2 {
			t.Errorf("%d contexts are there", n)
		}
	})
	t.Run("that died with their browser are not given out", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, mux, func(o *Options) { o.Warm = 1 })
		w.Begin()
		testwait.For(t, "a context", func() bool { return w.pool.readyNow() == 1 })
		w.kill(t)
		if got, err := w.Extract(ctx, ExtractCall{Call: w.at("/")}); err != nil || got.Title != "quick" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("are made one at a time for a call that is announced", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, mux, nil)
		for range 5 {
			if !w.Intent("take a screenshot of https://example.com").Browser {
				t.Fatal("no")
			}
		}
		testwait.For(t, "the context", func() bool { return w.pool.readyNow() == 1 })
		if _, err := w.Extract(ctx, ExtractCall{Call: w.at("/")}); err != nil || w.contexts("warm") != 1 {
			t.Errorf("%v warm, %v", w.contexts("warm"), err)
		}
		if n := w.pool.readyNow(); n != 0 {
			t.Errorf("%d more are ready", n)
		}
	})
}

func TestHandsThatAreFullAreSaidToBe(t *testing.T) {
	t.Parallel()
	mux, arrived := slowly()
	w := newWorld(t, mux, func(o *Options) { o.Most = 1 })
	ctx, cancel := context.WithCancel(browsertest.Context(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = w.Extract(ctx, ExtractCall{Call: w.at("/slow")})
	}()
	<-arrived
	c := ExtractCall{Call: w.at("/")}
	c.Within = 100 * time.Millisecond
	_, err := w.Extract(ctx, c)
	_ = wantCode(t, err, fault.Busy)

	var refused atomic.Int32
	var wg sync.WaitGroup
	crowd, disperse := context.WithCancel(ctx)
	for range mostWaiting + 5 {
		wg.Go(func() {
			if _, err := w.Extract(crowd, ExtractCall{Call: w.at("/")}); fault.Of(err) != nil && fault.Of(err).Code == fault.Busy {
				refused.Add(1)
			}
		})
	}
	testwait.For(t, "those beyond the line to be sent away", func() bool { return refused.Load() == 5 })
	disperse()
	wg.Wait()
	cancel()
	<-ended
	if _, err := w.Extract(browsertest.Context(t), ExtractCall{Call: w.at("/")}); err != nil {
		t.Errorf("when hands are free again: %v", err)
	}
}

func TestWhatAnEarlierProcessLeftIsEnded(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	mux, _ := slowly()
	w := newWorld(t, mux, nil)
	earlier, err := local.New(w.run, 0, nil).Share(ctx, browser.Spec{ID: mark + "_left", KeepUntil: testwait.Late()})
	if err != nil {
		t.Fatal(err)
	}
	other, err := local.New(w.run, 0, nil).Create(ctx, browser.Spec{ID: "ses_other", KeepUntil: testwait.Late()})
	if err != nil {
		t.Fatal(err)
	}
	defer browsertest.End(t, local.New(w.run, 1<<40, nil), other.Ref())
	w.Begin()
	if _, err := w.Extract(ctx, ExtractCall{Call: w.at("/")}); err != nil {
		t.Fatal(err)
	}
	<-earlier.Done()
	testwait.For(t, "the left-over to go", func() bool {
		_, err := os.Stat(filepath.Join(w.run, mark+"_left"))
		return os.IsNotExist(err) && len(w.browsers()) == 1
	})
	if _, err := os.Stat(filepath.Join(w.run, "ses_other")); err != nil {
		t.Errorf("a session's browser was touched: %v", err)
	}
}

func TestARoomThatIsClosedTakesNoCalls(t *testing.T) {
	t.Parallel()
	mux, arrived := slowly()
	w := newWorld(t, mux, nil)
	failed := make(chan error, 1)
	go func() {
		_, err := w.Extract(browsertest.Context(t), ExtractCall{Call: w.at("/slow")})
		failed <- err
	}()
	<-arrived
	if err := w.Close(browsertest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the call under way worked")
	}
	_, err := w.Extract(browsertest.Context(t), ExtractCall{Call: w.at("/")})
	_ = wantCode(t, err, fault.Busy)
	if left := w.browsers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
