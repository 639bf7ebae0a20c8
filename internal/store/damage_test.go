package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
)

// Whatever is done to a file that holds the truth, it stays as it is until
// somebody mends it, and then all is as before.
func TestWhatCannotBeReadIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	type record struct {
		ID string `json:"id"`
	}
	for what, content := range map[string]string{"empty": "", "half": `{"id":"on`, "garbage": "\x00\xffnonsense", "nothing": "null", "another's": `{"id":"two"}`, "a folder": "/"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := openHome(t)
			var told []string
			h.OnDamage(func(d Damage, again bool) { told = append(told, fmt.Sprintf("%s %v", d.File, again)) })
			const name = "sessions/one.json"
			must(t, h.WriteJSON(name, record{"one"}))
			file := filepath.Join(h.Path(), name)
			must(t, os.Remove(file))
			if content == "/" {
				must(t, os.Mkdir(file, 0o700))
			} else {
				must(t, os.WriteFile(file, []byte(content), 0o600))
			}
			var rec record
			read := func() error { rec = record{}; return h.ReadRecord(name, &rec, Of(&rec.ID, "one")) }
			for range 2 {
				if err := read(); !errors.Is(err, fault.Unreadable) || !strings.Contains(err.Error(), name) {
					t.Fatalf("reading it: %v", err)
				}
			}
			for _, err := range []error{h.WriteJSON(name, rec), h.Remove(name), h.RemoveAll("sessions")} {
				if !errors.Is(err, fault.Unreadable) {
					t.Errorf("changing it: %v", err)
				}
			}
			if content != "/" {
				if raw, err := os.ReadFile(file); err != nil || string(raw) != content {
					t.Errorf("it holds %q now, %v", raw, err)
				}
			}
			must(t, os.RemoveAll(file))
			must(t, os.WriteFile(file, []byte(`{"id":"one"}`), 0o600))
			must(t, read())
			must(t, h.WriteJSON(name, rec))
			if want := fmt.Sprint([]string{name + " false", name + " true"}); fmt.Sprint(told) != want {
				t.Errorf("told %v, want %v", told, want)
			}
		})
	}
}

func TestWhatCanBeMadeAnewIsPutAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := openHome(t)
		var told []Damage
		h.OnDamage(func(d Damage, _ bool) { told = append(told, d) })
		type book struct {
			Days map[string]int `json:"days"`
		}
		use := func(b *book) error {
			if b.Days == nil {
				return errors.New("it has no days")
			}
			return nil
		}
		read := func() bool { _, ok := Derived(h, "figures.json", use); return ok }
		if read() || len(told) != 0 {
			t.Fatal("a missing one is told of")
		}
		file := filepath.Join(h.Path(), "figures.json")
		contents := []string{"", "{", `{"days":null}`, `[]`, "/"}
		for i, content := range contents {
			if content == "/" {
				must(t, os.Mkdir(file, 0o700))
			} else {
				must(t, os.WriteFile(file, []byte(content), 0o600))
			}
			if read() || read() || len(told) != i+1 || told[i].Aside == "" {
				t.Fatalf("%q: told %+v", content, told)
			}
			must(t, h.WriteJSON("figures.json", book{map[string]int{}}))
			if !read() {
				t.Fatalf("%q: what is new cannot be read", content)
			}
			must(t, h.Remove("figures.json"))
			time.Sleep(time.Second)
		}
		names, err := h.List(".")
		must(t, err)
		left := 0
		for _, name := range names {
			if strings.HasPrefix(name, "figures.json.damaged-") {
				left++
			}
		}
		if left != asideKept {
			t.Errorf("%d of them are kept: %v", left, names)
		}
	})
}

func TestATruthIsNotWrittenWhileItCannotBeRead(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	const name = "owners.json"
	type book struct{ Version int }
	check := func(b *book) error {
		if b.Version == 0 {
			return errors.New("it has no version")
		}
		return nil
	}
	var now book
	f := OpenTruth(h, name, &now, check)
	for i := range 3 {
		must(t, f.Write(book{i + 1}))
	}
	file := filepath.Join(h.Path(), name)
	for _, damage := range []func() error{
		func() error { return os.WriteFile(file, []byte("{}"), 0o600) },
		func() error { return os.Remove(file) },
	} {
		must(t, damage())
		now = book{}
		f = OpenTruth(h, name, &now, check)
		if err := f.Ready(); !errors.Is(err, fault.Unreadable) {
			t.Fatalf("it is ready: %v", err)
		}
		if err := f.Write(book{9}); !errors.Is(err, fault.Unreadable) {
			t.Fatalf("it is written: %v", err)
		}
		must(t, h.TakeBefore(name))
		must(t, f.Ready()) // without a restart
		if now.Version != 2 {
			t.Fatalf("version %d is back, want 2", now.Version)
		}
	}
	if len(h.Damages()) == 0 {
		t.Error("nothing is said of what was put aside")
	}
}

func TestAHomeWhoseCounterCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	first, err := h.Counter("epoch")
	must(t, err)
	path := h.Path()
	must(t, h.Close())
	must(t, os.WriteFile(filepath.Join(path, "counters/epoch"), []byte("x"), 0o600))
	if _, err := Open(path, nil); !errors.Is(err, fault.Unreadable) || fault.Of(err).Advice() == "" {
		t.Fatalf("it opens: %v", err)
	}
	h, err = Glance(path)
	must(t, err)
	must(t, h.MendCounter("epoch"))
	must(t, h.Close())
	h, err = Open(path, nil)
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	if next, err := h.Counter("epoch"); err != nil || next <= first+1e9 {
		t.Fatalf("the next number is %d, %v", next, err)
	}
}

func TestALogWithAForeignEndKeepsACopy(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	const name = "events/00000000000000000001.jsonl"
	l, err := h.OpenLog(name, nil)
	must(t, err)
	must(t, l.Append([]byte(`{"a":1}`)))
	must(t, l.Close())
	file := filepath.Join(h.Path(), name)
	damaged := []byte("{\"a\":1}\n\xfe\xfe\xfe")
	must(t, os.WriteFile(file, damaged, 0o600))
	l, err = h.OpenLog(name, nil)
	must(t, err)
	must(t, l.Append([]byte(`{"a":2}`)))
	must(t, l.Close())
	found, err := filepath.Glob(file + ".damaged-*")
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("copies: %v", found)
	}
	if raw, err := os.ReadFile(found[0]); err != nil || string(raw) != string(damaged) {
		t.Errorf("the copy holds %q, %v", raw, err)
	}
}

func TestAFolderInThePlaceOfALockIsNoLock(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	must(t, os.MkdirAll(filepath.Join(h.Path(), "locks/sidecar/x"), 0o700))
	unlock, ok, err := h.TryLock("sidecar")
	must(t, err)
	if !ok {
		t.Fatal("nobody gets it")
	}
	unlock()
	must(t, os.MkdirAll(filepath.Join(h.Path(), "tmp/left/owner"), 0o700))
	again, err := Open(h.Path(), nil)
	must(t, err)
	t.Cleanup(func() { _ = again.Close() })
	if ok, err := h.Exists("tmp/left"); ok || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is left is not swept: %v", err)
	}
}

// Whoever has a home open is told that nobody else could open it any more.
func TestAHomeThatBecameNewerIsRefused(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	must(t, h.Refused())
	must(t, os.WriteFile(filepath.Join(h.Path(), schemaFile), []byte("99\n"), 0o600))
	if err := h.Refused(); !errors.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "schema 99") {
		t.Fatalf("got %v", err)
	}
}
