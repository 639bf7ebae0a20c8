package handoff

import (
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
)

func TestALoginIsStaleOnceAPersonIsReallyAskedForOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o    StartOptions
		code fault.Code
		want int
	}{
		"a login":                       {StartOptions{Reason: Login}, "", 1},
		"a second factor":               {StartOptions{Reason: SecondFactor}, "", 1},
		"something else":                {StartOptions{Reason: Captcha}, "", 0},
		"one that is refused":           {StartOptions{Reason: Login, Verify: []page.Condition{{Visible: "#login"}}}, fault.InvalidRequest, 0},
		"one for a run that is not":     {StartOptions{Reason: Login, RunID: "run_9"}, fault.NotFound, 0},
		"one that cannot be kept":       {StartOptions{Reason: Login, Task: "full"}, fault.Internal, 0},
		"one in a session that is gone": {StartOptions{Reason: Login, SessionID: "ses_9"}, fault.NoSession, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := func(string) error { return nil }
			if tt.o.Task == "full" {
				opened := false
				full = func(change string) error {
					opened = opened || change == "create handoffs/fingerprint.key"
					if opened && change != "create handoffs/fingerprint.key" {
						return errKilled
					}
					return nil
				}
			}
			h, err := moveIn(t, t.TempDir(), newTheatre(), &runs{}, full, nil)
			must(t, err)
			defer h.moveOut()
			tt.o.By = Agent
			_, err = h.Start(t.Context(), tt.o)
			if (err == nil) != (tt.code == "") || err != nil && fault.Of(err).Code != tt.code {
				t.Errorf("start: %v", err)
			}
			if h.stage.stale != tt.want {
				t.Errorf("the login was called stale %d times", h.stage.stale)
			}
		})
	}
}

func TestTheGenerationFollowsTheBrowser(t *testing.T) {
	t.Parallel()
	path, stage := t.TempDir(), newTheatre()
	h, err := moveIn(t, path, stage, &runs{}, nil, nil)
	must(t, err)
	rec := h.begin(StartOptions{})
	stage.replaced()
	h.BrowserReplaced(t.Context(), aSession, 2)
	if got := h.get(rec.ID); got.Generation != 2 || got.Version != rec.Version {
		t.Errorf("it is %d of version %d", got.Generation, got.Version)
	}
	h.BrowserReplaced(t.Context(), aSession, 1) // late news
	h.BrowserReplaced(t.Context(), "ses_9", 7)
	h.moveOut()

	// Lost while nobody ran, and found by the sessions before the hand-offs are.
	stage.replaced()
	h, err = moveIn(t, path, stage, &runs{}, nil, nil)
	must(t, err)
	defer h.moveOut()
	if got := h.get(rec.ID); got.Generation != 3 {
		t.Errorf("after a restart it is %d", got.Generation)
	}
	over, err := h.Finish(t.Context(), Owner, rec.ID, false)
	if err != nil || over.Generation != 3 {
		t.Errorf("it ends as %d, %v", over.Generation, err)
	}
}

func TestARestartDoesNotMakeAPersonAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, stage := t.TempDir(), newTheatre()
		h, err := moveIn(t, path, stage, &runs{}, nil, nil)
		must(t, err)
		rec := h.begin(StartOptions{})
		must(t, h.Present(t.Context(), rec.ID)) // this one is written
		pass(presenceStep - time.Second)
		must(t, h.Present(t.Context(), rec.ID)) // this one is not worth a write
		h.moveOut()

		h, err = moveIn(t, path, stage, &runs{}, nil, nil)
		must(t, err)
		defer h.moveOut()
		pass(busyFor - 2*time.Second)
		_, err = h.Cancel(t.Context(), Agent, rec.ID)
		wantCode(t, err, fault.HumanInControl)
		pass(4 * time.Second)
		_, err = h.Cancel(t.Context(), Agent, rec.ID)
		must(t, err)
	})
}
