package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPausesGrowAndBeginAgain(t *testing.T) {
	t.Parallel()
	p := pacer{rhythm: usual()}
	var got []time.Duration
	for _, healthy := range []time.Duration{0, time.Second, 0, 59 * time.Second, 0, 0, time.Minute, 0} {
		pause, failures := p.next(life{ready: true, healthy: healthy}, time.Now())
		if failures != 0 {
			t.Fatalf("given up after %d", failures)
		}
		got = append(got, pause)
	}
	ms := time.Millisecond
	want := []time.Duration{200 * ms, 500 * ms, 1000 * ms, 2000 * ms, 5000 * ms, 5000 * ms, 200 * ms, 500 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestWhenItIsALoop(t *testing.T) {
	t.Parallel()
	never, short := life{}, life{ready: true, healthy: time.Second}
	falls, later := life{ready: true, healthy: time.Second, panicked: true}, life{ready: true, healthy: 2 * time.Minute, panicked: true}
	for name, tt := range map[string]struct {
		lives []life // the last for ever
		apart time.Duration
		want  int // after how many ends; 0 means never
	}{
		"ten starts in vain are enough":                 {[]life{never}, time.Second, 10},
		"a start in vain now and then is none":          {[]life{never}, 2 * time.Minute, 0},
		"one that serves in between begins the count":   {[]life{never, never, never, never, never, short, never}, time.Second, 16},
		"five that died of themselves are":              {[]life{falls}, 10 * time.Second, 5},
		"also where each was well for a while":          {[]life{later}, 2 * time.Minute, 5},
		"but not now and then":                          {[]life{later}, 5 * time.Minute, 0},
		"a hundred kills of one that serves are no end": {[]life{short}, 10 * time.Second, 0},
		"one that serves and falls over for ever is":    {[]life{short}, 5 * time.Second, 120},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, now, got := pacer{rhythm: usual()}, time.Now(), 0
			for i := 1; i <= 500; i++ {
				now = now.Add(tt.apart)
				_, failures := p.next(tt.lives[min(i, len(tt.lives))-1], now)
				if failures > 0 && got > 0 {
					t.Fatalf("told after %d ends and again after %d", got, i)
				}
				if failures > 0 {
					got = i
				}
			}
			if got != tt.want {
				t.Fatalf("a loop after %d ends, want %d", got, tt.want)
			}
		})
	}
}

func TestInALoopItIsTriedEverMoreSeldomAndForEver(t *testing.T) {
	t.Parallel()
	p, now := pacer{rhythm: usual()}, time.Now()
	var got []time.Duration
	for range 17 {
		pause, _ := p.next(life{}, now)
		now = now.Add(pause + time.Second)
		got = append(got, pause)
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{10 * s, 30 * s, time.Minute, 2 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}, got[9:]); diff != "" {
		t.Fatal(diff)
	}
	if pause, _ := p.next(life{ready: true, healthy: time.Minute}, now.Add(time.Hour)); pause != 200*time.Millisecond {
		t.Fatalf("after one that was well the pause is %v", pause)
	}
}

func TestWatchHealth(t *testing.T) {
	t.Parallel()
	u := usual()
	silence := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refusal := func(context.Context) error { return errors.New("refused") }
	answer := func(context.Context) error { return nil }
	for name, tt := range map[string]struct {
		asks        []func(context.Context) error // the last one for ever
		least, most time.Duration                 // when it is given up
	}{
		"silence is given up":               {[]func(context.Context) error{silence}, u.silent, u.silent + u.poll + 2*u.answer},
		"refusals are given up":             {[]func(context.Context) error{refusal}, u.silent, u.silent + 2*u.poll},
		"an answer in between begins again": {[]func(context.Context) error{refusal, refusal, refusal, refusal, answer, refusal}, 5*u.poll + u.silent, 8*u.poll + u.silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				err := u.watchHealth(t.Context(), func(ctx context.Context) error {
					asked++
					return tt.asks[min(asked, len(tt.asks))-1](ctx)
				})
				if took := time.Since(began); err == nil || took < tt.least || took > tt.most {
					t.Fatalf("given up after %v (%v)", took, err)
				}
			})
		})
	}
	t.Run("answers are never given up", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := u.watchHealth(ctx, answer); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		})
	})
}
