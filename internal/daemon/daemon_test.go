package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/trouble"
)

// TestMain lets the test binary stand in for a sidecar: the daemon knows of it
// only that it is a process, says READY, and answers on its address.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "cloudflared", "tailscale":
		os.Exit(standInTunnel())
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "stand-in":
			os.Exit(standIn(os.Args[2], os.Args[3]))
		case "falling-daemon":
			os.Exit(fallingDaemon(os.Args[2]))
		case "real-sidecar":
			os.Exit(realSidecar(os.Args[2]))
		case "leash":
			code, err := Leash(context.Background(), os.Stdin, os.Args[2:], os.Stderr)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
			os.Exit(code)
		case "tunnel-sidecar":
			os.Exit(tunnelSidecar(os.Args[2]))
		case "tunnel-daemon":
			os.Exit(tunnelDaemon(os.Args[2]))
		case "real-daemon":
			os.Exit(realDaemon(os.Args[2], os.Args[3:]))
		case "holder":
			os.Exit(1) // the tests would begin anew in it, and in those that they start
		}
	}
	goleak.VerifyTestMain(m)
}

// standIn is a sidecar without browsers. What it does beside is in how.
func standIn(path, how string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if how == "refuse" {
		fmt.Println(`{"ok":false,"error":"BUSY","details":"the port is taken","hint":"Choose another."}`)
		return 6
	}
	home, err := store.Open(path, nil)
	if err != nil {
		return 1
	}
	defer home.Close()
	if trouble, first := strings.CutPrefix(how, "first: "); first {
		if how = ""; home.Create("first", nil) == nil {
			how = trouble
		}
	}
	switch how {
	case "killed":
		fmt.Println(`{"beginning":"figures"}`)
		kill(os.Getpid())
	case "crash":
		return 3
	case "hang":
		<-make(chan struct{})
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	if input, err := io.ReadAll(os.Stdin); err != nil || home.Write("input", input) != nil {
		return 1
	}
	unlock, ok, err := home.TryLock(sidecarLock)
	if err != nil || !ok {
		return 1
	}
	defer unlock()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"status": "ok"})
		}))
	}()
	if home.Write(addressFile, []byte(listener.Addr().String()+"\n")) != nil {
		return 1
	}
	fmt.Fprintln(os.Stderr, "stand-in", os.Getpid(), "serves")
	fmt.Println(readyWord)
	if how == "fall" {
		panic("hunter2-canary")
	}
	if how == "stubborn" {
		select {}
	}
	<-ctx.Done()
	_ = home.Write("ended-in-order", nil)
	return 0
}

// run is a daemon under test and what it tells.
type run struct {
	home   *store.Home
	states chan State
	stop   context.CancelFunc
	done   chan error
}

func begin(t *testing.T, home *store.Home, how string) *run {
	t.Helper()
	return beginAt(t, home, how, usual())
}

func beginAt(t *testing.T, home *store.Home, how string, at rhythm) *run {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &run{home: home, states: make(chan State, 100), stop: stop, done: make(chan error, 1)}
	d := newDaemon(Options{
		Home: home, Command: []string{self, "stand-in", home.Path(), how},
		OnState: func(s State) { r.states <- s },
	})
	d.rhythm = at
	go func() { r.done <- d.run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case <-r.done:
		case <-testwait.Over():
			t.Error("the daemon did not end")
		}
	})
	return r
}

// await returns the next state of a phase.
func (r *run) await(t *testing.T, phase Phase) State {
	t.Helper()
	deadline := testwait.Over()
	for {
		select {
		case s := <-r.states:
			if s.Phase == phase {
				return s
			}
		case err := <-r.done:
			r.done <- err
			t.Fatalf("the daemon ended before it was %s: %v", phase, err)
		case <-deadline:
			t.Fatalf("the daemon was never %s", phase)
		}
	}
}

func (r *run) end(t *testing.T) error {
	t.Helper()
	r.stop()
	err := <-r.done
	r.done <- err
	return err
}

func gone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("process %d is still there: %v", pid, err)
	}
}

func TestADaemonStartsAndEndsItsSidecar(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	r := begin(t, home, "")
	ready := r.await(t, Ready)
	if running, err := Find(home); err != nil || running != (Running{Daemon: os.Getpid(), Sidecar: ready.PID}) {
		t.Fatalf("found %+v, %v", running, err)
	}
	if control, err := Control(home); err != nil || control != ready.Control {
		t.Fatalf("listens at %q, said %q (%v)", control, ready.Control, err)
	}
	if pgid, err := syscall.Getpgid(ready.PID); err != nil || pgid != ready.PID {
		t.Fatalf("the sidecar is in group %d, so that a Ctrl-C would reach it too (%v)", pgid, err)
	}
	if err := r.end(t); err != nil {
		t.Fatal(err)
	}
	gone(t, ready.PID)
	if ok, err := home.Exists("ended-in-order"); err != nil || !ok {
		t.Fatal("the sidecar was not asked to end")
	}
	log, err := home.Read("logs/sidecar.log")
	if err != nil || !strings.Contains(string(log), "stand-in "+strconv.Itoa(ready.PID)+" serves") {
		t.Fatalf("log: %q, %v", log, err)
	}
	if running, err := Find(home); err != nil || running != (Running{}) {
		t.Fatalf("afterwards found %+v, %v", running, err)
	}
}

func TestAKilledSidecarIsStartedAgain(t *testing.T) {
	t.Parallel()
	r := begin(t, openHome(t), "")
	first := r.await(t, Ready)
	kill(first.PID)
	if again := r.await(t, Restarting); again.Pause != usual().pauses[0] || again.Cause == nil || !strings.Contains(again.Cause.Error(), "killed") {
		t.Fatalf("restarting: %+v", again)
	}
	second := r.await(t, Ready)
	if second.PID == first.PID || second.Restarts != 1 {
		t.Fatalf("first %+v, then %+v", first, second)
	}
}

func TestASidecarThatFailsBeforeItIsReadyIsStartedAgain(t *testing.T) {
	t.Parallel()
	impatient := usual()
	impatient.ready = 500 * time.Millisecond
	for name, tt := range map[string]struct {
		how, cause string
		rhythm     rhythm
	}{
		"one that ends without a word": {"crash", "exit status 3", usual()},
		"one that hangs":               {"hang", "not ready in time", impatient},
		"one that was stopped":         {"stop", "not ready in time", impatient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := beginAt(t, openHome(t), "first: "+tt.how, tt.rhythm)
			first := r.await(t, Starting)
			if again := r.await(t, Restarting); again.Cause == nil || !strings.Contains(again.Cause.Error(), tt.cause) {
				t.Fatalf("restarting: %+v", again)
			}
			gone(t, first.PID)
		})
	}
}

func TestASidecarThatHangsWhileItServesIsStartedAgain(t *testing.T) {
	t.Parallel()
	impatient := usual()
	impatient.poll, impatient.answer, impatient.silent = 100*time.Millisecond, time.Second, 3*time.Second
	r := beginAt(t, openHome(t), "", impatient)
	first := r.await(t, Ready)
	if err := syscall.Kill(first.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if again := r.await(t, Restarting); again.Cause == nil || !strings.Contains(again.Cause.Error(), "did not answer") {
		t.Fatalf("restarting: %+v", again)
	}
	gone(t, first.PID)
	r.await(t, Ready)
}

func TestASidecarThatAlwaysFailsIsTriedOnAndTheOwnerHearsOfIt(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	hasty := usual()
	hasty.pauses, hasty.seldom = []time.Duration{time.Millisecond}, []time.Duration{time.Millisecond}
	r := beginAt(t, home, "crash", hasty)
	for n := range 15 { // 10 are the loop, and it goes on
		if again := r.await(t, Restarting); again.Restarts < n {
			t.Fatalf("restarting: %+v", again)
		}
	}
	told := letters(t, home)
	var said event.Trouble
	if len(told) != 1 || told[0].Type != event.CrashLoop || json.Unmarshal(told[0].Data, &said) != nil || said.Count != 10 || said.Details == "" {
		t.Fatalf("told %+v", told)
	}
	if all := guard.ReadBoard(home.Path()); len(all) != 1 || all[0].What != "sidecar" || all[0].State != trouble.Restarting {
		t.Fatalf("shown: %+v", all)
	}
}

// letters are what a daemon left for the feed.
func letters(t *testing.T, home *store.Home) []event.Event {
	t.Helper()
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	if err := event.NewLetterbox(home, nil).Collect(t.Context(), event.NewPump(feed, home, nil)); err != nil {
		t.Fatal(err)
	}
	told, _ := feed.Since(0, 0)
	return told
}

func TestASidecarThatCannotStartIsTheError(t *testing.T) {
	t.Parallel()
	r := begin(t, openHome(t), "refuse")
	err := <-r.done
	r.done <- err
	got := fault.Of(err)
	if got.Code != fault.Busy || got.Details() != "the port is taken" || got.Advice() != "Choose another." {
		t.Fatalf("got %v (%s, %q)", err, got.Code, got.Advice())
	}
}

func TestASecondDaemonIsRefused(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	begin(t, home, "").await(t, Ready)
	second, err := store.Open(home.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	err = Run(t.Context(), Options{Home: second, Command: []string{"/nonexistent"}})
	if !errors.Is(err, fault.Busy) || fault.Of(err).Data["pid"] != os.Getpid() {
		t.Fatalf("got %v", err)
	}
}

func TestALoneSidecarIsTakenOverWithoutBeingAsked(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lone, err := start([]string{self, "stand-in", home.Path(), ""}, nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer lone.kill()
	if err := lone.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := begin(t, home, "").await(t, Ready)
	<-lone.ended
	if ready.PID == lone.pid() {
		t.Fatal("the lone sidecar was kept")
	}
	if ok, err := home.Exists("ended-in-order"); err != nil || ok {
		t.Fatal("the lone sidecar was asked to end, which ends its sessions")
	}
}

func TestStopEndsALoneSidecar(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lone, err := start([]string{self, "stand-in", home.Path(), ""}, nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer lone.kill()
	if err := lone.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, err := Stop(t.Context(), home)
	if err != nil || ended != (Running{Sidecar: lone.pid()}) {
		t.Fatalf("ended %+v, %v", ended, err)
	}
	<-lone.ended
	if ended, err := Stop(t.Context(), home); err != nil || ended != (Running{}) {
		t.Fatalf("ended %+v once more, %v", ended, err)
	}
}

func TestStopSaysWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lone, err := start([]string{self, "stand-in", home.Path(), "stubborn"}, nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer lone.kill()
	if err := lone.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // short: it must run out
	defer cancel()
	_, err = Stop(ctx, home)
	if !errors.Is(err, fault.Busy) || fault.Of(err).Data["pid"] != lone.pid() {
		t.Fatalf("got %v", err)
	}
	if lone.end(50 * time.Millisecond) {
		t.Fatal("a stubborn sidecar ended when asked")
	}
	gone(t, lone.pid())
}

func TestStopEndsASidecarThatWasStopped(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how    string
		within time.Duration
	}{
		"in order, when it goes on":       {"", 20 * time.Second},
		"by a kill, when it does not end": {"stubborn", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := openHome(t)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			lone, err := start([]string{self, "stand-in", home.Path(), tt.how}, nil, os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			defer lone.kill()
			if err := lone.awaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(lone.pid(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			pid, err := ask(t.Context(), home, sidecarLock, tt.within)
			if err != nil || pid != lone.pid() {
				t.Fatalf("ended %d, %v", pid, err)
			}
			<-lone.ended
			if ok, err := home.Exists("ended-in-order"); err != nil || ok != (tt.how == "") {
				t.Fatalf("ended in order: %v, %v", ok, err)
			}
		})
	}
}

func TestEverySidecarIsGivenTheInput(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lone, err := start([]string{self, "stand-in", home.Path(), ""}, []byte("settings"), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer lone.kill()
	if err := lone.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := home.Read("input"); err != nil || string(got) != "settings" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestControlRefusesAFileThatHoldsNoAddress(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	if _, err := Control(home); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home.Path(), addressFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Control(home); !errors.Is(err, errNoAddress) {
		t.Fatalf("with nonsense: %v", err)
	}
}
