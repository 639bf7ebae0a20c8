package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
)

func scanAll(t *testing.T, h *Home, name string) []string {
	t.Helper()
	var lines []string
	must(t, h.ScanLog(name, func(line []byte) error {
		lines = append(lines, string(line))
		return nil
	}))
	return lines
}

func TestALogKeepsItsLinesInOrder(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	l, err := h.OpenLog("logs/x.jsonl", nil)
	must(t, err)
	long := `"` + strings.Repeat("x", 200<<10) + `"`
	want := []string{`{"n":1}`, long, `{"n":2}`}
	for _, line := range want {
		must(t, l.Append([]byte(line)))
	}
	must(t, l.Close())
	must(t, l.Close())
	if err := l.Append([]byte(`1`)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if diff := cmp.Diff(want, scanAll(t, h, "logs/x.jsonl")); diff != "" {
		t.Error(diff)
	}
	stop := errors.New("stop")
	if err := l.Scan(func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("scan did not stop: %v", err)
	}
	if lines := scanAll(t, h, "none"); lines != nil {
		t.Errorf("a missing log has lines: %v", lines)
	}
}

func TestALogTakesOnlyLinesOfJSON(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	l, err := h.OpenLog("x", &LogOptions{MaxLineBytes: 10, NoSync: true})
	must(t, err)
	defer l.Close()
	for _, line := range []string{"", "x", "{\n}", "1\n", "1 2"} {
		if err := l.Append([]byte(line)); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
	if err := l.Append([]byte(`"123456789"`)); !errors.Is(err, fault.PayloadTooLarge) {
		t.Errorf("a long line: %v", err)
	}
	if size, err := l.Size(); size != 0 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
}

func TestATornTailIsCutAndTheMiddleStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, want string }{
		"nothing torn":         {"1\n2\n", "1\n2\n3\n"},
		"an empty log":         {"", "3\n"},
		"half a line":          {"1\n{\"a", "1\n3\n"},
		"a line without break": {"1\n2", "1\n3\n"},
		"only half a line":     {"{", "3\n"},
		"zeros of a power cut": {"1\n" + strings.Repeat("\x00", 5000), "1\n3\n"},
		"a very long tail":     {"1\n" + strings.Repeat("x", 300<<10), "1\n3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHome(t)
			file := filepath.Join(h.Path(), "x")
			for _, when := range []string{"before opening", "while open"} {
				must(t, os.WriteFile(file, []byte(tt.file), 0o600))
				l, err := h.OpenLog("x", nil)
				must(t, err)
				if when == "while open" { // as another writer's kill would leave it
					must(t, os.WriteFile(file, []byte(tt.file), 0o600))
				}
				must(t, l.Append([]byte("3")))
				must(t, l.Close())
				data, err := h.Read("x")
				must(t, err)
				if diff := cmp.Diff(tt.want, string(data)); diff != "" {
					t.Errorf("torn %s: %s", when, diff)
				}
			}
		})
	}
}

func TestDamagedLinesAreLeftOut(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	must(t, h.Write("x", []byte("1\n\x00\x00\n{\"a\n\n2\n3")))
	if diff := cmp.Diff([]string{"1", "2"}, scanAll(t, h, "x")); diff != "" {
		t.Error(diff)
	}
}

func TestALogThatWasRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	l, err := h.OpenLog("x", nil)
	must(t, err)
	defer l.Close()
	must(t, l.Append([]byte("1")))
	must(t, h.Remove("x"))
	must(t, l.Append([]byte("2")))
	if diff := cmp.Diff([]string{"2"}, scanAll(t, h, "x")); diff != "" {
		t.Error(diff)
	}
}

func TestManyWritersAndReadersShareALog(t *testing.T) {
	t.Parallel()
	a := openHome(t)
	b, err := Open(a.Path(), nil)
	must(t, err)
	defer b.Close()
	const lines = 40
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w, h := range []*Home{a, b, b} {
		l, err := h.OpenLog("x", &LogOptions{NoSync: true})
		must(t, err)
		defer l.Close()
		writers.Go(func() {
			for n := range lines {
				if err := l.Append(fmt.Appendf(nil, `{"w":%d,"n":%d,"pad":%q}`, w, n, strings.Repeat("p", n*997))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Go(func() {
		for {
			err := a.ScanLog("x", func(line []byte) error {
				if !bytes.HasSuffix(line, []byte(`p"}`)) && !bytes.HasSuffix(line, []byte(`""}`)) {
					return fmt.Errorf("not whole: %.40q", line)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
	if got := len(scanAll(t, a, "x")); got != 3*lines {
		t.Errorf("%d lines", got)
	}
}

func FuzzScanLines(f *testing.F) {
	for _, s := range []string{"", "\n", "1\n2\n", "1\n{\"a", "\x00\n1\n", "{\"a\":\"\\n\"}\n", "1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []string
		damaged, err := scanLines(bytes.NewReader(data), func(line []byte) error {
			if !json.Valid(line) || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("not a line of JSON: %q", line)
			}
			got = append(got, string(line))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if whole := bytes.Count(data, []byte("\n")); len(got)+damaged != whole {
			t.Fatalf("%d lines and %d damaged of %d", len(got), damaged, whole)
		}
		// A kill in the middle of the next line must not change what was read.
		again := 0
		_, err = scanLines(io.MultiReader(bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1]), strings.NewReader(`{"torn`)), func(line []byte) error {
			if again >= len(got) || got[again] != string(line) {
				t.Fatalf("line %d is now %q", again, line)
			}
			again++
			return nil
		})
		if err != nil || again != len(got) {
			t.Fatalf("%d lines of %d: %v", again, len(got), err)
		}
	})
}
