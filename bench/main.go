// Command bench measures tapin against a floor, raw CDP on the same Chromium
// with the same flags and pages, and against its peers, interleaved in one run.
// It prints one table and writes what it found to bench/results. It must never
// use code of ours for the floor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tapin/bench/timing"
)

// bench is one run.
type bench struct {
	binary   string
	chromium string
	rounds   int
	peers    bool // those from npm take part
	smoke    bool // only see that it still runs
	soakFor  time.Duration
	filter   string // of the actions, those whose name has this in it
	began    time.Time
	ticks    timing.Ticks // when the processors were awake
	report   report
	tidying  sync.WaitGroup // a large thing that is being removed
}

// suite is a part of the run that can be asked for alone.
type suite struct {
	name  string
	what  string
	peers bool // makes no sense without them
	quick bool // part of a smoke
	alone bool // runs only when it is asked for
	busy  bool // takes no times: what came before may be removed meanwhile
	run   func(*bench, context.Context) error
}

var suites = []suite{
	{name: "actions", what: "what agents do, beside raw CDP and the peers", quick: true, run: (*bench).measureActions},
	{name: "start", what: "the first picture, cold and warm", quick: true, run: (*bench).measureStart},
	{name: "socket", what: "a tap, until the viewer's socket has the picture", run: (*bench).measureSocket},
	{name: "glass", what: "a tap, until the phone shows it, and how smoothly it moves", run: (*bench).measureGlass},
	{name: "crowd", what: "twenty viewers", quick: true, run: (*bench).measureCrowd},
	{name: "kill", what: "the sidecar killed under a viewer", run: (*bench).measureKill},
	{name: "chat", what: "what an owner waits for in the chat", run: (*bench).measureChat},
	{name: "records", what: "a hundred thousand past hand-offs", run: (*bench).measureRecords},
	{name: "tokens", what: "what an observation costs a model", peers: true, busy: true, run: (*bench).measureTokens},
	{name: "memory", what: "what our own processes take", busy: true, run: (*bench).measureMemory},
	{name: "hands", what: "pages that are hard to click on", peers: true, alone: true, run: (*bench).measureHands},
	{name: "oneshots", what: "a page for one call", peers: true, alone: true, run: (*bench).measureOneShots},
	{name: "sessions", what: "one to sixteen sessions", run: (*bench).growSessions},
	{name: "viewers", what: "one to fifty viewers", run: (*bench).growViewers},
	{name: "shots", what: "one to two hundred one-shots at once", run: (*bench).growShots},
	{name: "soak", what: "work without a pause", alone: true, run: (*bench).soak},
}

func main() {
	b := &bench{began: time.Now()}
	only := flag.String("only", "", "suites to run, with commas between; all without it")
	flag.BoolVar(&b.smoke, "smoke", false, "one round, without the peers, to see that it still runs")
	flag.IntVar(&b.rounds, "rounds", 15, "rounds of each measurement")
	flag.BoolVar(&b.peers, "peers", true, "measure the peers from npm as well")
	flag.DurationVar(&b.soakFor, "soak", wholeSoak, "how long the soak takes")
	flag.StringVar(&b.filter, "actions", "", "only actions whose name has this in it")
	flag.StringVar(&b.binary, "tapin", "bin/tapin", "the program to measure")
	render := flag.String("render", "", "only write docs/BENCHMARKS.md from this file")
	awake := flag.Bool("awake", false, "keep the processors awake until the input ends, for the bench itself")
	bare := flag.Bool("bare-mcp", false, "be an MCP server that does the least, for the bench itself")
	flag.Parse()
	if *awake {
		finish(stayAwake())
	}
	if *render != "" {
		finish(renderFile(*render))
	}
	if b.smoke {
		b.rounds, b.peers = 1, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *bare {
		finish(serveBareMCP(ctx, os.Stdin, os.Stdout))
	}
	finish(b.run(ctx, *only))
}

func finish(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *bench) run(ctx context.Context, only string) error {
	var err error
	if b.chromium, err = findChromium(); err != nil {
		return err
	}
	var wanted []string
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(suites, func(s suite) bool { return s.name == name }) {
			return fmt.Errorf("there is no suite %q; there are %s", name, names())
		}
	}
	// Browsers that are killed leave what they have among the temporary files.
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := os.Setenv("TMPDIR", scratch); err != nil {
		return err
	}
	sleep, err := keepAwake(ctx)
	if err != nil {
		return err
	}
	defer sleep()
	defer b.tidying.Wait()
	b.ticks = timing.Now()
	b.report.describe(ctx, b)
	for _, s := range suites {
		if wanted != nil && !slices.Contains(wanted, s.name) || wanted == nil && (s.alone || b.smoke && !s.quick) || s.peers && !b.peers {
			continue
		}
		if !s.busy {
			b.tidying.Wait()
		}
		b.say("── %s: %s", s.name, s.what)
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
	}
	b.report.Held = timing.Since(b.ticks).Share()
	b.report.Took = time.Since(b.began).Round(time.Second).String()
	b.report.print(os.Stdout)
	if b.smoke {
		return nil
	}
	switch {
	case wanted == nil && b.filter == "" && b.peers:
		return b.report.save(lastRun)
	case only == "soak" && b.soakFor >= wholeSoak:
		return b.report.save(lastSoak)
	}
	return b.report.save("")
}

// turns counts the rounds of one measurement, and one before them that warms up.
// A slow machine plays fewer of them, but at least half, so that the whole run
// does not take longer than somebody waits for it.
func turns(rounds int, within time.Duration) iter.Seq[int] {
	return func(yield func(int) bool) {
		began := time.Now()
		for round := range rounds + 1 {
			if 2*round > rounds+1 && time.Since(began) > within || !yield(round) {
				return
			}
		}
	}
}

// say tells what goes on; a run takes minutes.
func (b *bench) say(format string, args ...any) {
	fmt.Printf("%6.0fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// add takes a row into the report and tells what came of it.
func (b *bench) add(r row) {
	b.report.Rows = append(b.report.Rows, r)
	b.say("   %s: %s", r.Name, r.line())
	for _, v := range r.Verdicts {
		b.say("   %s", v)
	}
}

func names() string {
	var all []string
	for _, s := range suites {
		all = append(all, s.name)
	}
	return strings.Join(all, ", ")
}
