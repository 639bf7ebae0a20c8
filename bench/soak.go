package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// sample is how much a running tapin holds at one moment.
type sample struct {
	memory, files, goroutines float64
}

// soakRound is the least that a round takes: from one address no more than thirty
// devices a minute may ask to be let in, and each round opens a link anew.
const soakRound = 2200 * time.Millisecond

const (
	wholeSoak = 15 * time.Minute
	soakParts = 15 // points of its curve
)

// soak works a tapin without a pause, with everything that it has: actions, a
// viewer, hand-offs, one-shots, sessions that come and go. What it holds in the
// last third of the time must be what it held in the second.
func (b *bench) soak(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	s, err := startWhole(ctx, b.binary, site.URL, "pool.warm=1")
	if err != nil {
		return err
	}
	defer s.stop()
	var seen []sample
	rounds := 0
	for end, next := time.Now().Add(b.soakFor), time.Now(); time.Now().Before(end); rounds++ {
		rested := time.After(soakRound)
		if err := s.day(ctx, site.URL); err != nil {
			return fmt.Errorf("round %d: %w", rounds, err)
		}
		<-rested
		now, err := b.sample(ctx, s)
		if err != nil {
			return err
		}
		seen = append(seen, now)
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(b.soakFor / 90)
		b.say("   round %d: %.0f MiB, %.0f goroutines, %.0f descriptors", rounds, now.memory, now.goroutines, now.files)
	}
	if len(seen) < soakParts {
		return fmt.Errorf("only %d samples were taken: it takes longer", len(seen))
	}
	third := len(seen) / 3
	r := row{Group: "soak", Name: fmt.Sprintf("%s minutes of work, %d rounds: the last third to the middle one", whole(b.soakFor.Minutes()), rounds), Unit: "last third", Figures: map[string]figure{}}
	c := curve{Name: "Work without a pause", X: "minutes", Even: true}
	for part := range soakParts {
		c.Points = append(c.Points, b.soakFor.Minutes()*float64(part+1)/soakParts)
	}
	for _, each := range []struct {
		name, unit string
		of         func(sample) float64
	}{
		{"our memory", "MiB", func(s sample) float64 { return s.memory }},
		{"goroutines", "running", func(s sample) float64 { return s.goroutines }},
		{"descriptors", "open", func(s sample) float64 { return s.files }},
	} {
		middle, last := mean(seen[third:2*third], each.of), mean(seen[2*third:], each.of)
		r.Figures[each.name+", "+each.unit] = figure{Median: last}
		r.Verdicts = append(r.Verdicts, atMost(each.name, last/middle, 1.05))
		l := line{Name: each.name, Unit: each.unit}
		for part := range soakParts {
			l.Values = append(l.Values, mean(seen[part*len(seen)/soakParts:(part+1)*len(seen)/soakParts], each.of))
		}
		c.Lines = append(c.Lines, l)
	}
	b.draw(c)
	b.add(r)
	return nil
}

// mean is what was held on average. A median would jump: whether the holder of a browser
// that is kept for the next call is there, or has just ended, makes two heaps of samples.
func mean(seen []sample, of func(sample) float64) float64 {
	all := 0.0
	for _, s := range seen {
		all += of(s)
	}
	return all / float64(len(seen))
}

// day is one session with everything in it, from its start to its end.
func (s *sidecar) day(ctx context.Context, site string) error {
	started, err := s.post(ctx, "/session/start", map[string]any{"url": site + "/form"})
	if err != nil {
		return err
	}
	v, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := v.more(0, 20*time.Second); err != nil {
		return err
	}
	if err := s.work(ctx, []string{fmt.Sprint(started["session_id"])}, 5); err != nil {
		return err
	}
	if _, err := s.handOff(ctx); err != nil {
		return err
	}
	if _, err := s.post(ctx, "/browser/extract", map[string]any{"url": site + "/light"}); err != nil {
		return err
	}
	_, err = s.post(ctx, "/session/stop", map[string]any{})
	return err
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// sample looks between two rounds, when no session runs.
func (b *bench) sample(ctx context.Context, s *sidecar) (sample, error) {
	pids, err := ours(s.cmd.Process.Pid, b.binary)
	if err != nil {
		return sample{}, err
	}
	figures, err := s.get(ctx, "/metrics")
	if err != nil {
		return sample{}, err
	}
	found := goroutines.FindSubmatch(figures)
	if found == nil {
		return sample{}, fmt.Errorf("the figures lack the goroutines")
	}
	count, err := strconv.ParseFloat(string(found[1]), 64)
	now := used(pids)
	return sample{memory: now.RSS, files: now.Files, goroutines: count}, err
}
