package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
)

// inWay puts things into the place of a folder of the home.
var inWay = map[string]func(path, outside string) error{
	"a file":           func(path, _ string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	"a pipe":           func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	"a link outside":   func(path, outside string) error { return os.Symlink(outside, path) },
	"a link to none":   func(path, _ string) error { return os.Symlink("nothing", path) },
	"a link to a file": func(path, _ string) error { return os.Symlink("schema", path) },
}

// Whatever stands where a folder belongs is put aside and told of, and is kept.
func TestWhatStandsInThePlaceOfAFolderIsPutAside(t *testing.T) {
	t.Parallel()
	for what, put := range inWay {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path, outside := filepath.Join(t.TempDir(), "home"), t.TempDir()
			must(t, os.WriteFile(filepath.Join(outside, "theirs"), nil, 0o600))
			h, err := Open(path, nil)
			must(t, err)
			must(t, h.Close())
			must(t, os.RemoveAll(filepath.Join(path, "locks")))
			must(t, os.RemoveAll(filepath.Join(path, "tmp")))
			var want []string
			for _, dir := range layout.Folders() {
				if !strings.Contains(dir, "/") {
					must(t, put(filepath.Join(path, dir), outside))
					want = append(want, dir)
				}
			}
			glance, err := Glance(path)
			must(t, err)
			found, err := glance.Examine()
			must(t, err)
			named := 0
			for _, d := range found {
				if d.Kind == "folder" && d.Why != "" {
					named++
				}
			}
			if named != len(want) {
				t.Errorf("the doctor names %d of %d: %+v", named, len(want), found)
			}
			must(t, glance.Close())
			h, err = Open(path, nil)
			must(t, err)
			defer h.Close()
			told := map[string]string{}
			h.OnDamage(func(d Damage, _ bool) { told[d.File] = d.Aside })
			for _, dir := range layout.Folders() {
				if names, err := h.List(dir); dir != "locks" && dir != "tmp" && (err != nil || len(names) != 0) {
					t.Errorf("list %s: %v, %v", dir, names, err)
				}
			}
			must(t, h.MakeRoom())
			for _, dir := range layout.Folders() {
				if strings.Contains(dir, "/") {
					must(t, h.Folder(filepath.Dir(dir)))
					must(t, put(filepath.Join(path, dir), outside))
					want = append(want, dir)
				}
			}
			must(t, h.MakeRoom())
			for _, dir := range want {
				if _, err := os.Lstat(filepath.Join(path, told[dir])); told[dir] == "" || err != nil {
					t.Errorf("%s is told to be aside as %q, %v", dir, told[dir], err)
				}
				must(t, h.Write(dir+"/a/b", nil))
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
				t.Errorf("outside of the home: %v, %v", left, err)
			}
		})
	}
}

// A pipe in the place of a file keeps nobody waiting.
func TestWhatIsNoOrdinaryFileIsDamage(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	pipe := func(name string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(h.Path(), name)), 0o700))
		must(t, syscall.Mkfifo(filepath.Join(h.Path(), name), 0o600))
	}
	for _, name := range []string{"owners.json", "figures.json", "events/00000000000000000001.jsonl", "journal/journal-2026-11-19.jsonl", "locks/x"} {
		pipe(name)
	}
	if _, err := h.Read("owners.json"); !errors.Is(err, fault.Unreadable) || !strings.Contains(err.Error(), "no ordinary file") {
		t.Errorf("a truth: %v", err)
	}
	if _, ok := Derived[map[string]any](h, "figures.json", nil); ok || len(h.asideOf("figures.json")) != 1 {
		t.Error("what is derived is not put aside")
	}
	if err := h.ScanLog("events/00000000000000000001.jsonl", nil); !errors.Is(err, fault.Unreadable) {
		t.Errorf("scanning: %v", err)
	}
	if _, err := h.OpenLog("events/00000000000000000001.jsonl", nil); !errors.Is(err, fault.Unreadable) {
		t.Errorf("opening: %v", err)
	}
	l, err := h.OpenLog("journal/journal-2026-11-19.jsonl", nil)
	must(t, err)
	must(t, l.Append([]byte("{}")))
	must(t, l.Close())
	if _, held, err := h.LockHolder("x"); held || err != nil {
		t.Errorf("the lock is held: %v", err)
	}
	unlock, ok, err := h.TryLock("x")
	must(t, err)
	if !ok {
		t.Fatal("the lock cannot be had")
	}
	unlock()
	found, err := h.Examine()
	must(t, err)
	for _, d := range found {
		if strings.Contains(d.Why, "folder") {
			t.Errorf("%s: %s", d.File, d.Why)
		}
	}
}

func TestAHugeFileIsNotReadAsAWhole(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	for name, size := range map[string]int64{"owners.json": 4 << 30, "figures.json": 4 << 30, "contexts/bank.age": 100 << 20} {
		must(t, h.Write(name, nil))
		must(t, os.Truncate(filepath.Join(h.Path(), name), size))
	}
	if _, err := h.Read("owners.json"); !errors.Is(err, fault.Unreadable) {
		t.Errorf("a truth: %v", err)
	}
	if _, ok := Derived[map[string]any](h, "figures.json", nil); ok || len(h.asideOf("figures.json")) != 1 {
		t.Error("what is derived is not put aside")
	}
	if _, err := h.Examine(); err != nil {
		t.Error(err)
	}
}

func TestALogWithAHugeEndGoesOnWithWhatIsBeforeIt(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	const name = "events/00000000000000000001.jsonl"
	must(t, h.Write(name, []byte("{\"a\":1}\n")))
	must(t, os.Truncate(filepath.Join(h.Path(), name), 4<<30))
	began := time.Now()
	for range 2 {
		l, err := h.OpenLog(name, nil)
		must(t, err)
		must(t, l.Append([]byte(`{"a":2}`)))
		must(t, l.Close())
	}
	if took := time.Since(began); took > 10*time.Second { // short: four gigabytes are not gone through, nor copied
		t.Errorf("it took %v", took)
	}
	if got := scanAll(t, h, name); strings.Join(got, " ") != `{"a":1} {"a":2} {"a":2}` {
		t.Errorf("it holds %v", got)
	}
	aside := h.asideOf(name)
	if len(aside) != 1 || len(h.Damages()) != 1 {
		t.Fatalf("aside: %v, told: %v", aside, h.Damages())
	}
	if info, err := h.Stat(aside[0]); err != nil || info.Size() != 4<<30 {
		t.Errorf("it is not kept as it was: %v", err)
	}
	if !h.HasLostEnd(name) {
		t.Error("nobody can tell that lines may be lost")
	}
}

// One bit at the end of a file makes a line out of a line that was promised.
func TestAnEndThatIsNoTornLineIsKept(t *testing.T) {
	t.Parallel()
	for tail, foreign := range map[string]bool{
		`{"a":2`: false, `{"a":2}`: false, `{"a":"\u00e`: false, "{\"a\x00\x00\x00": false, "\x00\x00": false,
		`{"a":2}X`: true, `{"a":2}J{"a":3}`: true, `{"a"X`: true, "\xfe": true,
	} {
		h := openHome(t)
		const name = "events/00000000000000000001.jsonl"
		must(t, h.Write(name, []byte("{\"a\":1}\n"+tail)))
		l, err := h.OpenLog(name, nil)
		must(t, err)
		must(t, l.Append([]byte(`{"a":9}`)))
		must(t, l.Close())
		if got := strings.Join(scanAll(t, h, name), " "); got != `{"a":1} {"a":9}` {
			t.Errorf("%q: it holds %s", tail, got)
		}
		if kept := len(h.asideOf(name)) == 1 && len(h.Damages()) == 1; kept != foreign {
			t.Errorf("%q: kept and told %v, want %v", tail, kept, foreign)
		}
	}
}

func TestNumbersInADamagedEndAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	for _, tail := range []string{`{"n":7,"id":"id7"}X`, `{"n":6,"id":"id6"}X{"n":7,"id":"id7"}` + "\n"} {
		h := openHome(t)
		must(t, h.Write("handoffs/list/000000000001.jsonl", []byte(`{"n":5,"id":"id5"}`+"\n"+`{"n":6,"id":"id6"}`+"\n"+tail)))
		for i, want := range []uint64{8, 9} { // the second time from what was kept
			s, err := h.openSeries("handoffs/list", 4)
			must(t, err)
			if i == 0 && s.Last() != 7 {
				t.Errorf("%q: the last is %d", tail, s.Last())
			}
			if e, err := s.Append("next", time.Unix(1, 0)); err != nil || e.Seq != want {
				t.Errorf("%q: number %d, %v", tail, e.Seq, err)
			}
			must(t, s.Close())
		}
	}
}

func TestAStrayFileDoesNotMakeASeriesEndless(t *testing.T) {
	t.Parallel()
	for _, stray := range []string{"999999999999.jsonl", "000000500000.jsonl"} {
		for _, content := range []string{"", "garbage\n"} {
			h := openHome(t)
			must(t, h.Write("handoffs/list/"+stray, []byte(content)))
			for round := range uint64(2) {
				s, err := h.openSeries("handoffs/list", 4)
				must(t, err)
				for range 5 {
					_, err := s.Append("id", time.Unix(1, 0))
					must(t, err)
				}
				before, err := s.Before(0, 100)
				must(t, err)
				after, err := s.After(0, 100)
				must(t, err)
				if want := 5 * int(round+1); len(before) != want || len(after) != want {
					t.Errorf("%s %q: %d and %d of %d entries", stray, content, len(before), len(after), want)
				}
				must(t, s.Close())
			}
		}
		h := openHome(t)
		s, err := h.openSeries("handoffs/list", 4)
		must(t, err)
		for range 5 {
			_, err := s.Append("id", time.Unix(1, 0))
			must(t, err)
		}
		must(t, s.Close())
		must(t, h.Write("handoffs/list/"+stray, nil))
		if s, err = h.openSeries("handoffs/list", 4); err != nil || s.Last() != 5 {
			t.Errorf("beside %s the last is %d, %v", stray, s.Last(), err)
		}
	}
}

func TestOnlyACounterOfTheProgramRefusesAHome(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	must(t, os.MkdirAll(filepath.Join(h.Path(), "counters"), 0o700))
	must(t, os.WriteFile(filepath.Join(h.Path(), "counters/.DS_Store"), []byte("x"), 0o600))
	must(t, h.Refused())
	if found, err := h.Examine(); err != nil || len(found) != 0 {
		t.Errorf("the doctor finds %v, %v", found, err)
	}
	must(t, os.WriteFile(filepath.Join(h.Path(), "counters/epoch"), []byte("18446744073709551615"), 0o600))
	if err := h.Refused(); !errors.Is(err, fault.Unreadable) || !strings.Contains(err.Error(), "too high") {
		t.Errorf("exhausted: %v", err)
	}
	if found, err := h.Examine(); err != nil || len(found) != 1 || found[0].Kind != "counter" {
		t.Errorf("the doctor finds %v, %v", found, err)
	}
	must(t, h.MendCounter("epoch"))
	must(t, h.Refused())
	if n, err := h.Counter("epoch"); err != nil || n < 1e9 {
		t.Errorf("the next number is %d, %v", n, err)
	}
}

func TestALostSchemaIsMendedWhereAllElseIsReadable(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	schema := filepath.Join(h.Path(), schemaFile)
	if err := h.Schemaless(); err == nil {
		t.Error("a home with a version has lost it")
	}
	must(t, os.WriteFile(schema, []byte("99\n"), 0o600))
	if err := h.MendSchema(); err == nil {
		t.Fatal("a newer home was made an older one")
	}
	must(t, os.WriteFile(schema, nil, 0o600))
	must(t, h.Write("owners.json", []byte("new kind of content")))
	if err := h.MendSchema(); !errors.Is(err, fault.Unreadable) || fault.Of(err).Advice() == "" {
		t.Errorf("beside what cannot be read: %v", err)
	}
	must(t, h.Write("owners.json", []byte("{}")))
	must(t, h.MendSchema())
	must(t, h.Refused())
}
