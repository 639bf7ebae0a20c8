package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// agentBrowser is its program and what every call of it is told.
type agentBrowser struct {
	program string
	env     []string
	home    string
}

func findAgentBrowser(chromium, session string) (*agentBrowser, error) {
	system := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	b := &agentBrowser{program: peerFile("agent-browser", "bin", "agent-browser-"+runtime.GOOS+"-"+system)}
	if err := os.Chmod(b.program, 0o755); err != nil { //nolint:gosec // npm leaves this to a script that is not run
		return nil, err
	}
	home, err := os.MkdirTemp("", "ab")
	if err != nil {
		return nil, err
	}
	b.home = home
	b.env = []string{"HOME=" + home, "AGENT_BROWSER_SESSION=" + session, "AGENT_BROWSER_EXECUTABLE_PATH=" + chromium, "AGENT_BROWSER_ARGS=" + strings.Join(browserFlags(), "\n")}
	return b, nil
}

func (b *agentBrowser) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.program, args...) //nolint:gosec // a program to measure
	cmd.Env = append(os.Environ(), b.env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("agent-browser %s: %w: %.300s", args[0], err, out)
	}
	return string(out), nil
}

func (b *agentBrowser) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = b.run(ctx, "close")
	_ = os.RemoveAll(b.home)
}

// agentBrowserCLI takes part as agents use it: one start of its program an action.
type agentBrowserCLI struct{ *agentBrowser }

func newAgentBrowserCLI(ctx context.Context, chromium string) (*agentBrowserCLI, error) {
	b, err := findAgentBrowser(chromium, "cli")
	if err != nil {
		return nil, err
	}
	_, err = b.run(ctx, "open", "about:blank")
	if err == nil {
		_, err = b.run(ctx, "set", "viewport", "1280", "720")
	}
	return &agentBrowserCLI{b}, err
}

func (b *agentBrowserCLI) name() string { return "agent-browser" }
func (b *agentBrowserCLI) close()       { b.end() }

func (b *agentBrowserCLI) open(ctx context.Context, _ action, url string) error {
	_, err := b.run(ctx, "open", url)
	return err
}

func (b *agentBrowserCLI) says(ctx context.Context) (string, error) {
	return b.run(ctx, "get", "text", "body")
}

func (b *agentBrowserCLI) do(ctx context.Context, a action, url, value string) (time.Duration, error) {
	args := map[string][]string{
		navigate: {"open", url}, screenshot: {"screenshot", filepath.Join(b.home, "shot.png")}, click: {"click", a.Selector},
		fill: {"fill", a.Selector, value}, text: {"get", "text", "body"}, snapshot: {"snapshot"},
	}[a.Kind]
	began := time.Now()
	_, err := b.run(ctx, args...)
	return time.Since(began), err
}

// newAgentBrowserMCP takes part through MCP; where it looks, it also asks for the
// page after what it did, which its answers do not tell and an agent must know.
func newAgentBrowserMCP(ctx context.Context, chromium string, looks bool) (*mcpPeer, error) {
	label := "agent-browser-mcp"
	if looks {
		label += "-look"
	}
	b, err := findAgentBrowser(chromium, label)
	if err != nil {
		return nil, err
	}
	c, err := startMCP(ctx, b.env, b.program, "mcp")
	if err != nil {
		return nil, err
	}
	if _, err := b.run(ctx, "open", "about:blank"); err != nil {
		return nil, err
	}
	if _, err := b.run(ctx, "set", "viewport", "1280", "720"); err != nil {
		return nil, err
	}
	return &mcpPeer{mcpClient: c, dialect: dialect{label: label, after: b.end, looks: looks, call: func(a action, url, value, _ string) (string, map[string]any) {
		switch a.Kind {
		case navigate:
			return "agent_browser_open", map[string]any{"url": url}
		case screenshot:
			return "agent_browser_screenshot", map[string]any{}
		case click:
			return "agent_browser_click", map[string]any{"selector": a.Selector}
		case fill:
			return "agent_browser_fill", map[string]any{"selector": a.Selector, "text": value}
		case snapshot:
			return "agent_browser_snapshot", map[string]any{}
		}
		return "agent_browser_get_text", map[string]any{"selector": "body"}
	}}}, nil
}
