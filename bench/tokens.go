package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// counted is what the tokenizer says of one page.
type counted struct {
	Elements int            `json:"elements"`
	Missing  []string       `json:"missing"`
	Tokens   map[string]int `json:"tokens"`
}

// tokenize runs the script that has the tokenizer, and the pages of ten kinds.
func tokenize(ctx context.Context, mode string, in, into any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "node", "tokens.mjs", mode) //nolint:gosec // a script of ours
	cmd.Dir, cmd.Stdin, cmd.Stderr = peersFolder, bytes.NewReader(raw), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// measureTokens is what an observation costs a model, by everybody who speaks MCP.
func (b *bench) measureTokens(ctx context.Context) error {
	pages := map[string]string{}
	if err := tokenize(ctx, "pages", nil, &pages); err != nil {
		return fmt.Errorf("the tokenizer (npm install in bench/peers first): %w", err)
	}
	for _, name := range []string{"form", "heavy"} {
		pages[name] = page(name, sitePages[name]())
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(pages[strings.TrimPrefix(r.URL.Path, "/")]))
	}))
	defer site.Close()
	seen, err := b.snapshots(ctx, site.URL, pages)
	if err != nil {
		return err
	}
	found := map[string]counted{}
	if err := tokenize(ctx, "count", seen, &found); err != nil {
		return err
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.add(tokenRow(name, found[name]))
	}
	return nil
}

func tokenRow(name string, c counted) row {
	base := float64(c.Tokens["playwright-mcp"])
	r := row{Group: "tokens", Name: "tokens of a snapshot, " + name + " page", Unit: "tokens", Floor: "playwright-mcp", Listed: name == "form" || name == "heavy", Figures: map[string]figure{}}
	for who, count := range c.Tokens {
		r.Figures[who] = figure{Median: float64(count), Ratio: float64(count) / base}
	}
	r.Note = fmt.Sprintf("%d elements to act on", c.Elements)
	if len(c.Missing) > 0 {
		r.Note += "; missing: " + strings.Join(c.Missing[:min(3, len(c.Missing))], ", ")
	}
	r.Verdicts = []verdict{atMost("all of it, to playwright-mcp", r.Figures["tapin-mcp"].Ratio, 0.6), atMost("elements missing", float64(len(c.Missing)), 0)}
	for who, what := range map[string]string{"tapin-mcp, interactive": "only what can be acted on, to playwright-mcp", "tapin-mcp, diff": "what changed, to playwright-mcp"} {
		if f, ok := r.Figures[who]; ok && r.Listed {
			r.Verdicts = append(r.Verdicts, atMost(what, f.Ratio, 0.3))
		}
	}
	return r
}

// snapshots has everybody look at every page.
func (b *bench) snapshots(ctx context.Context, site string, pages map[string]string) (map[string]map[string]string, error) {
	seen := map[string]map[string]string{}
	for name := range pages {
		seen[name] = map[string]string{}
	}
	for _, start := range []func() (*mcpPeer, error){
		func() (*mcpPeer, error) { return newTapinMCP(ctx, b.binary, site, false) },
		func() (*mcpPeer, error) { return newPlaywrightMCP(ctx, b.chromium) },
		func() (*mcpPeer, error) { return newDevToolsMCP(ctx, b.chromium) },
		func() (*mcpPeer, error) { return newAgentBrowserMCP(ctx, b.chromium, false) },
	} {
		p, err := start()
		if err != nil {
			return nil, err
		}
		b.say("   %s", p.name())
		err = p.lookAt(ctx, site, pages, seen)
		p.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name(), err)
		}
	}
	return seen, nil
}

func (p *mcpPeer) lookAt(ctx context.Context, site string, pages map[string]string, seen map[string]map[string]string) error {
	// In one order: numbers of refs grow from page to page, and long ones cost more.
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := p.open(ctx, action{Kind: snapshot}, site+"/"+name); err != nil {
			return err
		}
		tool, arguments := p.call(action{Kind: snapshot}, "", "", "")
		said, err := p.tool(tool, arguments)
		if err != nil {
			return err
		}
		seen[name][p.name()] = said
		if p.name() != "tapin-mcp" || name != "form" && name != "heavy" {
			continue
		}
		if seen[name]["tapin-mcp, interactive"], err = p.tool(tool, map[string]any{"interactive": true, "max_chars": 200_000}); err != nil {
			return err
		}
		// What an agent does and then looks at: a press of the page's first button.
		if _, err := p.tool("browser_snapshot", map[string]any{"max_chars": 200_000}); err != nil {
			return err
		}
		if _, err := p.tool("browser_click", map[string]any{"target": "button"}); err != nil {
			return err
		}
		if seen[name]["tapin-mcp, diff"], err = p.tool("browser_snapshot", map[string]any{"diff": true}); err != nil {
			return err
		}
	}
	return nil
}
