package main

import (
	"bytes"
	"context"
	"encoding/json"
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

// oneShots runs tapin, cold and warm, and playwright-core over the same pages,
// each page in a context of its own, and prints the medians and the hit rate.
func oneShots(ctx context.Context, binary, chromium string, rounds int) error {
	site := serveHard()
	defer site.Close()
	var urls []string
	for _, p := range oneShotPages {
		urls = append(urls, site.URL+"/"+p)
	}
	theirs, err := playwrightOneShots(ctx, chromium, rounds, urls)
	if err != nil {
		return fmt.Errorf("playwright-core (npm install in bench/peers first): %w", err)
	}
	cold, _, err := tapinOneShots(ctx, binary, site.URL, rounds, urls, 0)
	if err != nil {
		return err
	}
	warm, hits, err := tapinOneShots(ctx, binary, site.URL, rounds, urls, 2)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-12s %20s %20s %20s\n", "p50 / p95 ms", "playwright-core", "tapin, cold", "tapin, warm")
	for _, kind := range []string{"screenshot", "extract"} {
		cell := func(all []time.Duration) string {
			return fmt.Sprintf("%.0f / %.0f", ms(quantile(all, 0.5)), ms(quantile(all, 0.95)))
		}
		fmt.Printf("%-12s %20s %20s %20s\n", kind, cell(theirs[kind]), cell(cold[kind]), cell(warm[kind]))
	}
	fmt.Printf("\npool.warm 2, one call after the other: %.0f %% of the contexts were warm\n", 100*hits)
	fmt.Println("All wait for the same: DOMContentLoaded, then a network that is quiet for half a second.")
	return nil
}

func playwrightOneShots(ctx context.Context, chromium string, rounds int, urls []string) (map[string][]time.Duration, error) {
	job, err := json.Marshal(map[string]any{"chromium": chromium, "rounds": rounds, "urls": urls})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "oneshot.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = "bench/peers", bytes.NewReader(job), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var raw map[string][]float64
	if err := json.Unmarshal(out, &raw); err != nil {
		return nil, err
	}
	took := map[string][]time.Duration{}
	for kind, all := range raw {
		for _, each := range all {
			took[kind] = append(took[kind], time.Duration(each*float64(time.Millisecond)))
		}
	}
	return took, nil
}

func tapinOneShots(ctx context.Context, binary, site string, rounds int, urls []string, warm int) (took map[string][]time.Duration, hits float64, err error) {
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	stop, err := startSidecar(ctx, binary, home, strings.TrimPrefix(site, "http://"), "pool.warm="+strconv.Itoa(warm), "listen.public=127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	took = map[string][]time.Duration{}
	for round := range rounds + 1 {
		for _, kind := range []string{"screenshot", "extract"} {
			for _, url := range urls {
				began := time.Now()
				if _, err := post(ctx, home, "/browser/"+kind, map[string]any{"url": url}); err != nil {
					return nil, 0, err
				}
				if round > 0 { // the first one starts the browser
					took[kind] = append(took[kind], time.Since(began))
				}
			}
		}
	}
	hits, err = warmShare(ctx, home)
	return took, hits, err
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
