package guard

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tapin/internal/store"
)

func TestAListOfWhatIsLeftOutThatCannotBeUsedIsPutAside(t *testing.T) {
	t.Parallel()
	for what, put := range map[string]func(path string) error{
		"garbage":  func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) },
		"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"too much": func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 4<<30)
		},
	} {
		home, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = home.Close() })
		if err := put(filepath.Join(home.Path(), LeftOutFile)); err != nil {
			t.Fatal(err)
		}
		out := OpenLeftOut(home.Path(), "1")
		if len(out.List()) != 0 {
			t.Errorf("%s: something is left out", what)
		}
		MendLeftOut(home)
		if err := out.Leave(Figures, "x"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		MendLeftOut(home)
		if got := out.List(); len(got) != 1 || len(home.Damages()) != 1 {
			t.Errorf("%s: %v is left out; told: %v", what, got, home.Damages())
		}
	}
}
