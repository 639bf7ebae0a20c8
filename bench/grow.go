package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
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
	var ids []string
	for _, count := range b.steps(1, 2, 4, 8, 16) {
		for len(ids) < count {
			made, err := s.post(ctx, "/session/start", map[string]any{"url": site.URL + "/form", "screenshot": false})
			if err != nil {
				return err
			}
			ids = append(ids, fmt.Sprint(made["session_id"]))
		}
		if err := quiet(ctx); err != nil { // what follows a start is not the sessions' own
			return err
		}
		pids, err := ours(s.cmd.Process.Pid, b.binary)
		if err != nil {
			return err
		}
		before := used(pids)
		for range workRounds {
			next := time.After(workEvery)
			if err := s.work(ctx, ids, 1); err != nil {
				return err
			}
			<-next
		}
		after := used(pids)
		time.Sleep(startedUp)
		c.Points = append(c.Points, float64(count))
		c.add(used(pids).RSS, 1000*(after.CPU-before.CPU)/workRounds, after.Files)
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
