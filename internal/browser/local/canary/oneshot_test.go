package canary

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/oneshot"
	"tapin/internal/page"
	"tapin/internal/store"
)

// errand is one one-shot and the vectors that it sets off.
type errand struct {
	url  string
	rows []*row
}

// errands are all vectors as one-shots: addresses and whole pages one by one,
// the rest as frames, several in a page.
func (w *world) errands() []errand {
	const together = 12
	var out []errand
	var frames []*row
	for _, r := range w.rows {
		switch {
		case r.skip != "":
		case r.js == spelled:
			out = append(out, errand{r.fill.Replace("http://@HOST@/"), []*row{r}})
		case r.window:
			at := r.page()
			if !strings.HasPrefix(at, "http") {
				at = w.site.URL + at
			}
			out = append(out, errand{at, []*row{r}})
		default:
			frames = append(frames, r)
		}
	}
	for some := range slices.Chunk(frames, together) {
		q := url.Values{}
		for _, r := range some {
			q.Add("row", fmt.Sprint(r.n))
		}
		out = append(out, errand{w.site.URL + "/driver?" + q.Encode(), some})
	}
	return out
}

// verdict is what the caller of a one-shot was told.
type verdict struct {
	code    fault.Code // of the call itself
	rule    any
	blocked []oneshot.Blocked
}

func (v verdict) String() string { return fmt.Sprintf("%s %v %v", v.code, v.rule, v.blocked) }

// refused reports whether it says that something was, and why.
func (v verdict) refused() bool {
	switch {
	case v.code == fault.InvalidURL:
		return true
	case v.code == fault.BlockedTarget:
		return v.rule != nil && v.rule != ""
	}
	return len(v.blocked) > 0 && !slices.ContainsFunc(v.blocked, func(b oneshot.Blocked) bool { return b.Code != fault.BlockedTarget || b.Rule == "" })
}

// runErrands carries all of them out, a few at a time.
func runErrands(ctx context.Context, t *testing.T, w *world, policy egress.Policy, warm int) map[string]verdict {
	t.Helper()
	run := shortDir(t)
	provider := local.New(run, 1, &local.Options{Args: bolder})
	room, err := oneshot.New(oneshot.Deps{Provider: func() (browser.Provider, error) { return provider, nil }},
		&oneshot.Options{Policy: policy, Warm: warm, Most: 4})
	if err != nil {
		t.Fatal(err)
	}
	room.Begin()
	all := w.errands()
	told, mu := map[string]verdict{}, sync.Mutex{}
	next := make(chan errand)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for e := range next {
				got, err := room.Screenshot(ctx, oneshot.ShotCall{Call: oneshot.Call{URL: e.url, Within: 20 * time.Second}})
				v := verdict{blocked: got.Blocked}
				if err != nil {
					v.code, v.rule = fault.Of(err).Code, fault.Of(err).Data["rule"]
				}
				mu.Lock()
				told[e.url] = v
				mu.Unlock()
			}
		})
	}
	for _, e := range all {
		next <- e
	}
	close(next)
	wg.Wait()
	ending, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := room.Close(ending); err != nil {
		t.Errorf("close: %v", err)
	}
	return told
}

// thorough says that there is time: make chaos and make soak.
func thorough() bool { return os.Getenv("TAPIN_TEST_SOAK") != "" || os.Getenv("TAPIN_CHAOS") != "" }

func TestNoVectorReachesTheMachineFromAOneShot(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{"cold": 0}
	if thorough() {
		kinds["pooled"] = 4
	}
	for name, warm := range kinds {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			w := newWorld(t, nil)
			close(w.gate)
			told := runErrands(ctx, t, w, w.strict(), warm)
			rows := 0
			for _, e := range w.errands() {
				rows += len(e.rows)
				owed := false
				for _, r := range e.rows {
					if hits := r.bird.touched(); hits != "" {
						t.Errorf("%s: the canary was reached: %s", r.name, hits)
					}
					owed = owed || r.never == ""
				}
				if v := told[e.url]; owed && !v.refused() {
					t.Errorf("%s: the caller was told %v", e.rows[0].name, v)
				}
			}
			t.Logf("%d vectors in %d one-shots", rows, len(told))
		})
	}
}

// TestVectorsReachACanaryFromAOneShotThatIsAllowed is what lets the test above
// fail: the same pages do reach it when the policy names it, as far as they get
// to it before the one-shot is over.
func TestVectorsReachACanaryFromAOneShotThatIsAllowed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n := 0
	w := newWorld(t, func(v vector) bool {
		n++
		return thorough() || n%6 == 0 && !v.blind
	})
	close(w.gate)
	runErrands(ctx, t, w, w.open(), 0)
	reached, missed := 0, []string{}
	for _, e := range w.errands() {
		for _, r := range e.rows {
			switch {
			case r.bird.count("tcp "+r.via) > 0:
				reached++
			case r.never == "" && !r.blind:
				missed = append(missed, r.name)
			}
		}
	}
	t.Logf("%d of %d vectors reached the canary; not in time: %q", reached, len(w.rows), missed)
	if len(missed) > len(w.rows)/10 || reached < len(w.rows)/2 {
		t.Errorf("%d vectors did not reach a canary that is allowed: %q", len(missed), missed)
	}
}

func TestNoVectorReachesTheMachineFromAOneShotWhoseOwnerIsDead(t *testing.T) {
	t.Parallel()
	ctx := patience(t)
	w, run := newWorld(t, func(v vector) bool { return v.js != spelled && !v.window && !v.overIPv6() }), shortDir(t)
	shared, err := local.New(run, 1, &local.Options{Args: bolder}).Share(ctx, browser.Spec{
		ID: store.NewID("oneshot"), KeepUntil: time.Now().Add(3 * time.Minute), Policy: w.strict(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, run, shared.Ref()) })
	room, err := shared.Context(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tabs, err := page.Open(ctx, room, &page.Options{Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Navigate(ctx, w.site.URL+"/driver", page.WaitDOM); err != nil {
		t.Fatal(err)
	}
	tabs.Close()
	_ = room.Conn().Close() // to the holder a killed sidecar is a line that ends

	close(w.gate)
	settled := func() (n int) {
		for _, r := range w.rows {
			if _, ok := w.outcome(r.n); ok {
				n++
			}
		}
		return n
	}
	// What waits for a debugger that is gone, workers say, waits for ever.
	for deadline, last := time.Now().Add(within), -1; time.Now().Before(deadline); {
		now := settled()
		if now == last && now > len(w.rows)/3 {
			break
		}
		last = now
		time.Sleep(grace)
	}
	t.Logf("%d of %d vectors came to an end", settled(), len(w.rows))
	if settled() < len(w.rows)/3 {
		t.Error("too few of them ran to prove anything")
	}
	end(t, run, shared.Ref())
	for _, r := range w.rows {
		if hits := r.bird.touched(); hits != "" {
			t.Errorf("%s: the canary was reached: %s", r.name, hits)
		}
	}
}
