package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"tapin/bench/timing"
)

// scene is one live view on a phone, of a page of its own.
type scene struct {
	*phone
	site *httptest.Server
	end  func()
}

// scenes are the bare relay and tapin, each with a phone in front of it.
func (b *bench) scenes(ctx context.Context) (map[string]*scene, func(), error) {
	all := map[string]*scene{}
	bare, site := serveSite(), serveSite()
	end := func() {
		for _, s := range all {
			s.end()
		}
		bare.Close()
		site.Close()
	}
	r, err := newRelay(ctx, b.chromium)
	if err != nil {
		return nil, end, err
	}
	if err := r.tab.navigate(bare.URL+"/pulse", "Page.loadEventFired"); err != nil {
		return nil, end, err
	}
	p, err := newPhone(ctx, b.chromium, r.URL, `picture.width > 300`)
	if err != nil {
		return nil, end, fmt.Errorf("the bare relay: %w", err)
	}
	all["floor"] = &scene{p, bare, func() { p.end(); r.close() }}

	s, err := startSidecar(ctx, b.binary, site.URL)
	if err != nil {
		return nil, end, err
	}
	if _, err := s.post(ctx, "/session/start", map[string]any{"url": site.URL + "/pulse", "screenshot": false}); err != nil {
		return nil, end, err
	}
	url, err := s.link(ctx, "drive")
	if err != nil {
		return nil, end, err
	}
	if _, err = s.post(ctx, "/handoff/start", map[string]any{"reason": "other", "instruction": "measure", "timeout_ms": 3_600_000}); err != nil {
		return nil, end, err
	}
	g, err := newPhone(ctx, b.chromium, url, `document.documentElement.dataset.bar === "you" && document.querySelector("#picture").width > 300 && !document.querySelector("#curtain").checkVisibility()`)
	if err != nil {
		return nil, end, fmt.Errorf("tapin's page: %w", err)
	}
	all["tapin"] = &scene{g, site, func() { g.end(); s.stop() }}
	return all, end, p.showLike(g)
}

// move lets the page move for two seconds.
func (s *scene) move(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.site.URL+"/move", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

const (
	tapsWithin = 24 * time.Second // see turns
	// castings is how often both are set up anew: of two that are alike one may be faster
	// for as long as it lives.
	castings = 2
)

// measureGlass is what a person sees on the phone: how soon, and how smoothly.
func (b *bench) measureGlass(ctx context.Context) error {
	var took rounds
	var rates timing.Rounds[float64]
	times := castings
	if b.smoke {
		times = 1
	}
	for casting := range times {
		if err := b.playScenes(ctx, casting, times, &took, &rates); err != nil {
			return err
		}
	}
	r := row{Group: "live", Name: "tap → changed pixel in the viewer's page", Unit: "ms", Floor: "bare relay and canvas", Listed: true}.from(&took, "floor")
	r.Verdicts = append(r.Verdicts, atMost("p50, to the floor", r.Figures["tapin"].Ratio, 1.1), atMost("p95, to the floor's", r.Figures["tapin"].P95/r.Figures["floor"].P95, 1.2))
	b.add(r)
	b.add(paceRow(&rates))
	return nil
}

// playScenes plays one casting's part of all rounds.
func (b *bench) playScenes(ctx context.Context, casting, of int, took *rounds, rates *timing.Rounds[float64]) error {
	all, end, err := b.scenes(ctx)
	defer end()
	if err != nil {
		return err
	}
	taps := 2 * b.rounds / of
	for round := range turns(taps, tapsWithin/time.Duration(of)) {
		took.Begin()
		for _, who := range inTurn(round) {
			time.Sleep(pause) // tapin's page rests meanwhile, and its sharp still is taken
			d, err := all[who].tap(casting*taps + round)
			if err != nil {
				return fmt.Errorf("tap: %s: %w", who, err)
			}
			if round > 0 {
				took.Add(who, d)
			}
		}
		took.End()
	}
	for round := range (min(b.rounds, 8) + of - 1) / of {
		rates.Begin()
		for _, who := range inTurn(round) {
			rate, err := all[who].pace(ctx)
			if err != nil {
				return err
			}
			rates.Add(who, rate)
		}
		rates.End()
	}
	return nil
}

// inTurn is who comes first in a round: what either does after its turn is in the way of
// the other's.
func inTurn(round int) []string {
	order := []string{"floor", "tapin"}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// pace counts the pictures a second while the page moves; then it rests again.
func (s *scene) pace(ctx context.Context) (float64, error) {
	if err := s.move(ctx); err != nil {
		return 0, err
	}
	time.Sleep(pause)
	rate, err := s.phone.pace(1200 * time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	return rate, err
}

func paceRow(rates *timing.Rounds[float64]) row {
	figures := map[string]figure{}
	for who, each := range rates.Counted() {
		figures[who] = figure{Median: timing.Quantile(each, 0.5), Rounds: len(each)}
	}
	ours := figures["tapin"]
	ours.Ratio = ours.Median / figures["floor"].Median
	figures["tapin"] = ours
	r := row{
		Group: "live", Name: "pictures a second in the viewer's page, animating", Unit: "1/s", Floor: "bare relay and canvas", Listed: true,
		Figures: figures, Verdicts: []verdict{atLeast("to the floor", ours.Ratio, 0.95)},
	}
	r.Played, r.Left = rates.Played()
	return r
}

// measureCrowd is what twenty viewers cost beside one.
func (b *bench) measureCrowd(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	s, err := startSidecar(ctx, b.binary, site.URL)
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := s.post(ctx, "/session/start", map[string]any{"url": site.URL + "/animating", "screenshot": false}); err != nil {
		return err
	}
	during := 6 * time.Second
	if b.smoke {
		during = time.Second
	}
	cost := func() (float64, error) {
		pids, err := ours(s.cmd.Process.Pid, b.binary)
		if err != nil {
			return 0, err
		}
		before := used(pids).CPU
		time.Sleep(during)
		return 1000 * (used(pids).CPU - before) / during.Seconds(), nil
	}
	figures := map[string]figure{}
	var viewers []*viewer
	defer func() {
		for _, v := range viewers {
			v.leave()
		}
	}()
	for _, count := range []int{1, 20} {
		for len(viewers) < count {
			v, err := s.watch(ctx)
			if err != nil {
				return err
			}
			viewers = append(viewers, v)
		}
		if err := viewers[count-1].more(5, 20*time.Second); err != nil {
			return err
		}
		cpu, err := cost()
		if err != nil {
			return err
		}
		figures[fmt.Sprintf("tapin, viewers: %d", count)] = figure{Median: cpu}
	}
	ratio := figures["tapin, viewers: 20"].Median / figures["tapin, viewers: 1"].Median
	b.add(row{Group: "live", Name: "our CPU for twenty viewers", Unit: "ms a second", Floor: "one viewer", Listed: true, Figures: figures, Verdicts: []verdict{atMost("to one viewer", ratio, 2)}})
	return nil
}
