package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"tapin/bench/timing"
)

// growRecords is what a tapin costs us with ever more hand-offs behind it.
func (b *bench) growRecords(ctx context.Context, counts []int, homes []string) error {
	c := curve{Name: "Past hand-offs", X: "past hand-offs", Lines: []line{
		{Name: "our memory", Unit: "MiB"}, {Name: "our CPU to start", Unit: "ms"}, {Name: "for a page of the list", Unit: "ms"},
		{Name: "for a new one", Unit: "ms"}, {Name: "descriptors", Unit: "open"},
	}}
	for i, home := range homes {
		values, err := b.costAmongRecords(ctx, home)
		if err != nil {
			return err
		}
		c.Points = append(c.Points, float64(counts[i]))
		c.add(values...)
	}
	b.draw(c)
	return nil
}

// costAmongRecords has a tapin list and hand off in a home, and starts it again there.
func (b *bench) costAmongRecords(ctx context.Context, home string) ([]float64, error) {
	const starts = 5
	s, err := startSidecarIn(ctx, home, b.binary, "127.0.0.1:1", "pool.follow=0")
	if err != nil {
		return nil, err
	}
	work, err := b.workAmongRecords(ctx, s)
	s.end()
	if err != nil {
		return nil, err
	}
	var toStart []float64
	for range starts {
		if s, err = startSidecarIn(ctx, home, b.binary, "127.0.0.1:1", "pool.follow=0"); err != nil {
			return nil, err
		}
		toStart = append(toStart, 1000*used([]int{s.cmd.Process.Pid}).CPU)
		s.end()
	}
	return []float64{work.held.RSS, timing.Quantile(toStart, 0.5), work.page, work.another, work.held.Files}, nil
}

// amongRecords is what work costs with that many hand-offs behind it.
type amongRecords struct {
	page, another float64 // of the list, hand-off; milliseconds of CPU
	held          usage   // after it
}

func (b *bench) workAmongRecords(ctx context.Context, s *sidecar) (w amongRecords, err error) {
	const pages, handOffs = 50, 10
	if err := s.counted(ctx); err != nil {
		return w, err
	}
	if _, err := s.post(ctx, "/session/start", map[string]any{"screenshot": false}); err != nil {
		return w, err
	}
	if err := quiet(ctx); err != nil { // what follows a start is not the records' own
		return w, err
	}
	pids, err := ours(s.cmd.Process.Pid, b.binary)
	if err != nil {
		return w, err
	}
	idle := used(pids)
	for range pages {
		if _, err := s.ask(ctx, s.owner, http.MethodGet, "/handoffs", nil); err != nil {
			return w, err
		}
	}
	listed := used(pids)
	for range handOffs {
		if _, err := s.handOff(ctx); err != nil {
			return w, err
		}
	}
	w.page = 1000 * (listed.CPU - idle.CPU) / pages
	w.another = 1000 * (used(pids).CPU - listed.CPU) / handOffs
	time.Sleep(startedUp)
	w.held = used(pids)
	return w, nil
}

// counted waits until the figures have taken in all hand-offs of before, which they
// do once; those of this home were put there behind their back.
func (s *sidecar) counted(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		raw, err := s.ask(ctx, s.owner, http.MethodGet, "/analytics", nil)
		if err != nil {
			return err
		}
		var figures struct{ Counting bool }
		if err := json.Unmarshal(raw, &figures); err != nil {
			return err
		}
		if !figures.Counting {
			return nil
		}
	}
	return errors.New("the past hand-offs were not counted within a minute")
}
