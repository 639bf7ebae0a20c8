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

func TestTheFirstSignOfAPersonIsKept(t *testing.T) {
	t.Parallel()
	at := noon.Add(5 * time.Minute)
	asked := func(r *Record) { r.Book.Verify = []page.Condition{{Text: "Welcome"}} }
	for name, tt := range map[string]struct {
		from  func(*Record)
		event Event
		want  time.Time
	}{
		"a look at the page":              {nil, tick{now: at, watching: true}, at},
		"a look within the first seconds": {nil, tick{now: noon.Add(4 * time.Second), watching: true}, noon.Add(4 * time.Second)},
		"a touch":                         {nil, tick{now: at, human: at.Add(-time.Second)}, at.Add(-time.Second)},
		"a touch from before it began":    {nil, tick{now: at, human: noon.Add(-time.Minute)}, time.Time{}},
		"nobody":                          {nil, tick{now: at}, time.Time{}},
		"a reply":                         {nil, present{now: at}, at},
		"a reply after the first":         {func(r *Record) { r.Book.MetAt = noon.Add(time.Minute) }, present{now: at}, noon.Add(time.Minute)},
		"done, said by the owner":         {nil, done{by: Owner, now: at}, at},
		"done, and not so":                {asked, done{by: Owner, now: at, held: []bool{false}}, at},
		"done, by what was seen":          {asked, done{by: Verify, now: at, held: []bool{true}, human: at.Add(-time.Minute)}, at.Add(-time.Minute)},
		"done, said by the agent":         {nil, done{by: Agent, now: at}, time.Time{}},
		"declined":                        {nil, cancel{by: Owner, now: at}, at},
		"called off":                      {nil, cancel{by: Agent, now: at}, time.Time{}},
		"later":                           {nil, park{by: Owner, now: at, human: at}, at},
		"parked since tapin ends":         {nil, park{by: Owner, now: at}, time.Time{}},
		"back again":                      {func(r *Record) { r.Parked = true }, resumed{now: at, generation: 2}, at},
		"more time":                       {nil, extend{by: Owner, now: at, more: time.Minute}, at},
		"more time for the agent":         {nil, extend{by: Agent, now: at, more: time.Minute}, time.Time{}},
		"the browser is lost":             {nil, gone{now: at}, time.Time{}},
	} {
		got, _, err := next(aRecord(tt.from), tt.event)
		if err != nil || !got.MetAt().Equal(tt.want) {
			t.Errorf("%s: met at %v, want %v (%v)", name, got.MetAt(), tt.want, err)
		}
	}
}

func TestWhoLooksIsSeenWithinSecondsAndNotForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, stage := t.TempDir(), newTheatre()
		h, err := moveIn(t, path, stage, &runs{}, nil, nil)
		must(t, err)
		rec := h.begin(StartOptions{})
		pass(100 * time.Second)
		stage.watch(true)
		came := wallClock()
		pass(lookWhenAlone + time.Second)
		stage.watch(false)
		pass(time.Minute)
		over, err := h.Finish(t.Context(), Owner, rec.ID, false)
		if late := over.MetAt().Sub(came); err != nil || late < 0 || late > lookWhenAlone {
			t.Errorf("seen %s late, %v", late, err)
		}
		h.moveOut()
		h, err = moveIn(t, path, stage, &runs{}, nil, nil)
		must(t, err)
		defer h.moveOut()
		if got := h.get(rec.ID); !got.MetAt().Equal(over.MetAt()) {
			t.Errorf("after a restart it is %v", got.MetAt())
		}
		// In the order in which they came, from any place on.
		second := h.begin(StartOptions{})
		all, err := h.After(t.Context(), 0, time.Time{}, 10)
		if err != nil || len(all) != 2 || all[0].Record.ID != rec.ID || all[1].ID != second.ID || all[1].Record.IsOver() {
			t.Errorf("after the beginning come %+v, %v", all, err)
		}
		if rest, err := h.After(t.Context(), all[0].Seq, time.Time{}, 10); err != nil || len(rest) != 1 || rest[0].ID != second.ID {
			t.Errorf("after the first come %+v, %v", rest, err)
		}
		if named, err := h.After(t.Context(), 0, all[1].At, 10); err != nil || len(named) != 2 || named[0].Record != nil || named[1].Record == nil {
			t.Errorf("those from before are %+v, %v", named, err)
		}
	})
}
