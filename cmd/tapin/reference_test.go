package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tapin/internal/cli"
	"tapin/internal/config"
	"tapin/internal/fault"
)

// updateVar has the references written instead of compared: make docs.
const updateVar = "TAPIN_TEST_WRITE_DOCS"

const generated = "This page is written by `make docs` from the program itself; a test fails when it is out of date.\n\n"

// reference compares a page with what the program says, or writes it.
func reference(t *testing.T, file, want string) {
	t.Helper()
	path := filepath.Join(repository, "docs", file)
	if os.Getenv(updateVar) != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	have, now := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range max(len(have), len(now)) {
		if i >= len(have) || i >= len(now) || have[i] != now[i] {
			t.Fatalf("docs/%s is out of date at line %d; run make docs", file, i+1)
		}
	}
}

// cell is a text that can stand in a table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}

func TestTheReferenceOfSettingsIsUpToDate(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("# Settings\n\n" + generated +
		"Settings stand in `config.yaml` in tapin's home. Each can also be set by its variable, and for one run with `--set key=value`; the last of these wins.\n" +
		"`tapin config show` tells what is in force and where it comes from, `tapin config check` whether the file is valid. An unknown key is an error.\n")
	section := "-"
	for _, k := range config.Keys() {
		name := ""
		if i := strings.LastIndex(k.Path, "."); i >= 0 {
			name = k.Path[:i]
		}
		if name != section {
			section = name
			fmt.Fprintf(&out, "\n## %s\n\n| key | what it is for | type | default | variable |\n|---|---|---|---|---|\n", cmp.Or(name, "Top level"))
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | `%s` | `%s` |\n", k.Path, cell(k.Doc), cell(k.Type), cell(k.Default), k.Env)
	}
	reference(t, "config.md", sectionsOnce(out.String()))
}

// sectionsOnce puts the parts of a section together where the file has keys of
// another between them.
func sectionsOnce(page string) string {
	parts := strings.Split(page, "\n## ")
	var order []string
	rows := map[string]string{}
	for _, part := range parts[1:] {
		title, body, _ := strings.Cut(part, "\n")
		if _, seen := rows[title]; !seen {
			order = append(order, title)
			rows[title] = strings.TrimRight(body, "\n") + "\n"
			continue
		}
		lines := strings.SplitN(strings.TrimLeft(body, "\n"), "\n", 3) // without the table's head
		rows[title] += strings.TrimRight(lines[2], "\n") + "\n"
	}
	out := strings.TrimRight(parts[0], "\n") + "\n"
	for _, title := range order {
		out += "\n## " + title + "\n" + rows[title]
	}
	return out
}

// helped is what the program says about a command.
func helped(words ...string) (string, bool) {
	var out bytes.Buffer
	code := cli.Main(context.Background(), cli.Env{
		Args: append([]string{"tapin", "help"}, words...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard,
		Home:       func() (string, error) { return os.DevNull, nil },
		IsTerminal: func(io.Writer) bool { return false },
	})
	return out.String(), code == 0
}

var (
	chapterLine = regexp.MustCompile(`^[A-Z][^:]*$`)
	commandLine = regexp.MustCompile(`^  ([a-z-]+) {2,}(\S.*)$`)
)

func TestTheReferenceOfCommandsIsUpToDate(t *testing.T) {
	t.Parallel()
	whole, ok := helped()
	if !ok {
		t.Fatal(whole)
	}
	var out strings.Builder
	out.WriteString("# The command line\n\n" + generated + "Exit codes: 0 done · 1 failed · 2 the caller's input · 3 nothing there · 4 not allowed, or not now · 5 the page or the browser · 6 may work later · 130 Ctrl-C.\n" +
		"`--json` answers in JSON with every command, also when it fails; [the codes](api.md#codes) are those of the API.\n")
	_, flags, _ := strings.Cut(whole, "Flags of every command\n")
	flags, _, _ = strings.Cut(flags, "\n\n")
	fmt.Fprintf(&out, "\n## Flags of every command\n\n```text\n%s\n```\n", flags)
	listed := 0
	for line := range strings.Lines(whole) {
		line = strings.TrimRight(line, "\n")
		switch m := commandLine.FindStringSubmatch(line); {
		case line == "Start here":
		case line == "Flags of every command":
			if listed < 40 {
				t.Fatalf("only %d commands were found", listed)
			}
			reference(t, "cli.md", out.String())
			return
		case m != nil && listed+strings.Count(out.String(), "\n## ") > 1:
			listed++
			describeCommand(t, &out, m[1])
		case chapterLine.MatchString(line) && !strings.Contains(line, "."):
			fmt.Fprintf(&out, "\n## %s\n", line)
		}
	}
	t.Fatal("the list of commands does not end")
}

// describeCommand writes a command, and what is under it.
func describeCommand(t *testing.T, out *strings.Builder, words ...string) {
	t.Helper()
	help, ok := helped(words...)
	if !ok {
		t.Fatalf("there is no help about %v", words)
	}
	help, _, _ = strings.Cut(help, "\nGlobal Flags:")
	help = regexp.MustCompile(`(?m)^ +-h, --help.*\n?`).ReplaceAllString(help+"\n", "")
	help = strings.TrimRight(strings.ReplaceAll(strings.ReplaceAll(help, "\nFlags:\n\n", "\n"), "\nFlags:\n$", ""), "\n")
	help = strings.TrimRight(strings.TrimSuffix(help, "\nFlags:"), "\n")
	fmt.Fprintf(out, "\n### tapin %s\n\n```text\n%s\n```\n", strings.Join(words, " "), help)
	_, under, has := strings.Cut(help, "\nAvailable Commands:\n")
	if !has {
		return
	}
	for line := range strings.Lines(under) {
		m := commandLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			return
		}
		describeCommand(t, out, append(slices.Clone(words), m[1])...)
	}
}

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
	env := append(os.Environ(), "TAPIN_HOME="+home, "TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0")
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

type mcpTool struct {
	Name, Title, Description string
	InputSchema              schema
}

// mcpTools asks as a host does.
func mcpTools(t *testing.T, env []string) []mcpTool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tapin", "mcp")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"docs","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the tools were not told: %v", err)
		}
		var answer struct {
			ID     int
			Result struct{ Tools []mcpTool }
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.ID == 2 {
			return answer.Result.Tools
		}
	}
}

func toolsPage(t *testing.T, tools []mcpTool) string {
	t.Helper()
	if len(tools) < 30 {
		t.Fatalf("only %d tools", len(tools))
	}
	slices.SortFunc(tools, func(a, b mcpTool) int { return cmp.Compare(a.Name, b.Name) })
	var out strings.Builder
	out.WriteString("# MCP tools\n\n" + generated + "How a host gets them is in [mcp.md](mcp.md). Calls end within 58 s; none of them waits for a person longer than `wait_ms`.\n")
	for _, tool := range tools {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", tool.Name, cell(tool.Description))
		if len(tool.InputSchema.Properties) == 0 {
			continue
		}
		out.WriteString("\n| argument | type | |\n|---|---|---|\n")
		for _, name := range sorted(tool.InputSchema.Properties) {
			p := tool.InputSchema.Properties[name]
			need := ""
			if slices.Contains(tool.InputSchema.Required, name) {
				need = " *"
			}
			fmt.Fprintf(&out, "| `%s`%s | %s | %s |\n", name, need, cell(p.says()), cell(p.Description))
		}
	}
	out.WriteString("\n\\* needed.\n")
	return out.String()
}
