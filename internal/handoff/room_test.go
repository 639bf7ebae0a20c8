package handoff

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

func TestALoginIsHandedOverAndBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	rec := h.begin(StartOptions{Instruction: "log in please", Task: "pay the bill", RunID: "run_1", Capture: true})
	if rec.Version != 1 || rec.Status != Running || rec.Before.URL != "https://bank.example/login" || h.stage.holder() != rec.ID {
		t.Fatalf("got %+v", rec)
	}
	_, err := h.Start(t.Context(), StartOptions{By: Agent, Reason: Captcha})
	wantCode(t, err, fault.HandoffActive)
	if fault.Of(err).Data["handoff_id"] != rec.ID {
		t.Error("the refusal does not name the one that runs")
	}
	h.stage.loggedIn()
	done, err := h.Finish(t.Context(), Owner, rec.ID, false)
	must(t, err)
	if done.Status != Finished || done.After.URL != "https://bank.example/home" || done.Verified != nil || h.stage.holder() != "" {
		t.Fatalf("got %+v", done)
	}
	for _, want := range []string{"bank.example/home", "nothing was verified", "pay the bill"} {
		if !strings.Contains(done.ResumeHint, want) {
			t.Errorf("the hint lacks %q: %s", want, done.ResumeHint)
		}
	}
	again, err := h.Finish(t.Context(), Agent, rec.ID, false)
	must(t, err)
	if again.FinishedBy != Owner || again.Version != done.Version || len(h.runs.listed) != 1 {
		t.Errorf("the second finish gave %+v and %v", again, h.runs.listed)
	}
	for _, ref := range []string{done.Before.ScreenshotRef, done.After.ScreenshotRef} {
		if _, err := h.home.Stat(ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
	}
	wantTold(t, h, "started", "finished")
	if _, err := h.Type(t.Context(), rec.ID, secret.New("late"), "k"); !isCode(err, fault.HandoffNotRunning) {
		t.Errorf("a late text: %v", err)
	}
}

func isCode(err error, code fault.Code) bool { return err != nil && fault.Of(err).Code == code }

func TestBadRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for name, tt := range map[string]struct {
		o    StartOptions
		code fault.Code
	}{
		"no reason":                {StartOptions{}, fault.InvalidRequest},
		"a long instruction":       {StartOptions{Reason: Login, Instruction: strings.Repeat("x", maxText+1)}, fault.InvalidRequest},
		"too short a time":         {StartOptions{Reason: Login, Timeout: time.Millisecond}, fault.InvalidRequest},
		"too long a time":          {StartOptions{Reason: Login, Timeout: time.Hour + 1}, fault.InvalidRequest},
		"an unknown end":           {StartOptions{Reason: Login, OnTimeout: "explode"}, fault.InvalidRequest},
		"a condition with two":     {StartOptions{Reason: Login, Verify: []page.Condition{{URL: "a", Text: "b"}}}, fault.InvalidRequest},
		"a condition with none":    {StartOptions{Reason: Login, Verify: []page.Condition{{}}}, fault.InvalidRequest},
		"too many conditions":      {StartOptions{Reason: Login, Verify: make([]page.Condition, 11)}, fault.InvalidRequest},
		"conditions that hold":     {StartOptions{Reason: Login, Verify: []page.Condition{{URL: "/login"}}}, fault.InvalidRequest},
		"an unknown run":           {StartOptions{Reason: Login, RunID: "run_9"}, fault.NotFound},
		"an unknown one to follow": {StartOptions{Reason: Login, Follows: "hof_06cz3qmhc04x2p5ae9gk8v71"}, fault.NotFound},
		"a path for one to follow": {StartOptions{Reason: Login, Follows: "../../etc"}, fault.NotFound},
		"an unknown session":       {StartOptions{Reason: Login, SessionID: "ses_9"}, fault.NoSession},
	} {
		_, err := h.Start(t.Context(), tt.o)
		if !isCode(err, tt.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := nothingLeft(h); err != nil {
		t.Error(err)
	}
	page, err := h.List(t.Context(), Filter{})
	if err != nil || len(page.Handoffs) != 0 {
		t.Errorf("%v, %v", page, err)
	}
}

func TestOneThatFollowsCountsOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	first := h.begin(StartOptions{Verify: untilHome})
	_, err := h.Start(t.Context(), StartOptions{By: Agent, Reason: Login, Follows: first.ID})
	wantCode(t, err, fault.HandoffActive)
	asked, err := h.Finish(t.Context(), Owner, first.ID, false)
	must(t, err)
	if asked.Status != Running || asked.Attempts != 2 {
		t.Fatalf("got %+v", asked)
	}
	_, err = h.Finish(t.Context(), Owner, first.ID, true)
	must(t, err)
	if second := h.begin(StartOptions{Follows: first.ID}); second.Attempts != 3 || second.Follows != first.ID {
		t.Errorf("got %+v", second)
	}
	wantTold(t, h, "started", "reasked", "finished", "started")
}

func TestThePhotoIsSealedAndGivenOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	rec := h.begin(StartOptions{})
	raw, err := h.home.Read(h.photoFile(rec.ID))
	must(t, err)
	if bytes.Contains(raw, []byte("aGVsbG8=")) {
		t.Error("the photo lies open")
	}
	shot, err := h.Photo(t.Context(), rec.ID)
	must(t, err)
	if shot.Base64 != "aGVsbG8=" || shot.Format != page.PNG {
		t.Errorf("got %+v", shot)
	}
	_, err = h.Photo(t.Context(), rec.ID)
	wantCode(t, err, fault.NotFound)
	quiet := newHouse(t, nil)
	rec = quiet.begin(StartOptions{By: Owner, Silent: true})
	_, err = quiet.Photo(t.Context(), rec.ID)
	wantCode(t, err, fault.NotFound)
}

func TestNothingOfASecretIsWrittenAnywhere(t *testing.T) {
	t.Parallel()
	const canary = "Tr0ub4dor-and-3-canaries"
	dir := t.TempDir()
	h, err := moveIn(t, dir, newTheatre(), &runs{}, nil, nil)
	must(t, err)
	h.stage.seen.Title = "Reset " + canary
	h.stage.seen.LocalKeys = []string{canary}
	rec := h.begin(StartOptions{Instruction: "use " + canary, Task: canary, Verify: untilHome})
	typed, err := h.Type(t.Context(), rec.ID, secret.New(canary), "k1")
	must(t, err)
	if typed.Characters != len(canary) || typed.Field != "password" {
		t.Errorf("got %+v", typed)
	}
	_, err = h.Type(t.Context(), rec.ID, secret.New(canary), "k1")
	must(t, err)
	_, err = h.Finish(t.Context(), Owner, rec.ID, true)
	must(t, err)
	_, _ = h.Type(t.Context(), rec.ID, secret.New(canary), "k2")
	h.moveOut()
	files := 0
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(canary)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	}))
	if files < 5 {
		t.Errorf("only %d files were looked at", files)
	}
}

func TestALongPollReturnsWhenSomethingHappens(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{})
		began := time.Now()
		got, err := h.Wait(t.Context(), rec.ID, rec.Version, 55*time.Second)
		must(t, err)
		if took := time.Since(began); took != 55*time.Second || got.Version != rec.Version {
			t.Errorf("waited %s for version %d", took, got.Version)
		}
		if _, err := h.Wait(t.Context(), rec.ID, 0, time.Minute); err != nil || time.Since(began) != 55*time.Second {
			t.Error("what is news already was waited for")
		}
		answer := make(chan Record)
		go func() {
			got, _ := h.Wait(context.Background(), rec.ID, rec.Version, time.Minute)
			if h.stage.holder() != "" {
				got.Status = "told before the gate was open"
			}
			answer <- got
		}()
		pass(10 * time.Second)
		_, err = h.Finish(t.Context(), Owner, rec.ID, false)
		must(t, err)
		if got := <-answer; got.Status != Finished {
			t.Errorf("got %s", got.Status)
		}
		if _, err := h.Wait(t.Context(), rec.ID, 99, time.Hour); err != nil || time.Since(began) != 65*time.Second {
			t.Error("one that is over was waited for")
		}
	})
}

func TestALostSessionEndsItsHandoff(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	rec := h.begin(StartOptions{})
	h.SessionEnded(t.Context(), "ses_other", "not this one")
	if h.get(rec.ID).IsOver() {
		t.Error("another session's end ended it")
	}
	h.SessionEnded(t.Context(), aSession, "the browser crashed")
	if got := h.get(rec.ID); got.Status != Cancelled || got.FinishedBy != "" || !strings.Contains(got.ResumeHint, "crashed") {
		t.Errorf("got %+v", got)
	}
	if _, _, ok := h.Holder(aSession); ok {
		t.Error("it still has the wheel")
	}
}

func TestASessionThatIsGoneAfterARestartIsFoundOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, stage := t.TempDir(), newTheatre()
		h, err := moveIn(t, path, stage, &runs{}, nil, nil)
		must(t, err)
		rec := h.begin(StartOptions{})
		h.moveOut()
		stage.session = ""
		h, err = moveIn(t, path, stage, &runs{}, nil, nil)
		must(t, err)
		defer h.moveOut()
		if got := h.get(rec.ID); got.Status != Cancelled {
			t.Errorf("it is %s", got.Status)
		}
	})
}

func TestAnEffectThatFailsIsTriedAgainAndTheNewsAreOutAllTheSame(t *testing.T) {
	inTime(t, nil, func(t *testing.T, h *house) {
		rec := h.begin(StartOptions{RunID: "run_1"})
		h.runs.let(func(string) error { return errKilled })
		_, err := h.Finish(t.Context(), Owner, rec.ID, false)
		must(t, err)
		wantTold(t, h, "started", "finished")
		if h.stage.holder() != "" || len(h.runs.listed) != 0 {
			t.Error("the gate waits for the evidence")
		}
		pass(time.Minute)
		h.runs.let(nil)
		pass(retryAfter)
		if err := settledRight(h, h.get(rec.ID)); err != nil {
			t.Error(err)
		}
		if _, ok := h.deps.Schedule.Next(); ok {
			t.Error("a timer is left")
		}
	})
}

func TestAFullDiskRefusesAndGivesTheWheelBack(t *testing.T) {
	t.Parallel()
	full := false
	h, err := moveIn(t, t.TempDir(), newTheatre(), &runs{}, func(string) error {
		if full {
			return fault.StorageFull
		}
		return nil
	}, nil)
	must(t, err)
	t.Cleanup(h.moveOut)
	full = true
	_, err = h.Start(t.Context(), StartOptions{By: Agent, Reason: Login})
	wantCode(t, err, fault.StorageFull)
	if h.stage.holder() != "" {
		t.Error("the gate stayed closed")
	}
	full = false
	rec := h.begin(StartOptions{})
	full = true
	_, err = h.Finish(t.Context(), Owner, rec.ID, false)
	wantCode(t, err, fault.StorageFull)
	if h.get(rec.ID).Status != Running || h.stage.holder() != rec.ID {
		t.Error("something changed")
	}
	full = false
}

func TestTheListIsReadPageByPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	var ids []string // newest first
	for i := range 7 {
		rec := h.begin(StartOptions{Reason: Reasons()[i%2]})
		ids = append([]string{rec.ID}, ids...)
		if i < 6 {
			_, err := h.Finish(t.Context(), Owner, rec.ID, false)
			must(t, err)
		}
	}
	for name, tt := range map[string]struct {
		f    Filter
		want []string
	}{
		"all":           {Filter{}, ids},
		"by twos":       {Filter{Limit: 2}, ids},
		"what runs":     {Filter{Status: Running}, ids[:1]},
		"what is over":  {Filter{Status: Finished, Limit: 4}, ids[1:]},
		"one reason":    {Filter{Reason: SecondFactor, Limit: 2}, []string{ids[1], ids[3], ids[5]}},
		"one session":   {Filter{SessionID: aSession}, ids},
		"another one":   {Filter{SessionID: "ses_9"}, nil},
		"a run's":       {Filter{RunID: "run_1"}, nil},
		"what is wrong": {Filter{Status: Finished, Reason: Captcha}, nil},
	} {
		var got []string
		for pages := 0; ; pages++ {
			page, err := h.List(t.Context(), tt.f)
			must(t, err)
			for _, rec := range page.Handoffs {
				got = append(got, rec.ID)
			}
			if tt.f.Cursor = page.Next; page.Next == "" {
				break
			}
			if pages > 10 {
				t.Fatalf("%s has no end", name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	_, err := h.List(t.Context(), Filter{Cursor: "first"})
	wantCode(t, err, fault.InvalidRequest)
}
