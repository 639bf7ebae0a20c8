package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tapin/internal/fault"
)

// broken is a home that somebody holds a lock in, and that Open then refuses.
func broken(t *testing.T, spoil func(h *Home)) string {
	t.Helper()
	h := openHome(t)
	unlock, ok, err := h.TryLock("daemon")
	must(t, err)
	if !ok {
		t.Fatal("not locked")
	}
	t.Cleanup(unlock)
	spoil(h)
	if _, err := Open(h.Path(), nil); !errors.Is(err, fault.Forbidden) {
		t.Fatalf("the home is not refused: %v", err)
	}
	return h.Path()
}

func TestGlanceFindsWhatRunsInAHomeThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil   func(t *testing.T, h *Home)
		private bool
	}{
		"for others can write to it":  {func(t *testing.T, h *Home) { must(t, os.Chmod(h.Path(), 0o777)) }, false},     //nolint:gosec // what is under test
		"for its schema is no number": {func(t *testing.T, h *Home) { must(t, h.Write("schema", []byte("x"))) }, true}, // as an editor may leave it
		"for its schema is newer":     {func(t *testing.T, h *Home) { must(t, h.Write("schema", []byte("999"))) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := Glance(broken(t, func(h *Home) { tt.spoil(t, h) }))
			must(t, err)
			defer h.Close()
			if pid, held, err := h.LockHolder("daemon"); err != nil || !held || pid != os.Getpid() {
				t.Errorf("holder %d, held %v, %v", pid, held, err)
			}
			if err := h.Private(); (err == nil) != tt.private {
				t.Errorf("private: %v", err)
			}
		})
	}
}

func TestGlanceBelievesNoLockThatOthersCouldHaveMade(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(t *testing.T, locks string){
		"a file that others can write":   func(t *testing.T, locks string) { must(t, os.Chmod(filepath.Join(locks, "daemon"), 0o666)) }, //nolint:gosec // what is under test
		"a folder that others can write": func(t *testing.T, locks string) { must(t, os.Chmod(locks, 0o777)) },                          //nolint:gosec // what is under test
		"a link": func(t *testing.T, locks string) {
			must(t, os.Rename(filepath.Join(locks, "daemon"), filepath.Join(locks, "other")))
			must(t, os.Symlink("other", filepath.Join(locks, "daemon")))
		},
		"a file of another user": func(t *testing.T, locks string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			must(t, os.Chown(filepath.Join(locks, "daemon"), 12345, -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := broken(t, func(h *Home) { must(t, os.Chmod(h.Path(), 0o777)) }) //nolint:gosec // what is under test
			forge(t, filepath.Join(path, lockFolder))
			h, err := Glance(path)
			must(t, err)
			defer h.Close()
			if pid, _, err := h.LockHolder("daemon"); !errors.Is(err, fault.Forbidden) || pid != 0 {
				t.Fatalf("named %d, %v", pid, err)
			}
		})
	}
}

func TestAHomeWithoutItsOwnersRightsIsFound(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(path string) (*Home, error){
		"by Open":   func(path string) (*Home, error) { return Open(path, nil) },
		"by Glance": Glance,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []os.FileMode{0o000, 0o400, 0o500, 0o600} {
				held := openHome(t)
				unlock, _, err := held.TryLock("daemon")
				must(t, err)
				t.Cleanup(unlock)
				must(t, os.Chmod(held.Path(), mode))
				h, err := look(held.Path())
				if err != nil {
					t.Errorf("mode %04o: %v", mode, err)
					continue
				}
				if pid, _, err := h.LockHolder("daemon"); err != nil || pid != os.Getpid() {
					t.Errorf("mode %04o: holder %d, %v", mode, pid, err)
				}
				must(t, h.Close())
				if info, err := os.Stat(held.Path()); err != nil || info.Mode().Perm() != folderMode {
					t.Errorf("mode %04o became %v, %v", mode, info.Mode(), err)
				}
			}
		})
	}
}

func TestGlanceMakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := Glance(dir)
	must(t, err)
	defer h.Close()
	if pid, held, err := h.LockHolder("daemon"); err != nil || held || pid != 0 {
		t.Errorf("holder %d, held %v, %v", pid, held, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("made %v, %v", left, err)
	}
	if _, err := Glance(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a home that is not there: %v", err)
	}
}

func TestAHomeInAnImpossiblePlaceIsTheCallersMistake(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	loop := filepath.Join(t.TempDir(), "loop")
	must(t, os.Symlink(loop, loop))
	dead := filepath.Join(t.TempDir(), "dead")
	must(t, os.Symlink("nowhere", dead))
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for name, path := range map[string]string{
		"a file":       file,
		"under a file": filepath.Join(file, "home"),
		"a loop":       loop,
		"a dead link":  dead,
		"a pipe":       pipe,
		"a long name":  filepath.Join(t.TempDir(), strings.Repeat("a", 300)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, look := range []func() (*Home, error){
				func() (*Home, error) { return Open(path, nil) },
				func() (*Home, error) { return Glance(path) },
			} {
				_, err := look()
				if !errors.Is(err, fault.InvalidRequest) || fault.Of(err).Advice() == fault.InvalidRequest.Hint() {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
