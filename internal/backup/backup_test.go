package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/zalando/go-keyring"

	"tapin/internal/backup"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

const (
	passphrase = "correct horse battery"
	canary     = "canary-of-a-login"

	// dieAt makes the test binary restore a backup, and end itself at a step.
	dieAt = "TAPIN_BACKUP_DIES_AT"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(dieAt); at != "" {
		restoreUntil(at, os.Args[1], os.Args[2], os.Args[3] == "inside")
	}
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inMemory is a folder that is quick; no power is cut here.
func inMemory(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "tapin")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// keyless is a world without a keychain.
func keyless() *vault.Options {
	return &vault.Options{Keyring: none{}, Getenv: func(string) string { return "" }}
}

type none struct{}

var errNone = errors.New("there is no keychain")

func (none) Get(string, string) (string, error) { return "", errNone }
func (none) Set(string, string, string) error   { return errNone }
func (none) Delete(string, string) error        { return errNone }

// seed makes a home with something of many kinds.
func seed(t *testing.T, path, word string) {
	t.Helper()
	h, err := store.Open(path, nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	v, err := vault.Open(t.Context(), h, keyless())
	must(t, err)
	sealed, err := v.Seal("context bank", "", []byte(canary+word))
	must(t, err)
	for name, content := range map[string]string{
		"contexts/bank.age": string(sealed), "contexts/bank.json": `{"version":1,"name":"bank"}`, "config.yaml": "# " + word + "\n", "counters/epoch": "41",
		"handoffs/hof_1/meta.json": `{"handoff_id":"hof_1"}`, "journal/journal-2026-11-19.jsonl": "{\"a\":1}\n", "my notes.txt": word,
		"sessions/ses_1.json": "{}", "run/ses_1-1/profile/x": "profile", "logs/sidecar.log": "log", "demo/agent.token": "demo",
	} {
		must(t, h.Write(name, []byte(content)))
	}
}

func made(t *testing.T, home string) []byte {
	t.Helper()
	h, err := store.Open(home, nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	var file bytes.Buffer
	_, err = backup.Make(t.Context(), &file, h, secret.New(passphrase), &backup.Options{Program: "test", Vault: keyless(), Factor: 10})
	must(t, err)
	return file.Bytes()
}

func restore(t *testing.T, path string, file []byte, pass string, replace bool) (backup.Restored, error) {
	t.Helper()
	return backup.Restore(t.Context(), path, bytes.NewReader(file), secret.New(pass), backup.RestoreOptions{
		Vault: keyless(), Replace: replace, Renew: func(h *store.Home, known uint64) error { return h.RaiseCounter("epoch", known+100) },
	})
}

// tree is what a folder holds, but for what runs.
func tree(t *testing.T, path string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(path, file)
		if strings.HasPrefix(name, "locks/") || strings.HasPrefix(name, "tmp/") {
			return nil
		}
		raw, err := os.ReadFile(file)
		found[name] = fmt.Sprintf("%x", sha256.Sum256(raw))
		return err
	})
	if !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
	return found
}

// whole checks a home that was restored from a seeded one.
func whole(t *testing.T, path, word string) error {
	t.Helper()
	h, err := store.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	v, err := vault.Open(t.Context(), h, keyless())
	if err != nil {
		return err
	}
	sealed, err := h.Read("contexts/bank.age")
	if err != nil {
		return err
	}
	if plain, err := v.Open("context bank", "", sealed); err != nil || string(plain) != canary+word {
		return fmt.Errorf("the login is %q: %w", plain, err)
	}
	if notes, err := h.Read("my notes.txt"); err != nil || string(notes) != word {
		return fmt.Errorf("the notes are %q: %w", notes, err)
	}
	return nil
}

func TestABackupIsTheWholeHomeAndNothingOfItIsInTheClear(t *testing.T) {
	t.Parallel()
	folder := inMemory(t)
	home, other := filepath.Join(folder, "home"), filepath.Join(folder, "other")
	seed(t, home, "one")
	file := made(t, home)
	for _, word := range []string{"one", "AGE-SECRET-KEY", "contexts", "hof_1"} {
		if word != "one" && bytes.Contains(file, []byte(word)) {
			t.Errorf("%q is in the file in the clear", word)
		}
	}
	done, err := restore(t, other, file, passphrase, false)
	must(t, err)
	if done.Key != vault.FromFile || done.Aside != "" || done.Head.Program != "test" {
		t.Errorf("it says %+v", done)
	}
	must(t, whole(t, other, "one"))
	before, after := tree(t, home), tree(t, other)
	for _, name := range []string{"sessions/ses_1.json", "run/ses_1-1/profile/x", "logs/sidecar.log", "demo/agent.token"} {
		if _, there := after[name]; there {
			t.Errorf("%s was restored", name)
		}
		delete(before, name)
	}
	for _, name := range []string{"counters/epoch", "vault.key", "vault.source"} { // of the new home
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		t.Errorf("the home has %v, and the restored one %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	if raw, err := os.ReadFile(filepath.Join(other, "counters/epoch")); err != nil || string(raw) != "141" {
		t.Errorf("the epoch is %s, %v", raw, err)
	}
}

func TestAHomeThatIsThereIsPutAsideAndNeverDeleted(t *testing.T) {
	t.Parallel()
	folder := inMemory(t)
	home, other := filepath.Join(folder, "home"), filepath.Join(folder, "other")
	seed(t, home, "one")
	seed(t, other, "two")
	file, before := made(t, home), tree(t, other)
	if _, err := restore(t, other, file, passphrase, false); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("without being told to: %v", err)
	}
	if !maps.Equal(before, tree(t, other)) {
		t.Error("a refusal changed something")
	}
	done, err := restore(t, other, file, passphrase, true)
	must(t, err)
	must(t, whole(t, other, "one"))
	must(t, whole(t, done.Aside, "two"))
	left, err := os.ReadDir(folder)
	must(t, err)
	if len(left) != 3 {
		t.Errorf("beside the homes there is %v", left)
	}
}

func TestAFileThatIsNotWholeChangesNothing(t *testing.T) {
	t.Parallel()
	folder := inMemory(t)
	home, other := filepath.Join(folder, "home"), filepath.Join(folder, "other")
	seed(t, home, "one")
	seed(t, other, "two")
	file, before := made(t, home), tree(t, other)
	refused := func(what string, file []byte, pass string) {
		t.Helper()
		if _, err := restore(t, other, file, pass, true); !errors.Is(err, fault.IntegrityMismatch) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := restore(t, filepath.Join(folder, "nowhere"), file[:len(file)-1], passphrase, false); !errors.Is(err, fault.IntegrityMismatch) {
		t.Errorf("where nothing was: %v", err)
	}
	refused("a wrong passphrase", file, "correct horse batterz")
	refused("nothing", nil, passphrase)
	refused("another file", []byte(strings.Repeat("no backup\n", 100)), passphrase)
	for at := 0; at < len(file); at += max(len(file)/9, 1) {
		refused(fmt.Sprintf("one of %d bytes", at), file[:at], passphrase)
		changed := slices.Clone(file)
		changed[at] ^= 4
		refused(fmt.Sprintf("one with another byte %d", at), changed, passphrase)
	}
	refused("one with something behind it", append(slices.Clone(file), 'x'), passphrase)
	if !maps.Equal(before, tree(t, other)) {
		t.Error("a refusal changed something")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("refusals left %v, %v", left, err)
	}
}

// restoreUntil is the process that dies: it restores a backup and kills itself
// at a step, by its number or its name.
func restoreUntil(at, path, file string, inside bool) {
	raw, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	steps := 0
	step := func(what string) {
		if steps++; at == strconv.Itoa(steps) || at == what {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	_, err = backup.Restore(context.Background(), path, bytes.NewReader(raw), secret.New(passphrase), backup.RestoreOptions{
		Vault: keyless(), Replace: true, Inside: inside, Store: &store.Options{Step: func(string, store.Step) { step("") }}, Step: step,
		Renew: func(h *store.Home, known uint64) error { return h.RaiseCounter("epoch", known+100) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestChaosOfARestore kills it at the steps of its own, and at some of the
// store's: TAPIN_CHAOS has it killed at all of them.
func TestChaosOfARestore(t *testing.T) {
	t.Parallel()
	chaos(t, "beside", 24, "marked", "unpacked", "ready", "named", "kept", "put aside")
}

// TestChaosOfARestoreIntoAMountPoint is the same where the home is exchanged
// entry by entry: until that has ended nobody opens a mixture.
func TestChaosOfARestoreIntoAMountPoint(t *testing.T) {
	t.Parallel()
	chaos(t, "inside", 60, "marked", "unpacked", "ready", store.SwapOut, store.SwapIn, "moved", "ended", "removed")
}

func chaos(t *testing.T, way string, stride int, own ...string) {
	folder := inMemory(t)
	home := filepath.Join(folder, "home")
	seed(t, home, "one")
	file := filepath.Join(folder, "file")
	raw := made(t, home)
	must(t, os.WriteFile(file, raw, 0o600))
	before, after := 0, 0
	if os.Getenv("TAPIN_CHAOS") != "" {
		stride = 1
	}
	for n := 0; ; n++ {
		at := strconv.Itoa((n-len(own))*stride + 1)
		if n < len(own) {
			at = own[n]
		}
		place := filepath.Join(folder, "at "+at)
		other := filepath.Join(place, "other")
		seed(t, other, "two")
		cmd := exec.CommandContext(t.Context(), os.Args[0], other, file, way)
		cmd.Env = append(os.Environ(), dieAt+"="+at)
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			t.Fatalf("step %s: %v\n%s", at, err, out)
		}
		refused := false
		if _, err := store.Open(other, nil); err != nil {
			if refused = errors.Is(err, fault.Forbidden); !refused || way == "beside" {
				t.Fatalf("after step %s it is not opened: %v", at, err)
			}
		}
		must(t, backup.Finish(other)) // as whoever opens a home does
		word := "two"
		if err := whole(t, other, "two"); err != nil {
			word = "one"
			if err := whole(t, other, "one"); err != nil {
				t.Fatalf("after step %s it is neither the home before nor the one after: %v", at, err)
			}
			after++
		} else {
			before++
		}
		if _, err := os.Lstat(filepath.Join(other, "sessions")); (err == nil) != (word == "two") || refused && word == "two" {
			t.Fatalf("after step %s it is a mixture: %v, refused: %v", at, err, refused)
		}
		// Once more, and everything is in its place, and nothing is lost.
		done, err := backup.Restore(t.Context(), other, bytes.NewReader(raw), secret.New(passphrase), backup.RestoreOptions{
			Vault: keyless(), Replace: true, Inside: way == "inside", Renew: func(*store.Home, uint64) error { return nil },
		})
		must(t, err)
		must(t, whole(t, other, "one"))
		must(t, whole(t, done.Aside, word))
		if homes := homesOf(t, place, "two"); homes != 1 {
			t.Fatalf("after step %s the home that was there is there %d times", at, homes)
		}
		if left := backup.Left(other); len(left) != 0 {
			t.Fatalf("after step %s there is left %v", at, left)
		}
		must(t, os.RemoveAll(place))
	}
	if before < 4 || after < 3 {
		t.Errorf("%d kills before, %d after", before, after)
	}
}

// homesOf counts the homes of a word, wherever they lie.
func homesOf(t *testing.T, place, word string) (homes int) {
	t.Helper()
	var notes []string
	must(t, filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "my notes.txt" {
			notes = append(notes, path)
		}
		return err
	}))
	for _, path := range notes {
		if whole(t, filepath.Dir(path), word) == nil {
			homes++
		}
	}
	return homes
}

// TestWhatAKilledRestoreLeftIsNamedAndRemovedMarkLast kills a restore when it is
// ready, and then who removes what it left at each of its steps: at no time is the
// rest taken for a home that somebody had.
func TestWhatAKilledRestoreLeftIsNamedAndRemovedMarkLast(t *testing.T) {
	t.Parallel()
	folder := inMemory(t)
	home, other, file := filepath.Join(folder, "home"), filepath.Join(folder, "other"), filepath.Join(folder, "file")
	seed(t, home, "one")
	seed(t, other, "two")
	raw := made(t, home)
	must(t, os.WriteFile(file, raw, 0o600))
	for _, at := range []string{"ready", "removed"} { // in the second, of what the first left
		cmd := exec.CommandContext(t.Context(), os.Args[0], other, file, "beside")
		cmd.Env = append(os.Environ(), dieAt+"="+at)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Fatalf("it was not killed at %s: %s", at, out)
		}
		left := backup.Left(other)
		if len(left) != 1 {
			t.Fatalf("left by a kill at %s: %v", at, left)
		}
		if _, err := os.Lstat(filepath.Join(left[0], ".restoring")); err != nil {
			t.Fatalf("killed at %s its mark is gone before the rest: %v", at, err)
		}
	}
	must(t, backup.Tidy(t.Context(), other, keyless()))
	if left, err := os.ReadDir(folder); err != nil || len(left) != 3 || len(backup.Left(other)) != 0 {
		t.Errorf("there is left %v, %v", left, err)
	}
	must(t, whole(t, other, "two"))
}

// keychain is one that answers.
type keychain struct {
	mu sync.Mutex
	at map[string]string
}

func (k *keychain) Get(service, user string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok := k.at[service+"/"+user]; ok {
		return v, nil
	}
	return "", keyring.ErrNotFound
}

func (k *keychain) Set(service, user, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at[service+"/"+user] = value
	return nil
}

func (k *keychain) Delete(service, user string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.at, service+"/"+user)
	return nil
}

// TestTheKeyOfWhatAKilledRestoreLeftGoesToo has a restore break off as a kill
// does, with its key in the keychain already.
func TestTheKeyOfWhatAKilledRestoreLeftGoesToo(t *testing.T) {
	t.Parallel()
	folder := inMemory(t)
	home, other := filepath.Join(folder, "home"), filepath.Join(folder, "other")
	seed(t, home, "one")
	keys := &keychain{at: map[string]string{}}
	opts := &vault.Options{Keyring: keys, Getenv: func(string) string { return "" }}
	func() {
		defer func() { _ = recover() }()
		_, _ = backup.Restore(t.Context(), other, bytes.NewReader(made(t, home)), secret.New(passphrase), backup.RestoreOptions{
			Vault: opts, Renew: func(*store.Home, uint64) error { return nil }, Step: func(what string) {
				if what == "ready" { // a copy is what a kill would leave
					must(t, os.Mkdir(other+".restoring-killed", 0o700))
					left, _ := filepath.Glob(other + ".restoring-[0-9]*")
					must(t, os.CopyFS(other+".restoring-killed", os.DirFS(left[0])))
				}
			},
		})
	}()
	if len(keys.at) != 1 {
		t.Fatalf("the keychain has %d keys", len(keys.at))
	}
	must(t, backup.Tidy(t.Context(), other, opts))
	if len(keys.at) != 0 {
		t.Errorf("the key of what was removed is still in the keychain")
	}
}

func TestAHomeThatIsALinkStaysOne(t *testing.T) {
	t.Parallel()
	folder := inMemory(t)
	home, disk, link := filepath.Join(folder, "home"), filepath.Join(folder, "disk"), filepath.Join(folder, "link")
	seed(t, home, "one")
	file := made(t, home)
	must(t, os.Symlink(disk, link))
	if _, err := restore(t, link, file, passphrase, false); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("to nowhere: %v", err)
	}
	must(t, os.Mkdir(disk, 0o700))
	if _, err := restore(t, link, file, passphrase, false); err != nil {
		t.Errorf("to an empty folder: %v", err)
	}
	done, err := restore(t, link, file, passphrase, true)
	must(t, err)
	if to, err := os.Readlink(link); err != nil || to != disk {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	must(t, whole(t, link, "one"))
	must(t, whole(t, done.Aside, "one"))
	if filepath.Dir(done.Aside) != folder || !strings.HasPrefix(filepath.Base(done.Aside), "disk.before-") {
		t.Errorf("put aside as %s", done.Aside)
	}
}
