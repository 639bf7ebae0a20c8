package canary

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"tapin/internal/testwait"
)

// errand is one one-shot and the vectors that it sets off.
type errand struct {
	url  string
	rows []*row
}

// owed reports whether the caller must be told of it: some vectors never try.
func (e errand) owed() bool {
	return slices.ContainsFunc(e.rows, func(r *row) bool { return r.never == "" })
}

// errands are vectors as one-shots: addresses and whole pages one by one, the
// rest as frames, so many in a page.
func (w *world) errands(rows []*row, together int) []errand {
	var out []errand
	var frames []*row
	for _, r := range rows {
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

// together is how many frames share a page; a slow machine must be able to open
// them in the time of a one-shot.
const together = 12

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

// openRoom makes a room of one-shots under a policy, for as long as the test lasts.
func openRoom(t *testing.T, policy egress.Policy, warm int) *oneshot.Room {
	t.Helper()
	provider := local.New(shortDir(t), 1, &local.Options{Args: bolder})
	room, err := oneshot.New(oneshot.Deps{Provider: func() (browser.Provider, error) { return provider, nil }},
		&oneshot.Options{Policy: policy, Warm: warm, Most: 4})
	if err != nil {
		t.Fatal(err)
	}
	room.Begin()
	t.Cleanup(func() { closeRoom(t, room) })
	return room
}

// closeRoom ends all of it, so that nothing can touch a canary after the count.
func closeRoom(t *testing.T, room *oneshot.Room) {
	t.Helper()
	ending, cancel := testwait.Within(context.Background())
	defer cancel()
	if err := room.Close(ending); err != nil {
		t.Errorf("close: %v", err)
	}
}

// run carries errands out, a few at a time.
func run(ctx context.Context, room *oneshot.Room, all []errand) map[string]verdict {
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
	return told
}

// thorough says that there is time: make chaos, make soak and make test-long.
func thorough() bool {
	return os.Getenv("TAPIN_TEST_SOAK") != "" || os.Getenv("TAPIN_CHAOS") != "" || os.Getenv("TAPIN_TEST_LONG") != ""
}

// some lets every nth vector pass, and all where there is time. The guard is the
// same that all of them are held against in a session.
func some(n int) func(vector) bool {
	i := rand.IntN(n)
	return func(vector) bool {
		i++
		return thorough() || i%n == 0
	}
}

// TestNoVectorReachesTheMachineFromAOneShot also wants the caller to be told. A
// one-shot waits only so long for what goes on in its page: what was not tried in
// company is given one-shots of its own until it is.
func TestNoVectorReachesTheMachineFromAOneShot(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{"cold": 0}
	if thorough() {
		kinds["pooled"] = 4
	}
	for name, warm := range kinds {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*testwait.Limit())
			defer cancel()
			w := newWorld(t, some(6))
			close(w.gate)
			room := openRoom(t, w.strict(), warm)
			left, shots := w.errands(w.rows, together), 0
			for len(left) > 0 && ctx.Err() == nil {
				told := run(ctx, room, left)
				shots += len(told)
				var silent []*row
				for _, e := range left {
					if v := told[e.url]; e.owed() && !v.refused() {
						t.Logf("%s: the caller was told %v", e.rows[0].name, v)
						silent = append(silent, e.rows...)
					}
				}
				left = w.errands(silent, 1)
			}
			closeRoom(t, room)
			for _, e := range left {
				t.Errorf("%s: the caller was never told", e.rows[0].name)
			}
			for _, r := range w.rows {
				if hits := r.bird.touched(); hits != "" {
					t.Errorf("%s: the canary was reached: %s", r.name, hits)
				}
			}
			t.Logf("%d vectors in %d one-shots", len(w.rows), shots)
		})
	}
}

// TestVectorsReachACanaryFromAOneShotThatIsAllowed is what lets the test above
// fail: the same pages do reach it when the policy names it. A one-shot waits only
// so long for what goes on in its page; what did not get there in company is
// given one-shots of its own until it does.
func TestVectorsReachACanaryFromAOneShotThatIsAllowed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testwait.Limit())
	defer cancel()
	w := newWorld(t, some(10))
	close(w.gate)
	room := openRoom(t, w.open(), 0)
	reached := func(r *row) bool { return r.bird.count("tcp "+r.via) > 0 }
	left := slices.DeleteFunc(slices.Clone(w.rows), func(r *row) bool { return r.skip != "" })
	rounds := 0
	for company := together; len(left) > 0 && ctx.Err() == nil; company = 1 {
		run(ctx, room, w.errands(left, company))
		left = slices.DeleteFunc(left, func(r *row) bool { return r.never != "" || reached(r) })
		if rounds++; len(left) > 0 {
			t.Logf("%d not in round %d, %s first", len(left), rounds, left[0].name)
		}
	}
	closeRoom(t, room)
	came, cannot := 0, 0
	for _, r := range w.rows {
		switch {
		case r.skip != "":
		case r.never != "" && r.bird.touched() != "":
			t.Errorf("%s: the table says that it never gets there (%s), but it did: %s", r.name, r.never, r.bird.touched())
		case r.never != "":
			cannot++
		case reached(r):
			came++
		default:
			outcome, _ := w.outcome(r.n)
			t.Errorf("%s: the canary at %s was not reached; the page said %q", r.name, r.via, outcome)
		}
	}
	t.Logf("%d of %d vectors reached the canary, all in %d rounds; %d cannot", came, len(w.rows), rounds, cannot)
}
