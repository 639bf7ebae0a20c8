package apiserver_test

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/session"
	"tapin/internal/trouble"
)

func TestHealthSaysWhatTheContractSays(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	a := f.do(t, "GET", "/health", "", map[string]string{"Authorization": ""})
	want := []string{"active_session", "ok", "provider", "sessions", "status", "troubles", "uptime_s", "version"}
	if got := slices.Sorted(maps.Keys(a.body)); a.status != 200 || !slices.Equal(got, want) {
		t.Fatalf("got %d %v, want %v", a.status, got, want)
	}
	if a.body["status"] != "ok" || a.body["version"] != "1.2.3" || a.body["provider"] != "local" ||
		a.body["active_session"] != nil || a.body["sessions"] != 0.0 || a.body["uptime_s"].(float64) < 60 {
		t.Fatalf("got %s", a.raw)
	}
	started, err := f.agent.Start(t.Context(), api.StartRequest{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.agent.Health(t.Context())
	if err != nil || h.Sessions != 1 || h.Active == nil || h.Active.SessionID != started.SessionID || h.Active.StartedAt.IsZero() {
		t.Fatalf("got %+v, %v", h, err)
	}
}

func TestHealthSaysWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	var board trouble.Board
	f := serveWith(t, nil, func(d *apiserver.Deps) { d.Troubles = board.List })
	if a := f.do(t, "GET", "/health", "", map[string]string{"Authorization": ""}); !strings.Contains(a.raw, `"status":"ok"`) || !strings.Contains(a.raw, `"troubles":[]`) {
		t.Fatalf("all is well: %s", a.raw)
	}
	board.Set("room figures", trouble.Trouble{What: "figures", State: trouble.GivenUp, Details: "It failed 5 times.", Hint: "See the report."})
	h, err := f.agent.Health(t.Context())
	if err != nil || h.Status != "degraded" || len(h.Troubles) != 1 || h.Troubles[0].What != "figures" || h.Troubles[0].State != trouble.GivenUp {
		t.Fatalf("with a room that is off: %+v, %v", h, err)
	}
}

func TestASessionFromStartToStop(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	ctx := t.Context()

	if s, err := f.agent.Status(ctx, ""); err != nil || s.Active {
		t.Fatalf("without a session: %+v, %v", s, err)
	}
	if a := f.do(t, "GET", "/session/status", "", nil); a.raw != `{"ok":true,"active":false}` {
		t.Fatalf("without a session: %s", a.raw)
	}
	save := true
	started, err := f.agent.Start(ctx, api.StartRequest{
		URL: "http://a/", Context: "bank", Provider: "local", Viewport: &api.Viewport{Width: 390, Height: 844, Scale: 3},
		Mobile: true, Locale: "de-CH", Timezone: "Europe/Zurich", TimeoutS: 60, SaveContext: &save,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := session.StartOptions{
		URL: "http://a/", Context: "bank", Provider: "local", Viewport: &session.Viewport{Width: 390, Height: 844, Scale: 3},
		Mobile: true, Locale: "de-CH", Timezone: "Europe/Zurich", Timeout: time.Minute, SaveContext: &save,
	}
	got := f.room.active.options
	if got.Meanwhile == nil {
		t.Error("nobody looks while it is put on record")
	}
	got.Meanwhile = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	shot := base64.StdEncoding.EncodeToString(picture(page.ShotOptions{}))
	if started.Screenshot != shot || started.MIMEType != "image/png" || started.URL != "http://a/" || started.Title != "T" || started.LiveViewURL != nil {
		t.Errorf("start answered %+v", started)
	}

	_, err = f.agent.Start(ctx, api.StartRequest{})
	if refused := fault.Of(err); !errors.Is(err, fault.SessionActive) || refused.Data["session_id"] != started.SessionID || refused.Hint == "" {
		t.Errorf("second start: %v", err)
	}

	moved, err := f.agent.Navigate(ctx, started.SessionID, api.NavigateRequest{URL: "http://b/?x=<y>", Wait: "load"})
	if err != nil || moved.URL != "http://b/?x=<y>" || moved.Screenshot != shot || moved.StatusCode != 200 || moved.TookMS != 12 || f.room.active.wait != "load" {
		t.Errorf("navigate: %+v, %v", moved, err)
	}
	read, err := f.agent.Navigate(ctx, "", api.NavigateRequest{URL: "http://c/", Look: api.Look{Outline: &api.SnapshotQuery{MaxChars: 5_000, StillMS: 10}}})
	if err != nil || read.Outline == nil || !strings.Contains(read.Outline.Snapshot, "Go") || read.Outline.SessionID != started.SessionID || moved.Outline != nil {
		t.Errorf("navigate and read: %+v, %v", read, err)
	}
	if _, err := f.agent.Navigate(ctx, "", api.NavigateRequest{URL: "http://d/", Look: api.Look{Outline: &api.SnapshotQuery{MaxChars: 1}}}); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("an outline of one character: %v", err)
	}
	for name, move := range map[string]func() (*api.PageAnswer, error){
		"http://back/":    func() (*api.PageAnswer, error) { return f.agent.Back(ctx, "", api.MoveRequest{}) },
		"http://forward/": func() (*api.PageAnswer, error) { return f.agent.Forward(ctx, "", api.MoveRequest{}) },
		"http://reload/":  func() (*api.PageAnswer, error) { return f.agent.Reload(ctx, started.SessionID, api.MoveRequest{}) },
	} {
		if got, err := move(); err != nil || got.URL != name || got.Screenshot == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}

	status, err := f.agent.Status(ctx, started.SessionID)
	if err != nil || !status.Active || status.Driver != "agent" || len(status.Tabs) != 1 || !status.Tabs[0].Active || len(status.Dialogs) != 1 || status.Deadline.IsZero() {
		t.Errorf("status: %+v, %v", status, err)
	}
	all, err := f.agent.Sessions(ctx)
	if err != nil || len(all.Sessions) != 1 || all.Sessions[0].SessionID != started.SessionID {
		t.Errorf("sessions: %+v, %v", all, err)
	}
	stopped, err := f.agent.Stop(ctx, "", api.StopRequest{SaveContext: &save})
	if err != nil || !stopped.Stopped || !stopped.ContextSaved || stopped.SessionID != started.SessionID {
		t.Errorf("stop: %+v, %v", stopped, err)
	}
	if _, err := f.agent.Stop(ctx, "", api.StopRequest{}); !errors.Is(err, fault.NoSession) {
		t.Errorf("stop without a session: %v", err)
	}
	if _, err := f.agent.Status(ctx, "ses_9"); !errors.Is(err, fault.NoSession) {
		t.Errorf("status of an unknown session: %v", err)
	}
}

func TestTheAnswerCarriesNoPictureWhenNoneIsWanted(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	a := f.do(t, "POST", "/session/start", `{"url":"http://a/","screenshot":false}`, nil)
	if a.status != 200 || a.body["url"] != "http://a/" || a.body["title"] != "T" {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	b := f.do(t, "POST", "/session/navigate", `{"url":"http://b/","screenshot":false}`, nil)
	for _, got := range []answer{a, b} {
		if _, has := got.body["screenshot"]; has || got.body["mime_type"] != nil {
			t.Errorf("there is a picture: %s", got.raw)
		}
	}
	if live, has := a.body["live_view_url"]; live != nil || !has {
		t.Errorf("live_view_url must be null: %s", a.raw)
	}
	if f.room.active.shots != 0 {
		t.Errorf("%d pictures were taken", f.room.active.shots)
	}
}

func TestAPictureThatFailsDoesNotUndoTheAction(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	started := f.do(t, "POST", "/session/start", "", nil)
	f.room.active.noShots = fault.New(fault.DialogOpen, "screenshot", "an alert is open")
	a := f.do(t, "POST", "/session/navigate", `{"url":"http://b/"}`, nil)
	problem, _ := a.body["screenshot_error"].(map[string]any)
	if started.status != 200 || a.status != 200 || a.body["ok"] != true || a.body["url"] != "http://b/" || problem["error"] != "DIALOG_OPEN" {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	f.room.active.noShots, f.room.active.garbled = nil, true
	a = f.do(t, "POST", "/session/navigate", `{"url":"http://b/"}`, nil)
	problem, _ = a.body["screenshot_error"].(map[string]any)
	if a.status != 200 || a.body["ok"] != true || problem["error"] != "PROVIDER_ERROR" {
		t.Fatalf("a garbled picture got into the answer: %s", a.raw)
	}
}

func TestScreenshotAnswersWithTheBytes(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	if _, err := f.agent.Screenshot(t.Context(), "", api.ScreenshotQuery{}); !errors.Is(err, fault.NoSession) {
		t.Fatalf("without a session: %v", err)
	}
	f.do(t, "POST", "/session/start", "", nil)
	for name, tt := range map[string]struct {
		query api.ScreenshotQuery
		mime  string
		shot  page.ShotOptions
	}{
		"png by itself":     {api.ScreenshotQuery{}, "image/png", page.ShotOptions{}},
		"the full page":     {api.ScreenshotQuery{FullPage: true}, "image/png", page.ShotOptions{FullPage: true}},
		"jpeg of a quality": {api.ScreenshotQuery{Format: "jpeg", Quality: 30}, "image/jpeg", page.ShotOptions{Format: page.JPEG, Quality: 30}},
		// The browser of this test knows no WebP and answers with PNG.
		"what the bytes are": {api.ScreenshotQuery{Format: "webp"}, "image/png", page.ShotOptions{}},
	} {
		got, err := f.agent.Screenshot(t.Context(), "", tt.query)
		if err != nil || got.MIMEType != tt.mime || string(got.Bytes) != string(picture(tt.shot)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for query, want := range map[string]string{
		"?full_page=yes":                "full_page",
		"?full_page=":                   "full_page",
		"?full_page=1":                  "full_page",
		"?format=gif":                   "format",
		"?quality=0&format=jpeg":        "quality",
		"?quality=101&format=jpeg":      "quality",
		"?quality=80":                   "png",
		"?quality=5&quality=6":          "twice",
		"?full_page=true&fullPage=true": "twice",
		"?fulpage=true":                 "fulpage",
		"?a=%zz":                        "query",
	} {
		a := f.do(t, "GET", "/session/screenshot"+query, "", nil)
		details, _ := a.body["details"].(string)
		if a.status != 400 || a.body["error"] != "INVALID_REQUEST" || !strings.Contains(details, want) {
			t.Errorf("%s: got %d %s", query, a.status, a.raw)
		}
	}
	if a := f.do(t, "GET", "/session/screenshot?fullPage=true", "", nil); a.status != 200 || a.raw != string(picture(page.ShotOptions{FullPage: true})) {
		t.Errorf("the other spelling is not understood: %d", a.status)
	}
	f.room.active.garbled = true
	if a := f.do(t, "GET", "/session/screenshot", "", nil); a.status != http.StatusBadGateway {
		t.Errorf("a garbled picture was served: %d", a.status)
	}
}

func TestErrorsFromBelowReachTheCaller(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	for name, tt := range map[string]struct {
		url    string
		status int
		code   string
	}{
		"a fault keeps its code and status":    {"ftp:", 400, "INVALID_URL"},
		"an unknown error shows nothing of it": {"broken:", 500, "INTERNAL"},
		"a panic is an internal error":         {"panic:", 500, "INTERNAL"},
	} {
		a := f.do(t, "POST", "/session/navigate", `{"url":"`+tt.url+`"}`, nil)
		if a.status != tt.status || a.body["ok"] != false || a.body["error"] != tt.code || a.body["details"] == "" || a.body["hint"] == "" {
			t.Errorf("%s: %d %s", name, a.status, a.raw)
		}
		for _, inner := range []string{"unvetted-cause", "secret-panic-value", "goroutine"} {
			if strings.Contains(a.raw, inner) {
				t.Errorf("%s: the answer tells %q", name, inner)
			}
		}
	}
	// Where it panicked is in the crash report; what it had in its hands is nowhere.
	for inner, told := range map[string]bool{"unvetted-cause": true, "handler panicked": true, "secret-panic-value": false} {
		if strings.Contains(f.log.String(), inner) != told {
			t.Errorf("the log tells %q: %v", inner, !told)
		}
	}
}
