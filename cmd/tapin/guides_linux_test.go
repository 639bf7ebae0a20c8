package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tapin/internal/testwait"
)

// firstPages are what a beginner reads.
var firstPages = []string{"README.md", "docs/quickstart.md"}

// TestTheGuidesCanBeFollowed types every command of the README and the guides
// into a shell at a terminal, in their order, with the program on a real
// Chromium and a site in the place of https://example.com. What is not run says
// so on the page, with its reason. Without TAPIN_TEST_GUIDES only the pages that
// a beginner reads are followed: all of them take minutes.
func TestTheGuidesCanBeFollowed(t *testing.T) {
	t.Parallel()
	ran, not := 0, []string{}
	for _, g := range pages(t) {
		for _, f := range g.fences {
			switch {
			case f.language != "sh":
			case f.notRun != "":
				not = append(not, fmt.Sprintf("%s:%d: %s", g.file, f.first, f.notRun))
			default:
				ran++
			}
		}
		if !g.runs() || os.Getenv("TAPIN_TEST_GUIDES") == "" && !slices.Contains(firstPages, g.file) {
			continue
		}
		t.Run(g.file, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			if err := s.follow(t, g); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d blocks are run, %d are not:\n%s", ran, len(not), strings.Join(not, "\n"))
	if ran < 20 || len(not) > ran/2 {
		t.Errorf("%d blocks run and %d not: the pages say too little that can be tried", ran, len(not))
	}
}

func TestAGuideThatIsWrongIsFoundWithItsLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ page, want string }{
		"a command that is no more":   {"# A\n\n```sh\ntrue\n\ntapin nonsense\n```\n", "page.md:6: .*nonsense"},
		"a flag that is no more":      {"```sh\ntapin version --nonsense\n```\n", "page.md:2: .*--nonsense"},
		"a request without an answer": {"```sh\ncurl -sf http://127.0.0.1:9/\n```\n", "page.md:2: .*curl"},
		"a failure before a pipe":     {"```sh\ntapin nonsense | cat\n```\n", "page.md:2: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := parseGuide("page.md", tt.page)
			if err != nil {
				t.Fatal(err)
			}
			err = newStage(t).play(t, g)
			if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	for name, text := range map[string]string{
		"an indented block":      "text\n\n    tapin open\n",
		"a block of no language": "```\ntapin open\n```\n",
		"a mark without reason":  "<!-- not run -->\n```sh\ntapin open\n```\n",
		"a mark of another kind": "<!-- skip: later -->\n```sh\ntapin open\n```\n",
		"a block without end":    "```sh\ntapin open\n",
	} {
		if _, err := parseGuide("page.md", text); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// stage is a person's home with nothing in it, a terminal, and the web.
type stage struct {
	home string
	env  []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(home)
		_ = os.RemoveAll(home)
	})
	program, err := exec.LookPath("tapin")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(home, "bin", "tapin")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, stageFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewTLSServer(http.HandlerFunc(exampleCom))
	t.Cleanup(site.Close)
	way := httptest.NewServer(wayTo(site.Listener.Addr().String()))
	t.Cleanup(way.Close)
	key := sha256.Sum256(site.Certificate().RawSubjectPublicKeyInfo)
	s := &stage{home: home, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "LANG=C.UTF-8", "EDITOR=true",
		"TAPIN_CHROME=" + os.Getenv("TAPIN_CHROME"), "TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0",
		"TAPIN_BROWSER_UPSTREAM_PROXY=" + way.URL,
		"TAPIN_BROWSER_ARGS=--ignore-certificate-errors-spki-list=" + base64.StdEncoding.EncodeToString(key[:]),
	}}
	return s
}

// follow plays a page on a tapin that runs.
func (s *stage) follow(t *testing.T, g *guide) error {
	t.Helper()
	if out, err := s.tapin("up", "--background", "--no-check"); err != nil {
		return fmt.Errorf("up: %w\n%s", err, out)
	}
	err := s.play(t, g)
	if err != nil {
		raw, _ := os.ReadFile(filepath.Join(s.home, ".tapin", "logs", "sidecar.log"))
		err = fmt.Errorf("%w\n%s", err, raw[max(0, len(raw)-3000):])
	}
	if out, down := s.tapin("down"); down != nil {
		err = errors.Join(err, fmt.Errorf("down: %w\n%s", down, out))
	}
	return err
}

func (s *stage) tapin(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*testwait.Limit())
	defer cancel()
	cmd := exec.CommandContext(ctx, "tapin", args...)
	cmd.Env, cmd.Dir = s.env, s.home
	return cmd.CombinedOutput()
}

// play types the page's commands; the first that fails ends it, by its line.
func (s *stage) play(t *testing.T, g *guide) error {
	t.Helper()
	ctx := testwait.Context(t)
	script, typed := g.shell()
	file, trace := filepath.Join(s.home, "page.sh"), filepath.Join(s.home, "trace")
	// No command can stand in a page's first line; this does.
	script = "set -euo pipefail; exec 9>'" + trace + "'; BASH_XTRACEFD=9; PS4='▸${LINENO} '; set -x" + script
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "bash", file)
	cmd.Env, cmd.Dir = s.env, s.home
	out, err := atTerminal(cmd, strings.Join(append(typed, ""), "\n"))
	if err != nil {
		raw, _ := os.ReadFile(trace)
		line, command := lastTraced(string(raw))
		return fmt.Errorf("%s:%s: %s: %w\n%s", g.file, line, command, err, out[max(0, len(out)-3000):])
	}
	return nil
}

var traced = regexp.MustCompile(`(?m)^▸+(\d+) (.*)$`)

func lastTraced(trace string) (line, command string) {
	if all := traced.FindAllStringSubmatch(trace, -1); len(all) > 0 {
		return all[len(all)-1][1], all[len(all)-1][2]
	}
	return "?", "?"
}

// atTerminal runs a command at a terminal of its own, where input was typed
// ahead, and returns what it showed.
func atTerminal(cmd *exec.Cmd, input string) (string, error) {
	ours, theirs, err := terminal()
	if err != nil {
		return "", err
	}
	defer func() { _ = ours.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if _, err := ours.WriteString(input); err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	_ = theirs.Close()
	var shown bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&shown, ours) }) // ends with an error when nobody has the terminal any more
	err = cmd.Wait()
	// A daemon that the page started may still have the terminal.
	_ = ours.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // short: what was shown is there already
	reading.Wait()
	return shown.String(), err
}

// terminal makes a pair of ends of a terminal, 120 columns wide.
func terminal() (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	ours = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})
	}
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = ours.Close()
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	return ours, theirs, nil
}

// programs are what a page's script calls beside tapin.
func programs() map[string]func() { return map[string]func(){"glance": glance} }

// glance is a program that looks at what another one shows at a terminal, and
// ends it with Ctrl-C. It is how a page's endless commands are run.
func glance() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	ours, theirs, err := terminal()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	// A signal that is caught here is at its default in the child, also where
	// the tests run in the background and all of them ignore it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = theirs.Close()
	seen := make([]byte, 1)
	_ = ours.SetReadDeadline(testwait.End())
	if _, err := ours.Read(seen); err != nil {
		fmt.Fprintln(os.Stderr, "it showed nothing")
		_ = cmd.Process.Kill()
		os.Exit(1)
	}
	_ = ours.SetReadDeadline(time.Time{})
	_, _ = ours.Write([]byte{3}) // Ctrl-C
	go func() { _, _ = io.Copy(os.Stdout, ours) }()
	// A program that knows nothing of Ctrl-C dies of it, which is as good.
	if err := cmd.Wait(); err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// wayTo is the proxy through which the stage's browsers get to the web: whatever
// address they ask for, the site answers.
func wayTo(site string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || !strings.HasSuffix(r.Host, ":443") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		far, err := net.Dial("tcp", site)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		near, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = far.Close()
			return
		}
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(far, rw); _ = far.Close() })
		both.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		both.Wait()
	}
}

// exampleCom is the site that the guides speak of.
func exampleCom(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, known := r.Cookie("who")
	switch {
	case r.URL.Path == "/login" && r.Method == http.MethodPost:
		http.SetCookie(w, &http.Cookie{Name: "who", Value: "me", Path: "/", MaxAge: 86400, Secure: true, HttpOnly: true})
		http.Redirect(w, r, "/dashboard", http.StatusSeeOther)
	case r.URL.Path == "/dashboard" && known == nil:
		_, _ = fmt.Fprint(w, `<!doctype html><title>Dashboard</title><h1>Welcome</h1><p>You are signed in.<p><a href=/bill>Your bill</a>`)
	case r.URL.Path == "/dashboard":
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	case r.URL.Path == "/bill":
		_, _ = fmt.Fprint(w, `<!doctype html><title>Verizon: your bill</title><h1>Verizon</h1><p>Your bill of November<p>Total due: <b class=total>$142.50</b>
<button onclick="document.body.innerHTML='<h1>Thank you</h1><p>Your payment was received.'">Pay now</button>`)
	default:
		_, _ = fmt.Fprint(w, `<!doctype html><title>Example Domain</title><h1>Example Domain</h1>
<form method=post action=/login><label>Email <input name=email type=email></label> <label>Password <input name=password type=password></label>
<label>Country <select name=country><option>Norway<option>Switzerland</select></label> <label>Photo <input name=photo type=file></label> <button>Sign in</button></form>
<ul><li><h3>Pen</h3><a href=/pen>more</a><li><h3>Paper</h3><a href=/paper>more</a></ul>
<table id=prices><tr><th>Thing<th>Price<tr><td>Pen<td>2.50</table><p>Total: <b class=total>$12.40</b>
<p>This domain is for use in documentation examples without needing permission. Avoid use in operations that matter to anybody at all.`)
	}
}
