package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tapin/internal/cli"
	"tapin/internal/config"
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
	out.WriteString("# The command line\n\n" + generated + "`tapin help COMMAND` says the same in the terminal, `tapin man` as pages for man.\n" +
		"`--json` answers in JSON with every command, also when it fails; [the codes](api.md#codes) are those of the API.\n")
	_, flags, _ := strings.Cut(whole, "Flags of every command\n")
	flags, _, _ = strings.Cut(flags, "\n\n")
	fmt.Fprintf(&out, "\n## Flags of every command\n\n```text\n%s\n```\n", flags)
	codes, ok := helped("exit-codes")
	if !ok {
		t.Fatal(codes)
	}
	fmt.Fprintf(&out, "\n## Exit codes\n\n```text\n%s\n```\n", strings.TrimRight(codes, "\n"))
	listed := 0
	for line := range strings.Lines(whole) {
		line = strings.TrimRight(line, "\n")
		switch m := commandLine.FindStringSubmatch(line); {
		case line == "Start here":
		case line == "Flags of every command":
			if all := strings.Count(out.String(), "\n### "); listed < 40 || all < 90 {
				t.Fatalf("only %d commands were found, %d with those under them", listed, all)
			}
			reference(t, "cli.md", out.String())
			return
		case m != nil && listed+strings.Count(out.String(), "\n## ") > 2:
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
	help, _, _ = strings.Cut(help, "\nEvery command also takes")
	help = strings.TrimRight(help, "\n")
	fmt.Fprintf(out, "\n### tapin %s\n\n```text\n%s\n```\n", strings.Join(words, " "), help)
	_, under, has := strings.Cut(help, "\nCommands\n")
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
