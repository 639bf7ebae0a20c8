package apiserver_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/page"
)

func TestAnExtractComesOutAsItWasWritten(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	if _, err := f.agent.Extract(t.Context(), "", api.ExtractRequest{}); !errors.Is(err, fault.NoSession) {
		t.Fatalf("without a session: %v", err)
	}
	f.do(t, "POST", "/session/start", `{"url":"http://a/"}`, nil)
	a := f.do(t, "POST", "/session/extract", `{"instruction":"table: t","maxChars":500}`, nil)
	if a.status != 200 || !strings.Contains(a.raw, `"content":[{"2":"<b>","1":"x"}],"kind":"table","truncated":true,"note":"n"`) || a.body["final_url"] != "http://a/" || a.body["status_code"] != 200.0 || a.body["title"] != "T" {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	got, err := f.agent.Extract(t.Context(), "ses_1", api.ExtractRequest{})
	if raw, ok := got.Content.(json.RawMessage); err != nil || !ok || string(raw) != `[{"2":"<b>","1":"x"}]` || got.SessionID != "ses_1" {
		t.Errorf("the client has %+v, %v", got, err)
	}
	want := []deed{{"extract", []any{page.ExtractOptions{Instruction: "table: t", Most: 500}}}, {"extract", []any{page.ExtractOptions{}}}}
	if diff := cmp.Diff(want, deeds(f), cmp.AllowUnexported(deed{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, body := range []string{`{"max_chars":5}`, `{"max_chars":2000000}`, `{"instruction":5}`, `{"selector":"a"}`, `{"instruction":"` + strings.Repeat("x", 10_001) + `"}`} {
		if a := f.do(t, "POST", "/session/extract", body, nil); a.status != 400 || a.body["error"] != "INVALID_REQUEST" {
			t.Errorf("%.60s: got %d %.200s", body, a.status, a.raw)
		}
	}
}
