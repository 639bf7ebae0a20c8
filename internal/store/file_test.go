package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
)

func TestFilesAreWrittenPrivateAndWhole(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	must(t, h.Write("a/b/c.json", []byte("old")))
	must(t, h.Write("a/b/c.json", []byte("new")))
	data, err := h.Read("a/b/c.json")
	must(t, err)
	if string(data) != "new" {
		t.Errorf("read %q", data)
	}
	for name, want := range map[string]fs.FileMode{"a": 0o700, "a/b": 0o700, "a/b/c.json": 0o600} {
		info, err := os.Stat(filepath.Join(h.Path(), name))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", name, info.Mode().Perm(), want)
		}
	}
}

func TestJSONGoesInAndComesOut(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	type record struct{ A, B string }
	want := record{"x", "<&>\n"}
	must(t, h.WriteJSON("r.json", want))
	var got record
	must(t, h.ReadJSON("r.json", &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	must(t, h.Write("r.json", []byte(`{"A":`)))
	if err := h.ReadJSON("r.json", &got); err == nil || !strings.Contains(err.Error(), "r.json") {
		t.Errorf("a damaged file gave %v", err)
	}
	if err := h.WriteJSON("r.json", make(chan int)); err == nil {
		t.Error("what has no JSON was written")
	}
}

func TestMissingFilesSaySo(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	_, readErr := h.Read("no/such")
	for name, err := range map[string]error{
		"read": readErr, "read json": h.ReadJSON("no", new(int)), "remove": h.Remove("no"),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, h.RemoveAll("no/such"))
	names, err := h.List("no")
	if err != nil || len(names) != 0 {
		t.Errorf("list: %v, %v", names, err)
	}
}

func TestListRemoveAndExists(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	for _, name := range []string{"d/b", "d/a", "d/c"} {
		must(t, h.Write(name, nil))
	}
	must(t, h.Remove("d/b"))
	names, err := h.List("d")
	must(t, err)
	if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
		t.Error(diff)
	}
	must(t, h.RemoveAll("d"))
	for name, want := range map[string]bool{"d": false, "d/a": false, "schema": true} {
		got, err := h.Exists(name)
		if err != nil || got != want {
			t.Errorf("exists %s: %v, %v", name, got, err)
		}
	}
}

func TestOnlyOneCreates(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := h.Create("tokens/x", fmt.Append(nil, i))
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("create: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d created it", won.Load())
	}
	assertNoTemps(t, h)
}

func TestNamesDoNotEscapeTheHome(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	outside := filepath.Join(filepath.Dir(h.Path()), "outside")
	must(t, os.Mkdir(outside, 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("theirs"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(h.Path(), "link")))
	must(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(h.Path(), "flink")))
	for _, name := range []string{"../outside/f", "a/../../outside/f", "link/f", filepath.Join(outside, "f"), "flink"} {
		if data, err := h.Read(name); err == nil {
			t.Errorf("read %s gave %q", name, data)
		}
		if name == "flink" {
			continue // a write replaces the link itself, inside the home
		}
		for op, err := range map[string]error{
			"write": h.Write(name, []byte("ours")), "create": h.Create(name+"2", nil),
			"remove": h.Remove(name), "remove all": h.RemoveAll(name),
		} {
			if err == nil {
				t.Errorf("%s %s went through", op, name)
			}
		}
		if l, err := h.OpenLog(name, nil); err == nil {
			t.Errorf("log %s was opened", name)
			_ = l.Close()
		}
	}
	data, err := os.ReadFile(filepath.Join(outside, "f"))
	must(t, err)
	entries, err := os.ReadDir(outside)
	must(t, err)
	if string(data) != "theirs" || len(entries) != 1 {
		t.Errorf("the outside was touched: %q, %v", data, entries)
	}
	if err := h.RemoveAll("."); err == nil {
		t.Error("the home removed itself")
	}
}

func TestAFullDiskChangesNothing(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		h := openHome(t)
		must(t, h.Write("r", []byte("old")))
		l, err := h.OpenLog("l", nil)
		must(t, err)
		defer l.Close()
		must(t, l.Append([]byte(`1`)))

		h.write = func(_ string, f *os.File, data []byte, _ bool) error {
			_, _ = f.Write(data[:len(data)/2])
			return &fs.PathError{Op: "write", Path: f.Name(), Err: errno}
		}
		for op, err := range map[string]error{
			"write": h.Write("r", []byte("newer")), "create": h.Create("c", []byte("new")), "append": l.Append([]byte(`22`)),
		} {
			if !errors.Is(err, fault.StorageFull) {
				t.Errorf("%s: %v", op, err)
			}
		}
		h.write = h.writeFile

		must(t, l.Append([]byte(`3`)))
		data, err := h.Read("r")
		must(t, err)
		lines, err := h.Read("l")
		must(t, err)
		if exists, _ := h.Exists("c"); exists || string(data) != "old" || string(lines) != "1\n3\n" {
			t.Errorf("something was changed: %q, %q", data, lines)
		}
		assertNoTemps(t, h)
	}
}

func assertNoTemps(t *testing.T, h *Home) {
	t.Helper()
	names, err := h.List(h.scratch)
	must(t, err)
	if diff := cmp.Diff([]string{"owner"}, names); diff != "" {
		t.Errorf("temp files are left: %s", diff)
	}
}
