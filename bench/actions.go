package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// field is everybody who takes part.
func (b *bench) field(ctx context.Context, site string) ([]participant, func(), error) {
	var all []participant
	end := func() {
		for _, p := range all {
			p.close()
		}
	}
	makers := []func() (participant, error){
		func() (participant, error) { return newFloor(ctx, b.chromium) },
		func() (participant, error) { return newTapinHTTP(ctx, b.binary, site) },
		func() (participant, error) { return newTapinMCP(ctx, b.binary, site, false) },
	}
	if b.peers {
		makers = append(makers,
			func() (participant, error) { return newTapinMCP(ctx, b.binary, site, true) },
			func() (participant, error) { return newBareMCP(ctx) },
			func() (participant, error) { return newPlaywrightCore(ctx, b.chromium) },
			func() (participant, error) { return newAgentBrowserCLI(ctx, b.chromium) },
			func() (participant, error) { return newAgentBrowserMCP(ctx, b.chromium, false) },
			func() (participant, error) { return newAgentBrowserMCP(ctx, b.chromium, true) },
			func() (participant, error) { return newPlaywrightMCP(ctx, b.chromium) },
			func() (participant, error) { return newDevToolsMCP(ctx, b.chromium) },
		)
	}
	for _, start := range makers {
		p, err := start()
		if err != nil {
			end()
			return nil, nil, err
		}
		all = append(all, p)
	}
	return all, end, nil
}

// measureActions is what agents do, by everybody.
func (b *bench) measureActions(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	all, end, err := b.field(ctx, site.URL)
	if err != nil {
		return err
	}
	defer end()
	done := map[string]bool{}
	for _, a := range actions {
		if b.filter != "" && !strings.Contains(a.name(), b.filter) || b.smoke && done[a.Kind] {
			continue
		}
		done[a.Kind] = true
		b.say("%s", a.name())
		took, err := measureAction(ctx, all, a, site.URL, b.rounds)
		if err != nil {
			return err
		}
		r := row{Group: "actions", Name: a.name(), Unit: "ms", Floor: "raw CDP", Listed: a.weight > aside}.from(took, "floor")
		r.Verdicts = append(r.Verdicts, atMost("through HTTP, to the floor", r.Figures["tapin"].Ratio, a.Target))
		r.Verdicts = append(r.Verdicts, throughMCP(r.Figures)...)
		b.add(r)
	}
	return nil
}

// throughMCP compares with those who speak MCP: ahead of one, twice as fast as
// the others. Where the least MCP server there can be is not twice as fast as they
// are, nobody can be; then being ahead is what is left.
func throughMCP(figures map[string]figure) []verdict {
	ours, ok := figures["tapin-mcp"]
	if !ok {
		return nil
	}
	var all []verdict
	like := ours // what does the same as the others' plain answer
	if brief, ok := figures[briefMCP]; ok {
		like = brief
	}
	for _, pair := range []struct {
		ours  figure
		rival string
		how   string
	}{{like, "agent-browser-mcp", ""}, {ours, "agent-browser-mcp-look", ", with the page in the answer as in ours"}} {
		if theirs, ok := figures[pair.rival]; ok {
			all = append(all, atMost("through MCP, to agent-browser's"+pair.how, pair.ours.Median/theirs.Median, 1))
		}
	}
	// Of these two only the first answers with the page.
	for _, pair := range []struct {
		ours figure
		peer string
	}{{ours, "playwright-mcp"}, {like, "chrome-devtools-mcp"}} {
		theirs, ok := figures[pair.peer]
		if !ok {
			continue
		}
		v := atLeast("through MCP, faster than "+pair.peer, theirs.Median/pair.ours.Median, 2)
		if bare, ok := figures[bareMCP]; ok && v.Result == missed && v.Got >= 1 && theirs.Median/bare.Median < v.Limit {
			v.Result, v.Why = bounded, fmt.Sprintf("raw CDP behind a bare MCP server is only %s times as fast", brief(theirs.Median/bare.Median))
		}
		all = append(all, v)
	}
	return all
}

// whoOrder is how participants stand in tables.
var whoOrder = []string{"floor", bareMCP, "tapin", "tapin-mcp", briefMCP, "agent-browser", "agent-browser-mcp", "agent-browser-mcp-look", "playwright-core", "playwright-mcp", "chrome-devtools-mcp"}

func ordered(figures map[string]figure) []string {
	var names []string
	for name := range figures {
		names = append(names, name)
	}
	rank := func(name string) int {
		if i := slices.Index(whoOrder, name); i >= 0 {
			return i
		}
		return len(whoOrder)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}
