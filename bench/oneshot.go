package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	took map[string][]time.Duration
}

// breath is between two calls, so that what one tidies up does not cost the next.
const breath = 300 * time.Millisecond

// oneShots has playwright-core and tapin, cold and warm, open the same pages in
// turn, each in a context of its own, and prints the medians and the hit rate.
func oneShots(ctx context.Context, binary, chromium string, rounds int) error {
	site := serveHard()
	defer site.Close()
	theirs, stop, err := playwrightOneShots(ctx, chromium)
	if err != nil {
		return fmt.Errorf("playwright-core (npm install in bench/peers first): %w", err)
	}
	defer stop()
	cold, _, stop, err := tapinOneShots(ctx, binary, site.URL, 0)
	if err != nil {
		return err
	}
	defer stop()
	warm, home, stop, err := tapinOneShots(ctx, binary, site.URL, 2)
	if err != nil {
		return err
	}
	defer stop()
	all := []*contestant{{name: "playwright-core", once: theirs}, {name: "tapin, cold", once: cold}, {name: "tapin, warm", once: warm}}
	kinds := []string{"screenshot", "extract"}
	for _, c := range all {
		c.took = map[string][]time.Duration{}
	}
	for round := range rounds + 1 {
		fmt.Printf("one-shots: round %d of %d\n", round, rounds)
		for i, page := range oneShotPages {
			for _, kind := range kinds {
				for turn := range all {
					c := all[(turn+i+round)%len(all)] // nobody always goes first
					took, err := c.once(ctx, kind, site.URL+"/"+page)
					if err != nil {
						return fmt.Errorf("%s: %w", c.name, err)
					}
					if round > 0 { // the first one starts the browsers
						c.took[kind] = append(c.took[kind], took)
					}
					time.Sleep(breath)
				}
			}
		}
	}
	hits, err := warmShare(ctx, home)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-12s", "p50 / p95 ms")
	for _, c := range all {
		fmt.Printf(" %26s", c.name)
	}
	for _, kind := range kinds {
		fmt.Printf("\n%-12s", kind)
		for _, c := range all {
			half := ms(quantile(c.took[kind], 0.5))
			fmt.Printf(" %26s", fmt.Sprintf("%.0f / %.0f (%.2f)", half, ms(quantile(c.took[kind], 0.95)), half/ms(quantile(all[0].took[kind], 0.5))))
		}
	}
	fmt.Printf("\n\nIn brackets: the median as a part of playwright-core's. pool.warm 2: %.0f %% of the contexts were warm.\n", 100*hits)
	fmt.Println("All wait for the same: DOMContentLoaded, then a network that is quiet for half a second.")
	return nil
}

func playwrightOneShots(ctx context.Context, chromium string) (func(context.Context, string, string) (time.Duration, error), func(), error) {
	cmd := exec.CommandContext(ctx, "node", "oneshot.mjs", chromium) //nolint:gosec // the browser to measure with
	cmd.Dir, cmd.Stderr = "bench/peers", os.Stderr
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

func tapinOneShots(ctx context.Context, binary, site string, warm int) (once func(context.Context, string, string) (time.Duration, error), home string, stop func(), err error) {
	if home, err = os.MkdirTemp("", "tapin"); err != nil {
		return nil, "", nil, err
	}
	end, err := startSidecar(ctx, binary, home, strings.TrimPrefix(site, "http://"), "pool.warm="+strconv.Itoa(warm), "listen.public=127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	once = func(ctx context.Context, kind, url string) (time.Duration, error) {
		began := time.Now()
		_, err := post(ctx, home, "/browser/"+kind, map[string]any{"url": url})
		return time.Since(began), err
	}
	return once, home, func() { end(); _ = os.RemoveAll(home) }, nil
}

// warmShare is how many of the contexts were ready before they were asked for.
func warmShare(ctx context.Context, home string) (float64, error) {
	address, err := os.ReadFile(filepath.Join(home, "control.addr")) //nolint:gosec // a folder of our own
	if err != nil {
		return 0, err
	}
	token, err := os.ReadFile(filepath.Join(home, "agent.token")) //nolint:gosec // a folder of our own
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.TrimSpace(string(address))+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return 0, err
	}
	count := map[string]float64{}
	for _, from := range []string{"warm", "cold"} {
		_, rest, _ := strings.Cut(body.String(), `tapin_oneshot_contexts_total{from="`+from+`"} `)
		number, _, _ := strings.Cut(rest, "\n")
		if count[from], err = strconv.ParseFloat(number, 64); err != nil {
			return 0, fmt.Errorf("the figures lack the %s contexts", from)
		}
	}
	return count["warm"] / (count["warm"] + count["cold"]), nil
}
