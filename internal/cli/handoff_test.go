package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/apiserver"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/handoff"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/taskrun"
)

// steering stands in for a session with a login in it. What a hand-off does not
// need here, it does not have.
type steering struct {
	handoff.Stage
	mu   sync.Mutex
	held string
	url  string
}

func (s *steering) Lend(_ context.Context, _, id string, o handoff.LendOptions) (handoff.Lent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != "" {
		return handoff.Lent{}, fault.New(fault.HandoffActive, "", "this browser is already handed over").With("handoff_id", s.held)
	}
	s.held = id
	seen := page.Observation{URL: s.url, Origin: "https://bank.example", Title: "Sign in \x1b[31m", Fingerprint: s.url}
	return handoff.Lent{SessionID: "ses_1", Generation: 1, TabID: "tab_1", Seen: seen, Holds: make([]bool, len(o.Conditions))}, nil
}

func (s *steering) Return(context.Context, string, string, bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = ""
	return nil
}

func (s *steering) Close(ctx context.Context, session, _ string) (bool, error) {
	return true, s.Return(ctx, session, "", false)
}

func (s *steering) Observe(context.Context, string, string, page.ObserveOptions) (page.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return page.Observation{URL: s.url, Origin: "https://bank.example", Title: "Accounts", Fingerprint: s.url}, nil
}

func (s *steering) Plain(context.Context, string, string) (func(), bool, error) {
	return func() {}, false, nil
}

func (s *steering) Fitted(string) bool { return false }

func (s *steering) Holds(_ context.Context, _, _ string, c []page.Condition) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []bool{strings.Contains(s.url, c[0].URL)}, nil
}

func (*steering) KeepUntil(context.Context, string, time.Time) error  { return nil }
func (*steering) Stale(context.Context, string) error                 { return nil }
func (*steering) Generation(string) (int, error)                      { return 1, nil }
func (*steering) Park(context.Context, string, string) error          { return nil }
func (*steering) Unpark(context.Context, string, string) (int, error) { return 2, nil }
func (*steering) Presence(string) (time.Time, bool)                   { return time.Time{}, true }
func (*steering) Seal(_, _ string, plain []byte) ([]byte, error)      { return plain, nil }
func (*steering) Open(_, _ string, sealed []byte) ([]byte, error)     { return sealed, nil }

// newCounter is a control listener with hand-offs behind it, and the command
// line in front.
func newCounter(t *testing.T) (*desk, *steering) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	sound(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home, err := store.Open(dir, nil)
	sound(t, err)
	unlock, ok, err := home.TryLock("sidecar")
	if err != nil || !ok {
		t.Fatal("the home is in use", err)
	}
	feed, err := event.OpenFeed(home, nil)
	sound(t, err)
	pump, schedule, journal := event.NewPump(feed, home, nil), event.NewSchedule(), event.NewJournal(home, nil)
	runs, err := taskrun.New(home, pump, nil)
	sound(t, err)
	s := &steering{url: "https://bank.example/login"}
	room, err := handoff.New(handoff.Deps{Home: home, Pump: pump, Schedule: schedule, Journal: journal, Stage: s, Evidence: runs, Sealer: s}, nil)
	sound(t, err)
	server := apiserver.New(apiserver.Deps{
		Handoffs: room, Runs: runs, Feed: feed,
		Tokens: apiserver.FixedTokens{{Name: "owner", Role: apiserver.Owner, Value: secret.New("owner-token")}},
	}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	sound(t, err)
	sound(t, home.Write(sidecar.AddressFile, []byte(listener.Addr().String()+"\n")))
	sound(t, home.Write(sidecar.OwnerTokenFile, []byte("owner-token\n")))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { schedule.Run(ctx) })
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		stop()
		_ = server.Shutdown(context.Background())
		running.Wait()
		_ = errors.Join(room.Close(), runs.Close(), journal.Close(), feed.Close())
		unlock()
		_ = home.Close()
	})
	return &desk{t: t, home: dir}, s
}

func sound(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// One that was killed leaves its address behind, and the next one holds the lock before it
// says where it is. Nobody is to be told meanwhile that tapin is not running.
func TestTheAddressOfASidecarThatIsGoneIsNotTaken(t *testing.T) {
	t.Parallel()
	d, _ := newCounter(t)
	at := filepath.Join(d.home, sidecar.AddressFile)
	alive, err := os.ReadFile(at)
	sound(t, err)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	sound(t, err)
	sound(t, os.WriteFile(at, []byte(gone.Addr().String()+"\n"), 0o600))
	sound(t, gone.Close())
	sound(t, os.WriteFile(at+".new", alive, 0o600))
	written := time.AfterFunc(200*time.Millisecond, func() { _ = os.Rename(at+".new", at) }) // whole, as tapin does
	defer written.Stop()
	d.says("No hand-offs", "handoff", "list")
}

func TestTheCommandsHandTheBrowserOverAndBack(t *testing.T) {
	t.Parallel()
	d, s := newCounter(t)
	if code, out := d.run("", "handoff", "finish"); code != fault.ExitNotFound || !strings.Contains(out, "no hand-off is running") {
		t.Errorf("nothing to finish: %d, %s", code, out)
	}
	d.says("No hand-offs", "handoff", "list")
	d.says("a person has the wheel", "handoff", "start", "login", "Please log in", "--task", "pay the bill", "--until-url", "/home", "--timeout", "10m")
	if code, out := d.run("", "handoff", "start", "captcha"); code != fault.ExitRefused || !strings.Contains(out, "HANDOFF_ACTIVE") {
		t.Errorf("a second one: %d, %s", code, out)
	}
	d.says("Please log in", "handoff", "status")
	if code, out := d.run("", "handoff", "finish"); code != fault.ExitRefused || !strings.Contains(out, "asked 2 times") || !strings.Contains(out, "finish --anyway") {
		t.Errorf("a page that is not done: %d, %s", code, out)
	}
	d.says("in 2", "handoff", "extend") // 25 minutes, less what this test has taken
	d.says("in 5", "handoff", "extend", "30m")
	d.says("parked", "handoff", "park")
	d.says("a person has the wheel", "handoff", "resume")
	if code, out := d.run("", "handoff", "wait", "--timeout", "1s"); code != fault.ExitRetry {
		t.Errorf("still running: %d, %s", code, out)
	}
	s.mu.Lock()
	s.url = "https://bank.example/home"
	s.mu.Unlock()
	d.says("finished by owner", "handoff", "finish")
	d.says("FINISHED", "handoff", "list", "--status", "finished")
	if strings.Contains(d.log.String(), "\x1b[31m") {
		t.Error("a title steered the terminal")
	}
	d.says("has the wheel", "handoff", "start", "other")
	d.says("cancelled", "handoff", "cancel")
	list, out := d.run("", "handoff", "list", "--limit", "1", "--json")
	if list != 0 || !strings.Contains(out, `"status":"CANCELLED"`) || !strings.Contains(out, `"next":"2"`) {
		t.Errorf("%d, %s", list, out)
	}
	d.says("Nothing was put off", "todos")
	d.says("No runs", "runs")
	if code, out := d.run("", "todos", "done", "todo_nope"); code != fault.ExitNotFound {
		t.Errorf("%d, %s", code, out)
	}
}

func TestWaitingTellsHowItEndedByItsExitCode(t *testing.T) {
	t.Parallel()
	d, _ := newCounter(t)
	_, out := d.run("", "handoff", "start", "login", "--timeout", "1s", "--on-timeout", "return", "--json")
	id := out[strings.Index(out, "hof_"):][:28]
	if code, out := d.run("", "handoff", "wait", id); code != fault.ExitRefused || !strings.Contains(out, "timed out") {
		t.Errorf("%d, %s", code, out)
	}
	if code, out := d.run("", "handoff", "finish", id); code != fault.ExitRefused || !strings.Contains(out, "HANDOFF_NOT_RUNNING") {
		t.Errorf("%d, %s", code, out)
	}
}

func TestHandoffCommandsRefuseWhatTheyDoNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"handoff", "begin"}, {"handoff", "start"}, {"handoff", "start", "login", "--timeout", "soon"}, {"handoff", "wait", "a", "b"},
		{"handoff", "extend", "soon"}, {"runs", "a", "b"}, {"todos", "done"}, {"todos", "x"},
	} {
		w := newWorld(t, args...)
		if code := Main(t.Context(), w.Env); code != fault.ExitUsage || !strings.Contains(w.stderr.String(), "hint:") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, &w.stdout, &w.stderr)
		}
	}
}
