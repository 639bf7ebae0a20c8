package browserbase_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browserbase"
	"tapin/internal/browser/browserbase/standin"
	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

const makeSession = "POST /v1/sessions"

func TestALostAnswerNeverMakesASecondSession(t *testing.T) {
	t.Parallel()
	s := cloud(t, &standin.Options{Shared: true, Plan: standin.Plan{Name: "SCALE", KeepAlive: true, MaxTimeout: 6 * time.Hour, Concurrent: 500, CreatesMinute: 1000}})
	theirs := s.Foreign(nil)
	p := provider(t, s, &browserbase.Options{AnswerWithin: time.Second, Ledger: ledger(t, 0)})
	faults := map[string]standin.Fault{
		"the line breaks after it is done":   {Lose: true},
		"the answer breaks off":              {Garble: true},
		"done, but answered with a 502":      {Break: 502},
		"the answer takes too long":          {Delay: 1300 * time.Millisecond},
		"done when the line is long broken":  {Late: 1200 * time.Millisecond},
		"done twice":                         {Twice: true},
		"done twice, and the answer is lost": {Twice: true, Lose: true},
	}
	ctx := browsertest.Context(t)
	rounds := 0
	for rounds < testwait.Rounds(1, 50) { // each of the faults, at least once
		for name, f := range faults {
			f.On, f.Exact = makeSession, true
			s.Inject(f)
			id := fmt.Sprintf("ses_lost%d-1", rounds)
			inst, err := p.Create(ctx, browser.Spec{ID: id, KeepUntil: testwait.Late()})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			running := ofBrowser(s, id)
			if len(running) != 1 || running[0].ID != inst.Ref().Remote || running[0].Connected != 1 {
				t.Fatalf("%s: there are %+v for %+v", name, running, inst.Ref())
			}
			if err := inst.End(ctx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if left := ofBrowser(s, id); len(left) != 0 {
				t.Fatalf("%s: after the end there are %+v", name, left)
			}
			rounds++
		}
	}
	if running := s.Sessions("RUNNING"); len(running) != 1 || running[0].ID != theirs {
		t.Errorf("there run %+v", running)
	}
	t.Logf("%d answers lost in %d ways; %d sessions were made in all", rounds, len(faults), len(s.Sessions("")))
}

// ofBrowser are the running sessions of one of ours.
func ofBrowser(s *standin.Server, id string) (out []standin.Session) {
	for _, each := range s.Sessions("RUNNING") {
		if each.Metadata["tapin_browser"] == id {
			out = append(out, each)
		}
	}
	return out
}

func TestAWishThatNeverArrivedIsAnErrorAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s, ctx := cloud(t, &standin.Options{Shared: true}), browsertest.Context(t)
	p := provider(t, s, nil)
	s.Inject(standin.Fault{On: makeSession, Exact: true, Unsent: true})
	_, err := p.Create(ctx, browser.Spec{ID: "ses_unsent-1"})
	if f := fault.Of(err); f == nil || f.Code != fault.SessionCreateFailed {
		t.Fatalf("it gave %v", err)
	}
	if n := len(s.Sessions("")); n != 0 {
		t.Fatalf("%d sessions were made", n)
	}
}

func TestASessionThatComesAfterEverybodyLeftIsReleased(t *testing.T) {
	t.Parallel()
	s := cloud(t, &standin.Options{Shared: true})
	p := provider(t, s, &browserbase.Options{Ledger: ledger(t, 0)})
	s.Inject(standin.Fault{On: makeSession, Exact: true, Late: 4 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // short: long enough for the wish to leave, and it must run out
	defer cancel()
	_, err := p.Create(ctx, browser.Spec{ID: "ses_late-1"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a start that nobody waits for gave %v", err)
	}
	// Whoever undoes the start finds nothing yet, and that is no error.
	if err := p.End(browsertest.Context(t), browser.Ref{Provider: browserbase.Name, ID: "ses_late-1"}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the release", func() bool {
		all := s.Sessions("")
		return len(all) == 1 && all[0].Status == "COMPLETED"
	})
}

func TestTheNextProcessReleasesWhatOneThatWasKilledHadWishedFor(t *testing.T) {
	t.Parallel()
	s, book := cloud(t, &standin.Options{Shared: true}), ledger(t, 0)
	theirs := s.Foreign(map[string]any{"tapin": "somebody", "tapin_browser": "ses_killed-1"})
	p := provider(t, s, &browserbase.Options{Ledger: book})
	s.Inject(standin.Fault{On: makeSession, Exact: true, Late: 4 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // short: long enough for the wish to leave, and it must run out
	defer cancel()
	_, _ = p.Create(ctx, browser.Spec{ID: "ses_killed-1"})
	_ = p.Close() // it looks no more, as if it had been killed

	next := provider(t, s, &browserbase.Options{Ledger: book})
	if own, err := next.Own(browsertest.Context(t), nil); err != nil || len(own) != 0 {
		t.Fatalf("at the start there is %+v, %v", own, err)
	}
	testwait.For(t, "the release", func() bool {
		all := s.Sessions("")
		return len(all) == 2 && len(s.Sessions("RUNNING")) == 1 && s.Sessions("RUNNING")[0].ID == theirs
	})
}

func TestAReleaseIsSureBeforeItIsSaid(t *testing.T) {
	t.Parallel()
	s, ctx := cloud(t, &standin.Options{Shared: true, Ending: 700 * time.Millisecond}), browsertest.Context(t)
	p := provider(t, s, nil)
	for i, f := range []standin.Fault{{}, {Lose: true}, {Break: 500, Times: 3}, {Unsent: true}, {Refuse: 429, After: "1"}} {
		inst, err := p.Create(ctx, browser.Spec{ID: fmt.Sprintf("ses_end%d-1", i)})
		if err != nil {
			t.Fatal(err)
		}
		if f != (standin.Fault{}) {
			f.On = "POST /v1/sessions/"
			s.Inject(f)
		}
		if err := inst.End(ctx); err != nil && f.Break == 0 {
			t.Fatalf("%+v: %v", f, err)
		}
		s.Mend()
		if err := p.End(ctx, inst.Ref()); err != nil {
			t.Fatal(err)
		}
		if running := s.Sessions("RUNNING"); len(running) != 0 {
			t.Fatalf("%+v: it was said to be over, and there is %+v", f, running)
		}
	}
	// One that does not end in time is said not to have.
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_slow-1"})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // short: it must run out
	defer cancel()
	if err := inst.End(short); fault.Of(err) == nil || fault.Of(err).Code != fault.ProviderError {
		t.Fatalf("a release that was not seen gave %v", err)
	}
	if err := p.End(ctx, inst.Ref()); err != nil {
		t.Fatal(err)
	}
}

func TestAnswersBecomeOurCodes(t *testing.T) {
	t.Parallel()
	s := cloud(t, &standin.Options{Shared: true})
	for status, want := range map[int]fault.Code{
		400: fault.SessionCreateFailed, 401: fault.ProviderNotConfigured, 402: fault.ProviderError, 403: fault.ProviderNotConfigured,
		404: fault.SessionCreateFailed, 409: fault.ProviderError, 429: fault.RateLimited, 503: fault.SessionCreateFailed,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p := provider(t, s, nil)
			s.Inject(standin.Fault{On: makeSession, Exact: true, Refuse: status, After: "120", Times: 9, Words: "no: " + s.Key() + " https://x.example/?signingKey=abcDEF123456789012345"})
			defer s.Mend()
			began := time.Now()
			_, err := p.Create(browsertest.Context(t), browser.Spec{ID: "ses_code-1", KeepUntil: time.Now().Add(time.Hour)})
			f := fault.Of(err)
			if f == nil || f.Code != want || f.Advice() == "" {
				t.Fatalf("it gave %v", err)
			}
			if all := err.Error() + f.Details() + f.Advice(); strings.Contains(all, s.Key()) || strings.Contains(all, "abcDEF") {
				t.Errorf("a secret is in %s", all)
			}
			if status == 429 {
				if f.Data["retry_after_s"] != 120 || time.Since(began) > time.Minute { // short: it was told to wait two
					t.Errorf("told to come back: %v", f.Data)
				}
				n := len(s.Requests())
				if _, err := p.Create(browsertest.Context(t), browser.Spec{ID: "ses_code-2"}); !errors.Is(err, fault.RateLimited) || len(s.Requests()) != n {
					t.Errorf("who was told to stay away came again: %v", err)
				}
			}
		})
	}
	if n := len(s.Sessions("")); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
}

func TestTheKeyIsReadAgainAfterItWasRefused(t *testing.T) {
	t.Parallel()
	s, ctx := cloud(t, &standin.Options{Shared: true}), browsertest.Context(t)
	key := "bb_live_old"
	p := browserbase.New(mark, func(context.Context) (browserbase.Account, error) {
		return browserbase.Account{Key: secret.New(key), BaseURL: s.URL()}, nil
	}, nil)
	t.Cleanup(func() { _ = p.Close() })
	if _, err := p.Create(ctx, browser.Spec{ID: "ses_key-1"}); !errors.Is(err, fault.ProviderNotConfigured) {
		t.Fatalf("a wrong key gave %v", err)
	}
	key = s.Key() // the owner has put the right one in place
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_key-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.End(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestTheFreePlanGetsWhatItAllows(t *testing.T) {
	t.Parallel()
	for name, clamps := range map[string]bool{"a timeout that is too long is refused": false, "a timeout that is too long is cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := standin.Free()
			plan.Clamps = clamps
			s, ctx := cloud(t, &standin.Options{Shared: true, Plan: plan}), browsertest.Context(t)
			p := provider(t, s, nil)
			for round := range 2 {
				inst, err := p.Create(ctx, browser.Spec{ID: fmt.Sprintf("ses_free%d-1", round), KeepUntil: time.Now().Add(30 * time.Minute)})
				if err != nil {
					t.Fatal(err)
				}
				b := browser.BoundsOf(inst)
				if left := time.Until(b.EndsAt); !b.Fragile || left > 15*time.Minute || left < 14*time.Minute || len(b.Notes) != 2 {
					t.Fatalf("the bounds are %+v", b)
				}
				// A lost line is the end of it, and that is found out.
				_ = inst.Conn().Close()
				testwait.For(t, "the end", func() bool { return len(s.Sessions("RUNNING")) == 0 })
				if _, err := p.Reconnect(ctx, inst.Ref()); !errors.Is(err, fault.BrowserLost) {
					t.Fatalf("reconnecting gave %v", err)
				}
			}
			asked := 0
			for _, r := range s.Requests() {
				if r.Method+" "+r.Path == makeSession && strings.Contains(string(r.Body), `"keepAlive":true`) {
					asked++
				}
			}
			if asked != 1 {
				t.Errorf("keepAlive was asked for %d times", asked)
			}
		})
	}
}

func TestEveryConnectionUsesAWayInThatWasJustRead(t *testing.T) {
	t.Parallel()
	s, ctx := cloud(t, &standin.Options{Shared: true}), browsertest.Context(t)
	p := provider(t, s, nil)
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_age-1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_ = inst.Conn().Close()
		s.Expire() // what was given out before is too old now
		again, err := p.Reconnect(ctx, inst.Ref())
		if err != nil {
			t.Fatal(err)
		}
		inst = again
	}
	if err := inst.End(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestACapIsNeverExceeded(t *testing.T) {
	t.Parallel()
	s, ctx, book := cloud(t, &standin.Options{Shared: true}), browsertest.Context(t), ledger(t, 10)
	p := provider(t, s, &browserbase.Options{Ledger: book, Spare: 30 * time.Minute})
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_cap-1", KeepUntil: time.Now().Add(30 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(browser.BoundsOf(inst).EndsAt); left > 10*time.Minute {
		t.Errorf("with 10 minutes left it may run for %s", left)
	}
	if _, err := p.Create(ctx, browser.Spec{ID: "ses_cap-2"}); !errors.Is(err, fault.Disabled) {
		t.Errorf("with all minutes spoken for a second one gave %v", err)
	}
	if err := inst.End(ctx); err != nil {
		t.Fatal(err)
	}
	if r := book.Report(time.Now()); r.Minutes() != 1 || len(r.Running) != 0 || r.Providers["browserbase"].Sessions != 1 {
		t.Errorf("the account is %+v", r)
	}
}
