package handoff

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/page"
	"tapin/internal/secret"
)

// inTime runs a test in which time passes only when it is told to.
func inTime(t *testing.T, opts *Options, fn func(t *testing.T, h *house)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := moveIn(t, t.TempDir(), newTheatre(), &runs{}, nil, opts)
		must(t, err)
		defer h.moveOut()
		fn(t, h)
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func wantTold(t *testing.T, h *house, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, h.told()); diff != "" {
		t.Fatal(diff)
	}
}

func TestNobodyComes(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{Task: "pay the bill"})
		pass(10*time.Minute - time.Second)
		wantTold(t, h, "started")
		pass(time.Second)
		wantTold(t, h, "started", "reminder")
		pass(15 * time.Minute)
		wantTold(t, h, "started", "reminder", "ending")
		pass(5*time.Minute - time.Second)
		if h.get(rec.ID).Status != Running {
			t.Fatal("it ended before its time")
		}
		pass(time.Second)
		wantTold(t, h, "started", "reminder", "ending", "timed_out")
		got := h.get(rec.ID)
		if got.Status != TimedOut || got.FinishedBy != Time || got.After != nil || h.stage.closed != 1 || got.ContextSaved == nil || !*got.ContextSaved {
			t.Errorf("got %+v", got)
		}
		todos, err := h.Todos()
		must(t, err)
		if len(todos) != 1 || todos[0].Task != "pay the bill" || todos[0].URL != "https://bank.example/login" || todos[0].Site != "bank.example" || todos[0].ID != got.TodoID {
			t.Errorf("to-dos: %+v", todos)
		}
		if at, ok := h.deps.Schedule.Next(); ok {
			t.Errorf("a timer is left for %s", at)
		}
		pass(24 * time.Hour)
		wantTold(t, h, "started", "reminder", "ending", "timed_out")
		must(t, h.TodoDone(todos[0].ID))
		if err := h.TodoDone(todos[0].ID); err == nil {
			t.Error("a to-do was done twice")
		}
	})
}

func TestAShortHandoffRemindsAtAThirdAndReturns(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{Timeout: 3 * time.Minute, OnTimeout: ReturnOnTimeout})
		pass(time.Minute)
		wantTold(t, h, "started", "reminder")
		pass(2 * time.Minute)
		wantTold(t, h, "started", "reminder", "timed_out")
		if h.stage.holder() != "" || h.stage.closed != 0 || h.get(rec.ID).TodoID != "" {
			t.Error("the wheel was not given back")
		}
	})
}

func TestPresenceResetsReminders(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		h.begin(StartOptions{})
		pass(9*time.Minute + 3*time.Second)
		h.stage.touch()
		pass(10*time.Minute - time.Second)
		wantTold(t, h, "started")
		pass(time.Second)
		wantTold(t, h, "started", "reminder")
	})
}

func TestWhoOnlyLooksIsNotReminded(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{})
		h.stage.watch(true)
		pass(14*time.Minute + time.Second)
		wantTold(t, h, "started")
		if _, err := h.Finish(t.Context(), Agent, rec.ID, false); err != nil {
			t.Errorf("who looks without a touch keeps the agent out: %v", err)
		}
	})
}

func TestOldOnesAreForgottenAndRunningOnesAreNot(t *testing.T) {
	inTime(t, &Options{Keep: 7 * 24 * time.Hour}, func(t *testing.T, h *house) {
		ctx, stop := context.WithCancel(t.Context())
		swept := make(chan struct{})
		go func() {
			h.Run(ctx)
			close(swept)
		}()
		old := h.begin(StartOptions{})
		_, err := h.Finish(t.Context(), Owner, old.ID, false)
		must(t, err)
		pass(7*24*time.Hour - time.Minute)
		young := h.begin(StartOptions{})
		h.get(old.ID)
		pass(2 * time.Hour)
		_, err = h.Get(old.ID)
		wantCode(t, err, "NOT_FOUND")
		h.get(young.ID)
		if page, err := h.List(t.Context(), Filter{}); err != nil || len(page.Handoffs) != 1 || page.Next != "" {
			t.Errorf("%+v, %v", page, err)
		}
		stop()
		<-swept
	})
}

func TestASignOfLifeFromTheChatResetsReminders(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{})
		pass(10 * time.Minute)
		must(t, h.Present(t.Context(), rec.ID))
		pass(10*time.Minute - time.Second)
		wantTold(t, h, "started", "reminder")
		pass(time.Second)
		wantTold(t, h, "started", "reminder", "reminder")
	})
}

func TestNoRemindersWhenNoneAreWanted(t *testing.T) {
	inTime(t, &Options{RemindAt: []time.Duration{}}, func(t *testing.T, h *house) {
		h.begin(StartOptions{Timeout: 10 * time.Minute})
		pass(time.Hour)
		wantTold(t, h, "started", "timed_out")
	})
}

func TestMoreTimeIsMoreTime(t *testing.T) {
	inTime(t, &Options{RemindAt: []time.Duration{}}, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{Timeout: 10 * time.Minute})
		pass(9 * time.Minute)
		longer, err := h.Extend(t.Context(), Owner, rec.ID, 0)
		must(t, err)
		if want := rec.Deadline.Add(15 * time.Minute); !longer.Deadline.Equal(want) || !h.stage.keepUntil.Equal(want.Add(keepBeyond)) {
			t.Errorf("deadline %s, browser until %s", longer.Deadline, h.stage.keepUntil)
		}
		pass(16*time.Minute - time.Second)
		if h.get(rec.ID).IsOver() {
			t.Error("it ended at its old time")
		}
		pass(time.Second)
		wantTold(t, h, "started", "extended", "timed_out")
	})
}

func TestAPersonAtWorkIsNotCutOff(t *testing.T) {
	inTime(t, &Options{RemindAt: []time.Duration{}}, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{Timeout: 2 * time.Minute})
		pass(110 * time.Second)
		h.stage.touch()
		pass(10 * time.Second)
		wantTold(t, h, "started", "extended")
		pass(50 * time.Second)
		if got := h.get(rec.ID); got.Status != TimedOut {
			t.Errorf("a minute after the last touch it is %s", got.Status)
		}
	})
	t.Run("but not for ever", func(t *testing.T) {
		inTime(t, &Options{RemindAt: []time.Duration{}}, func(t *testing.T, h *house) {
			rec := h.begin(StartOptions{Timeout: 2 * time.Minute})
			for range 7*60 - 1 {
				h.stage.touch()
				pass(time.Second)
			}
			if h.get(rec.ID).IsOver() {
				t.Error("it ended early")
			}
			h.stage.touch()
			pass(2 * time.Second)
			if got := h.get(rec.ID); got.Status != TimedOut {
				t.Errorf("it is %s", got.Status)
			}
		})
	})
}

var untilHome = []page.Condition{{URL: "/home"}, {Absent: "#login"}}

func TestConditionsThatHoldFinishByThemselves(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{Verify: untilHome, Instruction: "log in"})
		pass(time.Minute)
		h.stage.loggedIn()
		pass(6 * time.Second)
		got := h.get(rec.ID)
		if got.Status != Finished || got.FinishedBy != Verify || !got.Verified.Held || len(got.Verified.Checked) != 2 {
			t.Fatalf("got %+v", got)
		}
		wantTold(t, h, "started", "finished")
	})
}

func TestWhoLooksIsCountedDown(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{Verify: untilHome})
		h.stage.watch(true)
		pass(10 * time.Second)
		h.stage.touch()
		h.stage.loggedIn()
		pass(holdFor)
		wantTold(t, h, "started")
		pass(time.Second)
		wantTold(t, h, "started", "countdown")
		if at := h.get(rec.ID).FinishesAt; !at.Equal(wallClock().Add(countdown)) {
			t.Errorf("it is to finish at %s", at)
		}
		pass(3 * time.Second)
		h.stage.touch()
		pass(time.Second)
		wantTold(t, h, "started", "countdown", "countdown_cancelled")
		pass(quietAgain - time.Second)
		wantTold(t, h, "started", "countdown", "countdown_cancelled", "countdown")
		pass(countdown)
		wantTold(t, h, "started", "countdown", "countdown_cancelled", "countdown", "finished")
	})
}

func TestACountdownEndsWhenTheConditionsDoNotHoldAnyMore(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		h.begin(StartOptions{Verify: []page.Condition{{Absent: "#login"}}})
		h.stage.watch(true)
		pass(5 * time.Second)
		before := h.stage.visible
		h.stage.loggedIn()
		pass(holdFor + 2*time.Second)
		h.stage.mu.Lock()
		h.stage.visible = before
		h.stage.mu.Unlock()
		pass(time.Minute)
		wantTold(t, h, "started", "countdown", "countdown_cancelled")
	})
}

func TestARestartInTheMiddleChangesNothing(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{time.Second, 9 * time.Minute, 10 * time.Minute, 24 * time.Minute, 29 * time.Minute} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path, stage, evidence := t.TempDir(), newTheatre(), &runs{}
				h, err := moveIn(t, path, stage, evidence, nil, nil)
				must(t, err)
				rec := h.begin(StartOptions{})
				pass(at)
				h.moveOut()
				h, err = moveIn(t, path, stage, evidence, nil, nil)
				must(t, err)
				defer func() { h.moveOut() }()
				if id, until, ok := h.Holder(aSession); !ok || id != rec.ID || !until.Equal(rec.Deadline) || stage.holder() != rec.ID {
					t.Fatalf("the wheel is with %q, %q", id, stage.holder())
				}
				pass(30*time.Minute - at - time.Second)
				wantTold(t, h, "started", "reminder", "ending")
				pass(time.Second)
				wantTold(t, h, "started", "reminder", "ending", "timed_out")
			})
		})
	}
}

func TestADeadlineThatPassedWhileNobodyRanIsKeptAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, stage, evidence := t.TempDir(), newTheatre(), &runs{}
		h, err := moveIn(t, path, stage, evidence, nil, nil)
		must(t, err)
		rec := h.begin(StartOptions{})
		pass(time.Minute)
		h.moveOut()
		time.Sleep(3 * time.Hour) // the lid was shut
		h, err = moveIn(t, path, stage, evidence, nil, nil)
		must(t, err)
		defer h.moveOut()
		synctest.Wait()
		if got := h.get(rec.ID); got.Status != TimedOut {
			t.Errorf("it is %s", got.Status)
		}
		wantTold(t, h, "started", "timed_out") // and no reminder of what is over
	})
}

func TestATimeThatPassedWithTheBrowserIsStillItsEnd(t *testing.T) {
	t.Parallel()
	for _, way := range []string{CloseOnTimeout, ReturnOnTimeout} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path, stage := t.TempDir(), newTheatre()
				h, err := moveIn(t, path, stage, &runs{}, nil, nil)
				must(t, err)
				rec := h.begin(StartOptions{OnTimeout: way})
				h.moveOut()
				time.Sleep(3 * time.Hour)
				stage.session = ""
				h, err = moveIn(t, path, stage, &runs{}, nil, nil)
				must(t, err)
				defer h.moveOut()
				synctest.Wait()
				got := h.get(rec.ID)
				if todos, err := h.Todos(); got.Status != TimedOut || got.TodoID == "" || err != nil || len(todos) != 1 {
					t.Errorf("it is %s, and the to-dos are %v, %v", got.Status, todos, err)
				}
				if strings.Contains(got.ResumeHint, "you have the wheel") {
					t.Error("the agent is told that it drives a browser which is gone")
				}
			})
		})
	}
}

func TestAParkedHandoffWaitsADay(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{})
		pass(time.Minute)
		parked, err := h.Park(t.Context(), Owner, rec.ID)
		must(t, err)
		if !parked.Parked || !h.stage.isParked {
			t.Fatal("nothing was parked")
		}
		pass(5 * time.Hour)
		wantTold(t, h, "started", "parked")
		_, err = h.Type(t.Context(), rec.ID, secret.New("x"), "k")
		wantCode(t, err, "HANDOFF_NOT_RUNNING")
		back, err := h.Resume(t.Context(), rec.ID)
		must(t, err)
		if back.Parked || back.Generation != 2 || !back.Deadline.Equal(wallClock().Add(30*time.Minute)) {
			t.Errorf("got %+v", back)
		}
		if again, err := h.Resume(t.Context(), rec.ID); err != nil || again.Generation != 2 {
			t.Errorf("the second tap gave %d, %v", again.Generation, err)
		}
		pass(30 * time.Minute)
		if got := h.told(); !slices.Equal(got, []string{"started", "parked", "resumed", "reminder", "ending", "timed_out"}) {
			t.Error(got)
		}
	})
}

// A hand-off that ran out of time while nobody was there, and whose browser is
// gone, leaves a to-do, also when its own timer is as quick as the recovery.
func TestATimerKnowsNoBetterThanTheRecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		home, stage, evidence := t.TempDir(), newTheatre(), &runs{}
		h, err := moveIn(t, home, stage, evidence, nil, nil)
		must(t, err)
		rec := h.begin(StartOptions{OnTimeout: ReturnOnTimeout})
		h.moveOut()
		stage.lose()
		pass(time.Hour)
		stage.pause = func() { time.Sleep(time.Second) } // the timer comes first
		h, err = moveIn(t, home, stage, evidence, nil, nil)
		must(t, err)
		defer h.moveOut()
		pass(time.Minute)
		todos, err := h.Todos()
		must(t, err)
		if got := h.get(rec.ID); got.Status != TimedOut || len(todos) != 1 || got.TodoID != todos[0].ID {
			t.Errorf("it is %s with %d to-dos", got.Status, len(todos))
		}
	})
}
