package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Some rows need what only a test of the house can set up: a Bot API, a room without
// its house. They are Go benchmarks there, and read here.

// goBench runs benchmarks of a package; metrics are by benchmark, then by unit. They are
// compiled as the program was, of which nearly everything is there then.
func (b *bench) goBench(ctx context.Context, pkg, pattern, times string, env ...string) (map[string]map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", pkg, "-run", "^$", "-bench", pattern, "-benchtime", times, "-timeout", "20m") //nolint:gosec // packages of this module
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	return parseBench(out), nil
}

func parseBench(out []byte) map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			name = name[:at]
		}
		units := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				units[fields[i+1]] = v
			}
		}
		all[name] = units
	}
	return all
}

// times is how often a Go benchmark is run.
func (b *bench) times(most int) string {
	if b.smoke {
		return "1x"
	}
	return fmt.Sprintf("%dx", most)
}

// measureSocket is the time from a tap to the changed picture at the viewer's socket.
func (b *bench) measureSocket(ctx context.Context) error {
	got, err := b.goBench(ctx, "./internal/liveview", "TapToPicture$", b.times(60))
	if err != nil {
		return err
	}
	m := got["TapToPicture"]
	r := row{Group: "live", Name: "tap → changed frame at the viewer's socket", Unit: "ms", Floor: "raw CDP input and screencast", Listed: true, Figures: map[string]figure{
		"floor": {Median: m["raw-ms-p50"], P95: m["raw-ms-p95"], Ratio: 1},
		"tapin": {Median: m["ours-ms-p50"], P95: m["ours-ms-p95"], Ratio: m["ratio-p50"]},
	}}
	r.Verdicts = append(r.Verdicts, atMost("p50, to the floor", m["ratio-p50"], 1.05), atMost("p95, to the floor", m["ratio-p95"], 1.2))
	b.add(r)
	return nil
}

// measureChat is what an owner waits for in the chat.
func (b *bench) measureChat(ctx context.Context) error {
	got, err := b.goBench(ctx, "./cmd/tapin", "Talk$", b.times(20))
	if err != nil {
		return err
	}
	for _, each := range []struct {
		bench, name string
		limit       float64
	}{
		{"Talk/relay", "chat message → characters in the field", 100},
		{"Talk/announcement", "hand-off start → message handed to Telegram", 300},
		{"Talk/screenshot", "chat “screenshot” → photo handed to Telegram", 1000},
	} {
		m := got[each.bench]
		if m == nil {
			return fmt.Errorf("there is no benchmark %s", each.bench)
		}
		b.add(row{Group: "chat", Name: each.name, Unit: "ms", Listed: true, Figures: map[string]figure{"tapin": {Median: m["p50_ms"], P95: m["p95_ms"]}}, Verdicts: []verdict{atMost("p95, ms", m["p95_ms"], each.limit)}})
	}
	return nil
}

// pause is what a page gets to come to rest between two measurements.
const pause = 600 * time.Millisecond
