package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/trouble"
)

// canary is what a page might have given: it must be in no report.
const canary = "hunter2-canary"

// home is where this process keeps its reports.
var home string

func TestMain(m *testing.M) {
	var err error
	if home, err = os.MkdirTemp("", "guard"); err != nil {
		panic(err)
	}
	guard.Install(&guard.Process{Reports: &guard.Reports{
		Home: home, Part: "sidecar", Version: "1.2.3", Names: func() []string { return []string{"session.click"} },
	}})
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

func fall(with any) { panic(with) }

func TestAPanicIsReportedWithoutItsValue(t *testing.T) { //nolint:paralleltest // the reports are the process's
	for name, tt := range map[string]struct {
		do   func()
		want string
	}{
		"a text":               {func() { fall(canary) }, "a value of type string"},
		"an error":             {func() { fall(errors.New(canary)) }, "a value of type *errors.errorString"},
		"a nil map":            {func() { var m map[string]int; m[canary] = 1 }, "assignment to entry in nil map"},
		"an index":             {func() { fall(func() any { return []int{}[len(canary)] }()) }, "runtime error: index out of range [14] with length 0"},
		"an unhashable key":    {func() { m := map[any]int{}; m[[]string{canary}] = 1 }, "runtime error: hash of unhashable type []string"},
		"another type":         {func() { var v any = canary; _ = v.(int) }, "interface conversion: interface {} is string, not int"},
		"a wrapped panic":      {func() { fall(fmt.Errorf("%s: %w", canary, errors.New("x"))) }, "a value of type *fmt.wrapError"},
		"one part of a group":  {func() { var g guard.Group; g.Run(func() { fall(canary) }); g.Wait() }, "a value of type string"},
		"a pointer to nothing": {func() { var p *struct{ A [9000]int }; _ = p.A[8999] }, "runtime error: invalid memory address or nil pointer dereference"},
	} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			waited := false
			wg.Go(func() {
				defer guard.Catch("figures", func() { waited = true })
				tt.do()
			})
			wg.Wait()
			all, err := guard.List(home)
			if err != nil || len(all) == 0 || !waited {
				t.Fatalf("%d reports, %v; told %v", len(all), err, waited)
			}
			got := all[0]
			if got.Cause != tt.want || got.Room != "figures" || got.Stopped || got.Version != "1.2.3" || len(got.Names) != 1 {
				t.Errorf("got %+v, want %q", got, tt.want)
			}
			if len(got.Stack) == 0 || !strings.Contains(got.Stack[0].Func, "guard_test") && !strings.HasPrefix(got.Stack[0].Func, "runtime.") || !strings.Contains(got.Stack[0].Line, ".go:") {
				t.Errorf("the stack begins at %+v", got.Stack)
			}
			raw, err := os.ReadFile(filepath.Join(home, got.File))
			if err != nil || bytes.Contains(raw, []byte(canary)) {
				t.Errorf("%v; the report: %s", err, raw)
			}
			info, err := os.Stat(filepath.Join(home, got.File))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file: %v, %v", info, err)
			}
		})
	}
	if info, err := os.Stat(filepath.Join(home, guard.Folder)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}

func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	r := &guard.Reports{Home: t.TempDir()}
	big := guard.Report{Stack: slices.Repeat([]guard.Frame{{Func: strings.Repeat("f", 4000), Line: "x.go:1"}}, 20)}
	for i := range 23 {
		big.At = time.Unix(int64(1_800_000_000+i), 0).UTC()
		big.Room = fmt.Sprint("room ", i)
		if _, err := r.Write(big); err != nil {
			t.Fatal(err)
		}
	}
	all, err := guard.List(r.Home)
	if err != nil || len(all) != 20 || all[0].At.Unix() != 1_800_000_022 {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	if info, err := os.Stat(filepath.Join(r.Home, all[0].File)); err != nil || info.Size() > 64<<10+1 {
		t.Fatalf("one has %d bytes, %v", info.Size(), err)
	}
}

func TestWhatARuntimeSaysAsItDiesIsRedacted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		said, cause, room string
		kept              []string
	}{
		"a panic with a text of two lines": {
			"panic: " + canary + "\n" + canary + " again\n\ngoroutine 7 [running]:\ntapin/internal/insight.(*book).count(0xc0000, {0xc1, 0x5})\n\t/home/ada/tapin/internal/insight/book.go:40 +0x1d\ncreated by tapin/internal/insight.(*Room).Run in goroutine 1\n\t/home/ada/x.go:3 +0x5\n\ngoroutine 1 [select]:\nmain.main()\n\t/home/ada/main.go:9\n",
			"a value that is left out here", "figures", []string{"goroutine 7 [running]:", "tapin/internal/insight.(*book).count(…)", "book.go:40"},
		},
		"a nil map": {
			"panic: assignment to entry in nil map\n\ngoroutine 7 [running]:\ntapin/internal/session.(*Session).openGate(...)\n\t/x/lend.go:1\n",
			"assignment to entry in nil map", "session", []string{"panic: assignment to entry in nil map"},
		},
		"maps written by two": {
			"fatal error: concurrent map writes\n\ngoroutine 9 [running]:\ninternal/runtime/maps.fatal({0x1, 0x2})\n\t/usr/go/panic.go:5 +0x1\ntapin/internal/oneshot.(*pool).give(0x" + "1)\n\t/x/pool.go:12\n",
			"concurrent map writes", "one-shots", []string{"fatal error: concurrent map writes"},
		},
		"a signal": {
			"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x123]\n\ngoroutine 1 [running]:\ntapin/internal/mcpserver.x()\n\t/x/y.go:1\n",
			"runtime error: invalid memory address or nil pointer dereference", "MCP door", []string{"[signal SIGSEGV: segmentation violation"},
		},
		"a panic in a panic": {
			"panic: " + canary + " [recovered, repanicked]\n\tpanic: " + canary + "\n\ngoroutine 7 [running]:\npanic({0x1, 0x2})\n\t/go/panic.go:1\ntapin/internal/page.x(0x1)\n\t/x/y.go:1\n",
			"a value that is left out here", "page", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, step := range []int{1, 7, 1 << 20} {
				var log bytes.Buffer
				last := guard.NewLast(&log)
				said := "time=2026-01-01T00:00:00Z level=INFO msg=serving\n" + tt.said
				for part := range slices.Chunk([]byte(said), step) {
					_, _ = last.Write(part)
				}
				cause, frames, ok := last.Crash()
				if !ok || cause != tt.cause || guard.RoomOf(frames) != tt.room {
					t.Fatalf("got %q in %q (%v), %+v", cause, guard.RoomOf(frames), ok, frames)
				}
				for _, leak := range []string{canary, "0xc", "/home/", "/x/"} {
					if strings.Contains(log.String(), leak) {
						t.Errorf("the log has %q:\n%s", leak, log.String())
					}
				}
				for _, part := range append(tt.kept, "msg=serving") {
					if !strings.Contains(log.String(), part) {
						t.Errorf("the log lacks %q:\n%s", part, log.String())
					}
				}
			}
		})
	}
	var log bytes.Buffer
	last := guard.NewLast(&log)
	_, _ = last.Write([]byte("a line of another kind\ntime=x level=ERROR msg=\"panic: no\"\n"))
	if _, _, ok := last.Crash(); ok || !strings.Contains(log.String(), "another kind") || !strings.Contains(log.String(), "panic: no") {
		t.Errorf("an ordinary log: %v, %s", ok, log.String())
	}
}

func FuzzWhatARuntimeSaysAsItDies(f *testing.F) {
	f.Add("x\ngoroutine 1 [running]:\nmain.f(0x1)\n")
	f.Fuzz(func(t *testing.T, value string) {
		if strings.Contains(value, "\ntime=") || strings.HasPrefix(value, "time=") {
			t.Skip("a line of the log is no value")
		}
		var log bytes.Buffer
		last := guard.NewLast(&log)
		fmt.Fprintf(last, "panic: %s%s\n\ngoroutine 7 [running]:\nmain.g(0x1)\n\t/x/y.go:1\n", canary, value)
		if _, _, ok := last.Crash(); !ok || strings.Contains(log.String(), canary) {
			t.Fatalf("%v: %s", ok, log.String())
		}
	})
}

// told are the news of a house.
type told struct {
	mu  sync.Mutex
	all []string
}

func (n *told) tell(news guard.News, t trouble.Trouble, failures int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf("%s %s %d", t.What, news, failures))
}

func TestARoomThatFailsIsStartedAgainAndGivenUpAlone(t *testing.T) { //nolint:paralleltest // the reports are the process's
	synctest.Test(t, func(t *testing.T) {
		var board trouble.Board
		var news told
		h := guard.NewHouse(&guard.Options{Board: &board, Tell: news.tell})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		starts, broken := 0, 2
		all.Go(func() {
			h.Room(ctx, "figures", func(ctx context.Context) {
				if starts++; starts <= broken {
					fall(canary)
				}
				<-ctx.Done()
				if starts < 4 {
					fall(canary)
				}
			})
		})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := board.List(); len(got) != 1 || got[0].State != trouble.Restarting || !errors.Is(h.Off("figures"), fault.Busy) {
			t.Fatalf("after a failure: %+v, %v", got, h.Off("figures"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := board.List(); len(got) != 0 || h.Off("figures") != nil || starts != 3 {
			t.Fatalf("after two failures and a minute: %+v, %v, %d starts", got, h.Off("figures"), starts)
		}
		// A call into it that panics has it started again.
		err := h.Ask("figures", func() error { fall(canary); return nil })
		if !errors.Is(err, fault.Busy) || strings.Contains(err.Error(), canary) {
			t.Fatalf("the call: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := h.Ask("figures", func() error { return nil }); err != nil || starts != 4 || len(board.List()) != 0 {
			t.Fatalf("then: %v, %d starts", err, starts)
		}
		all.Go(func() { h.Room(ctx, "chat", func(context.Context) { fall(canary) }) })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := board.List(); len(got) != 1 || got[0].State != trouble.GivenUp || !errors.Is(h.Ask("chat", nil), fault.Disabled) {
			t.Fatalf("after ever more failures: %+v", got)
		}
		if h.Off("figures") != nil {
			t.Fatal("another room is off too")
		}
		stop()
		all.Wait()
		want := []string{"figures failed 1", "figures failed 2", "figures back 2", "figures failed 3", "figures back 3", "chat failed 1", "chat failed 2", "chat failed 3", "chat failed 4", "chat given_up 5"}
		if !slices.Equal(news.all, want) {
			t.Fatalf("told %q, want %q", news.all, want)
		}
	})
}

func TestARoomThatIsLeftOutIsTriedAgainAfterADay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		out := guard.OpenLeftOut(dir, "1.2.3")
		if err := out.Leave(guard.Figures, "crashes/x.json"); err != nil {
			t.Fatal(err)
		}
		var board trouble.Board
		h := guard.NewHouse(&guard.Options{Board: &board, LeftOut: guard.OpenLeftOut(dir, "1.2.3")})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		ran := false
		all.Go(func() {
			h.Room(ctx, guard.Figures, func(ctx context.Context) { ran = true; <-ctx.Done() })
		})
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if got := board.List(); ran || len(got) != 1 || got[0].State != trouble.LeftOut || !errors.Is(h.Off(guard.Figures), fault.Disabled) {
			t.Fatalf("left out: ran %v, %+v", ran, got)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if !ran || len(board.List()) != 0 || !out.OnTrial(guard.Figures) || h.Off(guard.Figures) != nil {
			t.Fatalf("after a day: ran %v, %+v", ran, out.List())
		}
		if other := guard.OpenLeftOut(dir, "1.2.4"); len(other.List()) != 0 {
			t.Fatal("another version leaves it out too")
		}
		if err := out.Clear(); err != nil || len(out.List()) != 0 || out.Clear() != nil {
			t.Fatal("it cannot be cleared")
		}
		stop()
		all.Wait()
	})
}

func TestTheListOfWhatIsLeftOutMayBeAnything(t *testing.T) {
	t.Parallel()
	later, _ := json.Marshal(map[string]any{"version": "1", "rooms": []guard.Left{{Room: guard.Figures, Since: time.Now().Add(48 * time.Hour)}}})
	for name, raw := range map[string]string{"nothing": "", "half": `{"version":"1","ro`, "another": `[1]`, "from the future": string(later)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, guard.LeftOutFile), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		out := guard.OpenLeftOut(dir, "1")
		if _, is := out.Until(guard.Figures); is {
			t.Errorf("%s: figures are left out", name)
		}
		if err := out.Leave(guard.Console, ""); err != nil || len(out.List()) != 1 {
			t.Errorf("%s: %v, %+v", name, err, out.List())
		}
	}
}
