package browserbase

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tapin/internal/secret"
)

func FuzzAnswersAreNotTrusted(f *testing.F) {
	const key = "bb_live_0123456789abcdef"
	for _, seed := range []string{
		`{"statusCode":403,"error":"Forbidden","message":"no ` + key + `"}`, `{"message":["a","b"]}`, `[{"id":1}]`,
		`[{"id":"x","userMetadata":{"tapin":{"a":1}},"createdAt":"yesterday"}]`, `{"debuggerFullscreenUrl":null,"pages":{}}`, "", "\x00",
	} {
		f.Add([]byte(seed), "120")
	}
	f.Add([]byte(`{}`), "Wed, 21 Oct 2099 07:28:00 GMT")
	f.Fuzz(func(t *testing.T, raw []byte, after string) {
		if text := words(raw, Account{Key: secret.New(key)}); strings.Contains(text, key) || len([]rune(text)) > maxMessage+200 {
			t.Errorf("an error says %q", text)
		}
		if d := retryAfter(after, time.Now()); d < 0 || d > 10*time.Minute {
			t.Errorf("told to wait for %s", d)
		}
		var all []remote
		if json.Unmarshal(raw, &all) == nil {
			p := &Provider{mark: "m"}
			for _, s := range oldestFirst(all) {
				if p.ours(s) && (s.text(markKey) != "m" || s.browser() == "") {
					t.Errorf("taken for ours: %+v", s.Metadata)
				}
			}
		}
		_ = json.Unmarshal(raw, new(views))
	})
}
