package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/backup"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

func TestAFullStickIsNotTheDiskOfTheHome(t *testing.T) {
	t.Parallel()
	home, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	to := &backupFile{file: full, path: "/media/stick/tapin.backup"}
	_, err = backup.Make(t.Context(), to, home, secret.New("correct horse battery"), nil)
	if err == nil || !errors.Is(to.full, fault.StorageFull) || !strings.Contains(fault.Of(to.full).Advice(), to.path) {
		t.Errorf("it says %v, and %v", err, to.full)
	}
}

func TestAManifestOutsideOfTheHomeIsNamed(t *testing.T) {
	t.Parallel()
	home, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	outside := filepath.Join(t.TempDir(), "logins.yaml")
	for file, content := range map[string]string{outside: "contexts: {}\n", filepath.Join(home.Path(), configFile): "integrations:\n  browserbase:\n    context_store: " + outside + "\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{home: home.Path()}
	if name, out := a.manifestOf(home); name != "" || len(out) != 1 || out[0].Name != outside {
		t.Errorf("it says %q, %v", name, out)
	}
}

func TestTheDoctorNamesAndRemovesWhatARestoreLeft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home")
	home, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	left := path + ".restoring-123"
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, ".restoring"), nil, 0o600), os.WriteFile(filepath.Join(left, "vault.key"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a := &app{home: path, env: Env{Stderr: io.Discard, IsTerminal: func(io.Writer) bool { return false }}}
	found := a.examineLeftovers(home, daemon.Running{})
	if len(found) != 1 || found[0].mend == nil || !strings.Contains(found[0].Text, left) {
		t.Fatalf("found %+v", found)
	}
	if _, err := found[0].mend.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); err == nil || len(a.examineLeftovers(home, daemon.Running{})) != 0 {
		t.Error("it is still there")
	}
}
