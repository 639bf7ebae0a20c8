package handoff

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tapin/internal/insight"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// end is a way for a hand-off to be over.
type end struct {
	call   string // where the machine does it, by what it says: TestEveryEndIsPlayed
	by     By
	status Status
	figure string // as what it is counted
	start  StartOptions
	play   func(t *testing.T, h *house, id string) error
}

var ends = map[string]end{
	"finished by the owner": {"Finished, e.by", Owner, Finished, insight.Unblocked, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, err := h.Finish(t.Context(), Owner, id, false)
		return err
	}},
	"finished by the agent": {"Finished, e.by", Agent, Finished, insight.Abandoned, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, err := h.Finish(t.Context(), Agent, id, false)
		return err
	}},
	"finished by verification": {"Finished, e.by", Verify, Finished, insight.Unblocked, StartOptions{Verify: untilHome}, func(_ *testing.T, h *house, _ string) error {
		h.stage.loggedIn()
		pass(time.Minute)
		return nil
	}},
	"given back although verification failed": {"Finished, e.by", Owner, Finished, insight.Unblocked, StartOptions{Verify: untilHome}, func(t *testing.T, h *house, id string) error {
		asked, err := h.Finish(t.Context(), Owner, id, false)
		if err != nil || asked.Status != Running || asked.Attempts != 2 {
			return fmt.Errorf("it was not asked again: %+v, %w", asked, err)
		}
		_, err = h.Finish(t.Context(), Owner, id, true)
		return err
	}},
	"parked, resumed and finished": {"Finished, e.by", Owner, Finished, insight.Unblocked, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, parking := h.Park(t.Context(), Owner, id)
		_, resuming := h.Resume(t.Context(), id)
		_, err := h.Finish(t.Context(), Owner, id, false)
		return errors.Join(parking, resuming, err)
	}},
	"aborted by the owner": {"Cancelled, e.by", Owner, Cancelled, insight.Aborted, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, err := h.Cancel(t.Context(), Owner, id)
		return err
	}},
	"cancelled by the agent": {"Cancelled, e.by", Agent, Cancelled, insight.Abandoned, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, err := h.Cancel(t.Context(), Agent, id)
		return err
	}},
	"parked, and cancelled by the agent": {"Cancelled, e.by", Agent, Cancelled, insight.Abandoned, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, parking := h.Park(t.Context(), Owner, id)
		pass(2 * time.Minute)
		_, err := h.Cancel(t.Context(), Agent, id)
		return errors.Join(parking, err)
	}},
	"the session ended": {`Cancelled, ""`, "", Cancelled, insight.Lost, StartOptions{}, func(t *testing.T, h *house, _ string) error {
		h.stage.lose()
		h.SessionEnded(t.Context(), aSession, "its browser is gone")
		return nil
	}},
	"out of time": {"TimedOut, Time", Time, TimedOut, insight.Expired, StartOptions{Timeout: time.Minute}, func(*testing.T, *house, string) error {
		pass(time.Minute)
		return nil
	}},
	"out of time, and the agent goes on": {"TimedOut, Time", Time, TimedOut, insight.Expired, StartOptions{Timeout: time.Minute, OnTimeout: ReturnOnTimeout}, func(*testing.T, *house, string) error {
		pass(time.Minute)
		return nil
	}},
	"parked, and out of time": {"TimedOut, Time", Time, TimedOut, insight.Expired, StartOptions{}, func(t *testing.T, h *house, id string) error {
		_, err := h.Park(t.Context(), Owner, id)
		pass(parkFor)
		return err
	}},
}

// TestEveryEndIsPlayed looks for ends in the machine that are not in the list.
func TestEveryEndIsPlayed(t *testing.T) {
	t.Parallel()
	set, played := token.NewFileSet(), map[string]bool{}
	var people []string
	statuses := map[Status]bool{Running: true}
	for _, e := range ends {
		played[e.call], played["By "+string(e.by)], statuses[e.status] = true, true, true
	}
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if call, ok := n.Fun.(*ast.SelectorExpr); ok && call.Sel.Name == "end" {
					if what := types.ExprString(n.Args[0]) + ", " + types.ExprString(n.Args[1]); !played[what] {
						t.Errorf("%s: no end of the list is this one: %s", set.Position(n.Pos()), what)
					}
					played["a call"] = true
				}
			case *ast.ValueSpec:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "By" {
					people = append(people, strings.Trim(types.ExprString(n.Values[0]), `"`))
				}
			}
			return true
		})
	}
	for _, by := range people {
		if !played["By "+by] {
			t.Errorf("nothing in the list is ended by %s", by)
		}
	}
	for _, s := range Statuses() {
		if !statuses[s] {
			t.Errorf("nothing in the list ends as %s", s)
		}
	}
	if len(people) < 4 || !played["a call"] {
		t.Errorf("the machine could not be read: %v", people)
	}
}

// figured are the records of a house as the room of figures wants them.
type figured struct{ h *house }

func (f figured) of(rec Record) insight.Handoff {
	out := insight.Handoff{
		ID: rec.ID, Created: rec.CreatedAt, Site: strings.TrimPrefix(rec.Before.Origin, "https://"), Reason: string(rec.Reason),
		Called: rec.Notify, Met: rec.MetAt(), Ended: rec.FinishedAt,
	}
	for _, e := range ends {
		if rec.IsOver() && e.by == rec.FinishedBy && e.status == rec.Status {
			out.End = e.figure
		}
	}
	return out
}

func (f figured) Handoffs(ctx context.Context, after uint64, since time.Time, limit int) ([]insight.Handoff, error) {
	found, err := f.h.After(ctx, after, since, limit)
	var out []insight.Handoff
	for _, p := range found {
		one := insight.Handoff{ID: p.ID, Created: p.At, Gone: true}
		if p.Record != nil {
			one = f.of(*p.Record)
		}
		one.Seq = p.Seq
		out = append(out, one)
	}
	return out, err
}

func (f figured) Handoff(_ context.Context, id string) (insight.Handoff, error) {
	rec, err := f.h.Get(id)
	return f.of(rec), err
}

func (f figured) Last() uint64 { return f.h.Last() }

func (figured) Payments(context.Context, string, time.Time, int) ([]insight.Payment, error) {
	return nil, nil
}

func (figured) Payment(context.Context, string) (insight.Payment, error) {
	return insight.Payment{}, nil
}

// life is a home that goes on being lived in.
type life struct {
	*house
	path    string
	dead    atomic.Bool // nothing is written any more
	figures *insight.Room
	stop    func()
	log     strings.Builder
}

func (l *life) begin(t *testing.T, stage *theatre, evidence *runs) {
	l.dead.Store(false)
	h, err := moveIn(t, l.path, stage, evidence, func(string) error {
		if l.dead.Load() {
			return errKilled
		}
		return nil
	}, nil)
	must(t, err)
	l.house = h
	l.figures = insight.New(h.home, h.feed, figured{h}, &insight.Options{Logger: slog.New(slog.NewTextHandler(&l.log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { l.figures.Run(ctx) })
	l.stop = func() {
		cancel()
		runs.Wait()
	}
}

func (l *life) end(kill bool) {
	l.dead.Store(kill)
	l.stop()
	l.moveOut()
}

// between is what comes between two hand-offs, and into the middle of some.
var between = map[string]func(t *testing.T, l *life){
	"nothing": func(*testing.T, *life) {},
	"a restart": func(t *testing.T, l *life) {
		l.end(false)
		l.begin(t, l.stage, l.runs)
	},
	"a kill": func(t *testing.T, l *life) {
		pass(40 * time.Second) // the figures are written now and then
		l.end(true)
		l.begin(t, l.stage, l.runs)
	},
}

// TestChaosOfEveryEnd plays every reason with every end in one home, each time
// once more on the same site after nothing, a restart or a kill, and compares the
// figures with those of a room that has no file. In short two reasons of each end
// come again, in full all.
func TestChaosOfEveryEnd(t *testing.T) {
	t.Parallel()
	for name, interrupt := range between {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &life{path: t.TempDir()}
				l.begin(t, newTheatre(), &runs{})
				defer func() { l.end(false) }()
				asked := 0
				for i, how := range testwait.Some(4, slices.Sorted(maps.Keys(ends))) {
					site := fmt.Sprintf("https://s%d.example", i)
					for _, reason := range Reasons() {
						l.play(t, site, reason, ends[how], func() {})
						asked++
					}
					interrupt(t, l)
					for k, reason := range Reasons() {
						if k%3 != i%3 && os.Getenv("TAPIN_CHAOS") == "" {
							continue
						}
						l.play(t, site, reason, ends["finished by the owner"], func() {
							if k/3 == i/3%2 && k%3 == i%3 { // each costs what the home has become
								interrupt(t, l)
							}
						})
						asked++
					}
					l.compare(t, how, asked)
				}
				if strings.Contains(l.log.String(), "cannot be used") {
					t.Error(l.log.String())
				}
			})
		})
	}
}

// play is one hand-off on a site, from its beginning to its end.
func (l *life) play(t *testing.T, site string, reason Reason, e end, meanwhile func()) {
	t.Helper()
	l.stage.mu.Lock()
	fresh := newTheatre()
	l.stage.session, l.stage.lease, l.stage.isParked, l.stage.lost, l.stage.idle, l.stage.human = aSession, "", false, false, false, time.Time{}
	l.stage.seen, l.stage.visible = fresh.seen, fresh.visible
	l.stage.seen.Origin, l.stage.seen.URL = site, site+"/login"
	l.stage.mu.Unlock()
	o := e.start
	o.Reason = reason
	rec := l.house.begin(o)
	meanwhile()
	if err := e.play(t, l.house, rec.ID); err != nil {
		t.Fatalf("%s on %s: %v", reason, site, err)
	}
	pass(10 * time.Second)
	rec = l.get(rec.ID)
	if rec.Status != e.status || rec.FinishedBy != e.by {
		t.Fatalf("%s on %s: it is %s by %q, want %s by %q", reason, site, rec.Status, rec.FinishedBy, e.status, e.by)
	}
	over := 0
	events, _ := l.feed.Since(0, 0)
	for _, told := range events {
		if told.ID == rec.ID && told.Type == "handoff."+strings.ToLower(string(rec.Status)) {
			over++
		}
	}
	if over != 1 {
		t.Fatalf("%s on %s: its end was told %d times", reason, site, over)
	}
}

// compare holds the figures to those of a room without a file, and to what was played.
func (l *life) compare(t *testing.T, how string, asked int) {
	t.Helper()
	got, err := l.figures.Report(t.Context(), 90)
	must(t, err)
	home, err := store.Open(t.TempDir(), nil)
	must(t, err)
	defer home.Close()
	anew := insight.New(home, l.feed, figured{l.house}, nil)
	want, err := anew.Report(t.Context(), 90)
	for want.Counting && err == nil {
		want, err = anew.Report(t.Context(), 90)
	}
	must(t, err)
	if diff := gocmp.Diff(want, got); diff != "" || got.Handoffs.Asked != asked || got.Handoffs.Running != 0 {
		t.Fatalf("after %q there were %d asked for of %d; counted anew (-anew +saved):\n%s", how, got.Handoffs.Asked, asked, diff)
	}
}
