package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// steps are the points of a curve, fewer for a smoke.
func (b *bench) steps(all ...int) []int {
	if b.smoke {
		return all[:1]
	}
	return all
}

// draw takes a finished curve into the report.
func (b *bench) draw(c curve) {
	b.report.Curves = append(b.report.Curves, c)
	b.say("   %s:\n%s", c.Name, c.table())
}

// startedUp is when a process of ours has given back what only starting took.
const startedUp = 4 * time.Second

// Each session does the same, and as often, however many there are beside it: what comes
// after an action comes once after several that follow each other closely.
const (
	workRounds = 10
	workEvery  = 400 * time.Millisecond
)

// growSessions is what one more session costs us.
func (b *bench) growSessions(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	s, err := startSidecar(ctx, b.binary, site.URL, "max_sessions=16")
	if err != nil {
		return err
	}
	defer s.stop()
	c := curve{Name: "Sessions on one node", X: "sessions", Lines: []line{{Name: "our memory", Unit: "MiB"}, {Name: "our CPU for a round of actions", Unit: "ms"}, {Name: "descriptors", Unit: "open"}}}
	counts := b.steps(1, 2, 4, 8, 16)
	var ids []string
	for _, count := range counts {
		if ids, err = s.upTo(ctx, ids, count, site.URL+"/form"); err != nil {
			return err
		}
		cpu, pids, err := b.workAll(ctx, s, ids)
		if err != nil {
			return err
		}
		time.Sleep(startedUp)
		held := used(pids)
		c.Points = append(c.Points, float64(count))
		c.add(held.RSS, cpu, held.Files)
	}
	// And down again: a machine that becomes slower meanwhile would make many dearer than few.
	for i, count := range slices.Backward(counts) {
		if ids, err = s.downTo(ctx, ids, count); err != nil {
			return err
		}
		cpu, _, err := b.workAll(ctx, s, ids)
		if err != nil {
			return err
		}
		c.Lines[1].Values[i] = (c.Lines[1].Values[i] + cpu) / 2
	}
	b.draw(c)
	if b.smoke {
		return nil
	}
	n := len(c.Points) - 1
	each := func(i, l int) float64 { return c.Lines[l].Values[i] / c.Points[i] }
	// What one more costs; the first carries what there is once.
	more := func(from, to, l int) float64 {
		return (c.Lines[l].Values[to] - c.Lines[l].Values[from]) / (c.Points[to] - c.Points[from])
	}
	least := each(0, 1) // beside one alone, which carries what there is once, no growth would be seen
	for i := range n {
		least = min(least, each(i, 1))
	}
	b.add(row{Group: "growth", Name: "sessions 1 → 16: our cost of one", Unit: "at 16, each", Listed: true, Figures: map[string]figure{
		"memory, MiB": {Median: each(n, 0)}, "CPU, ms a round": {Median: each(n, 1)},
	}, Verdicts: []verdict{
		atMost("memory of one more, past 8, to before", more(n-1, n, 0)/more(0, n-1, 0), 1.2),
		atMost("CPU of each, to the least with fewer", each(n, 1)/least, 1.2),
	}})
	return nil
}

// upTo starts sessions until there are that many.
func (s *sidecar) upTo(ctx context.Context, ids []string, count int, url string) ([]string, error) {
	for len(ids) < count {
		made, err := s.post(ctx, "/session/start", map[string]any{"url": url, "screenshot": false})
		if err != nil {
			return nil, err
		}
		ids = append(ids, fmt.Sprint(made["session_id"]))
	}
	return ids, nil
}

// downTo ends the latest sessions until there are that many.
func (s *sidecar) downTo(ctx context.Context, ids []string, count int) ([]string, error) {
	for _, id := range ids[count:] {
		if _, err := s.post(ctx, "/sessions/"+id+"/stop", map[string]any{}); err != nil {
			return nil, err
		}
	}
	return ids[:count], nil
}

// workAll has all sessions work for a while, and tells what a round cost us, in
// milliseconds of CPU, and which processes of ours there are.
func (b *bench) workAll(ctx context.Context, s *sidecar, ids []string) (cpu float64, pids []int, err error) {
	if err := quiet(ctx); err != nil { // what follows a start or an end is not the sessions' own
		return 0, nil, err
	}
	if pids, err = ours(s.cmd.Process.Pid, b.binary); err != nil {
		return 0, nil, err
	}
	before := used(pids)
	for range workRounds {
		next := time.After(workEvery)
		if err := s.work(ctx, ids, 1); err != nil {
			return 0, nil, err
		}
		<-next
	}
	return 1000 * (used(pids).CPU - before.CPU) / workRounds, pids, nil
}

func (c *curve) add(values ...float64) {
	for i, v := range values {
		c.Lines[i].Values = append(c.Lines[i].Values, v)
	}
}

// work has every session do a few things, so many times.
func (s *sidecar) work(ctx context.Context, ids []string, times int) error {
	for range times {
		for _, id := range ids {
			if _, err := s.post(ctx, "/sessions/"+id+"/click", map[string]any{"selector": "#go", "screenshot": false}); err != nil {
				return err
			}
			if _, err := s.get(ctx, "/sessions/"+id+"/snapshot"); err != nil {
				return err
			}
		}
	}
	return nil
}

// growViewers is what one more viewer costs us.
func (b *bench) growViewers(ctx context.Context) error {
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
	c := curve{Name: "Viewers of one session", X: "viewers", Lines: []line{{Name: "our memory", Unit: "MiB"}, {Name: "our CPU", Unit: "ms a second"}, {Name: "descriptors", Unit: "open"}, {Name: "pictures to each", Unit: "1/s"}}}
	var viewers []*viewer
	defer func() {
		for _, v := range viewers {
			v.leave()
		}
	}()
	refused := 0
	for _, count := range b.steps(1, 2, 5, 10, 20, 50) {
		for len(viewers)+refused < count {
			v, err := s.watch(ctx)
			if err == nil {
				err = v.more(0, 20*time.Second)
			}
			if err != nil {
				refused++ // told to come later, which is not falling over
				continue
			}
			viewers = append(viewers, v)
		}
		pids, err := ours(s.cmd.Process.Pid, b.binary)
		if err != nil {
			return err
		}
		const during = 5 * time.Second
		before, seen := used(pids), sum(viewers)
		time.Sleep(during)
		after := used(pids)
		c.Points = append(c.Points, float64(count))
		c.add(after.RSS, 1000*(after.CPU-before.CPU)/during.Seconds(), after.Files, float64(sum(viewers)-seen)/during.Seconds()/float64(len(viewers)))
	}
	if refused > 0 {
		c.Note = fmt.Sprintf("%d viewers were told that there are too many.", refused)
	}
	b.draw(c)
	return nil
}

func sum(viewers []*viewer) int {
	all := 0
	for _, v := range viewers {
		frames, _ := v.seen()
		all += frames
	}
	return all
}
