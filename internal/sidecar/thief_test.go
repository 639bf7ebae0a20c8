package sidecar_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"tapin/internal/browser/browsertest"
	"testing"
)

// envelope is the login of the live session as an envelope, in JSON.
func (r *running) envelope(body string) string {
	r.t.Helper()
	raw, err := json.Marshal(r.must("POST", "/context/export", body)["envelope"])
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// The site that a saved login is for is where the browser was when it was
// saved, and the agent decides where that is.
func TestALoginOfTheAgentsMakingDoesNotSayWhereAPasswordMayGo(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	b := openBank(t)
	port := b.URL[strings.LastIndexByte(b.URL, ':')+1:]
	thief := "http://127.0.0.1:" + port
	r := startWith(t, b.Server, ring{
		"credential-loose-login":     keptPassword,
		"credential-localhost-login": keptPassword,
		"credential-chase-login":     keptPassword,
		"credential-work-login":      keptPassword,
	}, "egress.allow=localhost:"+port+",127.0.0.1:"+port)
	manifest := filepath.Join(r.dir, "browser-contexts.yaml")
	if err := os.WriteFile(manifest, []byte("contexts:\n  work:\n    domain: localhost # as the owner says\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"loose", "localhost"} {
		r.must("POST", "/session/start", `{"context":"`+name+`","url":"`+thief+`","screenshot":false}`)
		if stopped := r.must("POST", "/session/stop", `{}`); stopped["context_saved"] != true {
			t.Fatalf("the stop says %v", stopped)
		}
	}
	r.must("POST", "/session/start", `{"url":"`+thief+`","screenshot":false}`)
	r.must("POST", "/contexts/chase/import", `{"envelope":`+r.envelope(`{}`)+`}`)
	for _, name := range []string{"loose", "localhost", "chase"} {
		if domain := r.must("GET", "/contexts/"+name, "")["domain"]; domain != "127.0.0.1" {
			t.Errorf("the login %s is for %v", name, domain)
		}
		r.refused("POST", "/session/fill", `{"fields":[{"label":"Password","credential":"`+name+`"}],"screenshot":false}`, "FORBIDDEN")
	}
	// What the owner has written counts, also after we wrote beside it.
	r.must("POST", "/session/navigate", `{"url":"http://localhost:`+port+`","screenshot":false}`)
	r.must("POST", "/session/fill", `{"fields":[{"label":"Password","credential":"work"}],"screenshot":false}`)
	r.must("POST", "/session/fill", `{"fields":[{"label":"Password","credential":"localhost"}],"screenshot":false}`)
	r.must("POST", "/session/stop", `{}`)
	r.must("POST", "/session/start", `{"context":"work","url":"`+thief+`","screenshot":false}`)
	r.must("POST", "/session/stop", `{}`)
	r.must("POST", "/session/start", `{"url":"http://localhost:`+port+`","screenshot":false}`)
	r.must("POST", "/session/fill", `{"fields":[{"label":"Password","credential":"work"}],"screenshot":false}`)
	if len(b.sent) > 0 {
		t.Errorf("somebody got %q", b.sent)
	}
}
