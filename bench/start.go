package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// For how long rounds of starts begin. Most of a warm one is waiting.
const (
	coldWithin = 65 * time.Second
	warmWithin = 60 * time.Second
	// afterEnd is how long the kernel gets to clear away a browser that was killed: whoever
	// started meanwhile would pay for it.
	afterEnd = 300 * time.Millisecond
)

// coldEvery is that somebody starts in one round of so many: what is in no target.
var coldEvery = map[string]int{"tapin-first": 4, "agent-browser": 4}

// measureStart is how long the first picture takes: from nothing, in a tapin
// that runs, and from its pool.
func (b *bench) measureStart(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	url := site.URL + "/light"
	used, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(used) }()
	starts := []struct {
		who   string
		start func() (time.Duration, error)
	}{
		{"floor", func() (time.Duration, error) { return floorColdStart(ctx, b.chromium, url) }},
		{"tapin", func() (time.Duration, error) { return tapinColdStart(ctx, used, b.binary, url) }},
		{"tapin-first", func() (time.Duration, error) { return tapinFirstStart(ctx, b.binary, url) }},
		{"agent-browser", func() (time.Duration, error) { return agentBrowserColdStart(ctx, b.chromium, url) }},
	}
	var took rounds
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // an order, not a secret
	for round := range turns(3*b.rounds, coldWithin) {
		took.Begin()
		for _, i := range dice.Perm(len(starts)) {
			who := starts[i].who
			if who == "agent-browser" && !b.peers || sitsOut(coldEvery[who], round) {
				continue
			}
			time.Sleep(afterEnd)
			d, err := starts[i].start()
			if err != nil {
				return fmt.Errorf("cold start: %s: %w", who, err)
			}
			if round > 0 { // the first one warms the disk, and is the first of its home
				took.Add(who, d)
			}
		}
		took.End()
	}
	r := row{Group: "start", Name: "cold start: process start → first screenshot", Unit: "ms", Floor: "Chromium and raw CDP", Listed: true}.from(&took, "floor")
	r.Verdicts = append(r.Verdicts, atMost("to the floor", r.Figures["tapin"].Ratio, 1.15))
	b.add(r)
	return b.measureWarm(ctx, site.URL)
}

// tapinFirstStart is the first one ever: it makes the keys, and has to ask the
// browser for its version.
func tapinFirstStart(ctx context.Context, binary, url string) (time.Duration, error) {
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	return tapinColdStart(ctx, home, binary, url)
}

func agentBrowserColdStart(ctx context.Context, chromium, url string) (time.Duration, error) {
	a, err := findAgentBrowser(chromium, "cold")
	if err != nil {
		return 0, err
	}
	defer a.end()
	began := time.Now()
	if _, err := a.run(ctx, "open", url); err != nil {
		return 0, err
	}
	_, err = a.run(ctx, "screenshot", a.home+"/shot.png")
	return time.Since(began), err
}

// measureWarm starts sessions in a tapin that runs: the first one, one that follows
// another, and one from a pool; and one with nothing started ahead. All are beside a
// new context in a browser that runs.
func (b *bench) measureWarm(ctx context.Context, site string) error {
	url := site + "/light"
	bare, err := startRaw(ctx, b.chromium)
	if err != nil {
		return err
	}
	defer bare.end()
	ways := []*way{
		{who: "tapin-own", every: 3, set: []string{"pool.follow=0"}},
		{who: "tapin-new", every: 2, anew: true},
		{who: "tapin", every: 2},
		{who: "tapin-pool", set: []string{"pool.warm=1"}},
	}
	for _, w := range ways {
		if err := w.start(ctx, b.binary, site); err != nil {
			return err
		}
		defer func() { w.stop() }() // of the last one, where there are several
	}
	var took, long rounds
	for round := range turns(b.rounds, warmWithin) {
		time.Sleep(spareBegins)
		if err := quiet(ctx); err != nil {
			return err
		}
		took.Begin()
		long.Begin()
		var begun []*way
		for _, w := range ways {
			if sitsOut(w.every, round) {
				continue
			}
			into := &took
			if w.who == "tapin-own" {
				into = &long
			}
			bared, err := floorNewContext(bare, url) // it varies most, so it is measured beside each
			if err != nil {
				return fmt.Errorf("new context: %w", err)
			}
			time.Sleep(restAfterAct)
			began := time.Now()
			if err := firstPicture(ctx, w.sidecar, url); err != nil {
				return fmt.Errorf("warm session: %s: %w", w.who, err)
			}
			if round > 0 {
				into.Add("floor", bared)
				into.Add(w.who, time.Since(began))
			}
			time.Sleep(restAfterAct)
			begun = append(begun, w)
		}
		took.End()
		long.End()
		for _, w := range begun {
			if err := w.finish(ctx, b.binary, site); err != nil {
				return err
			}
		}
	}
	r := row{Group: "start", Name: "warm session → first screenshot", Unit: "ms", Floor: "raw new context", Listed: true}.from(&took, "floor")
	r.Verdicts = append(r.Verdicts, atMost("the first one, to the floor", r.Figures["tapin-new"].Ratio, 1.1),
		atMost("after another one, to the floor", r.Figures["tapin"].Ratio, 1.1), atMost("from the pool, to the floor", r.Figures["tapin-pool"].Ratio, 0.5))
	b.add(r)
	r = row{Group: "start", Name: "session with nothing started ahead → first screenshot", Unit: "ms", Floor: "raw new context"}.from(&long, "floor")
	r.Verdicts = append(r.Verdicts, atMost("to the floor", r.Figures["tapin-own"].Ratio, 1.1))
	b.add(r)
	return nil
}

// way is how a session comes by its browser, and a tapin that is set up for it.
type way struct {
	*sidecar
	who   string
	every int // it is taken in one round of so many: in no target, or far from it
	set   []string
	anew  bool // each session is the first one
}

func (w *way) start(ctx context.Context, binary, site string) error {
	s, err := startSidecar(ctx, binary, site, w.set...)
	if err == nil {
		w.sidecar = s
	}
	return err
}

// finish ends the session, and makes ready for the next.
func (w *way) finish(ctx context.Context, binary, site string) error {
	if w.anew {
		w.stop()
		return w.start(ctx, binary, site)
	}
	_, err := w.post(ctx, "/session/stop", map[string]any{})
	return err
}

// spareBegins is when, after one browser has ended or tapin was started, the next is
// being started ahead.
// Sessions go on until all of a round have begun, and whoever starts a browser in the
// place of one that was taken comes last: nobody is measured while somebody else's
// comes or goes.
const spareBegins = 1500 * time.Millisecond
