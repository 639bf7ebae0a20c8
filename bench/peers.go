package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// peersFolder is where npm puts the peers.
const peersFolder = "bench/peers"

func peerFile(parts ...string) string {
	full, err := filepath.Abs(filepath.Join(append([]string{peersFolder, "node_modules"}, parts...)...))
	if err != nil {
		return ""
	}
	return full
}

// browserFlags are the floor's, as others are given them.
func browserFlags() []string {
	var flags []string
	for _, f := range append(append([]string{}, floorFlags...), rootFlags()...) {
		if f != "--no-startup-window" { // others want the window that comes by itself
			flags = append(flags, f)
		}
	}
	return flags
}

// playwrightCore runs in its own process and measures there: what crosses to it
// and back is not its cost.
type playwrightCore struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newPlaywrightCore(ctx context.Context, chromium string) (*playwrightCore, error) {
	p := &playwrightCore{cmd: exec.CommandContext(ctx, "node", "actions.mjs")}
	p.cmd.Dir, p.cmd.Stderr = peersFolder, os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	_, err = p.ask(map[string]any{"chromium": chromium, "args": browserFlags()})
	return p, err
}

type playwrightAnswer struct {
	MS    float64 `json:"ms"`
	Text  string  `json:"text"`
	Error string  `json:"error"`
}

func (p *playwrightCore) ask(what any) (playwrightAnswer, error) {
	var got playwrightAnswer
	line, err := json.Marshal(what)
	if err != nil {
		return got, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return got, err
	}
	if line, err = p.out.ReadBytes('\n'); err != nil {
		return got, err
	}
	if err := json.Unmarshal(line, &got); err != nil {
		return got, err
	}
	if got.Error != "" {
		return got, errors.New(got.Error)
	}
	return got, nil
}

func (p *playwrightCore) name() string { return "playwright-core" }

func (p *playwrightCore) open(_ context.Context, _ action, url string) error {
	_, err := p.ask(map[string]any{"kind": navigate, "url": url})
	return err
}

func (p *playwrightCore) says(context.Context) (string, error) {
	got, err := p.ask(map[string]any{"kind": "says"})
	return got.Text, err
}

func (p *playwrightCore) do(_ context.Context, a action, url, value string) (time.Duration, error) {
	got, err := p.ask(map[string]any{"kind": a.Kind, "url": url, "selector": a.Selector, "value": value})
	return time.Duration(got.MS * float64(time.Millisecond)), err
}

func (p *playwrightCore) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

func newPlaywrightMCP(ctx context.Context, chromium string) (*mcpPeer, error) {
	dir, err := os.MkdirTemp("", "playwright-mcp")
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{"browser": map[string]any{
		"browserName": "chromium", "isolated": true,
		"launchOptions":  map[string]any{"executablePath": chromium, "headless": true, "args": browserFlags()},
		"contextOptions": map[string]any{"viewport": map[string]any{"width": 1280, "height": 720}},
	}, "outputDir": dir})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	c, err := startMCP(ctx, nil, "node", peerFile("@playwright", "mcp", "cli.js"), "--config", file)
	if err != nil {
		return nil, err
	}
	return &mcpPeer{mcpClient: c, dialect: dialect{label: "playwright-mcp", after: func() { _ = os.RemoveAll(dir) }, call: func(a action, url, value, _ string) (string, map[string]any) {
		switch a.Kind {
		case navigate:
			return "browser_navigate", map[string]any{"url": url}
		case screenshot:
			return "browser_take_screenshot", map[string]any{"type": "png", "scale": "css"}
		case click:
			return "browser_click", map[string]any{"element": "it", "target": a.Selector}
		case fill:
			return "browser_type", map[string]any{"element": "it", "target": a.Selector, "text": value}
		case snapshot:
			return "browser_snapshot", map[string]any{}
		}
		return "browser_evaluate", map[string]any{"function": "() => document.body.innerText"}
	}}}, nil
}

func newDevToolsMCP(ctx context.Context, chromium string) (*mcpPeer, error) {
	args := []string{peerFile("chrome-devtools-mcp", "build", "src", "bin", "chrome-devtools-mcp.js"), "--headless", "--isolated", "--executablePath", chromium,
		"--viewport", "1280x720", "--no-usage-statistics", "--no-performance-crux", "--no-page-id-routing"}
	for _, f := range browserFlags() {
		args = append(args, "--chromeArg="+f)
	}
	c, err := startMCP(ctx, nil, "node", args...)
	if err != nil {
		return nil, err
	}
	return &mcpPeer{mcpClient: c, dialect: dialect{label: "chrome-devtools-mcp", ref: devToolsRef, call: func(a action, url, value, ref string) (string, map[string]any) {
		switch a.Kind {
		case navigate:
			return "navigate_page", map[string]any{"type": "url", "url": url}
		case screenshot:
			return "take_screenshot", map[string]any{}
		case click:
			return "click", map[string]any{"uid": ref}
		case fill:
			return "fill", map[string]any{"uid": ref, "value": value}
		case snapshot:
			return "take_snapshot", map[string]any{}
		}
		return "evaluate_script", map[string]any{"function": "() => document.body.innerText"}
	}}}, nil
}

// devToolsRef finds the handle of an element, which only a snapshot gives.
func devToolsRef(c *mcpClient, a action) (string, error) {
	said, err := c.tool("take_snapshot", map[string]any{})
	if err != nil {
		return "", err
	}
	name := map[string]string{"#go": `button "Continue"`, "#f0": `textbox "First name"`, "#one": `link "One"`, "#two": `link "Two"`}[a.Selector]
	found := regexp.MustCompile(`uid=(\S+) ` + regexp.QuoteMeta(name)).FindStringSubmatch(said)
	if found == nil {
		return "", fmt.Errorf("the snapshot has no %s: %.300s", name, said)
	}
	return found[1], nil
}
