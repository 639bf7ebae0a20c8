package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
)

func openHome(t *testing.T) *Home {
	t.Helper()
	h, err := Open(filepath.Join(t.TempDir(), "home"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenMakesAPrivateHomeWithASchema(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	info, err := os.Stat(h.Path())
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("home has mode %04o", info.Mode().Perm())
	}
	schema, err := h.Read("schema")
	must(t, err)
	if string(schema) != "1\n" {
		t.Errorf("schema is %q", schema)
	}
}

func TestOpenClosesAHomeThatOthersCanRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	h, err := Open(dir, nil)
	must(t, err)
	defer h.Close()
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("home has mode %04o", info.Mode().Perm())
	}
}

func TestOpenRefusesAndChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode   fs.FileMode
		schema string
		says   string
	}{
		"a home the group can write to": {0o770, "", "other users can write"},
		"a home all can write to":       {0o777, "1\n", "other users can write"},
		"a home of a newer tapin":       {0o755, "2\n", "schema 2, this tapin knows up to 1"},
		"a schema that is no number":    {0o755, "x\n", "no version number"},
		"a schema of zero":              {0o755, "0\n", "no version number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tt.schema != "" {
				must(t, os.WriteFile(filepath.Join(dir, "schema"), []byte(tt.schema), 0o600))
			}
			must(t, os.Chmod(dir, tt.mode))
			before, err := os.ReadDir(dir)
			must(t, err)
			_, err = Open(dir, nil)
			f := fault.Of(err)
			if f == nil || f.Code != fault.Forbidden || !strings.Contains(f.Details(), tt.says) || f.Hint == "" {
				t.Fatalf("got %+v", f)
			}
			after, err := os.ReadDir(dir)
			must(t, err)
			info, err := os.Stat(dir)
			must(t, err)
			if len(before) != len(after) || info.Mode().Perm() != tt.mode {
				t.Errorf("the home was changed: %v, mode %04o", after, info.Mode().Perm())
			}
		})
	}
}

func TestMigrationsRunOnceAndInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var ran []int
	step := func(to int, err error) migration {
		return migration{to, func(*Home) error { ran = append(ran, to); return err }}
	}
	reopen := func(steps ...migration) error {
		h, err := open(dir, nil, steps)
		if err == nil {
			err = h.Close()
		}
		return err
	}
	must(t, reopen(step(1, nil)))
	broken := errors.New("broken")
	if err := reopen(step(1, nil), step(2, nil), step(3, broken)); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	must(t, reopen(step(1, nil), step(2, nil), step(3, nil)))
	must(t, reopen(step(1, nil), step(2, nil), step(3, nil)))
	if diff := cmp.Diff([]int{1, 2, 3, 3}, ran); diff != "" {
		t.Error(diff)
	}
}

func TestCloseLeavesNothingBehindAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir(), nil)
	must(t, err)
	must(t, h.Write("a", nil))
	must(t, h.Close())
	must(t, h.Close())
	left, err := os.ReadDir(filepath.Join(h.Path(), "tmp"))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := h.Write("b", nil); err == nil {
		t.Error("a closed home was written to")
	}
}

func TestSweepTakesTheDeadAndLeavesTheLiving(t *testing.T) {
	t.Parallel()
	living := openHome(t)
	must(t, living.Write("a", nil))
	dead := filepath.Join(living.Path(), "tmp", "dead")
	must(t, os.MkdirAll(dead, 0o700))
	must(t, os.WriteFile(filepath.Join(dead, "half"), []byte("ha"), 0o600))
	must(t, os.WriteFile(filepath.Join(living.Path(), "tmp", "stray"), nil, 0o600))

	second, err := Open(living.Path(), nil)
	must(t, err)
	defer second.Close()
	left, err := living.List("tmp")
	must(t, err)
	if diff := cmp.Diff([]string{filepath.Base(living.scratch)}, left); diff != "" {
		t.Error(diff)
	}
	must(t, living.Write("a", []byte("still able to write")))
}
