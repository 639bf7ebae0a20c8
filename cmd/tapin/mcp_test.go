package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// mcpHost plays an MCP host: it sends the lines of a file to tapin mcp, waits
// for the answer to each that wants one, then leaves. The answers are the file
// answers.jsonl.
//
//	mcphost FILE [ARGUMENTS OF tapin mcp]
func mcpHost(ts *testscript.TestScript, _ bool, args []string) {
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, "tapin"); program == "" && exists(path) {
			program = path
		}
	}
	cmd := exec.Command(program, append([]string{"mcp"}, args[1:]...)...)
	cmd.Dir, cmd.Stderr = ts.Getenv("WORK"), os.Stderr
	for _, name := range []string{"PATH", "HOME", "TAPIN_HOME", "TAPIN_CHROME", "TAPIN_LISTEN_CONTROL", "TAPIN_LISTEN_PUBLIC", "TAPIN_EGRESS_ALLOW", "TESTSCRIPT_COMMAND"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	answers, lines := []string{}, bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		_, err := in.Write([]byte(line))
		ts.Check(err)
		if strings.Contains(line, `"id"`) && lines.Scan() {
			answers = append(answers, lines.Text())
		}
	}
	ts.Check(in.Close())
	for lines.Scan() {
		answers = append(answers, lines.Text())
	}
	ts.Check(cmd.Wait())
	ts.Check(os.WriteFile(ts.MkAbs("answers.jsonl"), []byte(strings.Join(answers, "\n")+"\n"), 0o600))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
