package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// bareMCP is the label of the least MCP server there can be: raw CDP, and one
// line to the host and back. It takes part where raw CDP is so close to a target
// that the line counts.
const bareMCP = "floor-mcp"

var bareMCPDoes = map[string]bool{navigate: true, screenshot: true}

// newBareMCP starts this program once more, as that server.
func newBareMCP(ctx context.Context) (*mcpPeer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := startMCP(ctx, nil, self, "-bare-mcp")
	if err != nil {
		return nil, err
	}
	return &mcpPeer{mcpClient: c, dialect: dialect{label: bareMCP, call: func(a action, url, _, _ string) (string, map[string]any) {
		return a.Kind, map[string]any{"url": url}
	}}}, nil
}

// serveBareMCP is that server.
func serveBareMCP(ctx context.Context, in io.Reader, out io.Writer) error {
	chromium, err := findChromium()
	if err != nil {
		return err
	}
	f, err := newFloor(ctx, chromium)
	if err != nil {
		return err
	}
	defer f.close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var asked struct {
			ID     int    `json:"id"`
			Method string `json:"method"`
			Params struct {
				Name      string `json:"name"`
				Arguments struct {
					URL string `json:"url"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		if asked.ID == 0 {
			continue // nobody waits for an answer
		}
		content := `{"type":"text","text":"done"}`
		switch {
		case asked.Method != "tools/call":
		case asked.Params.Name == navigate:
			err = f.navigate(asked.Params.Arguments.URL, "Page.loadEventFired")
		case asked.Params.Name == screenshot:
			var png string
			png, err = f.photograph()
			content = `{"type":"image","mimeType":"image/png","data":"` + png + `"}`
		default:
			err = fmt.Errorf("%q is not for this one", asked.Params.Name)
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[`, asked.ID)+content+"]}}\n"); err != nil {
			return err
		}
	}
	return nil
}
