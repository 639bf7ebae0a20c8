package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tapin/internal/testwait"
)

// world is a home, the real processes on it, and a site that notices everything.
type world struct {
	t    testing.TB
	home string
	site *noticing
	set  []string // further settings
	env  []string // further variables of the environment
}

// answer is what the door said.
type answer struct {
	code int
	body map[string]any
}

func (a answer) ok() bool { return a.code == http.StatusOK }

func (a answer) text(name string) string {
	s, _ := a.body[name].(string)
	return s
}

func newWorld(t testing.TB, set ...string) *world {
	t.Helper()
	home, err := os.MkdirTemp("", "tapin") // short: there is a socket below it
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home, site: notice(t), set: set, env: []string{"TAPIN_POOL_FOLLOW=" + testwait.Spare()}}
	t.Cleanup(func() {
		endAll(home)
		for _, file := range []string{home, w.failpoint(), struck(w.failpoint()), w.failpoint() + ".trace"} {
			_ = os.RemoveAll(file)
		}
	})
	return w
}

// up starts the daemon, or leaves the one that runs.
func (w *world) up() {
	w.t.Helper()
	args := []string{"up", "--background", "--no-check", "--allow-private"}
	for _, s := range w.set {
		args = append(args, "--set", s)
	}
	if out, err := w.tapin(args...); err != nil {
		w.t.Fatalf("up: %v\n%s\n%s", err, out, w.logs())
	}
}

func (w *world) tapin(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*testwait.Limit())
	defer cancel()
	cmd := exec.CommandContext(ctx, "tapin", args...)
	cmd.Env = append(os.Environ(), "TAPIN_HOME="+w.home, "TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0",
		failpointFile+"="+w.failpoint())
	cmd.Env = append(cmd.Env, w.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// failpoint is the file that arms the processes of this world.
func (w *world) failpoint() string { return w.home + ".failpoint" }

func (w *world) logs() string {
	var all []byte
	for _, name := range []string{"daemon.log", "sidecar.log"} {
		raw, _ := os.ReadFile(filepath.Join(w.home, "logs", name))
		all = append(all, raw[max(0, len(raw)-4000):]...)
	}
	return string(all)
}

// try is one request; an error means that nobody knows what became of it.
func (w *world) try(who, method, path string, body any, key string) (answer, error) {
	address, err := os.ReadFile(filepath.Join(w.home, "control.addr"))
	if err != nil {
		return answer{}, err
	}
	token, err := os.ReadFile(filepath.Join(w.home, who+".token"))
	if err != nil {
		return answer{}, err
	}
	if wish, ok := body.(map[string]any); ok && strings.HasSuffix(path, "/wait") && wish["timeout_ms"] == nil {
		wish["timeout_ms"] = 60_000 // as long as anybody may wait there
	}
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		payload = bytes.NewReader(raw)
	}
	ctx, cancel := testwait.Within(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+strings.TrimSpace(string(address))+path, payload)
	if err != nil {
		return answer{}, err
	}
	req.Close = true // a connection must not outlive the process at its other end
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	got := answer{code: resp.StatusCode}
	return got, json.Unmarshal(raw, &got.body)
}

// ask is a request that has to be answered, whatever with.
func (w *world) ask(who, method, path string, body any) answer {
	w.t.Helper()
	got, err := w.try(who, method, path, body, "")
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", method, path, err, w.logs())
	}
	return got
}

// must is a request that has to succeed.
func (w *world) must(who, method, path string, body any) answer {
	w.t.Helper()
	got := w.ask(who, method, path, body)
	if !got.ok() {
		w.t.Fatalf("%s %s: %d %v\n%s", method, path, got.code, got.body, w.logs())
	}
	return got
}

// stream is an answer that is read as it comes.
func (w *world) stream(who, path string) *http.Response {
	w.t.Helper()
	address, err := os.ReadFile(filepath.Join(w.home, "control.addr"))
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(w.home, who+".token"))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := testwait.Within(context.Background())
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.TrimSpace(string(address))+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %d", who, path, resp.StatusCode)
	}
	return resp
}

// pids are the processes of a part of tapin in this home.
func (w *world) pids(part string) []int {
	var found []int
	for pid, line := range processes(w.home) {
		if isZombie(pid) {
			continue
		}
		words := strings.Fields(line)
		switch {
		case part == "browser":
			if strings.Contains(line, "--remote-debugging-pipe") && !strings.Contains(line, "--type=") {
				found = append(found, pid)
			}
		case slices.Contains(words, part) && !strings.Contains(line, "--type="):
			found = append(found, pid)
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(pid int) bool { return slices.Contains(found, parentOf(pid)) })
}

// parentOf tells who started a process. One that is about to run a program looks
// like its parent for a moment.
func parentOf(pid int) int {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var parent int
	_, rest, _ := strings.Cut(string(raw), ") ")
	_, _ = fmt.Sscanf(rest, "%s %d", new(string), &parent)
	return parent
}

// holders are the processes that hold a browser of this home: their command
// line names the browser alone.
func (w *world) holders() []int {
	var found []int
	folders, _ := os.ReadDir(filepath.Join(w.home, "run"))
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		words := strings.Split(string(raw), "\x00")
		if err != nil || len(words) < 3 || words[1] != "holder" {
			continue
		}
		for _, f := range folders {
			var pid int
			if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && words[2] == f.Name() && !isZombie(pid) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// kill kills processes and waits until they are gone.
func (w *world) kill(pids ...int) {
	w.t.Helper()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range pids {
		w.within(fmt.Sprintf("the end of process %d", pid), func() bool {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
		})
	}
}

// within waits until something is so.
func (w *world) within(what string, so func() bool) {
	w.t.Helper()
	if !testwait.Comes(so) {
		w.t.Fatalf("%s did not come within %s\n%s", what, testwait.Limit(), w.logs())
	}
}

// serving waits until a sidecar that is none of those before serves.
func (w *world) serving(before ...int) {
	w.t.Helper()
	w.within("a sidecar that serves", func() bool {
		now := w.pids("sidecar")
		if len(now) != 1 || slices.Contains(before, now[0]) {
			return false
		}
		got, err := w.try("agent", "GET", "/sessions", nil, "")
		return err == nil && got.ok()
	})
}

// whole checks that every file of the home that holds JSON can be read, and
// that no write was left half done. Right after a kill a log may end in the part
// of a line, which nobody reads and the next line takes the place of.
func (w *world) whole(tails bool) error {
	var errs []error
	_ = filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it went away meanwhile
		}
		if d.Name() == "run" || strings.HasPrefix(path, filepath.Join(w.home, "run")+"/") {
			return nil // the browser's own
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // it went away meanwhile
		}
		switch filepath.Ext(path) {
		case ".json":
			if !json.Valid(raw) {
				errs = append(errs, fmt.Errorf("%s is torn", path))
			}
		case ".jsonl":
			for line := range bytes.Lines(raw) {
				if tails && !bytes.HasSuffix(line, []byte("\n")) {
					continue
				}
				if !json.Valid(line) {
					errs = append(errs, fmt.Errorf("%s has a torn line", path))
				}
			}
		}
		return nil
	})
	return errors.Join(errs...)
}

// noticing is a site that notices when its page is loaded, and what is put into
// its field. Each load of a page calls itself by a name of its own.
type noticing struct {
	*httptest.Server

	mu     sync.Mutex
	loads  map[string]int   // by what the address asks for
	inputs map[string]input // the field's value, by the name of the load
	last   string           // the name of the load that spoke last
	cookie map[string]bool  // whether the last load had the cookie, by what the address asks for
}

// input is the value of the field after so many changes.
type input struct {
	count int
	value string
}

func notice(t testing.TB) *noticing {
	t.Helper()
	n := &noticing{loads: map[string]int{}, inputs: map[string]input{}, cookie: map[string]bool{}}
	n.Server = httptest.NewServer(http.HandlerFunc(n.serve))
	t.Cleanup(func() {
		n.CloseClientConnections()
		n.Close()
	})
	return n
}

func (n *noticing) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/input" {
		raw, _ := io.ReadAll(r.Body)
		name, rest, _ := strings.Cut(string(raw), " ")
		number, value, _ := strings.Cut(rest, " ")
		count, _ := strconv.Atoi(number)
		n.mu.Lock()
		if count > n.inputs[name].count { // they overtake each other
			n.inputs[name], n.last = input{count, value}, name
		}
		n.mu.Unlock()
		return
	}
	round := r.URL.Query().Get("round")
	_, err := r.Cookie("kept")
	n.mu.Lock()
	n.loads[round]++
	n.cookie[round] = err == nil
	n.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "kept", Value: "yes", Path: "/", MaxAge: 3600})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, `<!doctype html><title>%s</title><input id=field autofocus><script>
const me = Math.random().toString(36).slice(2);
let count = 0;
field.oninput = () => fetch("/input", {method: "POST", body: [me, ++count, field.value].join(" "), keepalive: true});
field.focus();
</script>`, strings.TrimPrefix(r.URL.Path, "/"))
}

// forget lets only a load that speaks from now on be heard.
func (n *noticing) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = ""
}

// field is the value that the page told last, and the name of its load.
func (n *noticing) field() (load, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last, n.inputs[n.last].value
}

func (n *noticing) loaded(round string) (times int, withCookie bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loads[round], n.cookie[round]
}
