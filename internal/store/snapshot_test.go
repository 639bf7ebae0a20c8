package store

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tapin/internal/fault"
)

// TestASnapshotIsTheHomeAtOneInstant takes the home while another process writes
// and is killed: in each one everything is whole, and nothing is there without
// what was written before it.
func TestASnapshotIsTheHomeAtOneInstant(t *testing.T) {
	t.Parallel()
	rounds := 8
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil {
		rounds = max(rounds, n)
	}
	dir := t.TempDir()
	h, err := Open(dir, nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	writing, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for acked := uint64(0); ; {
			select {
			case <-writing:
				return
			default:
				acked = killWriter(t, dir, acked)
			}
		}
	}()
	for taken := 0; taken < rounds; {
		s, err := h.Snapshot(t.Context(), func(name string) bool { return name == lockFolder || name == scratchParent }, nowhere)
		must(t, err)
		if checkSnapshot(t, s) {
			taken++
		}
		s.Close()
	}
	close(writing)
	<-stopped
}

// checkSnapshot reports whether there was anything to be checked.
func checkSnapshot(t *testing.T, s *Snapshot) bool {
	t.Helper()
	read := func(name string) []byte {
		raw, err := s.Read(name)
		must(t, err)
		return raw
	}
	counted, written, logged := uint64(0), uint64(0), uint64(0)
	for _, f := range s.Files {
		switch {
		case f.Name == "counters/n":
			var err error
			counted, err = strconv.ParseUint(string(read(f.Name)), 10, 64)
			must(t, err)
		case f.Name == "log.jsonl":
			for line := range strings.Lines(string(read(f.Name))) {
				var r record
				if err := json.Unmarshal([]byte(line), &r); err != nil || !r.whole() || !strings.HasSuffix(line, "\n") {
					t.Fatalf("the log has the line %.40q: %v", line, err)
				}
				logged = r.N
			}
		case filepath.Dir(f.Name) == "records":
			var r record
			if err := json.Unmarshal(read(f.Name), &r); err != nil || !r.whole() {
				t.Fatalf("%s is torn: %v", f.Name, err)
			}
			written = max(written, r.N)
		}
	}
	// Each number is counted, then written, then logged; a kill may cut that off.
	if counted < written || written < logged {
		t.Fatalf("counted %d, written %d, logged %d", counted, written, logged)
	}
	return logged > 0
}

func TestASnapshotStaysAsItWas(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir(), nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	log, err := h.OpenLog("log.jsonl", nil)
	must(t, err)
	defer func() { must(t, log.Close()) }()
	must(t, log.Append([]byte(`{"n":1}`)))
	must(t, h.Write("a/b", []byte("before")))
	must(t, h.Write("gone", []byte("there")))
	s, err := h.Snapshot(t.Context(), func(name string) bool { return name == lockFolder || name == scratchParent }, nowhere)
	must(t, err)
	must(t, log.Append([]byte(`{"n":2}`)))
	must(t, h.Write("a/b", []byte("after")))
	must(t, h.Remove("gone"))
	must(t, h.Write("new", nil))
	got := ""
	for _, f := range s.Files {
		raw, err := s.Read(f.Name)
		must(t, err)
		got += fmt.Sprintf("%s=%s;", f.Name, strings.TrimSpace(string(raw)))
	}
	if want := `a/b=before;gone=there;log.jsonl={"n":1};schema=1;`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Close()
	if err := s.Copy(io.Discard, s.Files[0]); err == nil {
		t.Error("it can still be read after it was closed")
	}
}

func TestChangesWaitForTheEndOfAFreeze(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := Open(dir, nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	other, err := Open(dir, nil)
	must(t, err)
	defer func() { must(t, other.Close()) }()
	must(t, other.Write("a", []byte("1")))
	thaw, err := h.freeze(t.Context())
	must(t, err)
	if _, err := other.freeze(t.Context()); err == nil || fault.Of(err).Code != fault.Busy {
		t.Errorf("two freezes at once: %v", err)
	}
	// The first freeze has lasted longer by now than one may.
	wrote := make(chan error, 1)
	go func() { wrote <- other.Write("a", []byte("2")) }()
	if raw, err := h.Read("a"); err != nil || string(raw) != "1" {
		t.Errorf("changed in a freeze: %q, %v", raw, err)
	}
	if err := thaw(); err == nil || fault.Of(err).Code != fault.Busy {
		t.Errorf("a freeze that lasted too long: %v", err)
	}
	must(t, <-wrote)
}

func nowhere(string) bool { return false }

// TestWhatIsHeldStillIsWhatChanged has a home of many files: while everything
// waits, only what changed since they were linked is linked again.
func TestWhatIsHeldStillIsWhatChanged(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir(), nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	files := 2000
	if n, err := strconv.Atoi(os.Getenv("TAPIN_SNAPSHOT_FILES")); err == nil {
		files = n
	}
	for n := range files {
		folder := filepath.Join(h.Path(), "many", strconv.Itoa(n%50))
		must(t, os.MkdirAll(folder, 0o700))
		must(t, os.WriteFile(filepath.Join(folder, strconv.Itoa(n)+".json"), []byte("before"), 0o600))
	}
	changed := false
	leaveOut := func(name string) bool {
		if name == "zebra" && !changed { // the last: all others are linked
			changed = true
			must(t, h.Write("many/1/1.json", []byte("after")))
			must(t, h.Remove("many/2/2.json"))
			must(t, h.Write("many/3/new.json", nil))
		}
		return name == lockFolder || name == scratchParent
	}
	must(t, h.Write("zebra", nil))
	s, err := h.Snapshot(t.Context(), leaveOut, nowhere)
	must(t, err)
	defer s.Close()
	if s.late != 2 || len(s.Files) != files+2 { // and schema, and zebra, without one
		t.Errorf("%d files were linked while all waited, of %d", s.late, len(s.Files))
	}
	if raw, err := s.Read("many/1/1.json"); err != nil || string(raw) != "after" {
		t.Errorf("it has %q, %v", raw, err)
	}
}

func TestASnapshotFollowsLinksToFilesAndNamesWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "disk"), 0o700))
	must(t, os.Symlink("disk", filepath.Join(dir, "home"))) // the home itself is one too
	h, err := Open(filepath.Join(dir, "home"), nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	out := filepath.Join(t.TempDir(), "out.yaml")
	must(t, os.WriteFile(out, []byte("outside"), 0o600))
	must(t, h.Write("inner", []byte("inside")))
	for name, to := range map[string]string{"config.yaml": out, "other": out, "near": "inner", "lost": "nothing", "folder": "."} {
		must(t, os.Symlink(to, filepath.Join(h.Path(), name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(h.Path(), "pipe"), 0o600))
	s, err := h.Snapshot(t.Context(), func(name string) bool { return name == lockFolder || name == scratchParent },
		func(name string) bool { return name == "config.yaml" })
	must(t, err)
	defer s.Close()
	for name, want := range map[string]string{"config.yaml": "outside", "near": "inside"} {
		if raw, err := s.Read(name); err != nil || string(raw) != want {
			t.Errorf("%s is %q, %v", name, raw, err)
		}
	}
	left := ""
	for _, l := range s.Left {
		left += l.Name + " "
	}
	if left != "folder lost other pipe " {
		t.Errorf("left out: %+v", s.Left)
	}
}
