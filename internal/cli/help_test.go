package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
)

func rootOf(t *testing.T) *cobra.Command {
	t.Helper()
	a := &app{env: newWorld(t).Env, program: "tapin"}
	return a.root()
}

// The first words of what commands say they do. A new one is welcome; a noun is not.
var verbs = strings.Fields(`Add Allow Answer Ask Become Bring Call Change Check Choose Clear Click Close Delete Drag End Fill
	Find Follow Free Give Go Hand Have Install Keep Let List Load Look Make Move Open Photograph Press Print Put Read Refuse Run
	Save Say Scroll Serve Set Show Sign Start Stop Switch Take Teach Tell Try Type Wait Play`)

var exampleLine = regexp.MustCompile(`(?:^|\| |\(|sudo |EDITOR=nano )tapin((?: [^|>)]*)?)`)

func TestTheHelpIsOneText(t *testing.T) {
	t.Parallel()
	root := rootOf(t)
	for _, cmd := range available(root) {
		m := manualOf(cmd)
		name := m.Command
		first, _, _ := strings.Cut(m.Summary, " ")
		if cmd != root && !slices.Contains(verbs, strings.TrimSuffix(first, ",")) {
			t.Errorf("%s: %q does not begin with what it does", name, m.Summary)
		}
		if strings.HasSuffix(m.Summary, ".") != (cmd == root) {
			t.Errorf("%s: %q is a headline, without a full stop", name, m.Summary)
		}
		if len(m.Examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		if !strings.HasSuffix(strings.TrimSpace(m.About), ".") && !strings.Contains(m.About, "\n  ") {
			t.Errorf("%s: %q is no sentence", name, m.About)
		}
		for _, line := range append(strings.Split(m.About, "\n"), m.Examples...) {
			if n := len([]rune(line)); n > 90 {
				t.Errorf("%s: a line of %d letters: %s", name, n, line)
			}
		}
		for _, e := range m.Examples {
			tryExample(t, root, name, e)
		}
		for _, f := range m.Flags {
			if f.About == "" || strings.HasSuffix(f.About, ".") || strings.ToUpper(f.About[:1]) == f.About[:1] && f.About[:1] != "N" {
				t.Errorf("%s %s: %q", name, f.Name, f.About)
			}
		}
	}
}

// tryExample sees that an example calls a command that exists, with flags that it has.
func tryExample(t *testing.T, root *cobra.Command, name, example string) {
	t.Helper()
	line, _, _ := strings.Cut(example, "   ") // a remark behind it
	found := exampleLine.FindAllStringSubmatch(line, -1)
	if len(found) == 0 {
		t.Errorf("%s: %q does not call tapin", name, example)
	}
	for _, call := range found {
		args := strings.Fields(call[1])
		cmd, rest, err := root.Find(args)
		if err != nil || cmd == root && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			t.Errorf("%s: %q calls no command: %v", name, example, err)
			continue
		}
		for _, word := range rest {
			flag, ok := strings.CutPrefix(word, "--")
			flag, _, _ = strings.Cut(flag, "=")
			if ok && cmd.Flags().Lookup(flag) == nil && cmd.InheritedFlags().Lookup(flag) == nil {
				t.Errorf("%s: %q has a flag --%s that does not exist", name, example, flag)
			}
		}
	}
}

func TestEveryCommandAnswersInJSON(t *testing.T) {
	t.Parallel()
	// What speaks a protocol of its own on standard output, or never ends.
	except := []string{"tapin mcp", "tapin sidecar", "tapin up"}
	needs := map[string][]string{ // arguments that get as far as the answer
		"tapin completion": {"bash"}, "tapin config set": {"lan=watch"}, "tapin token new": {"x"}, "tapin service install": {"--print"},
		"tapin man": {"open"}, "tapin mcp install": {"json"}, "tapin skill install": {"print"},
	}
	for _, cmd := range available(rootOf(t)) {
		name := cmd.CommandPath()
		if slices.Contains(except, name) {
			continue
		}
		args := append(strings.Fields(name)[1:], needs[name]...)
		if needs[name] == nil {
			for _, word := range strings.Fields(cmd.Use)[1:] {
				if !strings.HasPrefix(word, "[") && !strings.HasPrefix(word, "-") {
					args = append(args, strings.ToLower(strings.Split(word, "|")[0]))
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append([]string{"--json", "--home", filepath.Join(t.TempDir(), "home")}, args...)...)
			w.Environ = append(w.Environ, "PATH="+os.Getenv("PATH"))
			code := Main(t.Context(), w.Env)
			if w.stdout.Len() == 0 {
				t.Fatalf("nothing was said; exit code %d, %s", code, &w.stderr)
			}
			for line := range strings.Lines(w.stdout.String()) {
				var said struct {
					OK      *bool  `json:"ok"`
					Error   string `json:"error"`
					Details string `json:"details"`
					Hint    string `json:"hint"`
				}
				if err := json.Unmarshal([]byte(line), &said); err != nil || said.OK == nil {
					t.Fatalf("%v: %s", err, line)
				}
				// doctor has found something, and says so in its answer.
				if *said.OK != (code == 0) && name != "tapin doctor" || !*said.OK && (said.Error == "" || said.Details == "" || said.Hint == "") {
					t.Errorf("exit code %d with %s", code, line)
				}
			}
		})
	}
}

func TestExitCodesAreAllExplained(t *testing.T) {
	t.Parallel()
	for _, c := range fault.Codes() {
		known := false
		for _, e := range exitCodes {
			known = known || e.code == c.Exit()
		}
		if !known {
			t.Errorf("%s ends with %d, which is not explained", c, c.Exit())
		}
	}
	w := newWorld(t, "help", "exit-codes")
	if code := Main(t.Context(), w.Env); code != 0 || !strings.Contains(w.stdout.String(), "BROWSER_LOST") || !strings.Contains(w.stdout.String(), "130") {
		t.Errorf("%d: %s", code, &w.stdout)
	}
}

func TestManPagesSayWhatTheHelpSays(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "man1")
	w := newWorld(t, "--json", "man", "--into", folder)
	if code := Main(t.Context(), w.Env); code != 0 {
		t.Fatalf("%d: %s", code, &w.stdout)
	}
	for _, cmd := range available(rootOf(t)) {
		raw, err := os.ReadFile(filepath.Join(folder, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(raw)
		if !strings.HasPrefix(page, ".TH TAPIN") || !strings.Contains(page, roff(cmd.Short)) || !strings.Contains(page, ".SH EXIT STATUS") {
			t.Errorf("%s: %s", manName(cmd), page)
		}
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|B|BR|PP|TP|nf|fi)\b`).MatchString(line) {
				t.Errorf("%s has a line that man would obey: %s", manName(cmd), line)
			}
		}
	}
}
