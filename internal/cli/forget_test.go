package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestForgettingSaysWhatIsLeftAndFailsUntilItIsDoneOrGivenUp(t *testing.T) {
	t.Parallel()
	home, keys := filepath.Join(t.TempDir(), "home"), &memory{entries: map[string]string{}}
	run := func(stdin string, args ...string) (int, string) {
		t.Helper()
		w := newWorld(t, append([]string{"--home", home}, args...)...)
		w.Stdin, w.Keyring = strings.NewReader(stdin), keys
		code := Main(context.Background(), w.Env)
		return code, w.stdout.String() + w.stderr.String()
	}
	keep := func() {
		t.Helper()
		if code, said := run("hunter2\n", "credential", "set", "chase.example"); code != 0 {
			t.Fatalf("%d %s", code, said)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	put("credentials.json", `{"sites":["chase.example","www.chase.example"]}`) // the other was never stored
	put("approvals/apr_torn.json", `{"site":"cha`)
	put("config.yaml", "# not for chase.example\nmax_sessions: 2\n")
	code, said := run("", "forget", "chase.example", "--yes")
	if code == 0 || !strings.Contains(said, "apr_torn.json, which cannot be read") || !strings.Contains(said, "--drop") || !strings.Contains(said, "config.yaml is your own text") || !strings.Contains(said, "credential") {
		t.Errorf("%d %s", code, said)
	}
	for name := range keys.entries {
		if strings.Contains(name, "chase") {
			t.Errorf("the keychain still has %s", name)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(home, "credentials.json")); err != nil || strings.Contains(string(raw), "chase") { //nolint:gosec // of this test
		t.Errorf("the names are %s, %v", raw, err)
	}
	if code, said := run("", "forget", "chase.example", "--yes", "--json"); code == 0 || !strings.Contains(said, `"ok":false`) || !strings.Contains(said, `"left":["approvals/apr_torn.json"]`) {
		t.Errorf("%d %s", code, said)
	}
	if code, said := run("", "forget", "chase.example", "--drop"); code != 0 || !strings.Contains(said, "what is left stays") {
		t.Errorf("%d %s", code, said)
	}
	if code, said := run("", "forget", "chase.example", "--drop"); code == 0 || !strings.Contains(said, "is not being forgotten") {
		t.Errorf("%d %s", code, said)
	}
	put("approvals/apr_torn.json", `{"site":"chase.example"}`)
	if code, said := run("", "forget", "chase.example", "--yes"); code != 0 || !strings.Contains(said, "Not taken back") {
		t.Errorf("%d %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(home, "forget.json")); err == nil {
		t.Error("the wish is still there")
	}
}
