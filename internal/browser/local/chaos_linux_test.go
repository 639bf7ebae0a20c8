package local_test

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/coder/websocket"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

var chaosLook = page.Look{Width: 777, Height: 555}

// busySite is a page with everything that must not break: a WebSocket, a
// download, and a question it asks when told to.
type busySite struct {
	*httptest.Server
	sockets atomic.Int32 // WebSockets opened so far
	open    atomic.Int32 // and open now
	beats   atomic.Int64 // messages that went round
	asked   atomic.Int32 // downloads begun
	finish  chan struct{}
}

const downloadSize = 200 << 10

func newBusySite(t *testing.T) *busySite {
	t.Helper()
	s := &busySite{finish: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>busy</title><body><script>
			const ws = new WebSocket("ws://" + location.host + "/ws")
			ws.onmessage = e => ws.send(e.data)
			ws.onclose = () => { document.title = "dropped" }
			const a = document.createElement("a"); a.href = "/download"; a.download = "slow.bin"; document.body.append(a)
			ws.onopen = () => a.click()
			window.ask = ms => setTimeout(() => { window.answer = confirm("go on?") }, ms)
		</script>`)
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		s.sockets.Add(1)
		s.open.Add(1)
		defer s.open.Add(-1)
		for {
			if c.Write(r.Context(), websocket.MessageText, []byte("beat")) != nil {
				return
			}
			if _, _, err := c.Read(r.Context()); err != nil {
				return
			}
			s.beats.Add(1)
			time.Sleep(5 * time.Millisecond)
		}
	})
	mux.HandleFunc("/download", func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(downloadSize))
		half := make([]byte, downloadSize/2)
		_, _ = w.Write(half)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.finish:
		case <-r.Context().Done():
			return
		}
		_, _ = w.Write(half)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s
}

func TestChaosOwnersAreKilledAndThePageNeverNotices(t *testing.T) {
	ctx := t.Context() // ever so many rounds
	site := newBusySite(t)
	run, downloads := shortDir(t), t.TempDir()
	epoch := uint64(1)
	p := local.New(run, epoch, nil)
	inst, err := p.Create(ctx, browser.Spec{
		ID: "ses_chaos-1", KeepUntil: testwait.Late(), Policy: browsertest.Policy(site.Server), Downloads: downloads,
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := inst.Ref()
	t.Cleanup(func() { browsertest.End(t, local.New(run, 1<<40, nil), ref) })
	tabs, err := page.Open(ctx, inst, &page.Options{Look: chaosLook})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Navigate(ctx, site.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the WebSocket", func() bool { return site.open.Load() == 1 })
	tabs.Close()
	_ = inst.Release()

	total := rounds(8)
	ready := 0
	for round := range total {
		if round == total/2 {
			// The question is asked while nobody is connected to hear of it.
			epoch++
			askLater(ctx, t, run, epoch, ref, 150*time.Millisecond)
			time.Sleep(400 * time.Millisecond)
		}
		epoch++
		cmd, out := owner(t, site.URL+"/", ownerJob{Run: run, Epoch: epoch, Ref: ref})
		// Anywhere between the first instruction and deep in its work; every other
		// one gets as far as that, however slow the machine is.
		if round%2 == 1 {
			testwait.For(t, "an owner at work", func() bool { return slices.Contains(out.all(), "ready") })
		}
		time.Sleep(time.Duration(rand.IntN(250)) * time.Millisecond) //nolint:gosec // a random moment
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if slices.Contains(out.all(), "ready") {
			ready++
		}
		if n := site.sockets.Load(); n != 1 || site.open.Load() != 1 {
			t.Fatalf("round %d: the page opened %d WebSockets, %d are open", round, n, site.open.Load())
		}
	}
	t.Logf("%d owners killed, %d of them at work", total, ready)
	epoch++
	finishChaos(ctx, t, site, run, epoch, ref, downloads)
}

// askLater makes the page ask its question after a while, and leaves.
func askLater(ctx context.Context, t *testing.T, run string, epoch uint64, ref browser.Ref, after time.Duration) {
	t.Helper()
	inst, err := local.New(run, epoch, nil).Reconnect(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	tabs, err := page.Open(ctx, inst, &page.Options{Look: chaosLook})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	browsertest.Attach(ctx, t, inst, target.ID(tab.ID())).Eval(ctx, t, "void ask("+strconv.Itoa(int(after.Milliseconds()))+")")
	tabs.Close()
	_ = inst.Release()
}

// finishChaos proves that all of it is still as it was.
func finishChaos(ctx context.Context, t *testing.T, site *busySite, run string, epoch uint64, ref browser.Ref, downloads string) {
	t.Helper()
	inst, err := local.New(run, epoch, nil).Reconnect(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 16)
	inst.Conn().Root().On("Browser.downloadProgress", func(raw jsonv2.Value) { done <- string(raw) })
	tabs, err := page.Open(ctx, inst, &page.Options{Look: chaosLook})
	if err != nil {
		t.Fatal(err)
	}
	defer tabs.Close()
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := tab.Dialog(); d == nil || d.Kind != "confirm" || d.Message != "go on?" {
		t.Fatalf("the question is not known any more: %+v", d)
	}
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	bare := browsertest.Attach(ctx, t, inst, target.ID(tab.ID()))
	if got := bare.Eval(ctx, t, "window.answer + ' ' + innerWidth + 'x' + innerHeight + ' ' + document.title"); got != "true 777x555 busy" {
		t.Fatalf("the page is %q", got)
	}
	beats := site.beats.Load()
	testwait.For(t, "another message over the WebSocket", func() bool { return site.beats.Load() > beats })
	close(site.finish)
	for complete := false; !complete; {
		select {
		case raw := <-done:
			complete = strings.Contains(raw, `"completed"`)
		case <-testwait.Over():
			t.Fatal("the download did not end")
		}
	}
	// It gets its name once it is complete, and is nowhere for a moment.
	testwait.For(t, "the download is there, whole", func() bool {
		files, _ := filepath.Glob(filepath.Join(downloads, "*"))
		if len(files) != 1 {
			return false
		}
		info, err := os.Stat(files[0])
		return err == nil && info.Size() == downloadSize
	})
	if n := site.asked.Load(); n != 1 {
		t.Fatalf("it was asked for %d times", n)
	}
}

func TestAStoppedAndResumedOwnerCannotAct(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newBusySite(t)
	run := shortDir(t)
	inst, err := local.New(run, 1, nil).Create(ctx, browser.Spec{ID: "ses_fence-1", KeepUntil: testwait.Late(), Policy: browsertest.Policy(site.Server)})
	if err != nil {
		t.Fatal(err)
	}
	ref := inst.Ref()
	t.Cleanup(func() { browsertest.End(t, local.New(run, 1<<40, nil), ref) })
	inst.Conn().Dispatch()
	browsertest.NewTab(ctx, t, inst).Open(ctx, t, site.URL+"/")
	_ = inst.Release()

	old, said := owner(t, site.URL+"/", ownerJob{Run: run, Epoch: 2, Ref: ref})
	t.Cleanup(func() { _ = old.Process.Kill(); _ = old.Wait() })
	testwait.For(t, "the old owner at work", func() bool { return slices.Contains(said.all(), "ready") })
	if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	now, err := local.New(run, 3, nil).Reconnect(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	tabs, err := page.Open(ctx, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tabs.Close()
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Navigate(ctx, site.URL+"/#new-owner", page.WaitCommit); err != nil {
		t.Fatal(err)
	}
	if err := old.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the old owner to notice", func() bool { return slices.Contains(said.all(), "lost") })
	nav, err := tab.Here(ctx)
	if err != nil || !strings.HasSuffix(nav.URL, "#new-owner") {
		t.Fatalf("the page is at %q, %v", nav.URL, err)
	}
	// Nor can it come back: its epoch is over.
	_, err = local.New(run, 2, nil).Reconnect(ctx, ref)
	if fault.Of(err).Code != fault.BrowserLost || !strings.Contains(err.Error(), "taken over") {
		t.Fatalf("the old epoch got %v", err)
	}
	if _, err := local.New(run, 4, nil).Reconnect(ctx, browser.Ref{Provider: local.Name, ID: "ses_other-1"}); err == nil {
		t.Fatal("a browser that does not exist was found")
	}
}

func TestEveryEndLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, inst browser.Instance, procs browsertest.Processes){
		"the owner ends it": func(t *testing.T, inst browser.Instance, _ browsertest.Processes) {
			if err := inst.End(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"the holder is killed": func(_ *testing.T, _ browser.Instance, p browsertest.Processes) {
			_ = syscall.Kill(p.Holder, syscall.SIGKILL)
		},
		"the browser is killed": func(_ *testing.T, _ browser.Instance, p browsertest.Processes) {
			_ = syscall.Kill(p.Browser, syscall.SIGKILL)
		},
		"its time passes": func(t *testing.T, inst browser.Instance, _ browsertest.Processes) {
			if err := inst.KeepUntil(t.Context(), time.Now().Add(500*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		},
		"its time passes while nobody is connected": func(t *testing.T, inst browser.Instance, _ browsertest.Processes) {
			if err := inst.KeepUntil(t.Context(), time.Now().Add(500*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			_ = inst.Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			run := shortDir(t)
			p := local.New(run, 1, nil)
			ref := browser.Ref{Provider: local.Name, ID: "ses_end-" + strconv.Itoa(len(name))}
			inst, err := p.Create(ctx, browser.Spec{ID: ref.ID, KeepUntil: testwait.Late()})
			if err != nil {
				t.Fatal(err)
			}
			inst.Conn().Dispatch()
			tab := browsertest.NewTab(ctx, t, inst)
			procs := browsertest.ProcessesOf(t, ref.ID)
			if len(procs.All) < 4 {
				t.Fatalf("only %v run: the test does not see the tree", procs.All)
			}
			outside := keptOutside(t, run)
			failed := make(chan error, 1)
			go func() { _, err := tab.TryEval(ctx, "new Promise(() => {})"); failed <- err }()
			tab.Eval(ctx, t, "1")
			began := time.Now()
			end(t, inst, procs)
			err = <-failed
			if _, lost := cdp.IsLost(err); !lost {
				t.Fatalf("a call in flight got %v", err)
			}
			if took := time.Since(began); strings.Contains(name, "killed") && took > 25*time.Second { // short: a call has half a minute of its own
				t.Fatalf("the loss was noticed after %s", took)
			}
			if left := procs.Alive(); name == "the owner ends it" && len(left) != 0 {
				t.Errorf("it was ended, and %v are left", left)
			}
			testwait.For(t, "the end of every process", func() bool { return len(procs.Alive()) == 0 })
			testwait.For(t, "the end of the folder", func() bool {
				own, err := p.Own(ctx, nil)
				left, _ := os.ReadDir(run)
				return err == nil && len(own) == 0 && len(left) == 0
			})
			if _, err := os.Stat(outside); !os.IsNotExist(err) {
				t.Errorf("%s is left, outside of the browser's folder: %v", outside, err)
			}
		})
	}
}

// keptOutside is the folder that the one browser in run keeps elsewhere.
func keptOutside(t *testing.T, run string) string {
	t.Helper()
	pointers, _ := filepath.Glob(filepath.Join(run, "*", "profile", "SingletonSocket"))
	if len(pointers) != 1 {
		t.Fatalf("the browser points to %q", pointers)
	}
	socket, err := os.Readlink(pointers[0])
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(socket)
}

// lines collects what a process says.
type lines struct{ seen chan []string }

func newLines(r io.Reader) *lines {
	l := &lines{seen: make(chan []string, 1)}
	l.seen <- nil
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			l.seen <- append(<-l.seen, s.Text())
		}
	}()
	return l
}

func (l *lines) all() []string {
	got := <-l.seen
	l.seen <- got
	return slices.Clone(got)
}
