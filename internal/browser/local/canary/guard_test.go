package canary

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// grace is given once, to what tells nobody.
const grace = 1500 * time.Millisecond

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// bolder makes the page stronger than it is in life: no question before a
// popup, no fear of our certificates.
var bolder = []string{"--disable-popup-blocking", "--ignore-certificate-errors", "--autoplay-policy=no-user-gesture-required"}

// shortDir is a folder with a path short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start makes a browser under a policy.
func start(ctx context.Context, t *testing.T, run string, policy egress.Policy, flags ...string) browser.Instance {
	t.Helper()
	p := local.New(run, 1, &local.Options{Args: slices.Concat(bolder, flags)})
	inst, err := p.Create(ctx, browser.Spec{ID: store.NewID("ses") + "-1", KeepUntil: testwait.Late(), Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { browsertest.End(t, local.New(run, 1<<40, nil), inst.Ref()) })
	return inst
}

// end ends the browser now, so that nothing can touch a canary after the count.
func end(t *testing.T, run string, ref browser.Ref) {
	t.Helper()
	browsertest.End(t, local.New(run, 1<<40, nil), ref)
}

// reports are the refusals that the guard told of, by port.
type reports struct {
	mu   sync.Mutex
	seen map[uint16][]egress.Block
	gap  chan browser.Gap
}

// listen begins to hear of refusals, once the connection dispatches its events.
func listen(inst browser.Instance) *reports {
	r := &reports{seen: map[uint16][]egress.Block{}, gap: make(chan browser.Gap, 1)}
	inst.Conn().Root().On(browser.EventBlocked, func(raw jsonv2.Value) {
		var b egress.Block
		if json.Unmarshal(raw, &b) == nil && !b.Vendor {
			r.mu.Lock()
			r.seen[b.Port] = append(r.seen[b.Port], b)
			r.mu.Unlock()
		}
	})
	inst.Conn().Root().On(browser.EventGap, func(raw jsonv2.Value) {
		var g browser.Gap
		if json.Unmarshal(raw, &g) == nil {
			r.gap <- g
		}
	})
	return r
}

func (r *reports) of(port uint16) []egress.Block {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[port]
}

// navigateAll gives the browser every spelled address, as an agent's call would.
func navigateAll(ctx context.Context, t *testing.T, inst browser.Instance, w *world) {
	t.Helper()
	tab := browsertest.NewTab(ctx, t, inst)
	for _, r := range w.rows {
		if r.skip == "" && r.js == spelled {
			if err := tab.Session.Call(ctx, "Page.navigate", map[string]string{"url": r.fill.Replace("http://@HOST@/")}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// eventually waits for a condition on every row, and leaves it to the rows to fail.
func (w *world) eventually(done func(*row) bool) {
	testwait.Comes(func() bool {
		return !slices.ContainsFunc(w.rows, func(r *row) bool { return r.skip == "" && r.never == "" && !done(r) })
	})
}

// each runs a subtest a row.
func (w *world) each(t *testing.T, check func(*testing.T, *row)) {
	t.Helper()
	for _, r := range w.rows {
		t.Run(r.name, func(t *testing.T) {
			if r.skip != "" {
				t.Skip(r.skip)
			}
			check(t, r)
		})
	}
}

func TestNoVectorReachesTheMachineAndEachRefusalIsTold(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	w, run := newWorld(t, some(2)), shortDir(t)
	close(w.gate)
	inst := start(ctx, t, run, w.strict())
	told := listen(inst)
	inst.Conn().Dispatch()
	browsertest.NewTab(ctx, t, inst).Open(ctx, t, w.site.URL+"/driver")
	navigateAll(ctx, t, inst, w)
	w.eventually(func(r *row) bool { return len(told.of(r.bird.port)) > 0 })
	time.Sleep(grace)
	end(t, run, inst.Ref())
	w.each(t, func(t *testing.T, r *row) {
		if hits := r.bird.touched(); hits != "" {
			t.Errorf("the canary was reached: %s", hits)
		}
		blocks := told.of(r.bird.port)
		if r.never == "" && len(blocks) == 0 {
			outcome, _ := w.outcome(r.n)
			t.Errorf("no refusal was told; the page said %q", outcome)
		}
		for _, b := range blocks {
			if b.Rule == "" || r.rule != anyRule && b.Rule != r.rule {
				t.Errorf("refused by rule %q, want %q", b.Rule, r.rule)
			}
		}
	})
}

// TestVectorsReachACanaryThatIsAllowed is what lets the other tests fail: the
// same pages do reach it when the policy names it.
func TestVectorsReachACanaryThatIsAllowed(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	w, run := newWorld(t, some(8)), shortDir(t)
	close(w.gate)
	inst := start(ctx, t, run, w.open())
	told := listen(inst)
	inst.Conn().Dispatch()
	browsertest.NewTab(ctx, t, inst).Open(ctx, t, w.site.URL+"/driver")
	navigateAll(ctx, t, inst, w)
	w.eventually(func(r *row) bool { return r.bird.count("tcp "+r.via) > 0 })
	time.Sleep(grace)
	end(t, run, inst.Ref())
	w.each(t, func(t *testing.T, r *row) {
		outcome, _ := w.outcome(r.n)
		switch hits := r.bird.touched(); {
		case r.never != "" && hits != "":
			t.Errorf("the table says that it never gets there (%s), but it did: %s", r.never, hits)
		case r.never == "" && r.bird.count("tcp "+r.via) == 0:
			t.Errorf("the canary at %s was not reached (%s); the page said %q; refusals: %+v", r.via, hits, outcome, told.of(r.bird.port))
		}
	})
}

// TestWebRTCReachesACanaryWithoutTheFlag is the same for what only a flag of
// ours keeps back: without it the datagrams come, past the guard.
func TestWebRTCReachesACanaryWithoutTheFlag(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	w, run := newWorld(t, func(v vector) bool { return v.udp }), shortDir(t)
	close(w.gate)
	for _, r := range w.rows {
		r.never = ""
	}
	inst := start(ctx, t, run, w.strict(), "--webrtc-ip-handling-policy=default")
	inst.Conn().Dispatch()
	browsertest.NewTab(ctx, t, inst).Open(ctx, t, w.site.URL+"/driver")
	w.eventually(func(r *row) bool { return r.bird.count("udp "+r.via) > 0 })
	w.each(t, func(t *testing.T, r *row) {
		if r.bird.count("udp "+r.via) == 0 {
			outcome, _ := w.outcome(r.n)
			t.Errorf("no datagram came (%s); the page said %q", r.bird.touched(), outcome)
		}
	})
}

func TestNoVectorReachesTheMachineWhileTheOwnerIsDead(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := testwait.Context(t)
	w, run := newWorld(t, func(v vector) bool { return v.js == spelled || v.pair || !v.overIPv6() }), shortDir(t)
	inst := start(ctx, t, run, w.strict())
	inst.Conn().Dispatch()
	browsertest.NewTab(ctx, t, inst).Open(ctx, t, w.site.URL+"/driver")
	ref := inst.Ref()
	_ = inst.Release()
	killOwner(t, ownerJob{Run: run, Epoch: 2, Ref: ref})

	close(w.gate)
	w.eventually(func(r *row) bool {
		_, ok := w.outcome(r.n)
		return ok || r.blind
	})
	time.Sleep(grace)

	again, err := local.New(run, 3, nil).Reconnect(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	told := listen(again)
	again.Conn().Dispatch()
	gap := <-told.gap
	end(t, run, ref)
	var refusals uint64
	w.each(t, func(t *testing.T, r *row) {
		if hits := r.bird.touched(); hits != "" {
			t.Errorf("the canary was reached: %s", hits)
		}
		if r.blind || r.never != "" {
			return
		}
		refusals++
		if _, ok := w.outcome(r.n); !ok {
			t.Error("the page did not come to an end with it")
		}
	})
	if gap.Blocks < refusals {
		t.Errorf("%d refusals were counted while nobody was there, at least %d pages were refused something", gap.Blocks, refusals)
	}
}

// killOwner lets a process own the browser, and kills it.
func killOwner(t *testing.T, job ownerJob) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, ownerArg) //nolint:gosec // ourselves
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = json.NewEncoder(in).Encode(job)
	_ = in.Close()
	word, _ := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if word != "ready\n" {
		t.Fatalf("the owner said %q", word)
	}
}
