package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/event"
	"tapin/internal/guard"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/trouble"
)

const canary = "hunter2-canary"

func TestAWakeThatPanicsIsTriedAgainAfterAPause(t *testing.T) { //nolint:paralleltest // the guard is the process's
	home := openHome(t)
	defer guard.Install(&guard.Process{Reports: &guard.Reports{Home: home.Path(), Part: "daemon"}})()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		w := testWaker(t, home, callFunc(func(wake) (time.Duration, error) {
			if at = append(at, time.Since(began)); len(at) < 4 {
				panic(canary)
			}
			return 0, nil
		}))
		if err := w.note(ended(t, "hof_1")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		time.Sleep(time.Second)
		var k wake
		if err := home.ReadJSON(wakeFile("hof_1-3"), &k); err != nil || k.Tries != 1 || !k.NextAt.After(time.Now()) {
			t.Errorf("after a panic it says %+v, %v", k, err)
		}
		<-done
		if want := []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("tried at %v, want %v", at, want)
		}
	})
}

func TestAWakeWhoseTriesCannotBeNotedIsNotTriedWithoutAPause(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := testWaker(t, home, callFunc(func(k wake) (time.Duration, error) {
			calls++
			_ = home.Unreadable(wakeFile(k.ID), errors.New("of the test")) // and so it is not written
			home.Readable("nothing")
			return 0, errors.New("nobody is there")
		}))
		if err := w.note(ended(t, "hof_1")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.run(ctx)
		if calls == 0 || calls > 31 { // the first pause, again and again
			t.Errorf("tried %d times in a minute", calls)
		}
	})
}

func TestASidecarThatServesAndFallsAgainAndAgainIsACrashLoop(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	hasty := usual()
	hasty.pauses, hasty.seldom = []time.Duration{time.Millisecond}, []time.Duration{time.Millisecond}
	r := beginAt(t, home, "fall", hasty)
	for range 5 {
		r.await(t, Restarting)
	}
	r.await(t, Ready)
	if all := guard.ReadBoard(home.Path()); len(all) != 1 || all[0].What != "sidecar" || all[0].State != trouble.Restarting {
		t.Fatalf("when it is ready again, shown: %+v", all)
	}
	told := letters(t, home)
	var said event.Trouble
	if len(told) != 1 || told[0].Type != event.CrashLoop || json.Unmarshal(told[0].Data, &said) != nil || said.Count != 5 {
		t.Fatalf("told %+v", told)
	}
	if all, err := guard.List(home.Path()); err != nil || len(all) != 1 || all[0].Times < 5 {
		t.Fatalf("reported: %+v, %v", all, err)
	}
}

func TestTheLoopIsShownUntilASidecarWasWellForAWhile(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	hasty := usual()
	hasty.steady = 50 * time.Millisecond
	d := newDaemon(Options{Home: home})
	d.showLoop(5, life{})
	if len(guard.ReadBoard(home.Path())) != 1 {
		t.Fatal("it is not shown")
	}
	r := beginAt(t, home, "", hasty)
	r.await(t, Ready)
	testwait.For(t, "the end of the loop", func() bool { return len(guard.ReadBoard(home.Path())) == 0 })
}

func TestARoomAtWhoseBeginningTheSidecarIsKilledIsLeftOut(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	hasty := usual()
	hasty.pauses = []time.Duration{time.Millisecond}
	r := beginAt(t, home, "killed", hasty)
	for range 3 {
		r.await(t, Restarting)
	}
	r.await(t, Starting)
	left := guard.OpenLeftOut(home.Path(), "").List()
	if len(left) != 1 || left[0].Room != guard.Figures {
		t.Fatalf("left out: %+v", left)
	}
	if all, err := guard.List(home.Path()); err != nil || all[0].Room != guard.Figures || !strings.Contains(all[0].Cause, "SIGKILL") {
		t.Fatalf("reported: %+v, %v", all, err)
	}
}

// fallingDaemon panics on its main goroutine once its sidecar is ready.
func fallingDaemon(path string) int {
	home, err := store.Open(path, nil)
	if err != nil {
		return 1
	}
	defer home.Close()
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	_ = Run(context.Background(), Options{Home: home, Guarded: true, Command: []string{self, "stand-in", path, ""}, OnState: func(s State) {
		if s.Phase == Ready {
			kill(s.PID) // nobody would end it
			panic(canary)
		}
	}})
	return 0
}

func TestADaemonThatPanicsReportsItWithoutTheValue(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(self, "falling-daemon", home.Path())
	cmd.Stderr = &said
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != guard.StoppedItself {
		t.Errorf("it ended with %v", err)
	}
	if strings.Contains(said.String(), canary) {
		t.Errorf("it said %s", said.String())
	}
	if all, err := guard.List(home.Path()); err != nil || len(all) != 1 || all[0].Part != "daemon" || !all[0].Stopped || all[0].Cause != "a value of type string" {
		t.Errorf("reported: %+v, %v", all, err)
	}
}

func TestWhatADaemonPrintedAsItDiedBecomesAReport(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	dump := "panic: " + canary + "\n\ngoroutine 1 [running]:\ntapin/internal/daemon.(*daemon).supervise(0xc000123456)\n\t/home/robin/daemon.go:40 +0x1\n"
	name := filepath.Join(home.Path(), "logs", "daemon.stderr")
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(dump), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and the second time there is nothing more
		if err := Bury(home, "1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := guard.List(home.Path())
	if err != nil || len(all) != 1 || all[0].Part != "daemon" || !all[0].Stopped || all[0].Times > 1 || len(all[0].Stack) != 1 || all[0].Stack[0].Line != "daemon.go:40" {
		t.Fatalf("reported: %+v, %v", all, err)
	}
	report, err := os.ReadFile(filepath.Join(home.Path(), all[0].File))
	if left, failed := os.ReadFile(name); err != nil || failed != nil || len(left) > 0 || bytes.Contains(report, []byte(canary)) || bytes.Contains(report, []byte("robin")) {
		t.Fatalf("left %q (%v); the report %s (%v)", left, failed, report, err)
	}
}

func TestAFileThatTheDaemonPutsAsideIsToldOf(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	if err := errors.Join(home.Write(ownerTokenFile, []byte("x\n")), home.Write(wakeCursorFile, []byte("{"))); err != nil {
		t.Fatal(err)
	}
	r := begin(t, home, "")
	r.await(t, Ready)
	testwait.For(t, "the trouble", func() bool {
		return slices.ContainsFunc(guard.ReadBoard(home.Path()), func(one trouble.Trouble) bool {
			return one.State == trouble.SetAside && strings.Contains(one.Details, wakeCursorFile)
		})
	})
	testwait.For(t, "the letter", func() bool {
		names, err := home.List("letters")
		return err == nil && len(names) == 1
	})
	if told := letters(t, home); len(told) != 1 || told[0].Type != event.FileSetAside || !strings.Contains(string(told[0].Data), wakeCursorFile) {
		t.Fatalf("told %+v", told)
	}
}
