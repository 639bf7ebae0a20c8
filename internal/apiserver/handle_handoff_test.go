package apiserver_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/handoff"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/taskrun"
	"tapin/internal/testwait"
)

// wheel stands in for the one session that can be handed over.
type wheel struct {
	mu    sync.Mutex
	held  string
	url   string
	human time.Time
	keys  map[string]string // what was typed under which key
	gone  bool
}

func (w *wheel) mine(session, id string) error {
	if session != "ses_1" || w.gone {
		return fault.NoSession
	}
	if w.held != id {
		return fault.HandoffNotRunning
	}
	return nil
}

func (w *wheel) Lend(_ context.Context, session, id string, o handoff.LendOptions) (handoff.Lent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if session != "" && session != "ses_1" || w.gone {
		return handoff.Lent{}, fault.New(fault.NoSession, "", "no session %q", session)
	}
	if w.held != "" && w.held != id {
		return handoff.Lent{}, fault.New(fault.HandoffActive, "", "handed over").With("handoff_id", w.held)
	}
	w.held = id
	photo := &page.Image{Format: page.PNG, Base64: base64.StdEncoding.EncodeToString(picture(page.ShotOptions{}))}
	return handoff.Lent{SessionID: "ses_1", Generation: 1, TabID: "tab_1", Seen: page.Observation{URL: w.url, Origin: "https://a.example"}, Holds: make([]bool, len(o.Conditions)), Photo: photo}, nil
}

func (w *wheel) Return(_ context.Context, session, id string, _ bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == id {
		w.held = ""
	}
	return nil
}

func (w *wheel) Observe(_ context.Context, session, id string, _ page.ObserveOptions) (page.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return page.Observation{URL: w.url, Origin: "https://a.example", Fingerprint: "f2"}, w.mine(session, id)
}

func (w *wheel) Plain(context.Context, string, string) (func(), bool, error) {
	return func() {}, false, nil
}

func (w *wheel) Fitted(string) bool { return false }

func (w *wheel) Holds(_ context.Context, session, id string, c []page.Condition) ([]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]bool, len(c))
	for i := range c {
		out[i] = strings.Contains(w.url, c[i].URL)
	}
	return out, w.mine(session, id)
}

func (w *wheel) Stale(context.Context, string) error                { return nil }
func (w *wheel) Generation(string) (int, error)                     { return 1, nil }
func (w *wheel) KeepUntil(context.Context, string, time.Time) error { return nil }

func (w *wheel) Screenshot(_ context.Context, session, id string) (page.Image, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return page.Image{Format: page.PNG, Base64: base64.StdEncoding.EncodeToString(picture(page.ShotOptions{}))}, w.mine(session, id)
}

func (w *wheel) Type(_ context.Context, session, id string, text secret.Text, key string) (page.Typed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, done := w.keys[key]; !done {
		w.keys[key] = text.Reveal()
	}
	return page.Typed{Characters: len(w.keys[key]), Field: "password", Origin: "https://a.example"}, w.mine(session, id)
}

func (w *wheel) Close(context.Context, string, string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.gone = "", true
	return true, nil
}

func (w *wheel) Park(context.Context, string, string) error          { return nil }
func (w *wheel) Unpark(context.Context, string, string) (int, error) { return 2, nil }

func (w *wheel) Presence(string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.human, false
}

// paper seals nothing; the room's own tests look at that.
type paper struct{}

func (paper) Seal(_, _ string, b []byte) ([]byte, error) { return b, nil }
func (paper) Open(_, _ string, b []byte) ([]byte, error) { return b, nil }

// serveRooms is a server with real rooms behind it.
func serveRooms(t *testing.T) (*fixture, *wheel) {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	pump, schedule, journal := event.NewPump(feed, home, nil), event.NewSchedule(), event.NewJournal(home, nil)
	runs, err := taskrun.New(home, pump, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &wheel{url: "https://a.example/login", keys: map[string]string{}}
	handoffs, err := handoff.New(handoff.Deps{
		Home: home, Pump: pump, Schedule: schedule, Journal: journal, Stage: w, Evidence: runs, Sealer: paper{},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { schedule.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		_ = errors.Join(handoffs.Close(), runs.Close(), journal.Close(), feed.Close(), home.Close())
	})
	return serveWith(t, nil, func(d *apiserver.Deps) { d.Handoffs, d.Runs = handoffs, runs }), w
}

func TestAHandoffThroughTheDoor(t *testing.T) {
	t.Parallel()
	f, w := serveRooms(t)
	ctx, owner := t.Context(), f.client(t, ownerToken)
	run, err := f.agent.StartRun(ctx, api.RunRequest{Goal: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	req := api.HandoffRequest{Reason: "login", Instruction: "log in", Task: "pay", RunID: run.RunID, Verify: []api.Condition{{URL: "/home"}}, IdempotencyKey: "k1"}
	started, err := f.agent.StartHandoff(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if started.Status != "RUNNING" || !strings.Contains(started.Notice, "log in") || !strings.Contains(started.Notice, started.Deadline.Format(time.RFC3339)) {
		t.Errorf("got %+v", started)
	}
	if again, err := f.agent.StartHandoff(ctx, req); err != nil || again.HandoffID != started.HandoffID {
		t.Errorf("the repetition gave %+v, %v", again, err)
	}
	a := f.do(t, "POST", "/handoff/start", `{"reason":"captcha"}`, nil)
	if a.status != 409 || a.body["error"] != "HANDOFF_ACTIVE" || a.body["handoff_id"] != started.HandoffID {
		t.Errorf("a second one: %d %s", a.status, a.raw)
	}

	photo, err := owner.HandoffPhoto(ctx, started.HandoffID)
	if err != nil || photo.MIMEType != "image/png" {
		t.Errorf("%v, %v", photo, err)
	}
	if _, err := owner.HandoffPhoto(ctx, started.HandoffID); !errors.Is(err, fault.NotFound) {
		t.Errorf("the photo, again: %v", err)
	}
	if shot, err := owner.HandoffScreenshot(ctx, started.HandoffID); err != nil || shot.MIMEType != "image/png" || shot.Screenshot == "" {
		t.Errorf("%+v, %v", shot, err)
	}
	for range 2 {
		typed, err := owner.TypeInHandoff(ctx, started.HandoffID, api.HandoffTypeRequest{Text: secret.New("canary-pw"), IdempotencyKey: "u1"})
		if err != nil || typed.Characters != 9 || typed.Field != "password" {
			t.Errorf("%+v, %v", typed, err)
		}
	}
	if len(w.keys) != 1 || strings.Contains(f.log.String(), "canary-pw") {
		t.Errorf("%d texts arrived", len(w.keys))
	}

	if _, err := f.agent.FinishHandoff(ctx, started.HandoffID, api.FinishRequest{}); !errors.Is(err, fault.HumanInControl) {
		t.Errorf("the agent finished under the owner's hands: %v", err)
	}
	asked, err := owner.FinishHandoff(ctx, started.HandoffID, api.FinishRequest{})
	if err != nil || asked.Status != "RUNNING" || asked.Attempts != 2 || asked.Verified.Held {
		t.Errorf("%+v, %v", asked, err)
	}
	longer, err := owner.ExtendHandoff(ctx, started.HandoffID, api.ExtendRequest{})
	if err != nil || !longer.Deadline.Equal(started.Deadline.Add(15*time.Minute)) {
		t.Errorf("%+v, %v", longer, err)
	}

	waited := make(chan *api.Handoff, 1)
	go func() {
		got, _ := f.agent.Handoff(ctx, started.HandoffID, api.WaitQuery{After: longer.Version, WaitMS: 30_000})
		waited <- got
	}()
	w.mu.Lock()
	w.url = "https://a.example/home"
	w.mu.Unlock()
	done, err := owner.FinishHandoff(ctx, started.HandoffID, api.FinishRequest{})
	if err != nil || done.Status != "FINISHED" || !done.Verified.Held || done.FinishedBy != "owner" || len(done.Delta) != 6 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := <-waited; got == nil || got.Status != "FINISHED" {
		t.Errorf("the long-poll gave %+v", got)
	}
	if got, err := f.agent.Run(ctx, run.RunID, api.WaitQuery{}); err != nil || len(got.Evidence) != 1 || got.Evidence[0].Ref != started.HandoffID {
		t.Errorf("%+v, %v", got, err)
	}
	if list, err := f.agent.Handoffs(ctx, api.HandoffsQuery{Status: "FINISHED", Limit: 1}); err != nil || len(list.Handoffs) != 1 || list.Handoffs[0].HandoffID != started.HandoffID {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := owner.TypeInHandoff(ctx, started.HandoffID, api.HandoffTypeRequest{Text: secret.New("late")}); !errors.Is(err, fault.HandoffNotRunning) {
		t.Errorf("a late text: %v", err)
	}
}

func TestWhatIsTheOwnersIsNotTheAgents(t *testing.T) {
	t.Parallel()
	f, _ := serveRooms(t)
	owner := f.client(t, ownerToken)
	taken, err := owner.Takeover(t.Context(), "", api.TakeoverRequest{})
	if err != nil || taken.StartedBy != "owner" || taken.OnTimeout != "return" {
		t.Fatalf("%+v, %v", taken, err)
	}
	at := "/handoff/" + taken.HandoffID
	for path, body := range map[string]string{
		"/session/takeover": `{}`, at + "/type": `{"text":"x"}`, at + "/screenshot": `{}`, at + "/resume": `{}`, at + "/present": `{}`, at + "/finish": `{"anyway":true}`,
	} {
		if a := f.do(t, "POST", path, body, nil); a.status != 403 || a.body["error"] != "FORBIDDEN" {
			t.Errorf("%s: %d %s", path, a.status, a.raw)
		}
	}
	if a := f.do(t, "GET", at+"/photo", "", nil); a.status != 403 {
		t.Errorf("photo: %d", a.status)
	}
	if a := f.do(t, "HEAD", at+"/photo", "", map[string]string{"Authorization": "Bearer " + ownerToken}); a.status != http.StatusBadRequest {
		t.Errorf("a glance at the photo: %d", a.status)
	}
	parked, err := owner.ParkHandoff(t.Context(), taken.HandoffID)
	if err != nil || !parked.Parked {
		t.Errorf("%+v, %v", parked, err)
	}
	back, err := owner.ResumeHandoff(t.Context(), taken.HandoffID)
	if err != nil || back.Parked || back.Generation != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	if _, err := owner.PresentAtHandoff(t.Context(), taken.HandoffID); err != nil {
		t.Error(err)
	}
	if _, err := f.agent.CancelHandoff(t.Context(), taken.HandoffID); !errors.Is(err, fault.HumanInControl) {
		t.Errorf("the agent cancelled under the owner's hands: %v", err)
	}
	over, err := owner.CancelHandoff(t.Context(), taken.HandoffID)
	if err != nil || over.Status != "CANCELLED" || over.FinishedBy != "owner" || over.ContextSaved == nil {
		t.Errorf("%+v, %v", over, err)
	}
}

func TestBadHandoffRequestsAreRefusedWithAHint(t *testing.T) {
	t.Parallel()
	f, _ := serveRooms(t)
	for body, want := range map[string]string{
		`{}`:                                "INVALID_REQUEST",
		`{"reason":"boredom"}`:              "INVALID_REQUEST",
		`{"reason":"login","timeout_ms":5}`: "INVALID_REQUEST",
		`{"reason":"login","timeout_ms":99999999}`:                 "INVALID_REQUEST",
		`{"reason":"login","verify":[{}]}`:                         "INVALID_REQUEST",
		`{"reason":"login","verify":[{"url":"/home","text":"x"}]}`: "INVALID_REQUEST",
		`{"reason":"login","surprise":1}`:                          "INVALID_REQUEST",
		`{"reason":"login","run_id":"run_nope"}`:                   "NOT_FOUND",
		`{"reason":"login","session_id":"ses_nope"}`:               "NO_SESSION",
	} {
		a := f.do(t, "POST", "/handoff/start", body, nil)
		if a.body["error"] != want || a.body["hint"] == "" {
			t.Errorf("%s: %d %s", body, a.status, a.raw)
		}
	}
	for path, want := range map[string]int{
		"/handoff/hof_nope": 404, "/handoff/..%2f..%2fetc": 404, "/task-run/run_nope": 404, "/handoffs?cursor=x": 400, "/handoffs?status=LOST": 400,
		"/handoff/hof_nope?wait_ms=99999999": 400, "/handoffs": 200, "/task-runs": 200, "/todos": 200,
	} {
		if a := f.do(t, "GET", path, "", nil); a.status != want {
			t.Errorf("%s: %d %s", path, a.status, a.raw)
		}
	}
	if a := f.do(t, "POST", "/task-run/run_nope/update", `{"evidence":{"kind":"handoff","ref":"hof_1","summary":"the owner paid"}}`, nil); a.body["error"] != "INVALID_REQUEST" {
		t.Errorf("evidence of a hand-off can be made up: %d %s", a.status, a.raw)
	}
	if a := f.do(t, "POST", "/todos/todo_nope/done", `{}`, nil); a.status != 404 {
		t.Errorf("%d %s", a.status, a.raw)
	}
	bare := serve(t, nil)
	for _, path := range []string{"/handoffs", "/task-runs", "/todos"} {
		if a := bare.do(t, "GET", path, "", nil); a.status != 403 || a.body["error"] != "DISABLED" {
			t.Errorf("%s without rooms: %d %s", path, a.status, a.raw)
		}
	}
}

func TestARunThroughTheDoor(t *testing.T) {
	t.Parallel()
	f, _ := serveRooms(t)
	ctx := t.Context()
	run, err := f.agent.StartRun(ctx, api.RunRequest{Goal: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.agent.RunNeedsHelp(ctx, run.RunID, api.RunHelp{Help: "a login"}); err != nil || got.Status != "NEEDS_HELP" {
		t.Errorf("%+v, %v", got, err)
	}
	for range 2 {
		got, err := f.agent.UpdateRun(ctx, run.RunID, api.RunUpdate{Evidence: &api.Evidence{Kind: "file", Ref: "a.pdf"}})
		if err != nil || len(got.Evidence) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := f.agent.UpdateRun(ctx, run.RunID, api.RunUpdate{Note: "half way"}); err != nil || got.Status != "RUNNING" || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := f.agent.CompleteRun(ctx, run.RunID, api.RunEnd{Status: "COMPLETED", Summary: "paid"}); err != nil || got.Status != "COMPLETED" {
		t.Errorf("%+v, %v", got, err)
	}
	if list, err := f.agent.Runs(ctx, api.RunsQuery{Status: "COMPLETED"}); err != nil || len(list.Runs) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestALongPollDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	f, _ := serveRooms(t)
	started, err := f.agent.StartHandoff(t.Context(), api.HandoffRequest{Reason: "login"})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := f.agent.Handoff(t.Context(), started.HandoffID, api.WaitQuery{After: started.Version, WaitMS: 60_000})
		got <- err
	}()
	testwait.For(t, "the long-poll is in", func() bool { return f.gauge(t, "tapin_http_in_flight") > 0 })
	began := time.Now()
	ctx, cancel := testwait.Within(t.Context())
	defer cancel()
	if err := f.Shutdown(ctx); err != nil || time.Since(began) > 50*time.Second { // short: the poll itself takes a minute
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}
