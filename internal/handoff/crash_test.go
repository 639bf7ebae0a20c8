package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/event"
)

// death kills a process at its nth step: a write to the disk, or a moment just
// before or after a call that changes the browser or a run. From then on
// nothing works.
type death struct {
	armed atomic.Bool
	left  atomic.Int64
	last  atomic.Value // where it struck
}

func (d *death) step(what string) error {
	if !d.armed.Load() {
		return nil
	}
	if d.left.Add(-1) <= 0 {
		d.last.CompareAndSwap(nil, what)
		return errKilled
	}
	return nil
}

// play is what happens in one life; it returns what its callers were told.
type play func(t *testing.T, h *house) (told Status, begun string)

func TestACrashAtAnyMomentLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, h *house, o StartOptions) string {
		o.By, o.Reason, o.RunID, o.Task, o.Capture = Agent, Login, "run_1", "pay", true
		rec, err := h.Start(t.Context(), o)
		if err != nil {
			return ""
		}
		return rec.ID
	}
	told := func(rec Record, err error) Status {
		if err != nil {
			return ""
		}
		return rec.Status
	}
	for name, play := range map[string]play{
		"finished": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{})
			h.stage.loggedIn()
			return told(h.Finish(t.Context(), Owner, id, false)), id
		},
		"finished by verification": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{Verify: untilHome})
			h.stage.loggedIn()
			pass(time.Minute)
			return told(h.Get(id)), id
		},
		"aborted by the owner": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{})
			return told(h.Cancel(t.Context(), Owner, id)), id
		},
		"cancelled by the agent": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{})
			return told(h.Cancel(t.Context(), Agent, id)), id
		},
		"out of time": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{})
			pass(30 * time.Minute)
			return "", id
		},
		"parked and resumed": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{})
			_, _ = h.Park(t.Context(), Owner, id)
			_, _ = h.Resume(t.Context(), id)
			h.stage.loggedIn()
			return told(h.Finish(t.Context(), Owner, id, false)), id
		},
		"asked again, extended and finished": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{Verify: untilHome})
			_, _ = h.Finish(t.Context(), Owner, id, false)
			_, _ = h.Extend(t.Context(), Owner, id, 0)
			h.stage.loggedIn()
			return told(h.Finish(t.Context(), Owner, id, false)), id
		},
		"cancelled while parked": func(t *testing.T, h *house) (Status, string) {
			id := begin(t, h, StartOptions{})
			_, _ = h.Park(t.Context(), Owner, id)
			pass(2 * time.Minute)
			return told(h.Cancel(t.Context(), Agent, id)), id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := int64(1); ; n++ {
				if survived := dieAt(t, n, play); survived {
					if n < 8 {
						t.Errorf("it took only %d steps: not all are watched", n)
					}
					t.Logf("died at each of %d steps", n-1)
					return
				}
			}
		})
	}
}

// dieAt plays until step n, lets the next process recover, and looks whether
// everything is as it must be.
func dieAt(t *testing.T, n int64, play play) (survived bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &death{}
		path, stage, evidence := t.TempDir(), newTheatre(), &runs{step: d.step}
		stage.step = d.step
		h, err := moveIn(t, path, stage, evidence, d.step, nil)
		must(t, err)
		d.left.Store(n)
		d.armed.Store(true)
		told, begun := play(t, h)
		where, _ := d.last.Load().(string)
		survived = where == ""
		h.moveOut()
		d.armed.Store(false)

		h, err = moveIn(t, path, stage, evidence, nil, nil)
		must(t, err)
		defer h.moveOut()
		synctest.Wait()
		if err := recovered(t, h, told, begun); err != nil {
			t.Fatalf("killed at step %d, %s: %v", n, where, err)
		}
	})
	return survived
}

func recovered(t *testing.T, h *house, told Status, begun string) error {
	page, err := h.List(t.Context(), Filter{})
	must(t, err)
	if len(page.Handoffs) > 1 {
		return fmt.Errorf("%d hand-offs", len(page.Handoffs))
	}
	if len(page.Handoffs) == 0 {
		if begun != "" {
			return fmt.Errorf("a hand-off that was begun is lost")
		}
		return nothingLeft(h)
	}
	rec := page.Handoffs[0]
	if told != "" && rec.Status != told {
		return fmt.Errorf("it is %s, and somebody was told %s", rec.Status, told)
	}
	if !rec.IsOver() {
		if id, _, ok := h.Holder(aSession); !ok || id != rec.ID || h.stage.holder() != rec.ID {
			return fmt.Errorf("it runs, and the wheel is with %q", h.stage.holder())
		}
		if rec.Parked != h.stage.isParked && rec.Parked {
			return fmt.Errorf("it is parked, and its browser is not")
		}
		h.stage.loggedIn()
		if rec.Parked {
			_, err = h.Resume(t.Context(), rec.ID)
			must(t, err)
		}
		rec, err = h.Finish(t.Context(), Owner, rec.ID, false)
		if err != nil || rec.Status != Finished {
			return fmt.Errorf("it cannot go on: %s, %w", rec.Status, err)
		}
	}
	return settledRight(h, rec)
}

// settledRight checks everything that is true of a hand-off that is over.
func settledRight(h *house, rec Record) error {
	var disk Record
	if err := h.archive.Read(rec.ID, &disk, &disk.ID); err != nil || len(disk.Book.Pending)+len(disk.Book.Outbox) > 0 {
		return fmt.Errorf("on the disk something is left to do: %v %d, %w", disk.Book.Pending, len(disk.Book.Outbox), err)
	}
	if open, err := h.archive.Open(); err != nil || len(open) > 0 {
		return fmt.Errorf("open: %v, %w", open, err)
	}
	if _, err := h.home.Stat(h.photoFile(rec.ID)); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the photo is still there: %w", err)
	}
	if h.stage.holder() != "" || h.stage.isParked && h.stage.session != "" {
		return fmt.Errorf("the wheel is with %q, parked %v", h.stage.holder(), h.stage.isParked)
	}
	if rec.Status == Finished && h.stage.session == "" && !h.stage.lost {
		return fmt.Errorf("the agent was given the wheel of a session that is gone")
	}
	ends := rec.Status == TimedOut || rec.Status == Cancelled && rec.FinishedBy == Owner
	if closed := h.stage.closed == 1; closed != ends && !h.stage.lost || h.stage.closed > 1 {
		return fmt.Errorf("%s by %s, and the session was closed %d times", rec.Status, rec.FinishedBy, h.stage.closed)
	}
	if want := rec.Status == Finished; (len(h.runs.listed) == 1) != want || len(h.runs.listed) > 1 {
		return fmt.Errorf("%s, and the evidence is %v", rec.Status, h.runs.listed)
	}
	todos, err := h.Todos()
	if err != nil || (len(todos) == 1) != (rec.Status == TimedOut) || len(todos) > 1 {
		return fmt.Errorf("%s, and %d to-dos, %w", rec.Status, len(todos), err)
	}
	return toldOnce(h, rec)
}

// toldOnce checks that every version was told, in order, once, in the feed and
// beside the record alike.
func toldOnce(h *house, rec Record) error {
	events, _ := h.feed.Since(0, 0)
	var versions, beside []int
	for _, e := range events {
		versions = append(versions, e.Version)
	}
	err := h.home.ScanLog(h.archive.File(rec.ID, "events.jsonl"), func(line []byte) error {
		var e event.Event
		err := json.Unmarshal(line, &e)
		beside = append(beside, e.Version)
		return err
	})
	var want []int
	for v := range rec.Version {
		want = append(want, v+1)
	}
	if err != nil || !slices.Equal(versions, want) || !slices.Equal(beside, want) {
		return fmt.Errorf("version %d, told %v %v, beside it %v: %w", rec.Version, versions, h.told(), beside, err)
	}
	return nil
}

func nothingLeft(h *house) error {
	left, err := filepath.Glob(filepath.Join(h.home.Path(), folder, "hof_*"))
	if err != nil || len(left) > 0 || h.stage.holder() != "" || len(h.told()) > 0 {
		return fmt.Errorf("it never was, and there is %v, told %v, wheel with %q, %w", left, h.told(), h.stage.holder(), err)
	}
	return nil
}
