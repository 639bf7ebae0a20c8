package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOneMemberIsSetAndEveryOtherByteStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, want string }{
		"nothing there":   {"", "{\n  \"s\": {\n    \"t\": 1\n  }\n}\n"},
		"an empty object": {"{}", "{\n  \"s\": {\n    \"t\": 1\n  }\n}"},
		"others beside it": {"{\n    \"a\": [1,  2],\n    \"s\": {\n        \"x\": {}\n    },\n    \"z\": null\n}\n",
			"{\n    \"a\": [1,  2],\n    \"s\": {\n        \"x\": {},\n        \"t\": 1\n    },\n    \"z\": null\n}\n"},
		"it is replaced": {"{\"s\":{\"t\":{\"old\":true},\"u\":2}}", "{\"s\":{\"t\":1,\"u\":2}}"},
		"with tabs":      {"{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"s\": {\n\t\t\"t\": 1\n\t}\n}\n"},
		"on one line":    {`{"a": 1}`, "{\"a\": 1,\n  \"s\": {\n    \"t\": 1\n  }\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setMember([]byte(tt.old), []string{"s", "t"}, 1)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
	for name, old := range map[string]string{
		"not JSON": "{", "a comment": "{\n// c\n}", "a list": "[]", "a text in the way": `{"s":"x"}`, "null in the way": `{"s":null}`, "twice": `{"s":{},"s":{}}`,
	} {
		if got, err := setMember([]byte(old), []string{"s", "t"}, 1); err == nil {
			t.Errorf("%s became %s", name, got)
		}
	}
}

func FuzzSetMember(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"mcpServers":{"x":{"command":"y"}}}`, "{\n  \"a\": \"\\u00e9\"\n}", `{"a":1,"a":2}`, `[1]`, `{"mcpServers": {} , "b" : [ ] }`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		got, err := setMember(old, []string{"mcpServers", "tapin"}, entry{"tapin", []string{"mcp"}})
		if err != nil {
			return
		}
		again, err := setMember(got, []string{"mcpServers", "tapin"}, entry{"tapin", []string{"mcp"}})
		if !json.Valid(got) || err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q became %q, then %q (%v)", old, got, again, err)
		}
	})
}

const codexOld = `# my settings
model = "o9"   # the good one
notify = ["a", "b] # c",
  'd'] # list
text = """
[mcp_servers.tapin]
not = "a table"
"""

[mcp_servers."other.one"]
command = 'x'
args = [
  "[mcp_servers.tapin]",
]
`

func TestOneTableIsSetAndEveryOtherByteStays(t *testing.T) {
	t.Parallel()
	path, lines := []string{"mcp_servers", "tapin"}, []string{`command = "tapin"`, `args = ["mcp"]`}
	block := "[mcp_servers.tapin]\ncommand = \"tapin\"\nargs = [\"mcp\"]\n"
	for name, tt := range map[string]struct{ old, want string }{
		"nothing there":      {"", block},
		"others before it":   {codexOld, codexOld + "\n" + block},
		"no newline at last": {"a = 1", "a = 1\n\n" + block},
		"it is replaced": {codexOld + "[mcp_servers.tapin] # mine\ncommand = \"/old\"\nargs = [\n 'x', # y\n]\n\n# about env\n[mcp_servers.tapin.env]\nA = \"1\"\n\n[tui]\nx = 1\n",
			codexOld + block + "\n# about env\n[mcp_servers.tapin.env]\nA = \"1\"\n\n[tui]\nx = 1\n"},
		"a quoted name": {"[mcp_servers.\"tapin\"]\ncommand = 'x'\n[b]\n", block + "[b]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setTable(tt.old, path, lines)
			if err != nil || got != tt.want {
				t.Fatalf("got\n%s\n(%v), want\n%s", got, err, tt.want)
			}
			if again, err := setTable(got, path, lines); err != nil || again != got {
				t.Errorf("the second time it became\n%s (%v)", again, err)
			}
		})
	}
	for name, old := range map[string]string{
		"an open text": `a = "x`, "an open list": "a = [1,\n", "brackets crossed": "a = [}\n", "no value": "a =\n", "no key": "= 1\n", "more on a line": "[a] b = 1\n",
		"an inline table": "mcp_servers = { tapin = {} }\n", "a dotted key": "mcp_servers.tapin.command = 'x'\n", "inside its parent": "[mcp_servers]\ntapin = {}\n",
		"a list of tables": "[[mcp_servers.tapin]]\n", "twice": "[mcp_servers.tapin]\n[mcp_servers.tapin]\n",
	} {
		if got, err := setTable(old, path, lines); err == nil {
			t.Errorf("%s became %s", name, got)
		}
	}
}

func FuzzSetTable(f *testing.F) {
	f.Add(codexOld)
	f.Add("[a]\r\nb = 1\r\n")
	f.Add("a.\"b\\\"c\".d = '''x''''\n")
	f.Fuzz(func(t *testing.T, old string) {
		path, lines := []string{"mcp_servers", "tapin"}, []string{`command = "tapin"`}
		got, err := setTable(old, path, lines)
		if err != nil {
			return
		}
		if again, err := setTable(got, path, lines); err != nil || again != got {
			t.Fatalf("%q became %q, then %q (%v)", old, got, again, err)
		}
		before, err := statements(old)
		if err != nil {
			t.Fatalf("%q was changed and cannot be read: %v", old, err)
		}
		// Whatever does not belong to the table is there as it was.
		inside := false
		for _, s := range before {
			if s.header {
				inside = len(s.name) == 2 && s.name[0] == path[0] && s.name[1] == path[1]
			}
			if !inside && !strings.Contains(got, old[s.start:s.end]) {
				t.Fatalf("%q lost %q", old, old[s.start:s.end])
			}
		}
	})
}

func TestTextsSurviveTOML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		if list, err := statements("a = " + tomlText(s) + "\n"); err != nil || len(list) != 1 {
			t.Fatalf("%q is written as %s: %v", s, tomlText(s), err)
		}
	})
}

func TestInstallingShowsAsksKeepsAndWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mcp", "install", "claude-code")
	user := strings.TrimPrefix(w.Environ[0], "HOME=")
	file := filepath.Join(user, ".claude.json")
	const old = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}\n"
	if err := os.WriteFile(file, []byte(old), 0o640); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) (string, int) {
		w.Stdin, w.Args = strings.NewReader(stdin), append([]string{"tapin", "mcp", "install", "claude-code"}, args...)
		w.stdout.Reset()
		w.stderr.Reset()
		code := Main(t.Context(), w.Env)
		return w.stdout.String() + w.stderr.String(), code
	}
	read := func() string {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for _, no := range []struct {
		stdin string
		args  []string
	}{{"n\n", nil}, {"", nil}, {"yesterday\n", nil}, {"y\n", []string{"--dry-run"}}} {
		said, code := run(no.stdin, no.args...)
		if code != 0 || read() != old || !strings.Contains(said, "+ ") || !strings.Contains(said, "Nothing was changed") {
			t.Errorf("%v: %d %s", no, code, said)
		}
	}
	if said, code := run("", "--json"); code == 0 || read() != old {
		t.Errorf("nobody was asked: %s", said)
	}
	if said, code := run("y\n"); code != 0 || !strings.Contains(said, "Written") {
		t.Fatalf("%d %s", code, said)
	}
	var got struct {
		NumStartups int
		MCPServers  map[string]entry `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(read()), &got); err != nil || got.NumStartups != 3 || got.MCPServers["tapin"].Command == "" {
		t.Fatalf("it became %s", read())
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v", info.Mode())
	}
	kept, err := filepath.Glob(file + ".*.bak")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	if raw, err := os.ReadFile(kept[0]); err != nil || string(raw) != old {
		t.Errorf("kept %s", raw)
	}
	if said, code := run(""); code != 0 || !strings.Contains(said, "already") {
		t.Errorf("the second time: %s", said)
	}
	if err := os.WriteFile(file, []byte("{ // mine\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, code := run("y\n"); code == 0 || read() != "{ // mine\n}" || !strings.Contains(said, "left as it is") {
		t.Errorf("a file that cannot be read became %s: %s", read(), said)
	}
}

func TestASkillIsInstalledWhereAgentsLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "skill", "install", "claude-code", "--yes")
	if code := Main(t.Context(), w.Env); code != 0 {
		t.Fatal(w.stderr.String())
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimPrefix(w.Environ[0], "HOME="), ".claude", "skills", "tapin", "SKILL.md"))
	if err != nil || !strings.HasPrefix(string(raw), "---\nname: tapin\ndescription: ") {
		t.Fatalf("%v: %.100s", err, raw)
	}
}

func TestAFileThatChangedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("a = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := edit(file, func([]byte) ([]byte, error) { return []byte("a = 2\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("a = 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.write(); err == nil {
		t.Error("it was written")
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if raw, _ := os.ReadFile(file); string(raw) != "a = 3\n" || err != nil || len(left) != 1 {
		t.Errorf("it became %s, beside %v", raw, left)
	}
}
