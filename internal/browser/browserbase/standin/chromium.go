package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/browser/local"
)

// quitWithin is how long a browser may take to write down what it has.
const quitWithin = 10 * time.Second

var listening = regexp.MustCompile(`ws://\S+`)

// chromium is a browser of a session: its own, with its own profile.
type chromium struct {
	ws      string
	profile string
	cmd     *exec.Cmd
	exited  chan struct{}
	once    sync.Once
}

// launch starts a browser as Browserbase would: it looks like one on a desk.
func launch(profile string) (*chromium, error) {
	found, err := local.Find("")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--headless=new", "--remote-debugging-port=0", "--user-data-dir=" + profile,
		"--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,PreloadTopChromeWebUI,NetworkTimeServiceQuerying",
		"--password-store=basic", "--user-agent=Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
		"about:blank",
	}
	if local.NeedsNoSandbox() {
		args = append(args, "--no-sandbox")
	}
	c := &chromium{profile: profile, cmd: exec.Command(found.Path, args...), exited: make(chan struct{})} //nolint:gosec // the browser that was found; it outlives the request that started it
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(stderr)
	for c.ws == "" && lines.Scan() {
		c.ws = listening.FindString(lines.Text())
	}
	go func() {
		for lines.Scan() {
			continue // drained, so that the browser never blocks on it
		}
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	if c.ws == "" {
		c.kill()
		return nil, errors.New("the browser did not say where it listens")
	}
	return c, nil
}

// quit lets the browser write down its profile.
func (c *chromium) quit() {
	ctx, cancel := context.WithTimeout(context.Background(), quitWithin)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, c.ws, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	_ = ws.Write(ctx, websocket.MessageText, []byte(`{"id":1,"method":"Browser.close"}`))
	select {
	case <-c.exited:
	case <-ctx.Done():
	}
}

func (c *chromium) kill() {
	c.once.Do(func() {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.exited
	})
}

// page is a tab as the browser lists it.
type page struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

func (c *chromium) tabs() []page {
	at, err := url.Parse(c.ws)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.Host+"/json/list", nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	var all, out []page
	_ = json.NewDecoder(resp.Body).Decode(&all)
	for _, each := range all {
		if each.Type == "page" {
			out = append(out, each)
		}
	}
	return out
}
