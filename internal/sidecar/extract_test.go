package sidecar_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPagesAreReadOutThroughHTTP(t *testing.T) {
	t.Parallel()
	site := openShop(t)
	r := start(t, site.Server)
	r.refused("POST", "/session/extract", `{}`, "NO_SESSION")
	r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)
	r.must("POST", "/session/type", `{"label":"Secret","text":"`+typedSecret+`","screenshot":false}`)
	read := func(instruction string) map[string]any {
		body, err := json.Marshal(map[string]string{"instruction": instruction})
		if err != nil {
			t.Fatal(err)
		}
		return r.must("POST", "/session/extract", string(body))
	}
	got := read("selector: h1")
	if got["content"] != "Order" || got["kind"] != "text" || got["truncated"] != false || got["title"] != "Shop" || got["final_url"] != site.URL+"/" || got["status_code"] != 200.0 {
		t.Errorf("a selector: %v", got)
	}
	object, _ := read(`json: {h: h1, secret: "input[type=password]", names: ["input[name]@name"]}`)["content"].(map[string]any)
	if names, _ := object["names"].([]any); object["h"] != "Order" || object["secret"] != "‹hidden›" || len(names) != 3 {
		t.Errorf("a shape: %v", object)
	}
	if got := read("markdown"); !strings.HasPrefix(got["content"].(string), "# Order") || got["kind"] != "markdown" {
		t.Errorf("markdown: %v", got)
	}
	if got := read("what does it cost?"); got["note"] == nil || !strings.Contains(got["content"].(string), "The end") {
		t.Errorf("free text: %v", got)
	}
	if got := r.must("POST", "/session/extract", ""); got["note"] != nil || !strings.Contains(got["content"].(string), "The end") {
		t.Errorf("no instruction: %v", got)
	}
	empty := r.refused("POST", "/session/extract", `{"instruction":"selector: #canary-selector"}`, "EMPTY_EXTRACTION")
	if said, _ := empty["details"].(string); !strings.Contains(said, `#canary-selector" matches nothing`) {
		t.Errorf("it is not said what found nothing: %v", empty)
	}
	broken := r.refused("POST", "/session/extract", `{"instruction":"selector: a; b["}`, "INVALID_REQUEST")
	if broken["position"] != 15.0 {
		t.Errorf("it is not said where: %v", broken)
	}

	// What was asked for, and what was read, are nobody's business afterwards.
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && !strings.Contains(path, "/run/") && (strings.Contains(string(raw), "canary-selector") || strings.Contains(string(raw), typedSecret)) {
			t.Errorf("it is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
