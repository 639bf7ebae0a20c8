package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const method = `Written by ` + "`make bench` and `make soak`" + `; do not edit. ` + "`go run ./bench -render docs/benchmarks.json`" + ` writes it again from the figures.

## Method

- **The floor** is raw CDP over a pipe, written for the bench without any code of tapin's, on the same Chromium with the same flags and pages. Each figure in
  parentheses is a ratio to the floor of its row, measured in the same run.
- **Turn by turn**: in each round everybody does the same once, in an order of the round's own and with a rest between, so that a noisy moment hits all alike. The first round
  warms up and is not counted; a slow machine plays fewer rounds, but at least half. Medians; p95 where it is named. Of actions
  the floor and tapin play two or three times in a round, peers that answer with the page every second round, those that are in no target every fourth; where two are so near to each
  other that chance decides they play more often, pictures five times. Rows that come near to a target get twice the rounds; those that are far from every target half of them; those
  that the target table does not name a third of them. Sessions are started when the machine has come to rest, and end
  together.
- **At every moment alike**: a browser draws sixty times a second, and most of what is measured waits for that. So everybody's turns begin at moments that are spread evenly over the time
  between two pictures; by chance, two medians of the same thing lay up to a tenth apart.
- **The processors are kept awake** by something that runs only where nobody else wants to. A virtual processor that sleeps is given away, and whoever waits for an answer waits for it
  to come back: a click of the floor took 5 ms awake, and 11 or 24 with the pauses that the host made, by the minute.
- **A session for every browser**: the system shares its processors among sessions first, and tapin and the peers start each browser in one of its own. So does the floor. In the
  session of the bench it had 53 pictures a second with one processor taken away, and 26 in its own; tapin's browser, which was always in its own, had 25 and 24.
- **What the host takes is not counted**: a round during which it kept the processors to itself for more than 2 % of the time (the system counts that, in hundredths of a second) is left
  out, for everybody. Where fewer than half of a row's rounds would remain, the half remains in which the host took least.
- **Up and down**: what a session costs us is measured with one to sixteen of them and again on the way back, or a machine that becomes slower meanwhile would make many dearer than few.
- **Nobody wins by doing nothing**: after the rounds of a click or a fill the page is asked whether all of it arrived.
- Navigation waits for the load event everywhere. The floor's click presses where the element is and checks nothing; its text is ` + "`innerText`" + `; its outline ` + "`getFullAXTree`" + `;
  its screenshot a PNG with ` + "`optimizeForSpeed`" + `. Everybody's page, and so everybody's picture, is 1280×720.
- **tapin** is its built binary over HTTP, and ` + "`tapin mcp`" + ` over its streams. playwright-core measures inside its own process. agent-browser is one start of its native
  program an action, and its MCP server. The MCP servers get the same client.
- **Like with like**: tapin and playwright-mcp answer a navigation with the page, the others do not. So agent-browser also takes part as one who asks for the page afterwards
  (-look), and tapin as one who leaves it out (-brief).
- **A tap** is that of a finger that rests for 80 ms: the page's mouse comes to it meanwhile, and what is counted begins when the finger lifts. At the socket the floor presses and
  releases, and moves nothing. Several browsers of each play, two at a time, because of two that are alike one may be faster for as long as it lives.
- *bounded* means that nobody reaches the target: who is asked to be twice as fast as a peer that takes 1.2 times the floor cannot be. What nobody can be faster than is
  measured too (floor-mcp): raw CDP behind an MCP server that does nothing else, written for the bench. Who is behind that peer has missed it all the same.
- The floor and the peers have the window that Chromium gives them; tapin's own browser fills a screen of the same size and has no frame to draw, and is minimized while somebody watches it, which is part of what tapin does.
- Pages: light, heavy (a table of some 2,900 elements), form, animating, images (48 of them), list (1,500 entries), single-page app. Nothing may be cached.
`

// renderFile writes docs/BENCHMARKS.md and its plots from a run, and from the last soak.
func renderFile(name string) error {
	r, err := readReport(name)
	if err != nil {
		return err
	}
	soak, err := readReport(lastSoak)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, c := range slices.Concat(r.Curves, soak.Curves) {
		if err := os.WriteFile(filepath.Join("docs", "img", c.file()), []byte(c.svg()), 0o644); err != nil { //nolint:gosec // part of the documentation
			return err
		}
	}
	fmt.Println("written to docs/BENCHMARKS.md")
	return os.WriteFile("docs/BENCHMARKS.md", []byte(r.markdown()+soak.lasting()), 0o644) //nolint:gosec // part of the documentation
}

func readReport(name string) (report, error) {
	var r report
	raw, err := os.ReadFile(name) //nolint:gosec // a file the caller names, or of the documentation
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\n%s\n## This run\n\n%s, %s; up to %d rounds, %s. %s\n\n%s\n\n## Targets\n",
		method, r.At.Format("2 January 2006"), r.Machine, r.Rounds, r.Took, r.heldUp(), r.versions())
	for _, part := range parts {
		b.WriteString(r.verdicts(part))
	}
	b.WriteString("\n## What everybody got\n")
	group := ""
	for _, each := range r.Rows {
		if each.Group != group {
			group = each.Group
			fmt.Fprintf(&b, "\n### %s\n\n| row | |\n|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", each.Name, each.cells())
	}
	b.WriteString("\n## As it grows\n")
	for _, c := range r.Curves {
		b.WriteString(c.markdown())
	}
	return b.String()
}

// lasting shows a soak, which is a run of its own.
func (r *report) lasting() string {
	if len(r.Rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## As it goes on\n\nAll of tapin, with a browser kept ready; in each round a session is started, watched, worked in, handed over and back, and ended, and a page is fetched\n"+
		"for one call. What it holds is looked at between two rounds, when no session runs. %s, %s. %s\n", r.At.Format("2 January 2006"), r.Machine, r.versions())
	b.WriteString(r.verdicts(part{name: "what it holds"}))
	for _, c := range r.Curves {
		b.WriteString(c.markdown())
	}
	return b.String()
}

func (c curve) markdown() string {
	return fmt.Sprintf("\n### %s\n\n![%s](img/%s)\n\n%s\n", c.Name, c.Name, c.file(), c.table())
}

// versions are those of everybody who took part, in one line.
func (r *report) versions() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		all = append(all, name+" "+strings.TrimPrefix(r.Versions[name], name+" "))
	}
	return strings.Join(all, " · ") + "."
}

// verdicts is the table of one half of the rows, if it has any.
func (r *report) verdicts(p part) string {
	var b strings.Builder
	for _, each := range r.Rows {
		for _, v := range each.in(p) {
			if b.Len() == 0 {
				fmt.Fprintf(&b, "\n| %s | target | got | |\n|---|---|---:|---|\n", p.name)
			}
			mark := v.Result
			if v.Result == missed {
				mark = "**missed**"
			}
			if v.Why != "" {
				mark += ": " + v.Why
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", each.Name, v.target(), brief(v.Got), mark)
		}
	}
	return b.String()
}

// heldUp tells how far the machine's host was in the way.
func (r *report) heldUp() string {
	all, left := 0, 0
	for _, each := range r.Rows {
		all, left = all+each.Played, left+each.Left
	}
	return fmt.Sprintf("The host kept the processors to itself for %.1f %% of the time; %d of %d rounds are left out.", 100*r.Held, left, all)
}

// cells is a row's figures as one cell of a table.
func (r row) cells() string {
	var cells []string
	for _, who := range ordered(r.Figures) {
		f := r.Figures[who]
		cell := fmt.Sprintf("%s %s", who, brief(f.Median))
		if who == "tapin" || who == "tapin-mcp" {
			cell = fmt.Sprintf("**%s %s**", who, brief(f.Median))
		}
		var more []string
		if f.Ratio > 0 && who != "floor" {
			more = append(more, brief(f.Ratio))
		}
		if f.P95 > 0 {
			more = append(more, "p95 "+brief(f.P95))
		}
		if len(more) > 0 {
			cell += " (" + strings.Join(more, ", ") + ")"
		}
		cells = append(cells, cell)
	}
	said := r.Unit + ": " + strings.Join(cells, " · ")
	if r.Note != "" {
		said += " — " + r.Note
	}
	return said
}
