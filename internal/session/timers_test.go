package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/event"
	"tapin/internal/store"
)

// clockwork is a session as far as its timers go: its record on a real disk,
// the real schedule, the real feed. Only the browser is missing, and with it
// what the end and a save would do there.
type clockwork struct {
	t       *testing.T
	began   time.Time
	home    *store.Home
	feed    *event.Feed
	records *records
	rec     *record
	timers  timers
	stop    func()
	diary   *diary
}

// diary is when something was done, counted from the beginning. Processes that
// follow each other write into the same one.
type diary struct {
	mu  sync.Mutex
	did []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, line)
}

func (d *diary) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.did)
}

// wind starts a process on the home at path; a session that is there goes on.
func wind(t *testing.T, path string, began time.Time, life time.Duration, d *diary) *clockwork {
	t.Helper()
	home, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &clockwork{t: t, began: began, diary: d, home: home, feed: feed, records: newRecords(home, event.NewPump(feed, home, nil))}
	found, _, err := c.records.all()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 1 {
		c.rec = found[0]
	} else {
		c.rec = &record{ID: "ses_1", facts: facts{State: stateActive, StartedAt: began, Deadline: began.Add(life)}}
		if err := c.records.open(c.rec); err != nil {
			t.Fatal(err)
		}
	}
	schedule := event.NewSchedule()
	c.timers = timers{
		schedule: schedule, session: c.rec.ID,
		end: func(context.Context) {
			c.timers.cancel()
			c.note("end")
		},
		warn: func(ctx context.Context) {
			if err := c.records.warned(ctx, c.rec, time.Now()); err != nil {
				t.Error(err)
			}
		},
		save: func(context.Context) { c.note("save") },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		schedule.Run(ctx)
	}()
	c.stop = func() {
		cancel()
		<-ended
		_, _ = feed.Close(), home.Close()
	}
	c.timers.set(c.records.copy(c.rec), time.Now())
	return c
}

func (c *clockwork) note(what string) { c.diary.note(fmt.Sprint(what, " ", time.Since(c.began))) }

// warnings are when the feed says that the owner was told.
func (c *clockwork) warnings() []time.Duration {
	events, _ := c.feed.Since(0, 0)
	var out []time.Duration
	for _, e := range events {
		if e.Type == "session.expiring" {
			out = append(out, e.At.Sub(c.began))
		}
	}
	return out
}

// raise is what a hand-off does to the deadline.
func (c *clockwork) raise(until time.Duration) {
	c.t.Helper()
	err := c.records.change(c.t.Context(), c.rec, "", func(r *record) { r.Deadline = r.raised(c.began.Add(until)) })
	if err != nil {
		c.t.Fatal(err)
	}
	c.timers.set(c.records.copy(c.rec), time.Now())
}

// until lets time pass up to a moment since the beginning.
func (c *clockwork) until(d time.Duration) {
	time.Sleep(time.Until(c.began.Add(d)))
	synctest.Wait()
}

func (c *clockwork) want(did []string, warnings ...time.Duration) {
	c.t.Helper()
	if got := c.diary.lines(); !slices.Equal(got, did) {
		c.t.Errorf("what was done: %q, want %q", got, did)
	}
	if got := c.warnings(); !slices.Equal(got, warnings) {
		c.t.Errorf("warned at %v, want %v", got, warnings)
	}
}

func TestASessionsTimersFireInTheRightSecondAndNoneAfterItsEnd(t *testing.T) {
	t.Parallel()
	const m, s = time.Minute, time.Second
	restart := func(c *clockwork, path string) *clockwork {
		c.stop()
		return wind(c.t, path, c.began, 0, c.diary)
	}
	for name, play := range map[string]func(c *clockwork, path string) *clockwork{
		"half an hour": func(c *clockwork, _ string) *clockwork {
			c.until(25*m - s)
			c.want(nil)
			c.until(25 * m)
			c.want(nil, 25*m)
			c.until(30*m - s)
			c.want(nil, 25*m)
			c.until(2 * time.Hour)
			c.want([]string{"end 30m0s"}, 25*m)
			return c
		},
		"ended before": func(c *clockwork, _ string) *clockwork {
			c.timers.keepSaving()
			c.until(90 * s)
			c.timers.cancel()
			c.until(2 * time.Hour)
			c.want([]string{"save 1m0s"})
			return c
		},
		"saved every minute until the end": func(c *clockwork, _ string) *clockwork {
			c.raise(30 * m)
			c.until(27*m + s)
			c.timers.keepSaving()
			c.until(2 * time.Hour)
			c.want([]string{"save 28m1s", "save 29m1s", "end 30m0s"}, 25*m)
			return c
		},
		"raised by a hand-off": func(c *clockwork, _ string) *clockwork {
			c.until(10 * m)
			c.raise(50 * m)
			c.raise(20 * m) // it never comes nearer
			c.until(44 * m)
			c.want(nil)
			c.until(2 * time.Hour)
			c.want([]string{"end 50m0s"}, 45*m)
			return c
		},
		"raised after the warning": func(c *clockwork, _ string) *clockwork {
			c.until(26 * m)
			c.raise(60 * m)
			c.until(2 * time.Hour)
			c.want([]string{"end 1h0m0s"}, 25*m, 55*m)
			return c
		},
		"raised beyond what a session may last": func(c *clockwork, _ string) *clockwork {
			c.raise(9 * time.Hour)
			c.until(12 * time.Hour)
			c.want([]string{"end 6h0m0s"}, 6*time.Hour-5*m)
			return c
		},
		"a restart in the middle": func(c *clockwork, path string) *clockwork {
			c.until(10 * m)
			c = restart(c, path)
			c.until(2 * time.Hour)
			c.want([]string{"end 30m0s"}, 25*m)
			return c
		},
		"a restart after the warning": func(c *clockwork, path string) *clockwork {
			c.until(26 * m)
			c = restart(c, path)
			c = restart(c, path)
			c.until(2 * time.Hour)
			c.want([]string{"end 30m0s"}, 25*m)
			return c
		},
		"a laptop that slept over the warning": func(c *clockwork, path string) *clockwork {
			c.until(24 * m)
			c.stop()
			c.sleep(27 * m)
			c = restart(c, path)
			synctest.Wait()
			c.want(nil, 27*m) // late, and once
			c.until(2 * time.Hour)
			c.want([]string{"end 30m0s"}, 27*m)
			return c
		},
		"a laptop that slept over the end": func(c *clockwork, path string) *clockwork {
			c.until(10 * m)
			c.stop()
			c.sleep(3 * time.Hour)
			c = restart(c, path)
			c.until(4 * time.Hour)
			c.want([]string{"end 3h0m0s"}) // at once, and nobody is warned of what is over
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := t.TempDir()
				c := play(wind(t, path, time.Now().UTC().Round(0), 30*m, &diary{}), path)
				c.stop()
			})
		})
	}
}

// sleep lets time pass while nobody runs.
func (c *clockwork) sleep(until time.Duration) { time.Sleep(time.Until(c.began.Add(until))) }

func TestAShortSessionIsNotWarnedOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := wind(t, t.TempDir(), time.Now().UTC().Round(0), 2*time.Minute, &diary{})
		c.until(time.Hour)
		c.want([]string{"end 2m0s"})
		c.stop()
	})
}

func TestWhatAPersonAddsIsCountedFromWhereTheSessionWoke(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		rec  facts
		ask  time.Duration
		want time.Duration
	}{
		"never nearer":                       {facts{Deadline: began.Add(time.Hour)}, time.Minute, time.Hour},
		"further":                            {facts{Deadline: began.Add(time.Hour)}, 2 * time.Hour, 2 * time.Hour},
		"no further than a session may last": {facts{Deadline: began.Add(time.Hour)}, 20 * time.Hour, maxTimeout},
		"after a park":                       {facts{Deadline: began.Add(time.Hour), AwakeSince: began.Add(10 * time.Hour)}, 20 * time.Hour, 10*time.Hour + maxTimeout},
	} {
		tt.rec.StartedAt = began
		rec := record{facts: tt.rec}
		if got := rec.raised(began.Add(tt.ask)).Sub(began); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
