package apiserver_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"tapin/internal/fault"
)

// spec is as much of OpenAPI 3.1 as a description must have.
type spec struct {
	OpenAPI    string
	Info       struct{ Title, Version string }
	Paths      map[string]map[string]operation
	Components struct {
		Schemas         map[string]map[string]any
		SecuritySchemes map[string]any
	}
}

type operation struct {
	OperationID string
	Summary     string
	Security    *[]any
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   map[string]any
	}
	RequestBody *struct {
		Required bool
		Content  map[string]map[string]any
	}
	Responses map[string]struct {
		Description string
		Content     map[string]any
	}
}

func TestTheDescriptionDescribesEveryRoute(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	raw, err := f.agent.OpenAPI(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s spec
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if s.OpenAPI != "3.1.0" || s.Info.Title == "" || s.Info.Version != "1.2.3" || s.Components.SecuritySchemes["bearer"] == nil {
		t.Fatalf("got %s, %+v", s.OpenAPI, s.Info)
	}
	want := []string{"get /health", "get /openapi.json", "get /metrics", "get /events", "get /journal", "post /cleanup", "get /sessions", "post /session/start",
		"get /contexts", "get /contexts/{name}", "delete /contexts/{name}", "post /contexts/{name}/rename", "post /contexts/{name}/check",
		"post /contexts/{name}/export", "post /contexts/{name}/import", "post /context/export", "post /context/import"}
	for _, op := range []string{"post stop", "post navigate", "post back", "post forward", "post reload", "get screenshot", "get status",
		"post click", "post hover", "post drag", "post type", "post fill", "post press", "post select", "post upload", "post scroll", "post wait",
		"post dialog", "post permission", "post auth", "get downloads", "get tabs", "post tab", "get snapshot", "get text", "post extract"} {
		method, name, _ := strings.Cut(op, " ")
		want = append(want, method+" /session/"+name, method+" /sessions/{id}/"+name)
	}
	want = append(want, "post /handoff/start", "get /handoffs", "get /handoff/{id}", "get /handoff/{id}/photo", "post /session/takeover", "post /sessions/{id}/takeover",
		"get /todos", "post /todos/{id}/done", "post /task-run/start", "get /task-runs", "get /task-run/{id}")
	want = append(want, "get /links", "post /links", "post /links/{id}/move", "delete /links/{id}", "get /public", "put /public", "post /public/check", "get /usage", "get /analytics")
	want = append(want, "post /console/sign-in", "get /console/devices", "delete /console/devices/{id}")
	want = append(want, "get /owners", "post /owners/pair", "post /owners/claim", "post /owners/{id}/decide", "delete /owners/{id}", "get /inbox", "post /inbox")
	want = append(want, "post /approval/request", "get /approvals", "get /approval/{id}", "post /approval/{id}/decide", "get /approval/{id}/photo",
		"get /policies", "post /policies/say", "post /policies/clear", "post /policies/{id}/confirm", "post /policies/{id}/deny", "put /contexts/{name}/policy")
	for _, op := range []string{"finish", "cancel", "extend", "park", "resume", "present", "type", "screenshot"} {
		want = append(want, "post /handoff/{id}/"+op)
	}
	for _, op := range []string{"update", "needs-help", "complete"} {
		want = append(want, "post /task-run/{id}/"+op)
	}
	want = append(want, "post /browser/screenshot", "post /browser/extract", "post /browser/intent", "get /browser/cards", "post /browser/cards/{id}/retry")
	found, ids := map[string]bool{}, map[string]bool{}
	for path, item := range s.Paths {
		for method, op := range item {
			name := method + " " + path
			found[name] = true
			checkOperation(t, name, path, op)
			if ids[op.OperationID] {
				t.Errorf("%s: operation id %s is taken", name, op.OperationID)
			}
			ids[op.OperationID] = true
		}
	}
	for _, name := range want {
		if !found[name] {
			t.Errorf("%s is not described", name)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("%s is described, but the test does not know it", name)
	}
	refs := regexp.MustCompile(`"\$ref":"#/components/schemas/([^"]+)"`).FindAllSubmatch(raw, -1)
	if len(refs) == 0 || len(refs) != strings.Count(string(raw), `"$ref"`) {
		t.Errorf("%d references of the expected form, of %d", len(refs), strings.Count(string(raw), `"$ref"`))
	}
	for _, ref := range refs {
		if len(s.Components.Schemas[string(ref[1])]) == 0 {
			t.Errorf("%s refers to nothing", ref[0])
		}
	}
	start := s.Components.Schemas["StartRequest"]
	url, _ := start["properties"].(map[string]any)["url"].(map[string]any)
	if start["additionalProperties"] != false || url["type"] != "string" || url["description"] == nil {
		t.Errorf("StartRequest is described as %v", start)
	}
	typed := s.Components.Schemas["TypeRequest"]["properties"].(map[string]any)["text"].(map[string]any)
	if typed["type"] != "string" || typed["writeOnly"] != true || typed["maxLength"] != 100_000.0 {
		t.Errorf("what is typed is described as %v", typed)
	}
	if enum := s.Components.Schemas["Failure"]["properties"].(map[string]any)["error"].(map[string]any)["enum"].([]any); len(enum) != len(fault.Codes()) {
		t.Errorf("%d codes are described", len(enum))
	}
}

func checkOperation(t *testing.T, name, path string, op operation) {
	t.Helper()
	if op.OperationID == "" || op.Summary == "" || len(op.Responses["200"].Content) == 0 || op.Responses["default"].Description == "" {
		t.Errorf("%s: %+v", name, op)
	}
	if public := op.Security != nil; public != (path == "/health") {
		t.Errorf("%s: public is %v", name, public)
	}
	if _, has := op.Responses["401"]; has != (path != "/health") {
		t.Errorf("%s: 401 is described: %v", name, has)
	}
	if strings.HasPrefix(name, "p") != (op.RequestBody != nil) {
		t.Errorf("%s: body %+v", name, op.RequestBody)
	}
	inPath := 0
	for _, p := range op.Parameters {
		if p.Name == "" || p.Schema == nil || p.In == "path" && !p.Required {
			t.Errorf("%s: parameter %+v", name, p)
		}
		if p.In == "path" {
			inPath++
		}
	}
	if inPath != strings.Count(path, "{") {
		t.Errorf("%s: %d parameters in the path", name, inPath)
	}
}
