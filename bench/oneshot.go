package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// oneShotPages are ordinary pages of the hard set: what costs is not them.
var oneShotPages = []string{"plain.html", "many-nodes.html", "same-origin-frame.html"}

// contestant opens one page for one call, and tells how long that took.
type contestant struct {
	name string
	once func(ctx context.Context, kind, url string) (time.Duration, error)
}

// breath is between two calls, so that what one tidies up does not cost the next.
const breath = 300 * time.Millisecond

// measureOneShots has playwright-core and tapin, cold and warm, open the same
// pages in turn, each in a context of its own. All wait for the same:
// DOMContentLoaded, then a network that is quiet for half a second.
func (b *bench) measureOneShots(ctx context.Context) error {
	site := serveHard()
	defer site.Close()
	theirs, stop, err := playwrightOneShots(ctx, b.chromium)
	if err != nil {
		return fmt.Errorf("playwright-core (npm install in bench/peers first): %w", err)
	}
	defer stop()
	cold, err := startSidecar(ctx, b.binary, site.URL, "pool.warm=0", "pool.follow=0")
	if err != nil {
		return err
	}
	defer cold.stop()
	warm, err := startSidecar(ctx, b.binary, site.URL, "pool.warm=2")
	if err != nil {
		return err
	}
	defer warm.stop()
	all := []*contestant{{name: "playwright-core", once: theirs}, {name: "tapin, cold", once: cold.oneShot}, {name: "tapin, warm", once: warm.oneShot}}
	kinds := []string{"screenshot", "extract"}
	played := map[string]*rounds{}
	for _, kind := range kinds {
		played[kind] = &rounds{}
	}
	for round := range min(b.rounds, 6) + 1 {
		for i, page := range oneShotPages {
			for _, kind := range kinds {
				played[kind].Begin()
				for turn := range all {
					c := all[(turn+i+round)%len(all)] // nobody always goes first
					took, err := c.once(ctx, kind, site.URL+"/"+page)
					if err != nil {
						return fmt.Errorf("%s: %w", c.name, err)
					}
					if round > 0 { // the first one starts the browsers
						played[kind].Add(c.name, took)
					}
					time.Sleep(breath)
				}
				played[kind].End()
			}
		}
	}
	hits, err := warmShare(ctx, warm)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		r := row{Group: "one-shots", Name: "one-shot " + kind, Unit: "ms", Floor: "playwright-core"}.from(played[kind], "playwright-core")
		r.Note = fmt.Sprintf("with pool.warm 2, %.0f %% of the contexts were warm", 100*hits)
		r.Verdicts = []verdict{atMost("warm, to playwright-core", r.Figures["tapin, warm"].Ratio, 1)}
		b.add(r)
	}
	return nil
}

func playwrightOneShots(ctx context.Context, chromium string) (func(context.Context, string, string) (time.Duration, error), func(), error) {
	cmd := exec.CommandContext(ctx, "node", "oneshot.mjs", chromium) //nolint:gosec // the browser to measure with
	cmd.Dir, cmd.Stderr = peersFolder, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(out)
	once := func(_ context.Context, kind, url string) (time.Duration, error) {
		if err := json.NewEncoder(in).Encode(map[string]string{"kind": kind, "url": url}); err != nil {
			return 0, err
		}
		if !lines.Scan() {
			return 0, errors.New("it ended")
		}
		took, err := strconv.ParseFloat(lines.Text(), 64)
		return time.Duration(took * float64(time.Millisecond)), err
	}
	return once, func() { _ = in.Close(); _ = cmd.Wait() }, nil
}

// oneShot has tapin open one page for one call.
func (s *sidecar) oneShot(ctx context.Context, kind, url string) (time.Duration, error) {
	began := time.Now()
	_, err := s.post(ctx, "/browser/"+kind, map[string]any{"url": url})
	return time.Since(began), err
}

// warmShare is how many of the contexts were ready before they were asked for.
func warmShare(ctx context.Context, s *sidecar) (float64, error) {
	body, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	count := map[string]float64{}
	for _, from := range []string{"warm", "cold"} {
		_, rest, _ := strings.Cut(string(body), `tapin_oneshot_contexts_total{from="`+from+`"} `)
		number, _, _ := strings.Cut(rest, "\n")
		if count[from], err = strconv.ParseFloat(number, 64); err != nil {
			return 0, fmt.Errorf("the figures lack the %s contexts", from)
		}
	}
	return count["warm"] / (count["warm"] + count["cold"]), nil
}
