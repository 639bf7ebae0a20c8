package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tapin/internal/browser/browsertest"
	"tapin/internal/cli"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) {
	all := map[string]func(){"tapin": func() {
		standInForTheWeb()
		os.Exit(run(func(env *cli.Env) {
			env.OnDisk = stepsAsTold()
			env.Plant, env.Planted, env.OnRead = plants(), plantedRooms(), readsAsTold()
			env.Keyring = keychainInAFile()
		}))
	}}
	maps.Copy(all, programs())
	testscript.Main(m, all)
}

// TestScripts runs the program as a person would, on a real Chromium.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "script")
}

// TestLongScripts are those that take their time.
func TestLongScripts(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	runScripts(t, "long")
}

func runScripts(t *testing.T, folder string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", folder),
		Setup: func(env *testscript.Env) error {
			site := httptest.NewServer(http.HandlerFunc(page))
			env.Defer(site.Close)
			home := filepath.Join(env.WorkDir, "h")
			env.Defer(func() { endAll(home) })
			env.Vars = append(env.Vars,
				"SITE="+site.URL, "SITE_ADDRESS="+site.Listener.Addr().String(), "HOME="+env.WorkDir, "TAPIN_HOME="+home, "TAPIN_CHROME="+os.Getenv("TAPIN_CHROME"),
				"TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0")
			if !strings.HasSuffix(env.WorkDir, "whole_way") { // that is how it is without a setting
				env.Vars = append(env.Vars, "TAPIN_POOL_FOLLOW="+testwait.Spare())
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"pick":     pick,
			"same":     same,
			"signal":   sendSignal,
			"await":    await,
			"gone":     gone,
			"knock":    knock,
			"nothing":  nothing,
			"nosecret": noSecret,
			"isimage":  isImage,
			"mode":     mode,
			"mcphost":  mcpHost,
		},
	})
}

// page is the site under test. Its title tries to steer the terminal.
func page(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if name == "missing" {
		w.WriteHeader(http.StatusNotFound)
	}
	if name == "table" {
		_, _ = fmt.Fprint(w, `<!doctype html><title>Prices</title><h1>Prices &#27;[31mred</h1><table id=t><tr><th>Pen<th>2025<th>2024<tr><td>Blue<td rowspan=2>2.50<td>2.40<tr><td>Red<td>2.60</table>
<p>There is <a href=/more>more</a> to be read about pens and what they cost, which nobody has the time to read to the end of it.`)
		return
	}
	if name == "account" {
		http.SetCookie(w, &http.Cookie{Name: "known", Value: "yes", Path: "/", MaxAge: 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
	greeting := "hello"
	if _, err := r.Cookie("known"); err == nil {
		greeting = "hello again"
	}
	_, _ = fmt.Fprintf(w, "<!doctype html><title>Page %s &#27;[31mred</title><p>%s", name, greeting)
}

// pick takes a member out of the last JSON answer into a variable: pick PID daemon_pid.
func pick(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &v); err != nil {
		ts.Fatalf("the answer is not JSON: %v", err)
	}
	for name := range strings.SplitSeq(args[1], ".") {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	if n, ok := v.(float64); ok {
		v = strconv.FormatFloat(n, 'f', -1, 64)
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// same compares two texts.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if (args[0] == args[1]) == neg {
		ts.Fatalf("%q and %q", args[0], args[1])
	}
}

// sendSignal sends a signal and, for KILL, waits until the process is gone.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	number := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "STOP": syscall.SIGSTOP}[args[0]]
	pid, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(syscall.Kill(pid, number))
	if number == syscall.SIGKILL {
		gone(ts, false, args[1:])
	}
}

// await waits for a file, and for a line in it: await file [pattern].
func await(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(strings.Join(args[1:], " "))
	if !testwait.Comes(func() bool {
		raw, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && pattern.Match(raw)
	}) {
		ts.Fatalf("%s did not come", strings.Join(args, " "))
	}
}

// knock asks the running sidecar something with the token in a file: knock file status.
func knock(ts *testscript.TestScript, _ bool, args []string) {
	address := strings.TrimSpace(ts.ReadFile(filepath.Join(ts.Getenv("TAPIN_HOME"), "control.addr")))
	req, err := http.NewRequest(http.MethodGet, "http://"+address+"/sessions", nil)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(args[0])))
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	_ = resp.Body.Close()
	if strconv.Itoa(resp.StatusCode) != args[1] {
		ts.Fatalf("the answer is %s", resp.Status)
	}
}

// gone waits for the end of a process; a zombie has ended.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := strconv.Atoi(args[0])
	ts.Check(err)
	if !testwait.Comes(func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid) }) {
		ts.Fatalf("process %d is still there", pid)
	}
}

// isZombie reports whether a process has ended but for its name. Its files are
// closed with the last of its threads, which may outlive the first.
func isZombie(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	_, rest, _ := strings.Cut(string(raw), ") ")
	return err == nil && len(threads) < 2 && strings.HasPrefix(rest, "Z")
}

// nothing checks that no process and no browser of the script's home is left.
func nothing(ts *testscript.TestScript, _ bool, _ []string) {
	home := ts.Getenv("TAPIN_HOME")
	if left, err := os.ReadDir(filepath.Join(home, "run")); err == nil && len(left) > 0 {
		ts.Fatalf("browsers are left: %v", left)
	}
	if !testwait.Comes(func() bool { return len(processes(home)) == 0 }) {
		ts.Fatalf("processes are left: %v", processes(home))
	}
}

// processes are those that name the home in their command line.
func processes(home string) map[int]string {
	found := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		raw, err := os.ReadFile(file)
		if err == nil && pid != os.Getpid() && bytes.Contains(raw, []byte(home)) {
			found[pid] = string(bytes.ReplaceAll(raw, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// endAll leaves nothing of a failed script behind.
func endAll(home string) {
	for pid := range processes(home) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// noSecret checks that neither token is in what was just printed, nor in a log.
func noSecret(ts *testscript.TestScript, _ bool, _ []string) {
	home := ts.Getenv("TAPIN_HOME")
	texts := map[string]string{"stdout": ts.ReadFile("stdout"), "stderr": ts.ReadFile("stderr")}
	_ = filepath.WalkDir(filepath.Join(home, "logs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			raw, err := os.ReadFile(path)
			ts.Check(err)
			texts[path] = string(raw)
		}
		return nil
	})
	for _, name := range []string{"agent.token", "owner.token"} {
		raw, err := os.ReadFile(filepath.Join(home, name))
		ts.Check(err)
		token := strings.TrimSpace(string(raw))
		for where, text := range texts {
			if len(token) < 32 || strings.Contains(text, token) {
				ts.Fatalf("%s is in %s", name, where)
			}
		}
	}
}

// isImage checks the first bytes of a file: isimage file.png png.
func isImage(ts *testscript.TestScript, _ bool, args []string) {
	magic := map[string]string{"png": "\x89PNG\r\n\x1a\n", "jpeg": "\xff\xd8\xff", "webp": "RIFF"}[args[1]]
	if got := ts.ReadFile(args[0]); magic == "" || !strings.HasPrefix(got, magic) {
		ts.Fatalf("%s is no %s", args[0], args[1])
	}
}

// mode checks the permissions of a file: mode owner.token 0600.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s", args[0], got)
	}
}
