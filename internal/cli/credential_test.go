package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

const keptCanary = "canary-kept-3b7f"

// memory is a keychain that a test can look into.
type memory struct {
	entries map[string]string
	err     error
}

func (m *memory) Get(service, _ string) (string, error) {
	value, ok := m.entries[service]
	if !ok && m.err == nil {
		return "", keyring.ErrNotFound
	}
	return value, m.err
}

func (m *memory) Set(service, _, value string) error {
	if m.err == nil {
		m.entries[service] = value
	}
	return m.err
}

func (m *memory) Delete(service, _ string) error {
	if _, ok := m.entries[service]; !ok && m.err == nil {
		return keyring.ErrNotFound
	}
	delete(m.entries, service)
	return m.err
}

func TestCredentialsAreKeptListedAndDeleted(t *testing.T) {
	t.Parallel()
	home, keys := filepath.Join(t.TempDir(), "home"), &memory{entries: map[string]string{}}
	run := func(stdin string, args ...string) (int, string) {
		t.Helper()
		w := newWorld(t, append([]string{"--home", home}, args...)...)
		w.Stdin, w.Keyring = strings.NewReader(stdin), keys
		w.Environ = append(w.Environ, "SHOP_LOGIN={}")
		code := Main(context.Background(), w.Env)
		said := w.stdout.String() + w.stderr.String()
		if strings.Contains(said, keptCanary) || strings.Contains(said, "GEZDGNBV") {
			t.Errorf("%v says the secret: %s", args, said)
		}
		return code, said
	}
	for _, tt := range []struct {
		stdin string
		args  []string
		fails bool
		says  string
	}{
		{"", []string{"credential", "list"}, false, "No credentials are kept"},
		{keptCanary + "\n", []string{"credential", "set", "chase.com", "--username", "ada"}, false, "for chase.com alone"},
		{"GEZD GNBV GY3T QOJQ", []string{"credential", "set", "chase.com", "--totp"}, false, "for chase.com alone"},
		{keptCanary, []string{"credential", "set", "work", "--domain", "https://login.example.com/x"}, false, "for example.com alone"},
		{keptCanary + "2", []string{"credential", "set", "work"}, false, "for example.com alone"},
		{keptCanary, []string{"credential", "set", "nowhere"}, true, "--domain"},
		{"", []string{"credential", "set", "chase.com"}, true, "the password is empty"},
		{keptCanary, []string{"credential", "set", "a/b"}, true, "not the name of a credential"},
		{"nonsense!", []string{"credential", "set", "chase.com", "--totp"}, true, "base32"},
		{"x", []string{"credential", "set", "chase.com", "--totp", "--username", "ada"}, true, "goes without"},
		{keptCanary, []string{"credential", "set", "chase.com", keptCanary[:6]}, true, "accepts 1 arg"},
		{"", []string{"credential", "list"}, false, "chase.com  login, one-time codes"},
		{"", []string{"--json", "credential", "list"}, false, `"credentials":[{"site":"chase.com","login":"keychain","totp":"keychain"},{"site":"work","login":"keychain"}]`},
		{"", []string{"credential", "delete", "chase.com"}, false, "is deleted"},
		{"", []string{"credential", "delete", "chase.com"}, true, "none of that name"},
	} {
		code, said := run(tt.stdin, tt.args...)
		if (code != 0) != tt.fails || !strings.Contains(said, tt.says) {
			t.Errorf("%v exited with %d: %s", tt.args, code, said)
		}
	}
	if got := keys.entries["credential-work-login"]; len(keys.entries) != 1 || got != `{"password":"`+keptCanary+`2","domain":"example.com"}` {
		t.Errorf("the keychain has %d entries", len(keys.entries))
	}
	err := fs.WalkDir(os.DirFS(home), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := fs.ReadFile(os.DirFS(home), path)
		if strings.Contains(string(raw), keptCanary) || path == "vault.key" {
			t.Errorf("%s has what the keychain should", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	keys.err = errors.New("locked")
	if code, said := run(keptCanary, "credential", "set", "chase.com"); code == 0 || !strings.Contains(said, "keychain cannot be used") {
		t.Errorf("with a locked keychain: %d, %s", code, said)
	}
}

func TestTheDoctorSaysWhatStandsBetweenAgentAndOwner(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		uid  int
		want verdict
		says string
	}{
		"ada":   {1000, note, "An agent that runs as ada too can read"},
		"tapin": {480, good, "a user of its own, tapin"},
		"root":  {0, warn, "runs as root"},
	} {
		f := boundary(name, tt.uid)
		if f.Verdict != tt.want || !strings.Contains(f.Text, tt.says) || (f.Verdict == good) != (f.Fix == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
