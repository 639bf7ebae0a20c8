// Command bench measures tapin against a floor: raw CDP on the same Chromium
// with the same flags and page, interleaved in one run. It prints one table and
// writes the figures to bench/results. It must never use code of ours for the floor.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

// row is one thing that is measured: the floor and us, alternately.
type row struct {
	Name   string
	Target float64 // the ratio aimed at
	Floor  func(context.Context) (time.Duration, error)
	Ours   func(context.Context) (time.Duration, error)
}

// result is a row with its figures.
type result struct {
	Name    string  `json:"name"`
	Rounds  int     `json:"rounds"`
	FloorMS float64 `json:"floor_ms"`
	OursMS  float64 `json:"ours_ms"`
	OursP95 float64 `json:"ours_p95_ms"`
	Ratio   float64 `json:"ratio"`
	Target  float64 `json:"target"`
	Met     bool    `json:"met"`
}

func main() {
	smoke := flag.Bool("smoke", false, "one round of each, to see that it still runs")
	rounds := flag.Int("rounds", 15, "rounds of each measurement")
	binary := flag.String("tapin", "bin/tapin", "the program to measure")
	sideBySide := flag.Bool("hands", false, "click through the hard pages beside playwright-core instead")
	shots := flag.Bool("oneshots", false, "picture and read pages beside playwright-core instead")
	flag.Parse()
	if *smoke {
		*rounds = 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work := func() error { return run(ctx, *binary, *rounds, *smoke) }
	if *sideBySide {
		work = func() error {
			chromium, err := findChromium()
			if err != nil {
				return err
			}
			return hands(ctx, *binary, chromium, *rounds)
		}
	}
	if *shots {
		work = func() error {
			chromium, err := findChromium()
			if err != nil {
				return err
			}
			return oneShots(ctx, *binary, chromium, *rounds)
		}
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, rounds int, smoke bool) error {
	chromium, err := findChromium()
	if err != nil {
		return err
	}
	page := serveLight()
	defer page.Close()
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	rows := []row{{
		Name: "cold start: process start → first screenshot", Target: 1.15,
		Floor: func(ctx context.Context) (time.Duration, error) { return floorColdStart(ctx, chromium, page.URL) },
		Ours:  func(ctx context.Context) (time.Duration, error) { return tapinColdStart(ctx, binary, home, page.URL) },
	}}
	var results []result
	for _, r := range rows {
		fmt.Printf("%s: %d rounds\n", r.Name, rounds)
		res, err := measure(ctx, r, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		results = append(results, res)
	}
	fmt.Printf("\n%-46s %9s %9s %9s %7s %7s\n", "", "floor ms", "ours ms", "p95 ms", "ratio", "target")
	for _, r := range results {
		verdict := "met"
		if !r.Met {
			verdict = "MISSED"
		}
		fmt.Printf("%-46s %9.0f %9.0f %9.0f %7.2f ≤ %.2f  %s\n", r.Name, r.FloorMS, r.OursMS, r.OursP95, r.Ratio, r.Target, verdict)
	}
	if smoke {
		return nil
	}
	return save(results)
}

// measure alternates, so that a noisy minute hits both alike, and leaves the
// first round out: it warms the disk.
func measure(ctx context.Context, r row, rounds int) (result, error) {
	var floor, ours []time.Duration
	for i := range rounds + 1 {
		f, err := r.Floor(ctx)
		if err != nil {
			return result{}, fmt.Errorf("the floor: %w", err)
		}
		o, err := r.Ours(ctx)
		if err != nil {
			return result{}, fmt.Errorf("tapin: %w", err)
		}
		if i > 0 {
			floor, ours = append(floor, f), append(ours, o)
		}
	}
	res := result{Name: r.Name, Rounds: rounds, FloorMS: ms(quantile(floor, 0.5)), OursMS: ms(quantile(ours, 0.5)), OursP95: ms(quantile(ours, 0.95)), Target: r.Target}
	res.Ratio = res.OursMS / res.FloorMS
	res.Met = res.Ratio <= res.Target
	return res, nil
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func save(results []result) error {
	raw, err := json.MarshalIndent(map[string]any{"at": time.Now().UTC(), "results": results}, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join("bench", "results", time.Now().UTC().Format("20060102-150405")+".json")
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	fmt.Println("\nwritten to", name)
	return os.WriteFile(name, append(raw, '\n'), 0o600)
}
