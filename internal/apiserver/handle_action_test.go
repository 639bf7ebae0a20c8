package apiserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
)

// canaryText is typed, filled and answered everywhere, and must come out nowhere.
const canaryText = "canary-typed-5e21"

func deeds(f *fixture) []deed {
	f.room.active.mu.Lock()
	defer f.room.active.mu.Unlock()
	return f.room.active.deeds
}

func TestEveryActionReachesThePageAsItWasAskedFor(t *testing.T) {
	t.Parallel()
	x, y := 12.5, 40.0
	css := page.Locator{CSS: "#a"}
	second := time.Second
	for name, tt := range map[string]struct {
		route, body string
		want        deed
		answer      map[string]any
	}{
		"click by selector":  {"click", `{"selector":"#a"}`, deed{"click", []any{css, page.ClickOptions{}}}, map[string]any{"clicked": true, "strategy": "S2_CSS", "effect": "confirmed"}},
		"click by text":      {"click", `{"text":"Go"}`, deed{"click", []any{page.Locator{Text: "Go"}, page.ClickOptions{}}}, nil},
		"click by ref":       {"click", `{"ref":"e1"}`, deed{"click", []any{page.Locator{Ref: "e1"}, page.ClickOptions{}}}, nil},
		"click by label":     {"click", `{"label":"L"}`, deed{"click", []any{page.Locator{Label: "L"}, page.ClickOptions{}}}, nil},
		"click by role":      {"click", `{"role":"button","name":"N"}`, deed{"click", []any{page.Locator{Role: "button", Name: "N"}, page.ClickOptions{}}}, nil},
		"click by role only": {"click", `{"role":"button"}`, deed{"click", []any{page.Locator{Role: "button"}, page.ClickOptions{}}}, nil},
		"click by test id":   {"click", `{"testId":"t"}`, deed{"click", []any{page.Locator{TestID: "t"}, page.ClickOptions{}}}, nil},
		"click by xpath":     {"click", `{"xpath":"//a"}`, deed{"click", []any{page.Locator{XPath: "//a"}, page.ClickOptions{}}}, nil},
		"click at a point":   {"click", `{"x":12.5,"y":40}`, deed{"click", []any{page.Locator{X: &x, Y: &y}, page.ClickOptions{}}}, nil},
		"a double right click": {
			"click", `{"selector":"#a","button":"right","count":2,"timeoutMs":1000}`,
			deed{"click", []any{css, page.ClickOptions{Button: "right", Count: 2, Timeout: second}}}, nil,
		},
		"hover": {"hover", `{"selector":"#a","timeout_ms":1000}`, deed{"hover", []any{css, second}}, map[string]any{"hovered": true, "strategy": "S1_AX", "effect": "unknown"}},
		"drag": {
			"drag", `{"selector":"#a","to":{"x":12.5,"y":40}}`,
			deed{"drag", []any{css, page.Locator{X: &x, Y: &y}, time.Duration(0)}}, map[string]any{"dragged": true, "effect": "none"},
		},
		"type into the focused field": {
			"type", `{"text":"` + canaryText + `"}`, deed{"type", []any{canaryText, page.TypeOptions{}}},
			map[string]any{"characters": float64(len(canaryText)), "field": "password"},
		},
		"type into a field": {
			"type", `{"text":"a","label":"L","clear":true,"submit":true,"timeout_ms":1000}`,
			deed{"type", []any{"a", page.TypeOptions{Locator: &page.Locator{Label: "L"}, Clear: true, Submit: true, Timeout: second}}}, nil,
		},
		"empty a field": {"type", `{"text":"","ref":"e1","clear":true}`, deed{"type", []any{"", page.TypeOptions{Locator: &page.Locator{Ref: "e1"}, Clear: true}}}, nil},
		"fill": {
			"fill", `{"fields":[{"label":"A","value":"` + canaryText + `"},{"selector":"#a","value":""}]}`,
			deed{"fill", []any{time.Duration(0), page.Locator{Label: "A"}, canaryText, css, ""}}, map[string]any{"filled": 1.0},
		},
		"press":                  {"press", `{"key":"Control+A"}`, deed{"press", []any{"Control+A"}}, nil},
		"select":                 {"select", `{"ref":"e1","values":["a","b"]}`, deed{"select", []any{page.Locator{Ref: "e1"}, []string{"a", "b"}, time.Duration(0)}}, map[string]any{"selected": []any{"a", "b"}}},
		"upload":                 {"upload", `{"selector":"#a","files":["a.pdf"]}`, deed{"upload", []any{&css, []string{"a.pdf"}, time.Duration(0)}}, map[string]any{"files": 1.0}},
		"cancel a file chooser":  {"upload", `{"files":[]}`, deed{"upload", []any{(*page.Locator)(nil), []string{}, time.Duration(0)}}, map[string]any{"files": 0.0}},
		"scroll":                 {"scroll", `{"direction":"down","amount":200}`, deed{"scroll", []any{page.ScrollOptions{Direction: "down", Amount: 200}}}, nil},
		"scroll into view":       {"scroll", `{"selector":"#a"}`, deed{"scroll", []any{page.ScrollOptions{Locator: &css}}}, nil},
		"wait for an element":    {"wait", `{"selector":"#a","state":"hidden","timeout_ms":1000}`, deed{"wait", []any{page.WaitOptions{Locator: &css, State: "hidden", Timeout: second}}}, nil},
		"wait for a text":        {"wait", `{"text":"Done"}`, deed{"wait", []any{page.WaitOptions{Text: "Done"}}}, nil},
		"wait for an address":    {"wait", `{"url":"*/done"}`, deed{"wait", []any{page.WaitOptions{URL: "*/done"}}}, nil},
		"wait for a state":       {"wait", `{"state":"networkidle"}`, deed{"wait", []any{page.WaitOptions{State: "networkidle"}}}, nil},
		"accept a prompt":        {"dialog", `{"accept":true,"text":"` + canaryText + `"}`, deed{"dialog", []any{true, canaryText}}, nil},
		"dismiss a dialog":       {"dialog", `{"accept":false}`, deed{"dialog", []any{false, ""}}, nil},
		"grant a permission":     {"permission", `{"name":"geolocation","grant":true,"origin":"http://a"}`, deed{"permission", []any{"http://a", "geolocation", true}}, nil},
		"answer a password gate": {"auth", `{"username":"ada","password":"` + canaryText + `"}`, deed{"auth", []any{"ada", canaryText}}, nil},
		"switch to a tab":        {"tab", `{"tabId":"tab_1","action":"switch"}`, deed{"switch", []any{"tab_1"}}, nil},
		"close a tab":            {"tab", `{"tab_id":"tab_1","action":"close"}`, deed{"close", []any{"tab_1"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			f.do(t, "POST", "/session/start", `{"url":"http://a/"}`, nil)
			// Both spellings of the path, and the picture unless it is not wanted.
			quiet := strings.TrimSuffix(tt.body, "}") + `,"screenshot":false}`
			for path, body := range map[string]string{"/session/": tt.body, "/sessions/ses_1/": quiet} {
				f.room.active.deeds = nil
				a := f.do(t, "POST", path+tt.route, body, nil)
				if a.status != 200 || a.body["ok"] != true || a.body["session_id"] != "ses_1" || a.body["url"] != "http://a/" || a.body["title"] != "T" || a.body["took_ms"] != 12.0 {
					t.Fatalf("%s: got %d %s", path, a.status, a.raw)
				}
				if has := a.body["screenshot"] != nil && a.body["mime_type"] == "image/png"; has != (path == "/session/") {
					t.Errorf("%s: the picture is there: %v", path, has)
				}
				if diff := cmp.Diff([]deed{tt.want}, deeds(f), cmp.AllowUnexported(deed{})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
				for key, want := range tt.answer {
					if diff := cmp.Diff(want, a.body[key]); diff != "" {
						t.Errorf("%s: %s (-want +got):\n%s", path, key, diff)
					}
				}
				if strings.Contains(a.raw, canaryText) {
					t.Errorf("%s: the answer tells what was typed: %s", path, a.raw)
				}
			}
			if strings.Contains(f.log.String(), canaryText) {
				t.Error("the log tells what was typed")
			}
		})
	}
}

func TestWhatAnActionCannotMeanIsRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	for _, tt := range []struct{ route, body, want string }{
		{"click", `{}`, "no element is named"},
		{"click", `{"selector":"#a","text":"Go"}`, "2 ways: selector, text"},
		{"click", `{"ref":"e1","x":1,"y":2}`, "2 ways: ref, x and y"},
		{"click", `{"x":1}`, "x and y go together"},
		{"click", `{"name":"N"}`, "name goes with role"},
		{"click", `{"text":"Go","name":"N"}`, "name goes with role"},
		{"click", `{"text":"Go","button":"back"}`, "button"},
		{"click", `{"text":"Go","count":0}`, "count"},
		{"click", `{"text":"Go","count":4}`, "count"},
		{"click", `{"text":"Go","timeout_ms":60001}`, "timeout_ms"},
		{"click", `{"text":"Go","approved":true}`, "approved"},
		{"click", `{"selector":5}`, "selector"},
		{"hover", `{}`, "no element"},
		{"drag", `{"text":"a"}`, `"to" is required`},
		{"drag", `{"text":"a","to":{}}`, "to: no element"},
		{"drag", `{"text":"a","to":{"text":"b","ref":"c"}}`, "to: the element is named in 2 ways"},
		{"type", `{}`, `"text" is required`},
		{"type", `{"text":"` + canaryText + `","selector":"#a","ref":"e1"}`, "2 ways"},
		{"type", `{"text":["` + canaryText + `"]}`, "text"},
		{"type", `{"text":"` + canaryText + `","x":1}`, "unknown field"},
		{"type", `{"text":"` + strings.Repeat("x", 100_001) + `"}`, "longer than"},
		{"fill", `{}`, `"fields" is required`},
		{"fill", `{"fields":[{"label":"A"}]}`, "value"},
		{"fill", `{"fields":[{"value":"` + canaryText + `"}]}`, "fields[0]: no element"},
		{"fill", `{"fields":[{"label":"A","value":"a"},{"label":"B","ref":"e","value":"` + canaryText + `"}]}`, "fields[1]"},
		{"fill", `{"fields":[` + strings.TrimSuffix(strings.Repeat(`{"label":"A","value":"a"},`, 201), ",") + `]}`, "201 fields"},
		{"press", `{}`, "key"},
		{"select", `{"values":["a"]}`, "no element"},
		{"select", `{"ref":"e1"}`, "values"},
		{"upload", `{"ref":"e1"}`, "files"},
		{"upload", `{"ref":"e1","label":"L","files":["a"]}`, "2 ways"},
		{"scroll", `{}`, "direction"},
		{"scroll", `{"direction":"sideways"}`, "direction"},
		{"scroll", `{"direction":"down","text":"a","ref":"b"}`, "2 ways"},
		{"wait", `{}`, "nothing to wait for"},
		{"wait", `{"selector":"#a","text":"x"}`, "2 ways"},
		{"wait", `{"state":"soon"}`, "state"},
		{"wait", `{"name":"N"}`, "name goes with role"},
		{"dialog", `{}`, "accept"},
		{"dialog", `{"text":"` + canaryText + `"}`, "accept"},
		{"permission", `{"name":"geolocation"}`, "grant"},
		{"permission", `{"grant":true}`, "name"},
		{"auth", `{"password":"` + canaryText + `"}`, "username"},
		{"tab", `{"action":"close"}`, "tab_id"},
		{"tab", `{"tab_id":"t"}`, "action"},
		{"tab", `{"tab_id":"t","action":"open"}`, "action"},
	} {
		a := f.do(t, "POST", "/session/"+tt.route, tt.body, nil)
		details, _ := a.body["details"].(string)
		if a.status != 400 || a.body["error"] != "INVALID_REQUEST" || !strings.Contains(details, tt.want) || a.body["hint"] == "" {
			t.Errorf("%s %.80s: got %d %s, want %q", tt.route, tt.body, a.status, a.raw, tt.want)
		}
		if strings.Contains(a.raw, canaryText) {
			t.Errorf("%s: the refusal tells the text: %s", tt.route, a.raw)
		}
	}
	for query, want := range map[string]string{
		"snapshot?max_chars=1":                 "max_chars",
		"snapshot?depth=3":                     "depth",
		"text?max_chars=0":                     "max_chars",
		"screenshot?selector=a&ref=b":          "2 ways",
		"screenshot?name=b":                    "name goes with role",
		"screenshot?selector=a&full_page=true": "not both",
		"downloads?x=1":                        "unknown parameter",
		"tabs?x=1":                             "unknown parameter",
	} {
		a := f.do(t, "GET", "/session/"+query, "", nil)
		details, _ := a.body["details"].(string)
		if a.status != 400 || !strings.Contains(details, want) {
			t.Errorf("%s: got %d %s, want %q", query, a.status, a.raw, want)
		}
	}
	if got := deeds(f); len(got) > 0 {
		t.Errorf("something was done: %v", got)
	}
	if strings.Contains(f.log.String(), canaryText) {
		t.Error("the log tells what was to be typed")
	}
}

// One call instead of two; what led elsewhere is looked at by whoever knows when it has come.
func TestAnActionAnswersWithTheOutlineOfItsPage(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	ask := func(route, more string) map[string]any {
		t.Helper()
		a := f.do(t, "POST", "/session/"+route, `{"screenshot":false`+more+`}`, nil)
		if a.status != 200 {
			t.Fatalf("%s: %d %s", route, a.status, a.raw)
		}
		outline, _ := a.body["outline"].(map[string]any)
		return outline
	}
	for route, more := range map[string]string{"click": `,"ref":"e1"`, "press": `,"key":"a"`, "back": "", "navigate": `,"url":"http://a/"`} {
		if ask(route, more) != nil {
			t.Errorf("%s: an outline that nobody asked for", route)
		}
		got := ask(route, more+`,"outline":{"max_chars":500,"tabs":true}`)
		if got == nil || !strings.Contains(got["snapshot"].(string), "Go") || !cmp.Equal(got["tabs"], []any{"t1"}) && route != "navigate" {
			t.Errorf("%s: got %v", route, got)
		}
		if got := ask(route, more+`,"outline":{"max_chars":500}`); got["tabs"] != nil {
			t.Errorf("%s: tabs that nobody asked for", route)
		}
	}
	f.room.active.mu.Lock()
	f.room.active.moved = true
	f.room.active.mu.Unlock()
	if got := ask("click", `,"ref":"e1","outline":{}`); got != nil {
		t.Errorf("of a page on its way: %v", got)
	}
	if a := f.do(t, "POST", "/session/click", `{"ref":"e1","outline":{"max_chars":1}}`, nil); a.status != 400 {
		t.Errorf("an outline of one character: %d %s", a.status, a.raw)
	}
}

func TestFailuresOfActionsKeepTheirCodes(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, route := range []string{"click", "type", "wait"} {
		if a := f.do(t, "POST", "/session/"+route, `{"text":"x"}`, nil); a.status != 404 || a.body["error"] != "NO_SESSION" {
			t.Errorf("%s without a session: %d %s", route, a.status, a.raw)
		}
	}
	f.do(t, "POST", "/session/start", "", nil)
	for _, code := range []fault.Code{
		fault.ElementNotFound, fault.ElementNotActionable, fault.StaleRef, fault.DialogOpen, fault.NoFocusedField,
		fault.WaitTimeout, fault.BrowserLost, fault.Forbidden, fault.NotFound,
	} {
		f.room.active.failure = fault.New(code, "act", "because")
		for _, route := range []string{"click", "type", "wait"} {
			a := f.do(t, "POST", "/session/"+route, `{"text":"x"}`, nil)
			if a.status != code.Status() || a.body["ok"] != false || a.body["error"] != string(code) || a.body["details"] != "act: because" || a.body["hint"] != code.Hint() {
				t.Errorf("%s: %d %s", route, a.status, a.raw)
			}
		}
	}
}

func TestAClickThatExhaustsItsLadderSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	f.room.active.failure = exhausted()
	a := f.do(t, "POST", "/session/click", `{"text":"Go"}`, nil)
	want := map[string]any{
		"ok": false, "error": "ELEMENT_NOT_ACTIONABLE", "details": "click: covered by div#overlay", "hint": fault.ElementNotActionable.Hint(),
		"success": false, "outcome": "exhausted", "strategies_tried": []any{"S1_AX", "S2_CSS"}, "hitl_required": true,
		"suggested_next": []any{map[string]any{
			"tool": "oc_handoff_start", "arguments": map[string]any{"reason": "manual_recovery", "instruction": "Click it."}, "why": "w",
		}},
	}
	if diff := cmp.Diff(want, a.body); a.status != 409 || diff != "" {
		t.Fatalf("%d (-want +got):\n%s", a.status, diff)
	}
	_, err := f.agent.Click(t.Context(), "", api.ClickRequest{Target: api.Target{Text: "Go"}})
	if f := fault.Of(err); f.Data["hitl_required"] != true || f.Data["suggested_next"] == nil {
		t.Fatalf("the client lost the advice: %+v", f)
	}
}

func TestAnActionThatOpenedADialogTellsOfItWithoutAPicture(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	f.room.active.shots, f.room.active.dialog = 0, &session.Dialog{TabID: "tab_1", Kind: "confirm", Message: "Sure?"}
	a := f.do(t, "POST", "/session/click", `{"text":"Go"}`, nil)
	want := map[string]any{"tab_id": "tab_1", "kind": "confirm", "message": "Sure?"}
	if diff := cmp.Diff(want, a.body["dialog"]); a.status != 200 || a.body["clicked"] != true || diff != "" || a.body["screenshot"] != nil || a.body["screenshot_error"] != nil || f.room.active.shots != 0 {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	// One that opens only while the picture is taken is told too.
	f.room.active.dialog, f.room.active.noShots = nil, fault.New(fault.DialogOpen, "screenshot", "an alert is open")
	a = f.do(t, "POST", "/session/click", `{"text":"Go"}`, nil)
	if open, _ := a.body["dialog"].(map[string]any); a.status != 200 || open["kind"] != "alert" || a.body["screenshot"] != nil {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
}

func TestWhatIsReadComesOut(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	ctx := t.Context()
	if _, err := f.agent.Snapshot(ctx, "", api.SnapshotQuery{}); !errors.Is(err, fault.NoSession) {
		t.Fatalf("without a session: %v", err)
	}
	f.do(t, "POST", "/session/start", `{"url":"http://a/"}`, nil)
	snapshot, err := f.agent.Snapshot(ctx, "", api.SnapshotQuery{MaxChars: 500, Interactive: true})
	if err != nil || snapshot.Snapshot != `- button "Go" [ref=e1]` || !snapshot.Truncated || snapshot.URL != "http://a/" || snapshot.Title != "T" {
		t.Errorf("snapshot: %+v, %v", snapshot, err)
	}
	text, err := f.agent.Text(ctx, "ses_1", api.TextQuery{MaxChars: 7})
	if err != nil || text.Text != "hello <world>" || text.Truncated {
		t.Errorf("text: %+v, %v", text, err)
	}
	want := []deed{{"snapshot", []any{page.SnapshotOptions{MaxChars: 500, Interactive: true}}}, {"text", []any{7}}}
	if diff := cmp.Diff(want, deeds(f), cmp.AllowUnexported(deed{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tabs, err := f.agent.Tabs(ctx, "")
	if err != nil || len(tabs.Tabs) != 1 || tabs.Tabs[0] != (api.Tab{TabID: "tab_1", URL: "http://a/", Title: "T", Active: true}) {
		t.Errorf("tabs: %+v, %v", tabs, err)
	}
	got, err := f.agent.Downloads(ctx, "")
	if diff := cmp.Diff([]api.Download{{DownloadID: "d1", Name: "a.pdf", URL: "http://a/a.pdf", Bytes: 3, Total: 3, State: "completed", Path: "/home/x/a.pdf"}}, got.Downloads); err != nil || diff != "" {
		t.Errorf("downloads: %v\n%s", err, diff)
	}
	if _, err := f.agent.Screenshot(ctx, "", api.ScreenshotQuery{Element: api.Element{Role: "img", Name: "Chart"}, TimeoutMS: 70}); err != nil {
		t.Fatal(err)
	}
	if shot := f.room.active.shot; shot.Locator == nil || shot.Locator.Role != "img" || shot.Locator.Name != "Chart" || shot.Timeout != 70*time.Millisecond {
		t.Errorf("the picture was taken of %+v", shot)
	}
}

func TestTheClientSendsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	ctx, none, hidden, yes := t.Context(), false, secret.New(canaryText), true
	look := api.Look{Screenshot: &none}
	at := api.Target{Element: api.Element{Selector: "#a"}}
	css := page.Locator{CSS: "#a"}
	calls := []struct {
		call func() error
		want deed
	}{
		{func() error { _, err := f.agent.Click(ctx, "", api.ClickRequest{Target: at, Look: look}); return err }, deed{"click", []any{css, page.ClickOptions{}}}},
		{func() error { _, err := f.agent.Hover(ctx, "", api.HoverRequest{Target: at, Look: look}); return err }, deed{"hover", []any{css, time.Duration(0)}}},
		{func() error {
			_, err := f.agent.Drag(ctx, "", api.DragRequest{Target: at, To: &at, Look: look})
			return err
		}, deed{"drag", []any{css, css, time.Duration(0)}}},
		{func() error {
			_, err := f.agent.Type(ctx, "", api.TypeRequest{Text: hidden, Element: at.Element, Look: look})
			return err
		}, deed{"type", []any{canaryText, page.TypeOptions{Locator: &css}}}},
		{func() error {
			_, err := f.agent.Fill(ctx, "", api.FillRequest{Fields: []api.FieldValue{{Element: at.Element, Value: &hidden}}, Look: look})
			return err
		}, deed{"fill", []any{time.Duration(0), css, canaryText}}},
		{func() error { _, err := f.agent.Press(ctx, "", api.PressRequest{Key: "Enter", Look: look}); return err }, deed{"press", []any{"Enter"}}},
		{func() error {
			_, err := f.agent.Select(ctx, "", api.SelectRequest{Element: at.Element, Values: []string{"v"}, Look: look})
			return err
		}, deed{"select", []any{css, []string{"v"}, time.Duration(0)}}},
		{func() error {
			_, err := f.agent.Upload(ctx, "", api.UploadRequest{Element: at.Element, Files: []string{"f"}, Look: look})
			return err
		}, deed{"upload", []any{&css, []string{"f"}, time.Duration(0)}}},
		{func() error {
			_, err := f.agent.Scroll(ctx, "", api.ScrollRequest{Direction: "up", Look: look})
			return err
		}, deed{"scroll", []any{page.ScrollOptions{Direction: "up"}}}},
		{func() error { _, err := f.agent.Wait(ctx, "", api.WaitRequest{Text: "x", Look: look}); return err }, deed{"wait", []any{page.WaitOptions{Text: "x"}}}},
		{func() error {
			_, err := f.agent.Dialog(ctx, "", api.DialogRequest{Accept: &yes, Text: hidden, Look: look})
			return err
		}, deed{"dialog", []any{true, canaryText}}},
		{func() error {
			_, err := f.agent.Permission(ctx, "", api.PermissionRequest{Name: "camera", Grant: &none, Look: look})
			return err
		}, deed{"permission", []any{"", "camera", false}}},
		{func() error {
			_, err := f.agent.Auth(ctx, "", api.AuthRequest{Username: "u", Password: hidden, Look: look})
			return err
		}, deed{"auth", []any{"u", canaryText}}},
		{func() error {
			_, err := f.agent.Tab(ctx, "", api.TabRequest{TabID: "t", Action: "switch", Look: look})
			return err
		}, deed{"switch", []any{"t"}}},
	}
	var want []deed
	for _, c := range calls {
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.want.name, err)
		}
		want = append(want, c.want)
	}
	if diff := cmp.Diff(want, deeds(f), cmp.AllowUnexported(deed{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATextIsNotTypedTwiceForTheSameKey(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	key := map[string]string{"Idempotency-Key": "k1"}
	first := f.do(t, "POST", "/session/type", `{"text":"`+canaryText+`"}`, key)
	again := f.do(t, "POST", "/sessions/ses_1/type", ` {"text": "`+canaryText+`"} `, key)
	if first.status != 200 || again.status != 200 || again.body["characters"] != first.body["characters"] || again.body["screenshot"] == nil || again.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("got %s and %s", first.raw, again.raw)
	}
	if n := len(deeds(f)); n != 1 {
		t.Fatalf("it was typed %d times", n)
	}
	// The text is part of what must be the same, although it is in no log.
	for name, body := range map[string]string{"another text": `{"text":"other"}`, "another field": `{"text":"` + canaryText + `","ref":"e1"}`} {
		if a := f.do(t, "POST", "/session/type", body, key); a.status != 400 || a.body["error"] != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", name, a.status, a.raw)
		}
	}
	if a := f.do(t, "POST", "/session/start", `{}`, key); a.status != 400 {
		t.Errorf("the key of a text started a session: %d %s", a.status, a.raw)
	}
	if a := f.do(t, "POST", "/session/type", `{"text":"`+canaryText+`"}`, nil); a.status != 200 || len(deeds(f)) != 2 {
		t.Errorf("without a key: %d, %d deeds", a.status, len(deeds(f)))
	}
}

func TestAFailedTextIsTypedAgainOnlyIfNothingWasTyped(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	f.room.active.failure = fault.New(fault.ElementNotActionable, "type", "the field went away").With("characters", 3)
	half := api.TypeRequest{Text: secret.New("x"), IdempotencyKey: "half"}
	for range 2 {
		if _, err := f.agent.Type(t.Context(), "", half); fault.Of(err).Data["characters"] != 3.0 {
			t.Fatalf("half-way: %v", err)
		}
	}
	if n := len(deeds(f)); n != 1 {
		t.Errorf("half a text was typed %d times", n)
	}
	for code, repeats := range map[fault.Code]bool{
		fault.ElementNotFound: true, fault.NoFocusedField: true, fault.StaleRef: true, fault.DialogOpen: true,
		fault.BrowserLost: false, fault.WaitTimeout: false, fault.Internal: false,
	} {
		f.room.active.mu.Lock()
		f.room.active.failure, f.room.active.deeds = fault.New(code, "type", "because"), nil
		f.room.active.mu.Unlock()
		req := api.TypeRequest{Text: secret.New("x"), IdempotencyKey: string(code)}
		if _, err := f.agent.Type(t.Context(), "", req); !errors.Is(err, code) {
			t.Fatalf("%s: %v", code, err)
		}
		f.room.active.mu.Lock()
		f.room.active.failure = nil
		f.room.active.mu.Unlock()
		_, err := f.agent.Type(t.Context(), "", req)
		if repeated := len(deeds(f)) == 2 && err == nil; repeated != repeats {
			t.Errorf("%s: typed %d times, %v", code, len(deeds(f)), err)
		}
	}
}

func TestATextIsTypedToItsEndWhenItsCallerHangsUp(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	req := api.TypeRequest{Text: secret.New("block"), IdempotencyKey: "k"}
	go func() {
		_, err := f.agent.Type(ctx, "", req)
		ended <- err
	}()
	<-f.room.active.blocked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(f.room.active.release)
	if got, err := f.agent.Type(t.Context(), "", req); err != nil || got.Characters != 5 || len(deeds(f)) != 1 {
		t.Fatalf("got %+v, %v, typed %d times", got, err, len(deeds(f)))
	}
}
