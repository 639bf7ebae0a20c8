package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lightPage is what a simple site looks like.
const lightPage = `<!doctype html><meta charset=utf-8><title>Light</title>
<style>body{font:16px/1.5 system-ui;max-width:40rem;margin:4rem auto}</style>
<h1>A light page</h1><p>Some text, a <a href="#">link</a> and a <button>button</button>.</p>`

func serveLight() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(lightPage))
	}))
}

func findChromium() (string, error) {
	for _, name := range []string{os.Getenv("TAPIN_CHROME"), "/usr/lib/chromium/chromium", "google-chrome", "chromium", "chromium-browser"} {
		if full, err := exec.LookPath(name); name != "" && err == nil {
			return full, nil
		}
	}
	return "", errors.New("no Chromium was found; name it with TAPIN_CHROME")
}

// floorFlags are those tapin starts its browser with, as far as they cost or save time.
var floorFlags = []string{
	"--headless=new", "--no-first-run", "--no-default-browser-check", "--no-startup-window", "--disable-gpu", "--disable-quic",
	"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-breakpad",
	"--hide-scrollbars", "--mute-audio", "--window-size=1280,720",
	"--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,PreloadTopChromeWebUI,NetworkTimeServiceQuerying",
}

// floorColdStart starts Chromium and speaks the least CDP that gives a picture.
func floorColdStart(ctx context.Context, chromium, url string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "floor")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := append([]string{"--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "profile")}, floorFlags...)
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	began := time.Now()
	b, err := startRaw(ctx, chromium, args)
	if err != nil {
		return 0, err
	}
	defer b.end()
	var made struct {
		TargetID string `json:"targetId"`
	}
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &made); err != nil {
		return 0, err
	}
	var at struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &at); err != nil {
		return 0, err
	}
	if err := b.call(at.SessionID, "Page.enable", nil, nil); err != nil {
		return 0, err
	}
	if err := b.call(at.SessionID, "Page.navigate", map[string]any{"url": url}, nil); err != nil {
		return 0, err
	}
	if err := b.await("Page.domContentEventFired"); err != nil {
		return 0, err
	}
	var shot struct {
		Data string `json:"data"`
	}
	if err := b.call(at.SessionID, "Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": true}, &shot); err != nil {
		return 0, err
	}
	if !strings.HasPrefix(shot.Data, "iVBOR") {
		return 0, errors.New("no picture came")
	}
	return time.Since(began), nil
}

// raw is a browser on a pipe, spoken to one call at a time.
type raw struct {
	cmd  *exec.Cmd
	in   *os.File
	out  *bufio.Reader
	id   int
	seen map[string]bool // events that came while waiting for something else
}

func startRaw(ctx context.Context, chromium string, args []string) (*raw, error) {
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, chromium, args...) //nolint:gosec // the browser to measure
	cmd.ExtraFiles = []*os.File{theirs, ours}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = theirs.Close(), ours.Close()
	return &raw{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20), seen: map[string]bool{}}, nil
}

type rawMessage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (b *raw) next() (rawMessage, error) {
	var m rawMessage
	line, err := b.out.ReadBytes(0)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line[:len(line)-1], &m)
}

func (b *raw) call(session, method string, params, result any) error {
	b.id++
	msg := map[string]any{"id": b.id, "method": method}
	if session != "" {
		msg["sessionId"] = session
	}
	if params != nil {
		msg["params"] = params
	}
	line, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(line, 0)); err != nil {
		return err
	}
	for {
		m, err := b.next()
		switch {
		case err != nil:
			return err
		case m.ID == 0:
			b.seen[m.Method] = true
		case m.ID == b.id && m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case m.ID == b.id && result != nil:
			return json.Unmarshal(m.Result, result)
		case m.ID == b.id:
			return nil
		}
	}
}

func (b *raw) await(event string) error {
	for !b.seen[event] {
		m, err := b.next()
		if err != nil {
			return err
		}
		b.seen[m.Method] = true
	}
	return nil
}

func (b *raw) end() {
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	_ = b.cmd.Wait()
	_ = b.in.Close()
}
