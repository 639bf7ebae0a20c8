package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// realSidecar is the sidecar itself, as a process.
func realSidecar(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	cfg, _, err := config.Load(config.Inputs{Set: []string{"listen.control=127.0.0.1:0", "pool.follow=0"}}) // there is no holder here
	if err != nil {
		return 1
	}
	home, err := store.Open(path, nil)
	if err != nil {
		return 1
	}
	defer home.Close()
	if sidecar.Run(ctx, sidecar.Options{Home: home, Config: cfg, OnReady: func(string) { fmt.Println(readyWord) }}) != nil {
		return 1
	}
	return 0
}

// realDaemon is the daemon itself, as a process that can be killed. Its words
// are a webhook's address, or a command.
func realDaemon(path string, words []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	home, err := store.Open(path, nil)
	if err != nil {
		return 1
	}
	defer home.Close()
	how := config.OnResume{Command: words}
	if strings.HasPrefix(words[0], "http") {
		how = config.OnResume{Webhook: secret.New(words[0])}
	}
	err = Run(ctx, Options{Home: home, Command: []string{self, "real-sidecar", path}, OnResume: how, OnState: func(s State) {
		if s.Phase == Ready {
			fmt.Println(readyWord)
		}
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a daemon's.
type process struct {
	cmd  *exec.Cmd
	done chan error
}

// launch starts a daemon and returns once its sidecar serves.
func launch(t *testing.T, home *store.Home, words ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"real-daemon", home.Path()}, words...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan error, 1)}
	word := make([]byte, len(readyWord)+1)
	_, err = io.ReadFull(out, word)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		p.done <- cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if running, err := Find(home); err == nil && running.Sidecar != 0 {
			kill(running.Sidecar)
		}
	})
	if err != nil || string(word) != readyWord+"\n" {
		t.Fatalf("the daemon said %q, %v", word, err)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	err := <-p.done
	p.done <- err
}

// end asks the daemon to end.
func (p *process) end(t *testing.T, with os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	err := <-p.done
	p.done <- err
	if err != nil {
		t.Fatalf("the daemon ended with %v", err)
	}
}

// finish makes a hand-off end, as the sidecar's feed tells it.
func finish(t *testing.T, home *store.Home, id string) {
	t.Helper()
	data, err := json.Marshal(event.HandoffEnded{HandoffID: id, SessionID: "ses_1", RunID: "run_1", Status: "FINISHED"})
	if err != nil {
		t.Fatal(err)
	}
	if err := event.NewLetterbox(home, nil).Leave(event.Event{ID: id, Version: 2, Type: event.HandoffFinished, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// receiver is the other end of a webhook. It is as strict as a real one.
type receiver struct {
	*httptest.Server

	mu    sync.Mutex
	count map[string]int
	came  chan string                            // ids, as they come
	first func(http.ResponseWriter, string) bool // what happens instead of an answer; true if it was dealt with
}

func receive(t *testing.T, home *store.Home) *receiver {
	t.Helper()
	r := &receiver{count: map[string]int{}, came: make(chan string, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		key, keyErr := home.Read(WebhookKeyFile)
		stamp, id := req.Header.Get("X-Tapin-Timestamp"), req.Header.Get("X-Tapin-Id")
		at, stampErr := strconv.ParseInt(stamp, 10, 64)
		var got webhookBody
		switch {
		case errors.Join(err, keyErr, stampErr, json.Unmarshal(body, &got)) != nil, req.Method != http.MethodPost,
			Sign(secret.New(strings.TrimSpace(string(key))), stamp, body) != req.Header.Get("X-Tapin-Signature"),
			time.Since(time.Unix(at, 0)).Abs() > time.Minute, got.ID != id, got.HandoffID+"-2" != id,
			got.SessionID != "ses_1", got.RunID != "run_1", got.Status != "FINISHED", got.Type != event.HandoffFinished:
			t.Errorf("a post that is not to be trusted: %v %s", req.Header, body)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.first != nil && r.first(w, id) {
			return
		}
		r.mu.Lock()
		r.count[id]++
		r.mu.Unlock()
		r.came <- id
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) await(t *testing.T) string {
	t.Helper()
	select {
	case id := <-r.came:
		return id
	case <-testwait.Over():
		t.Fatal("nothing came")
		return ""
	}
}

// settled waits until nothing is left to deliver.
func settled(t *testing.T, home *store.Home) {
	t.Helper()
	testwait.For(t, "the end of every wake", func() bool {
		names, err := home.List(wakeFolder)
		return err == nil && len(names) == 0
	})
}

func TestAWakeSurvivesAKillOfTheDaemonBetweenEventAndDelivery(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	r := receive(t, home)
	held, release := make(chan string, 10), make(chan struct{})
	var once sync.Once
	r.first = func(_ http.ResponseWriter, id string) (dealt bool) {
		once.Do(func() {
			dealt = true
			held <- id
			<-release // no answer before the kill
		})
		return dealt
	}
	first := launch(t, home, r.URL)
	finish(t, home, "hof_1")
	var id string
	select {
	case id = <-held:
	case <-testwait.Over():
		t.Fatal("nobody was woken")
	}
	first.kill()
	close(release)
	second := launch(t, home, r.URL)
	if again := r.await(t); again != id {
		t.Fatalf("delivered as %q, then as %q", id, again)
	}
	settled(t, home)
	second.end(t, syscall.SIGTERM)
}

func TestWakesSurviveKillsOfEverybodyAtAnyTime(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	r := receive(t, home)
	const rounds = 6
	for i := range rounds {
		d := launch(t, home, r.URL)
		finish(t, home, fmt.Sprintf("hof_%d", i))
		time.Sleep(rand.N(300 * time.Millisecond)) // the moment of the kill, not a wait for something
		if i%2 == 0 {
			if running, err := Find(home); err == nil && running.Sidecar != 0 {
				kill(running.Sidecar)
			}
		}
		d.kill()
	}
	last := launch(t, home, r.URL)
	for missing := rounds; missing > 0; {
		r.await(t)
		r.mu.Lock()
		missing = rounds - len(r.count)
		r.mu.Unlock()
	}
	settled(t, home)
	last.end(t, syscall.SIGINT)
	leftovers(t, home)
}

// leftovers checks that an orderly end left no process and no temp file.
func leftovers(t *testing.T, home *store.Home) {
	t.Helper()
	if running, err := Find(home); err != nil || running != (Running{}) {
		t.Errorf("still running: %+v, %v", running, err)
	}
	if _, err := home.Read(addressFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the address of nobody is left: %v", err)
	}
	temp, err := filepath.Glob(filepath.Join(home.Path(), "tmp", "*"))
	if err != nil || len(temp) > 1 { // the test's own
		t.Errorf("temp files are left: %v, %v", temp, err)
	}
}

func TestACommandIsTheWakesOwnAndEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	out := filepath.Join(t.TempDir(), "told")
	script := `trap '' TERM; printf '%s\n' "$TAPIN_HANDOFF_ID $TAPIN_HANDOFF_STATUS $TAPIN_RUN_ID $TAPIN_SESSION_ID $1 $2 $3" > "$0.part"; echo $$ >> "$0.part"; mv "$0.part" "$0"; sleep 300`
	words := []string{"/bin/sh", "-c", script, out, "{handoff_id}", "{status}", "; echo $HOME"}
	d := launch(t, home, words...)
	finish(t, home, "hof_1")
	told := readWhenThere(t, out)
	lines := strings.Split(strings.TrimSpace(told), "\n")
	if lines[0] != "hof_1 FINISHED run_1 ses_1 hof_1 FINISHED ; echo $HOME" {
		t.Fatalf("the command was told %q", lines[0])
	}
	pid, err := strconv.Atoi(lines[1])
	if err != nil {
		t.Fatal(err)
	}
	d.end(t, syscall.SIGTERM)
	for _, left := range living(pid) { // what was killed is gone a moment later
		awaitGone(t, left)
	}
	leftovers(t, home)

	// It was cut off, so the next daemon wakes again.
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	launch(t, home, "/bin/sh", "-c", `echo again > "$0.part"; mv "$0.part" "$0"`, out)
	if got := readWhenThere(t, out); got != "again\n" {
		t.Fatalf("then %q", got)
	}
	settled(t, home)
}

// living are the processes of a group that have not ended; what only waits for
// its parent to hear of it has.
func living(group int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(group) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func readWhenThere(t *testing.T, file string) string {
	t.Helper()
	var raw []byte
	testwait.For(t, file, func() (there bool) {
		var err error
		raw, err = os.ReadFile(file)
		return err == nil
	})
	return string(raw)
}
