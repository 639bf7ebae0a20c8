package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// newTapinMCP takes part through MCP, as a host starts it: the first call starts
// tapin, which is ended afterwards. A brief one has a page opened without being
// told what is on it, as others do.
func newTapinMCP(ctx context.Context, binary, site string, brief bool) (*mcpPeer, error) {
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf("listen:\n  control: 127.0.0.1:0\n  public: 127.0.0.1:0\negress:\n  allow: [%q]\n", strings.TrimPrefix(site, "http://"))
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	c, err := startMCP(ctx, nil, binary, "--home", home, "mcp")
	if err != nil {
		return nil, err
	}
	after := func() {
		_ = exec.Command(binary, "--home", home, "down").Run() //nolint:gosec // the program to measure
		_ = os.RemoveAll(home)
	}
	if brief {
		return &mcpPeer{mcpClient: c, dialect: dialect{label: briefMCP, after: after, call: func(a action, url, value, at string) (string, map[string]any) {
			name, arguments := tapinTool(a, url, value, at)
			if a.Kind == navigate {
				arguments["outline"] = false
			}
			return name, arguments
		}}}, nil
	}
	return &mcpPeer{mcpClient: c, dialect: dialect{label: "tapin-mcp", after: after, call: tapinTool}}, nil
}

// briefMCP only differs where a page is opened, and only takes part there.
const briefMCP = "tapin-mcp-brief"

func tapinTool(a action, url, value, _ string) (string, map[string]any) {
	switch a.Kind {
	case navigate:
		return "browser_navigate", map[string]any{"url": url, "wait": "load"}
	case screenshot:
		return "browser_take_screenshot", map[string]any{}
	case click:
		return "browser_click", map[string]any{"target": a.Selector}
	case fill:
		return "browser_fill_form", map[string]any{"fields": []any{map[string]any{"target": a.Selector, "value": value}}}
	case snapshot:
		return "browser_snapshot", map[string]any{"max_chars": 200_000}
	}
	return "browser_extract", map[string]any{"max_chars": 200_000}
}
