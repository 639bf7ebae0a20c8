package liveview_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// webkit is a WebKit that a test drives by the WebDriver protocol.
type webkit struct {
	t    *testing.T
	base string // of its session
}

// openWebKit starts one with a window of a phone's size. Where there is none it
// says so and skips: make setup-test installs it.
func openWebKit(t *testing.T, width, height int) *webkit {
	t.Helper()
	for _, program := range []string{"WebKitWebDriver", "Xvfb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED IN WEBKIT: there is no %s on this machine; make setup-test installs it where it can", program)
		}
	}
	display := startX(t)
	port := browsertest.FreePort(t)
	driver := exec.Command("WebKitWebDriver", fmt.Sprint("--port=", port)) //nolint:gosec // a test's own
	driver.Env = append(os.Environ(), "DISPLAY="+display, "GDK_BACKEND=x11", "LIBGL_ALWAYS_SOFTWARE=1", "NO_AT_BRIDGE=1", "WEBKIT_DISABLE_DMABUF_RENDERER=1")
	startGroup(t, driver)
	w := &webkit{t: t, base: fmt.Sprintf("http://127.0.0.1:%d", port)}
	testwait.For(t, "the driver serving", func() bool {
		var now struct{ Ready bool }
		return w.try(t.Context(), http.MethodGet, "/status", nil, &now) == nil && now.Ready
	})
	var made struct {
		SessionID string `json:"sessionId"`
	}
	w.must(http.MethodPost, "/session", map[string]any{"capabilities": map[string]any{}}, &made)
	w.base += "/session/" + made.SessionID
	t.Cleanup(func() {
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		_ = w.try(ctx, http.MethodDelete, "", nil, nil)
	})
	w.must(http.MethodPost, "/window/rect", map[string]int{"width": width, "height": height}, nil)
	return w
}

// startX starts a display that nobody sees, at a number of its own choosing.
func startX(t *testing.T) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	x := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1000x1200x24", "-nolisten", "tcp")
	x.ExtraFiles = []*os.File{write}
	startGroup(t, x)
	_ = write.Close()
	_ = read.SetReadDeadline(testwait.End())
	number, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatalf("the display did not start: %v", err)
	}
	return ":" + strings.TrimSpace(number)
}

// startGroup starts a program that ends with the test, and all that it starts
// with it.
func startGroup(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

// try sends one command.
func (w *webkit) try(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := testwait.Within(ctx)
	defer cancel()
	var raw []byte
	if method == http.MethodPost {
		if body == nil {
			body = map[string]any{}
		}
		raw, _ = json.Marshal(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(method + " " + path + ": " + string(said.Value))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(said.Value, into)
}

func (w *webkit) must(method, path string, body, into any) {
	w.t.Helper()
	if err := w.try(w.t.Context(), method, path, body, into); err != nil {
		w.t.Fatal(err)
	}
}

func (w *webkit) open(url string) {
	w.t.Helper()
	w.must(http.MethodPost, "/url", map[string]string{"url": url}, nil)
}

// eval is what an expression is in the page, as text.
func (w *webkit) eval(expression string) string {
	w.t.Helper()
	var text string
	w.must(http.MethodPost, "/execute/sync", map[string]any{"script": "return String(" + expression + ")", "args": []any{}}, &text)
	return text
}

// until waits for an expression to be true.
func (w *webkit) until(what, expression string) {
	w.t.Helper()
	testwait.For(w.t, what, func() bool { return w.eval(expression) == "true" })
}

// find is the one element of a selector, as the protocol names it.
func (w *webkit) find(selector string) string {
	w.t.Helper()
	var found map[string]string
	w.must(http.MethodPost, "/element", map[string]string{"using": "css selector", "value": selector}, &found)
	for _, id := range found {
		return id
	}
	w.t.Fatalf("there is no %s", selector)
	return ""
}

// middle is where the middle of an element is on the glass.
func (w *webkit) middle(selector string) (x, y int) {
	w.t.Helper()
	at := w.eval(fmt.Sprintf(`(r => Math.round(r.x + r.width/2) + " " + Math.round(r.y + r.height/2))(document.querySelector(%s).getBoundingClientRect())`, strconv.Quote(selector)))
	if _, err := fmt.Sscan(at, &x, &y); err != nil {
		w.t.Fatalf("%s is at %q", selector, at)
	}
	return x, y
}

// tap taps a point on the glass, and holds it for a while.
func (w *webkit) tap(x, y int, hold time.Duration) {
	w.t.Helper()
	w.must(http.MethodPost, "/actions", map[string]any{"actions": []any{map[string]any{
		"type": "pointer", "id": "finger", "parameters": map[string]string{"pointerType": "mouse"},
		"actions": []any{
			map[string]any{"type": "pointerMove", "x": x, "y": y, "duration": 0, "origin": "viewport"},
			map[string]any{"type": "pointerDown", "button": 0},
			map[string]any{"type": "pause", "duration": hold.Milliseconds()},
			map[string]any{"type": "pointerUp", "button": 0},
		},
	}}}, nil)
}

// strike strikes keys one after the other.
func (w *webkit) strike(text string) {
	w.t.Helper()
	var strokes []any
	for _, r := range text {
		strokes = append(strokes, map[string]string{"type": "keyDown", "value": string(r)}, map[string]string{"type": "keyUp", "value": string(r)})
	}
	w.must(http.MethodPost, "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keys", "actions": strokes}}}, nil)
}
