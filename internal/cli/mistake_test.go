package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
	"tapin/internal/store"
)

func TestAPictureGoesWhereItCan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.png")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		output, format, want string // want is the format, or "" for a refusal
	}{
		"no name":                           {"", "", "png"},
		"no name, but a format":             {"", "webp", "webp"},
		"standard output":                   {"-", "", "png"},
		"standard output in a format":       {"-", "jpeg", "jpeg"},
		"png by its name":                   {"a.png", "", "png"},
		"jpeg by its name":                  {"a.JPG", "", "jpeg"},
		"jpeg by its longer name":           {"a.jpeg", "jpeg", "jpeg"},
		"webp by its name":                  {"a.webp", "", "webp"},
		"a name that says nothing":          {"a.out", "", "png"},
		"a format and a silent name":        {"a.out", "jpeg", "jpeg"},
		"a device":                          {"/dev/null", "", "png"},
		"a gif cannot be made":              {"a.gif", "", ""},
		"a gif cannot be made of a png":     {"a.GIF", "png", ""},
		"a name and a format that disagree": {"a.png", "jpeg", ""},
		"a folder":                          {dir, "", ""},
		"a pipe that nobody reads":          {pipe, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := shotOptions{output: tt.output, format: tt.format}
			err := o.settle()
			if tt.want == "" {
				if !errors.Is(err, fault.InvalidRequest) {
					t.Fatalf("got %v and format %s", err, o.format)
				}
				return
			}
			if err != nil || o.format != tt.want {
				t.Fatalf("got %v and format %s", err, o.format)
			}
		})
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want []string // on stderr
	}{
		"an empty -o":                   {[]string{"screenshot", "-o", ""}, []string{"-o names no file"}},
		"a quality of nothing":          {[]string{"screenshot", "--quality", "0"}, []string{"--quality must be from 1 to 100, not 0"}},
		"a quality of too much":         {[]string{"screenshot", "--quality", "101"}, []string{"--quality must be from 1 to 100"}},
		"help about nothing":            {[]string{"help", "opne"}, []string{`there is no command "opne"`, "Did you mean open"}},
		"help about nothing in a group": {[]string{"help", "config", "nothere"}, []string{`there is no command "nothere"`}},
		"a setting without a name":      {[]string{"--set", "=", "config", "check"}, []string{"--set: must be written key=value"}},
		"settings that are no JSON":     {[]string{"sidecar", "--" + handedFlag}, []string{"no JSON list", "hint:  See tapin help sidecar."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.args...)
			if code := Main(t.Context(), w.Env); code != fault.ExitUsage {
				t.Errorf("exit code %d", code)
			}
			said := w.stderr.String()
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in %s", want, said)
				}
			}
			if strings.Contains(said, "openapi") {
				t.Errorf("a hint for programs: %s", said)
			}
		})
	}
}

// A home that cannot be one is the caller's mistake for every command.
func TestNoHomeIsAFaultInsideTapin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(dir string) (home string, err error)
		only string // the one command that looks at this
	}{
		"the home is a file": {make: func(dir string) (string, error) {
			file := filepath.Join(dir, "file")
			return file, os.WriteFile(file, nil, 0o600)
		}},
		"the home is under a file": {make: func(dir string) (string, error) {
			file := filepath.Join(dir, "file")
			return filepath.Join(file, "home"), os.WriteFile(file, nil, 0o600)
		}},
		"the settings are a folder": {only: "config check", make: func(dir string) (string, error) {
			return dir, os.Mkdir(filepath.Join(dir, configFile), 0o700)
		}},
		"the settings are a pipe": {only: "up --background", make: func(dir string) (string, error) {
			return dir, syscall.Mkfifo(filepath.Join(dir, configFile), 0o600)
		}},
	} {
		for _, line := range []string{"status", "down", "config check", "up --background", "open https://x", "sidecar"} {
			if tt.only != "" && tt.only != line {
				continue
			}
			t.Run(name+": "+line, func(t *testing.T) {
				t.Parallel()
				home, err := tt.make(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, append([]string{"--json", "--home", home}, strings.Fields(line)...)...)
				code := Main(t.Context(), w.Env)
				var said struct{ Error, Details, Hint string }
				if err := json.Unmarshal(w.stdout.Bytes(), &said); err != nil {
					t.Fatalf("%v: %s", err, &w.stdout)
				}
				if code != fault.ExitUsage || said.Error != string(fault.InvalidRequest) || !strings.Contains(said.Details, filepath.Base(home)) {
					t.Fatalf("exit code %d, %+v", code, said)
				}
			})
		}
	}
}

func TestErrorsOfTheFileSystemArePlain(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]fault.Code{
		syscall.EACCES: fault.Forbidden, syscall.EPERM: fault.Forbidden, syscall.EROFS: fault.Forbidden,
		syscall.ENOTDIR: fault.InvalidRequest, syscall.EISDIR: fault.InvalidRequest,
		syscall.ENOSPC: fault.StorageFull, syscall.EIO: fault.Internal,
	} {
		err := fmt.Errorf("write it: %w", &fs.PathError{Op: "open", Path: "/x", Err: errno})
		if got := fault.Of(plainly(err)); got.Code != want || got.Code != fault.Internal && !strings.Contains(got.Details(), "/x") {
			t.Errorf("%v became %s: %s", errno, got.Code, got.Details())
		}
	}
	if err := errors.New("something else"); !errors.Is(plainly(err), err) || fault.Of(plainly(err)).Code != fault.Internal {
		t.Error("an error of ours got a code")
	}
}

func TestSettingsAreHandedOverOutOfSight(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	set := []string{"cdp.url=wss://example.com/?key=hunter2", "cdp.headers.Authorization=hunter2", "max_sessions=3"}
	parent := &app{env: newWorld(t).Env, set: set}
	command, input, err := parent.self(home, "sidecar")
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "hunter2") || word == "--set" }) {
		t.Fatalf("for all to see: %v", command)
	}
	w := newWorld(t)
	w.Stdin = strings.NewReader(string(input))
	child := &app{env: w.Env, home: home.Path(), handed: true}
	cfg, err := child.handedSettings()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set, child.set); diff != "" || cfg.MaxSessions != 3 {
		t.Fatalf("%d sessions, %s", cfg.MaxSessions, diff)
	}
	parent.set = nil
	if command, input, err := parent.self(home, "sidecar"); err != nil || input != nil || slices.Contains(command, "--"+handedFlag) {
		t.Fatalf("nothing to hand over: %v %q %v", command, input, err)
	}
}

func TestDownTellsWhatItEnded(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]downAnswer{
		"Nothing was running.": {},
		"Ended the daemon (pid 1), the sidecar (pid 2), 2 sessions.":   {Daemon: 1, Sidecar: 2, Sessions: 2},
		"Ended the sidecar (pid 2), 1 session, 1 browser left behind.": {Sidecar: 2, Sessions: 1, Browsers: 1},
		"Ended 2 browsers left behind.":                                {Browsers: 2},
	} {
		if got := d.sentence(); got != want {
			t.Errorf("%+v became %q", d, got)
		}
	}
}
