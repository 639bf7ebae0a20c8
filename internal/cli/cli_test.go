package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// world is an Env that a test can look into.
type world struct {
	Env
	stdout, stderr bytes.Buffer
	terminal       bool
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{}
	w.Env = Env{
		Args: append([]string{"tapin"}, args...), Stdin: strings.NewReader(""), Stdout: &w.stdout, Stderr: &w.stderr,
		Environ:    []string{"HOME=" + t.TempDir(), "TERM=xterm"},
		Home:       func() (string, error) { return filepath.Join(t.TempDir(), "home"), nil },
		IsTerminal: func(io.Writer) bool { return w.terminal },
	}
	return w
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"https://example.com/a": "https://example.com/a",
		"http://example.com":    "http://example.com",
		"example.com":           "https://example.com",
		"example.com:8443/x":    "https://example.com:8443/x",
		"localhost:3000":        "http://localhost:3000",
		"app.localhost/x":       "http://app.localhost/x",
		"127.0.0.1:80":          "http://127.0.0.1:80",
		"[::1]:80/x":            "http://[::1]:80/x",
		"about:blank":           "about:blank",
		"ftp://example.com":     "ftp://example.com",
		"javascript:alert(1)":   "javascript:alert(1)",
		"mailto:a@example.com":  "mailto:a@example.com",
		"intranet:8080?q=a:b":   "https://intranet:8080?q=a:b",
		"example.com:abc":       "https://example.com:abc",
	} {
		if got := address(typed); got != want {
			t.Errorf("%s became %s, not %s", typed, got, want)
		}
	}
}

func TestCleanTextCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got := clean(rapid.String().Draw(t, "text"))
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q has %U", got, r)
			}
		}
		if n := len([]rune(got)); n > longText+1 {
			t.Fatalf("%d letters", n)
		}
	})
	if got := clean("Zürich \U0001F469\u200D\U0001F4BB\tok\n"); got != "Zürich \U0001F469\u200D\U0001F4BB ok " {
		t.Fatalf("ordinary text became %q", got)
	}
	if got := clean("a\x1b]0;owned\x07b\u202ec"); got != "a�]0;owned�b�c" {
		t.Fatalf("got %q", got)
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"open":                 "open",
		"https://example.com/": "https://example.com/",
		"~/.tapin":             "~/.tapin",
		"~/my home":            "~/'my home'",
		"it's":                 `'it'\''s'`,
		"":                     "''",
		"$(rm)":                "'$(rm)'",
		"a?b&c":                "'a?b&c'",
	} {
		if got := shellWord(word); got != want {
			t.Errorf("%q became %s, not %s", word, got, want)
		}
	}
}

func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	blocked := fault.New(fault.BlockedTarget, "open http://10.0.0.1", "blocked\x1b[2J by rule private").With("rule", "private")
	for name, tt := range map[string]struct {
		err            error
		args           []string
		terminal       bool
		environ        string
		stdout, stderr string
		code           int
	}{
		"plainly where nobody looks": {
			err: blocked, code: fault.ExitRefused,
			stderr: "tapin: open http://10.0.0.1: blocked�[2J by rule private [BLOCKED_TARGET]\nhint:  " + fault.BlockedTarget.Hint() + "\n",
		},
		"in colour on a terminal": {
			err: fault.NoSession, terminal: true, code: fault.ExitNotFound,
			stderr: "\x1b[31mtapin:\x1b[0m NO_SESSION \x1b[2m[NO_SESSION]\x1b[0m\n\x1b[1mhint:\x1b[0m  " + fault.NoSession.Hint() + "\n",
		},
		"without colour if asked": {
			err: fault.NoSession, terminal: true, environ: "NO_COLOR=1", code: fault.ExitNotFound,
			stderr: "tapin: NO_SESSION [NO_SESSION]\nhint:  " + fault.NoSession.Hint() + "\n",
		},
		"in JSON": {
			err: blocked, args: []string{"--json"}, code: fault.ExitRefused,
			stdout: `{"ok":false,"error":"BLOCKED_TARGET","details":"open http://10.0.0.1: blocked\u001b[2J by rule private","hint":"` +
				fault.BlockedTarget.Hint() + `","rule":"private"}` + "\n",
		},
		"each problem on its own line": {
			err: fault.New(fault.InvalidRequest, "read settings", "%w", errors.Join(errors.New("one"), errors.New("two"))).WithHint("Mend it."), code: fault.ExitUsage,
			stderr: "tapin: read settings: one\n       two [INVALID_REQUEST]\nhint:  Mend it.\n",
		},
		"without the cause of what is internal": {
			err: errors.New("password is hunter2"), code: fault.ExitFailure,
			stderr: "tapin: " + fault.Internal.Sentence() + " [INTERNAL]\nhint:  " + fault.Internal.Hint() + "\n",
		},
		"with that cause if asked": {
			err: errors.New("some cause"), args: []string{"--verbose"}, code: fault.ExitFailure,
			stderr: "tapin: some cause [INTERNAL]\nhint:  " + fault.Internal.Hint() + "\n",
		},
		"with the file that is in the way": {
			err: &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission}, code: fault.ExitFailure,
			stderr: "tapin: open /x: permission denied [INTERNAL]\nhint:  " + fault.Internal.Hint() + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.terminal = tt.terminal
			if tt.environ != "" {
				w.Environ = append(w.Environ, tt.environ)
			}
			a := &app{env: w.Env}
			if err := a.root().ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			if code := a.fail(tt.err); code != tt.code {
				t.Errorf("exit code %d, not %d", code, tt.code)
			}
			if diff := cmp.Diff(tt.stdout, w.stdout.String()); diff != "" {
				t.Errorf("stdout: %s", diff)
			}
			if diff := cmp.Diff(tt.stderr, w.stderr.String()); diff != "" {
				t.Errorf("stderr: %s", diff)
			}
		})
	}
}

func TestMainReturnsTheExitCodeOfTheFault(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"version":                      0,
		"nonsense":                     fault.ExitUsage,
		"--nonsense":                   fault.ExitUsage,
		"status":                       fault.ExitRetry,
		"down":                         0,
		"--set nope=1 config check":    fault.ExitUsage,
		"screenshot -o - --json":       fault.ExitUsage,
		"open https://x --timeout 0s":  fault.ExitUsage,
		"open https://x --viewport 0x": fault.ExitUsage,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Fields(line)...)
			if code := Main(t.Context(), w.Env); code != want {
				t.Fatalf("exit code %d, not %d\n%s%s", code, want, &w.stdout, &w.stderr)
			}
		})
	}
}

func TestAPictureIsNotShownOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "screenshot", "-o", "-")
	w.terminal = true
	if code := Main(t.Context(), w.Env); code != fault.ExitUsage || !strings.Contains(w.stderr.String(), "terminal") {
		t.Fatalf("exit code %d, %s", code, &w.stderr)
	}
}

// The current folder belongs to the whole process, so this test does not run
// beside others.
func TestAPictureNeverReplacesAFileThatNobodyNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	shot := &api.Shot{Bytes: []byte("one"), MIMEType: "image/jpeg"}
	seen := map[string]bool{}
	for range 5 {
		file, err := save("", shot)
		if err != nil {
			t.Fatal(err)
		}
		if seen[file] || filepath.Ext(file) != ".jpeg" {
			t.Fatalf("wrote %s", file)
		}
		seen[file] = true
	}
	if err := os.WriteFile("named.png", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := save("named.png", shot); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("named.png"); err != nil || string(got) != "one" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestWrappedKeepsEveryWord(t *testing.T) {
	t.Parallel()
	got := wrapped("one two three /a/very/long/path/that/is/kept/whole four", 12)
	want := []string{"one two", "three", "/a/very/long/path/that/is/kept/whole", "four"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 bytes", 999: "999 bytes", 1000: "1 KB", 84_512: "85 KB", 1_500_000: "1.5 MB", 82_500_000_000: "82.5 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d became %s, not %s", n, got, want)
		}
	}
}

func TestProgramNameIsWhatAPersonCanType(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(folder, "tapin")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, called, want string }{
		"its name, where that is this program":       {folder, "/some/where/tapin", "tapin"},
		"the way it was called, where it is another": {t.TempDir(), "bin/tapin", "bin/tapin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := programName(Env{Args: []string{tt.called}, Environ: []string{"PATH=" + tt.path}}); got != tt.want {
				t.Fatalf("got %s", got)
			}
		})
	}
}

func TestProgressIsQuietWhenItIsQuick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.terminal = true
	a := &app{env: w.Env}
	done := a.progress("working")
	done()
	done()
	if w.stderr.Len() > 0 {
		t.Fatalf("said %q", &w.stderr)
	}
}
