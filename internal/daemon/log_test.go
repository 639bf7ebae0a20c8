package daemon

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/store"
)

func openHome(t *testing.T) *store.Home {
	t.Helper()
	home, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	return home
}

func openLog(t *testing.T, home *store.Home, opts *LogOptions) *Log {
	t.Helper()
	l, err := OpenLog(home, "x.log", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func write(t *testing.T, l *Log, line string) {
	t.Helper()
	if _, err := l.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
}

// contents is every log file by name, without its header.
func contents(t *testing.T, home *store.Home) map[string]string {
	t.Helper()
	files := map[string]string{}
	names, err := home.List(logFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := home.Read(logFolder + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		header, rest, _ := strings.Cut(string(raw), "\n")
		if !strings.HasPrefix(header, logHeader) {
			t.Fatalf("%s has no header: %q", name, header)
		}
		files[name] = rest
	}
	return files
}

func TestAFullLogIsPutAside(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	// Room for the header and two lines of 28 bytes.
	l := openLog(t, home, &LogOptions{MaxBytes: 100, Files: 3})
	tail := " " + strings.Repeat("x", 20)
	for i := range 9 {
		write(t, l, fmt.Sprintf("line %d%s", i, tail))
	}
	// A line is never split, also not one that is longer than a file may be.
	long := strings.Repeat("y", 200)
	write(t, l, long)
	want := map[string]string{
		"x.log.2": "line 6" + tail + "\nline 7" + tail + "\n",
		"x.log.1": "line 8" + tail + "\n",
		"x.log":   long + "\n",
	}
	if diff := cmp.Diff(want, contents(t, home)); diff != "" {
		t.Fatal(diff)
	}
}

func TestALogGoesOnAfterItWasClosed(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	l := openLog(t, home, nil)
	write(t, l, "one")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write([]byte("lost")); err == nil {
		t.Fatal("a closed log took a line")
	}
	if err := l.Close(); err != nil {
		t.Fatalf("closed twice: %v", err)
	}
	write(t, openLog(t, home, nil), "two")
	if diff := cmp.Diff(map[string]string{"x.log": "one\ntwo\n"}, contents(t, home)); diff != "" {
		t.Fatal(diff)
	}
}

func TestALogIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	path := filepath.Join(home.Path(), logFolder, "x.log")
	write(t, openLog(t, home, nil), "one")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, home, &LogOptions{MaxBytes: 60})
	write(t, l, strings.Repeat("x", 60))
	for _, name := range []string{"x.log", "x.log.1"} {
		info, err := os.Stat(filepath.Join(home.Path(), logFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != fs.FileMode(0o600) {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestOldLinesGo(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	folder := filepath.Join(home.Path(), logFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	age := func(name string, begun, written time.Duration) {
		head := logHeader + time.Now().Add(-begun).UTC().Format(time.RFC3339) + "\n"
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(head+name+" old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-written)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	const day = 24 * time.Hour
	age("x.log", 3*day, 0)
	age("x.log.1", 9*day, 6*day)
	age("x.log.2", 12*day, 9*day)

	l := openLog(t, home, &LogOptions{Keep: 8 * day})
	if diff := cmp.Diff(map[string]string{"x.log": "x.log old\n", "x.log.1": "x.log.1 old\n"}, contents(t, home)); diff != "" {
		t.Fatalf("when opened: %s", diff)
	}
	// The file has been written to for more than its share of the eight days.
	write(t, l, "new")
	want := map[string]string{"x.log": "new\n", "x.log.1": "x.log old\n", "x.log.2": "x.log.1 old\n"}
	if diff := cmp.Diff(want, contents(t, home)); diff != "" {
		t.Fatalf("when written to: %s", diff)
	}
}

func TestManyWritersLoseNoLine(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	l := openLog(t, home, &LogOptions{MaxBytes: 2000, Files: 100})
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 50 {
				_, _ = fmt.Fprintf(l, "writer %d line %d\n", w, i)
			}
		})
	}
	writers.Wait()
	seen := map[string]int{}
	for _, text := range contents(t, home) {
		for line := range strings.Lines(text) {
			seen[line]++
		}
	}
	if len(seen) != 8*50 {
		t.Fatalf("%d different lines", len(seen))
	}
}
