package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"tapin/internal/fault"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

const careful = "correct horse battery"

// kept is a home with saved logins, and with what a kill of tapin left running.
type kept struct {
	t    *testing.T
	home string
	keys *memory
	key  string // of the environment; "" where a file has it
}

func newKept(t *testing.T, key string) *kept {
	t.Helper()
	k := &kept{t, filepath.Join(t.TempDir(), "home"), &memory{err: errors.New("there is no keychain")}, key}
	h, err := store.Open(k.home, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	v, err := vault.Open(t.Context(), h, k.options(key))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bank", "shop", "post"} {
		sealed, err := v.Seal("context "+name, "", []byte(name))
		if err == nil {
			err = h.Write("contexts/"+name+".age", sealed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, what := range map[string]string{
		"sessions/ses_1.json": `{"id":"ses_1","url":"https://bank.example/"}`, "sessions/open/ses_1": "", "run/ses_1-1/left": "",
	} {
		if err := h.Write(name, []byte(what)); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *kept) options(key string) *vault.Options {
	return &vault.Options{Keyring: k.keys, Getenv: func(name string) string { return map[string]string{"TAPIN_VAULT_KEY": key}[name] }}
}

func (k *kept) world(stdin io.Reader, args ...string) *world {
	w := newWorld(k.t, append([]string{"--home", k.home}, args...)...)
	w.Stdin, w.Keyring = stdin, k.keys
	if k.key != "" {
		w.Environ = append(w.Environ, "TAPIN_VAULT_KEY="+k.key)
	}
	return w
}

func (k *kept) run(stdin string, args ...string) (int, string) {
	w := k.world(strings.NewReader(stdin), args...)
	code := Main(k.t.Context(), w.Env)
	return code, w.stdout.String() + w.stderr.String()
}

// opens checks that a key, or that of the home, opens everything.
func (k *kept) opens(key string) {
	k.t.Helper()
	h, err := store.Open(k.home, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	v, err := vault.Open(k.t.Context(), h, k.options(key))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range []string{"bank", "shop", "post"} {
		sealed, err := h.Read("contexts/" + name + ".age")
		if err == nil {
			_, err = v.Open("context "+name, "", sealed)
		}
		if err != nil {
			k.t.Errorf("%s: %v", name, err)
		}
	}
}

// wereEnded reports whether somebody went about ending what was left running:
// that takes a number of its own, so that no browser obeys anybody older.
func (k *kept) wereEnded() bool {
	_, err := os.Stat(filepath.Join(k.home, "counters", "epoch"))
	return err == nil
}

func (k *kept) file(name, content string) string {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return path
}

func (k *kept) pipe(name string) string {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		k.t.Fatal(err)
	}
	// Whoever still waits at it when the test ends goes.
	k.t.Cleanup(func() {
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			_ = f.Close()
		}
	})
	return path
}

func keyOf(t *testing.T) string {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

func TestARekeyThatCtrlCEndsSaysHowTheKeyStandsAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"a file": "", "the environment": keyOf(t)} {
		for _, json := range []bool{false, true} {
			t.Run(name+" "+map[bool]string{false: "in words", true: "in JSON"}[json], func(t *testing.T) {
				t.Parallel()
				k := newKept(t, key)
				next := ""
				if key != "" {
					next = keyOf(t)
				}
				args := []string{"vault", "rekey"}
				if json {
					args = append(args, "--json")
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := k.world(strings.NewReader(next), args...)
				sealed := 0
				w.OnDisk = func(change string, step store.Step) {
					if strings.HasPrefix(change, "write contexts/") && step == store.Named {
						if sealed++; sealed == 2 {
							cancel()
						}
					}
				}
				code := Main(ctx, w.Env)
				said := w.stdout.String() + w.stderr.String()
				if code != interrupted || !strings.Contains(said, "has begun, and everything can still be opened") || !strings.Contains(said, "un it again") ||
					strings.Contains(said, "[BUSY]") || key != "" != strings.Contains(said, "the same new key") {
					t.Errorf("exit code %d: %s", code, said)
				}
				k.opens(key)
				if key != "" {
					k.opens(next)
					if code, said := k.run(keyOf(t), args...); code != fault.ExitUsage || !strings.Contains(said, "begun before") {
						t.Errorf("with another key: exit code %d: %s", code, said)
					}
				}
				if code, said := k.run(next, args...); code != 0 || !strings.Contains(said, "had begun before") && !strings.Contains(said, `"resumed":true`) {
					t.Errorf("again: exit code %d: %s", code, said)
				}
				k.opens(next)
			})
		}
	}
}

func TestAChangeOfTheKeyThatIsTakenBackIsSaidToBe(t *testing.T) {
	t.Parallel()
	k := newKept(t, keyOf(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := k.world(strings.NewReader(keyOf(t)), "vault", "rekey")
	w.OnDisk = func(change string, _ store.Step) {
		if change == "write contexts/bank.age" {
			cancel()
		}
	}
	if code := Main(ctx, w.Env); code != interrupted {
		t.Fatalf("exit code %d: %s", code, w.stderr.String())
	}
	if code, said := k.run(k.key, "vault", "rekey"); code != 0 || !strings.Contains(said, "taken back") || strings.Contains(said, "to the new key") {
		t.Errorf("exit code %d: %s", code, said)
	}
	k.opens(k.key)
}

func TestWhoIsRefusedHasNoBrowserEnded(t *testing.T) {
	t.Parallel()
	k := newKept(t, keyOf(t))
	pass := k.file("pass", careful)
	whole := filepath.Join(t.TempDir(), "whole.backup")
	if code, said := k.run("", "backup", whole, "--passphrase-file", pass); code != 0 {
		t.Fatal(code, said)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, stdin string
		args        []string
	}{
		{"no such backup", "", []string{"restore", "nonsense", "--replace"}},
		{"no backup at all", "", []string{"restore", k.file("b", "nonsense"), "--replace", "--passphrase-file", pass}},
		{"a wrong passphrase", "wrong horse battery\n", []string{"restore", whole, "--replace"}},
		{"a backup that was cut", "", []string{"restore", k.file("c", string(raw[:len(raw)-40])), "--replace", "--passphrase-file", pass}},
		{"a home that is there", "", []string{"restore", whole, "--passphrase-file", pass}},
		{"nobody to be asked", "", []string{"forget", "bank.example"}},
		{"a session that is not over", "", []string{"forget", "bank.example", "--yes"}},
		{"no new key", "", []string{"vault", "rekey"}},
		{"a bad key", "nonsense", []string{"vault", "rekey"}},
		{"the same key", k.key, []string{"vault", "rekey"}},
	} {
		if code, said := k.run(tt.stdin, tt.args...); code == 0 || k.wereEnded() {
			t.Fatalf("%s: exit code %d, browsers ended: %v\n%s", tt.name, code, k.wereEnded(), said)
		}
	}
	w := k.world(struct {
		io.Reader
		io.Writer
	}{strings.NewReader("no\n"), io.Discard}, "forget", "bank.example")
	w.terminal = true
	if code := Main(t.Context(), w.Env); code != 1 || k.wereEnded() {
		t.Fatalf("no: exit code %d, browsers ended: %v\n%s", code, k.wereEnded(), w.stdout.String())
	}
	// And what is done ends them, each in a home of its own.
	for _, tt := range []struct {
		stdin string
		args  []string
	}{
		{keyOf(t), []string{"vault", "rekey"}}, {"", []string{"forget", "bank.example", "--yes", "--force"}}, {"", []string{"restore", whole, "--replace", "--passphrase-file", pass}},
	} {
		k := newKept(t, keyOf(t))
		code, said := k.run(tt.stdin, tt.args...)
		if tt.args[0] == "restore" { // the home that was there is elsewhere now
			aside, err := filepath.Glob(k.home + ".before-*")
			if err != nil || len(aside) != 1 {
				t.Fatal(aside, err)
			}
			k.home = aside[0]
		}
		if forgets := tt.args[0] == "forget"; (code != 0) != forgets || !k.wereEnded() { // its logins hold nothing that can be looked at
			t.Errorf("%v: exit code %d, browsers ended: %v\n%s", tt.args, code, k.wereEnded(), said)
		}
	}
}

// still is a standard input on which nothing comes.
func still(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}

func TestCtrlCEndsWhatWaitsAtAPipe(t *testing.T) {
	t.Parallel()
	k := newKept(t, keyOf(t))
	pass := k.file("pass", careful)
	whole := filepath.Join(t.TempDir(), "whole.backup")
	if code, said := k.run("", "backup", whole, "--passphrase-file", pass); code != 0 {
		t.Fatal(code, said)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	half := k.pipe("half")
	for _, tt := range []struct {
		name, says string
		stdin      io.Reader
		args       []string
		when       func(end func())
	}{
		{"the passphrase of a backup", "no backup was made", still(t), []string{"backup", filepath.Join(to, "a")}, nil},
		{"a file with it", "no backup was made", nil, []string{"backup", filepath.Join(to, "b"), "--passphrase-file", k.pipe("pass")}, nil},
		{"the passphrase of a restore", "nothing was changed", still(t), []string{"restore", whole, "--replace"}, nil},
		{"a backup", "nothing was changed", nil, []string{"restore", k.pipe("backup"), "--replace", "--passphrase-file", pass}, nil},
		{"the rest of a backup", "nothing was changed", nil, []string{"restore", half, "--replace", "--passphrase-file", pass}, func(end func()) {
			f, err := os.OpenFile(half, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.Write(raw[:len(raw)/2])
			}
			if err != nil {
				t.Error(err)
			}
			end()
			t.Cleanup(func() { _ = f.Close() })
		}},
		{"a new key", "the key was not changed", still(t), []string{"vault", "rekey"}, nil},
		{"a password", "", still(t), []string{"credential", "set", "shop.example"}, nil},
	} {
		if tt.stdin == nil {
			tt.stdin = strings.NewReader("")
		}
		w := k.world(tt.stdin, tt.args...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if tt.when != nil {
			go tt.when(cancel)
		} else {
			cancel()
		}
		ended := make(chan int, 1)
		go func() { ended <- Main(ctx, w.Env) }()
		select {
		case code := <-ended:
			if said := w.stderr.String(); code != interrupted || !strings.Contains(said, tt.says) {
				t.Errorf("%s: exit code %d: %s", tt.name, code, said)
			}
		case <-testwait.Context(t).Done():
			t.Fatalf("%s: it still waits", tt.name)
		}
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	k.opens(k.key)
	if k.wereEnded() {
		t.Error("browsers were ended")
	}
}

func TestAPatientReaderGivesAllThatThereIs(t *testing.T) {
	t.Parallel()
	all := bytes.Repeat([]byte("tapin "), 10000)
	got, err := io.ReadAll(patient{t.Context(), bytes.NewReader(all)})
	if err != nil || !bytes.Equal(got, all) {
		t.Errorf("%d bytes of %d, %v", len(got), len(all), err)
	}
}
