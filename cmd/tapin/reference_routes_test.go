package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tapin/internal/fault"
	"tapin/internal/testwait"
)

// described is what the references need of the description that the program
// gives of its routes.
type described struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Summary, Description string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Enum        []any
	Minimum     *float64
	Maximum     *float64
	MaxLength   *int
	Items       *schema
	AllOf       []schema
	OneOf       []schema
	Properties  map[string]schema
	Required    []string
}

func (s schema) name() string { return s.Ref[strings.LastIndex(s.Ref, "/")+1:] }

// says is a schema in a few words.
func (s schema) says() string {
	var words []string
	switch {
	case s.Ref != "":
		words = append(words, fmt.Sprintf("[%s](#%s)", s.name(), strings.ToLower(s.name())))
	case len(s.OneOf) > 0:
		words = append(words, s.OneOf[0].says()+" or null")
	case s.Items != nil:
		words = append(words, "list of "+s.Items.says())
	case len(s.Enum) > 0:
		var all []string
		for _, e := range s.Enum {
			all = append(all, fmt.Sprintf("`%v`", e))
		}
		words = append(words, strings.Join(all, " "))
	case s.Format == "date-time":
		words = append(words, "time")
	case s.Format == "password":
		words = append(words, "secret")
	case s.Type == nil:
		words = append(words, "anything")
	default:
		words = append(words, fmt.Sprint(s.Type))
	}
	if s.Minimum != nil && s.Maximum != nil {
		words = append(words, fmt.Sprintf("from %v to %v", *s.Minimum, *s.Maximum))
	}
	if s.MaxLength != nil {
		words = append(words, fmt.Sprintf("up to %d characters", *s.MaxLength))
	}
	return strings.Join(words, ", ")
}

// TestTheReferencesOfTheProgramThatRunsAreUpToDate asks a running tapin what its
// routes are, and an MCP connection what its tools are.
func TestTheReferencesOfTheProgramThatRunsAreUpToDate(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(home)
		_ = os.RemoveAll(home)
	})
	env := append(os.Environ(), "TAPIN_POOL_FOLLOW="+testwait.Spare(), "TAPIN_HOME="+home, "TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0")
	tapin := func(in string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "tapin", args...)
		cmd.Env, cmd.Stdin = env, strings.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	tapin("", "up", "--background", "--no-check")
	address, err := os.ReadFile(filepath.Join(home, "control.addr"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(home, "agent.token"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+strings.TrimSpace(string(address))+"/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var d described
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	reference(t, "api.md", d.page())
	reference(t, "tools.md", toolsPage(t, mcpTools(t, env)))
	tapin("", "down")
}

func (d *described) page() string {
	var out strings.Builder
	out.WriteString("# The HTTP API\n\n" + generated +
		"The control listener is `http://127.0.0.1:3849` unless `listen.control` says otherwise. Everything but `/health` needs `Authorization: Bearer` with the contents of\n" +
		"`agent.token` or `owner.token` from tapin's home. Bodies and answers are JSON; unknown fields are refused. `GET /openapi.json` is the same for machines.\n\n" +
		"What stands under `/sessions/{id}/` also answers under `/session/`, for the one active session. Answers of actions carry a picture of the page unless the body has\n" +
		"`\"screenshot\": false`. Records have a `version`; long-polls take `?after=VERSION&wait_ms=55000`. [Quick start](quickstart.md#plain-http).\n")
	out.WriteString("\n## Routes\n\n| route | for | what it does | takes | answers |\n|---|---|---|---|---|\n")
	for _, path := range sorted(d.Paths) {
		if strings.HasPrefix(path, "/session/") && d.Paths["/sessions/{id}/"+strings.TrimPrefix(path, "/session/")] != nil {
			continue // told once
		}
		for _, method := range sorted(d.Paths[path]) {
			op := d.Paths[path][method]
			who := strings.TrimSuffix(strings.TrimPrefix(op.Description, "For the "), ".")
			var takes, answers []string
			for _, p := range op.Parameters {
				if p.In == "query" {
					takes = append(takes, "`?"+p.Name+"`")
				}
				if p.In == "header" {
					takes = append(takes, "`"+p.Name+"`")
				}
			}
			if body := op.RequestBody.Content["application/json"].Schema; body.Ref != "" {
				if len(d.Components.Schemas[body.name()].Properties) > 0 {
					takes = append(takes, body.says())
				}
			}
			content := op.Responses["200"].Content
			for _, media := range sorted(content) {
				if s := content[media].Schema; len(s.AllOf) > 1 {
					answers = append(answers, s.AllOf[1].says())
				} else {
					answers = append(answers, "`"+media+"`")
				}
			}
			fmt.Fprintf(&out, "| `%s %s` | %s | %s | %s | %s |\n", strings.ToUpper(method), path, cmp.Or(who, "anyone"), cell(op.Summary),
				strings.Join(takes, " "), strings.Join(answers, " "))
		}
	}
	out.WriteString("\n## Codes\n\nA failure is `{\"ok\": false, \"error\": \"CODE\", \"details\": \"…\", \"hint\": \"…\"}`.\n\n| code | status | exit | what it means | what to do |\n|---|---|---|---|---|\n")
	for _, code := range fault.Codes() {
		fmt.Fprintf(&out, "| `%s` | %d | %d | %s | %s |\n", code, code.Status(), code.Exit(), cell(code.Sentence()), cell(code.Hint()))
	}
	out.WriteString("\n## Types\n")
	for _, name := range sorted(d.Components.Schemas) {
		s := d.Components.Schemas[name]
		if len(s.Properties) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n\n| field | type | |\n|---|---|---|\n", name)
		for _, field := range sorted(s.Properties) {
			p := s.Properties[field]
			need := ""
			if slices.Contains(s.Required, field) {
				need = " *"
			}
			fmt.Fprintf(&out, "| `%s`%s | %s | %s |\n", field, need, cell(p.says()), cell(p.Description))
		}
	}
	out.WriteString("\n\\* always there, or needed.\n")
	return out.String()
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
