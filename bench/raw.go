package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// floorFlags are those tapin starts its browser with, as far as they cost or
// save time. Every participant's browser gets them.
var floorFlags = []string{
	"--headless=new", "--no-first-run", "--no-default-browser-check", "--no-startup-window", "--disable-gpu", "--disable-quic",
	"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-breakpad",
	"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
	"--hide-scrollbars", "--mute-audio", "--window-size=1280,720",
	"--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,PreloadTopChromeWebUI,NetworkTimeServiceQuerying",
}

// windowTop is what a headless window keeps of its height for itself. Everybody
// else sets the size of the page, which the floor would need a round trip for.
const windowTop = 87

// rootFlags are what Chromium needs where the bench is run by root.
func rootFlags() []string {
	if os.Geteuid() == 0 {
		return []string{"--no-sandbox"}
	}
	return nil
}

func findChromium() (string, error) {
	for _, name := range []string{os.Getenv("TAPIN_CHROME"), "/usr/lib/chromium/chromium", "google-chrome", "chromium", "chromium-browser"} {
		if full, err := exec.LookPath(name); name != "" && err == nil {
			return full, nil
		}
	}
	return "", errors.New("no Chromium was found; name it with TAPIN_CHROME")
}

// raw is a browser on a pipe, spoken to in the plainest way that works.
type raw struct {
	cmd *exec.Cmd
	dir string
	in  *os.File

	mu      sync.Mutex
	id      int
	waiting map[int]chan rawMessage
	ears    map[string]chan json.RawMessage
	lost    error
}

type rawMessage struct {
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Session string          `json:"sessionId"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func startRaw(ctx context.Context, chromium string) (*raw, error) {
	dir, err := os.MkdirTemp("", "floor")
	if err != nil {
		return nil, err
	}
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "profile")}, floorFlags...)
	args = append(args, fmt.Sprintf("--window-size=%d,%d", viewWidth, viewHeight+windowTop))
	cmd := exec.CommandContext(ctx, chromium, append(args, rootFlags()...)...) //nolint:gosec // the browser to measure
	cmd.ExtraFiles = []*os.File{theirs, ours}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}                                 // as tapin and the peers do: sessions are given a share each
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // its helpers keep the pipe open
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = theirs.Close(), ours.Close()
	b := &raw{cmd: cmd, dir: dir, in: in, waiting: map[int]chan rawMessage{}, ears: map[string]chan json.RawMessage{}}
	go b.read(bufio.NewReaderSize(out, 1<<20))
	return b, nil
}

func (b *raw) read(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes(0)
		var m rawMessage
		if err == nil {
			err = json.Unmarshal(line[:len(line)-1], &m)
		}
		b.mu.Lock()
		if err != nil {
			b.lost = fmt.Errorf("the browser is gone: %w", err)
			for _, w := range b.waiting {
				close(w)
			}
			b.waiting = map[int]chan rawMessage{}
			b.mu.Unlock()
			return
		}
		if w := b.waiting[m.ID]; m.ID != 0 && w != nil {
			delete(b.waiting, m.ID)
			w <- m
		} else if ear := b.ears[m.Session+" "+m.Method]; ear != nil {
			select {
			case ear <- m.Params:
			default: // nobody wants more of them
			}
		}
		b.mu.Unlock()
	}
}

// hear has the events of one kind put into a channel, until deaf is called.
func (b *raw) hear(session, method string, most int) (events <-chan json.RawMessage, deaf func()) {
	ear := make(chan json.RawMessage, most)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ears[session+" "+method] = ear
	return ear, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.ears, session+" "+method)
	}
}

// send asks and does not wait for the answer.
func (b *raw) send(session, method string, params any) (<-chan rawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return nil, b.lost
	}
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
		return nil, err
	}
	got := make(chan rawMessage, 1)
	b.waiting[b.id] = got
	_, err = b.in.Write(append(line, 0))
	return got, err
}

// call asks and waits for the answer.
func (b *raw) call(session, method string, params, result any) error {
	got, err := b.send(session, method, params)
	if err != nil {
		return err
	}
	select {
	case m, ok := <-got:
		switch {
		case !ok:
			return errors.New("the browser is gone")
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s: no answer", method)
	}
}

func (b *raw) end() {
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	_ = b.cmd.Wait()
	_ = b.in.Close()
	_ = os.RemoveAll(b.dir)
}
