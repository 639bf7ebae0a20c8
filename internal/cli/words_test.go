package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"tapin/internal/event"
)

func TestEventsInWords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind, data, want string
	}{
		"a session begins":         {"session.started", `{"session_id":"ses_1","provider":"local"}`, "session ses_1 has begun (local)"},
		"less is known":            {"session.started", `{"session_id":"ses_1"}`, "session ses_1 has begun"},
		"a page asks":              {"session.question", `{"session_id":"ses_1","kind":"http_auth","origin":"https://a.example"}`, "the page asks for something: http auth, https://a.example"},
		"a hand-off ends":          {"handoff.finished", `{"handoff_id":"hof_a_1","status":"FINISHED"}`, "the person is done, the agent goes on (hof_a_1)"},
		"the daemon gave up":       {"daemon.gave_up", `{"details":"The sidecar failed 10 times."}`, "tapin could not be kept running before: The sidecar failed 10 times."},
		"no sentence for it":       {"login.went_stale", `{"session_id":"ses_1","site":"a.example","login_id":"log_1"}`, "login: went stale log_1 ses_1"},
		"what it needs is missing": {"session.started", `{}`, "session: started"},
		"no data at all":           {"session.crash", ``, "a page has crashed"},
		"it tries the terminal":    {"wake.failed", `{"details":"\u001b[31mred\nline"}`, "�[31mred line"},
		"the name tries it":        {"x\u001b[2Jy", `{}`, "x�[2Jy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := inWords(event.Event{Type: tt.kind, Data: json.RawMessage(tt.data)}); got != tt.want {
				t.Fatalf("%q", got)
			}
		})
	}
	for kind, sentence := range sentences {
		if strings.Count(sentence, "[") != strings.Count(sentence, "]") || strings.Count(sentence, "{") != strings.Count(sentence, "}") {
			t.Errorf("%s: %s", kind, sentence)
		}
	}
}
