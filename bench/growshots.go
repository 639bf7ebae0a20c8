package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// growShots is what happens when ever more one-shots come at once: those that
// are too many are told to come later.
func (b *bench) growShots(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	s, err := startSidecar(ctx, b.binary, site.URL, "pool.follow=0") // nobody is going to ask for a session
	if err != nil {
		return err
	}
	defer s.stop()
	c := curve{Name: "One-shots in flight", X: "asked for at once", Lines: []line{{Name: "answered", Unit: "calls"}, {Name: "told BUSY", Unit: "calls"}, {Name: "until all had an answer", Unit: "s"}, {Name: "our CPU for each", Unit: "ms"}, {Name: "our memory", Unit: "MiB"}, {Name: "descriptors", Unit: "open"}}}
	wrong := 0.0
	for _, count := range b.steps(1, 5, 20, 50, 100, 200) {
		var mu sync.Mutex
		var all sync.WaitGroup
		good, busy := 0.0, 0.0
		before, err := b.spent(s)
		if err != nil {
			return err
		}
		began := time.Now()
		for range count {
			all.Go(func() {
				_, err := s.post(ctx, "/browser/extract", map[string]any{"url": site.URL + "/light"})
				mu.Lock()
				defer mu.Unlock()
				r, refused := errors.AsType[*refusal](err)
				switch {
				case err == nil:
					good++
				case refused && r.Status == http.StatusServiceUnavailable && r.Code == "BUSY" && r.Retry != "":
					busy++
				default:
					wrong++
					b.say("   neither an answer nor BUSY: %v", err)
				}
			})
		}
		all.Wait()
		took := time.Since(began).Seconds()
		after, err := b.spent(s)
		if err != nil {
			return err
		}
		now, cpu := used(slices.Collect(maps.Keys(after))), 0.0
		for pid, seconds := range after {
			cpu += seconds - before[pid]
		}
		c.Points = append(c.Points, float64(count))
		c.add(good, busy, took, 1000*cpu/float64(count), now.RSS, now.Files)
	}
	b.draw(c)
	b.add(row{Group: "growth", Name: "1 → 200 one-shots at once", Unit: "calls", Verdicts: []verdict{atMost("neither answered nor told BUSY with Retry-After", wrong, 0)}})
	return nil
}

// spent is for how many seconds each process of ours has run. The holder of the
// one-shots' browser comes and goes.
func (b *bench) spent(s *sidecar) (map[int]float64, error) {
	pids, err := ours(s.cmd.Process.Pid, b.binary)
	seconds := map[int]float64{}
	for _, pid := range pids {
		seconds[pid] = used([]int{pid}).CPU
	}
	return seconds, err
}
