package vault_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// sealedFiles are what a home may have sealed, by what it is sealed for.
var sealedFiles = map[string]string{
	"contexts/bank.age": "context bank", "contexts/bank.age.1": "context bank", "contexts/bank.age.damaged-20260101T000000.000Z": "context bank",
	"sessions/ses_1.state": "ses_1", "sessions/ses_1.undo": "sessions/ses_1.undo", "handoffs/hof_1/photo.age": "handoffs/hof_1/photo.age",
}

// rekeyCase is a place of the key.
type rekeyCase struct {
	name string
	ring *ring
	vars map[string]string
}

func (c rekeyCase) options() *vault.Options {
	return &vault.Options{Keyring: c.ring, Getenv: func(name string) string { return c.vars[name] }}
}

func rekeyCases(t *testing.T) []rekeyCase {
	return []rekeyCase{
		{"the keychain", &ring{}, nil},
		{"a file", broken(), nil},
		{"the environment", broken(), map[string]string{"TAPIN_VAULT_KEY": newKey(t)}},
	}
}

func seedSealed(t *testing.T, h *store.Home, o *vault.Options) {
	t.Helper()
	v, err := vault.Open(t.Context(), h, o)
	must(t, err)
	for file, name := range sealedFiles {
		raw, err := v.Seal(name, "", []byte("canary of "+file))
		must(t, err)
		must(t, h.Write(file, raw))
	}
	must(t, h.Write("contexts/bank.json", []byte("{}\n")))
	must(t, h.Write("contexts/torn.age", []byte("age-encryption.org/v1\n-> X25519 torn")))
}

// readable checks that a vault opens all that there is.
func readable(t *testing.T, h *store.Home, o *vault.Options) error {
	t.Helper()
	v, err := vault.Open(t.Context(), h, o)
	if err != nil {
		return err
	}
	for file, name := range sealedFiles {
		raw, err := h.Read(file)
		if err != nil {
			return err
		}
		plain, err := v.Open(name, "", raw)
		if err != nil || string(plain) != "canary of "+file {
			return fmt.Errorf("%s: %q, %w", file, plain, err)
		}
	}
	return nil
}

// keysOf are all keys that a home and its keychain have.
func keysOf(t *testing.T, h *store.Home, c rekeyCase) []string {
	t.Helper()
	var keys []string
	for _, v := range c.ring.entries {
		keys = append(keys, v)
	}
	must(t, filepath.WalkDir(h.Path(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.HasPrefix(string(raw), "AGE-SECRET-KEY") {
			keys = append(keys, strings.TrimSpace(string(raw)))
		}
		return err
	}))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func TestANewKeySealsEverythingAndTheOldOneIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range rekeyCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := openHome(t)
			seedSealed(t, h, c.options())
			old, err := vault.Open(t.Context(), h, c.options())
			must(t, err)
			oldKey, _ := old.Key()
			for round := range 2 {
				how := &vault.RekeyOptions{}
				if c.vars != nil {
					how.Key = secret.New(newKey(t))
				}
				done, err := vault.Rekey(t.Context(), h, c.options(), how)
				if err != nil || done.Files != len(sealedFiles) || !slices.Equal(done.Strange, []string{"contexts/torn.age"}) || done.Resumed {
					t.Fatalf("round %d: %+v, %v", round, done, err)
				}
				if c.vars != nil {
					if err := readable(t, h, c.options()); !errors.Is(err, fault.Forbidden) {
						t.Fatalf("the earlier key of the environment still opens the vault: %v", err)
					}
					c.vars["TAPIN_VAULT_KEY"] = how.Key.Reveal()
				}
				must(t, readable(t, h, c.options()))
			}
			for file, name := range sealedFiles {
				raw, err := h.Read(file)
				must(t, err)
				if _, err := old.Open(name, "", raw); !errors.Is(err, fault.IntegrityMismatch) {
					t.Errorf("%s can still be opened with the old key: %v", file, err)
				}
			}
			if found := keysOf(t, h, c); slices.Contains(found, oldKey.Reveal()) || len(found) > 1 {
				t.Errorf("%d keys are left", len(found))
			}
			if there, err := h.Exists("vault.next"); there || err != nil {
				t.Errorf("the change is still noted: %v", err)
			}
		})
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

// killedAfter opens a home whose process is dead after so many changes.
func killedAfter(t *testing.T, path string, at int) (h *store.Home, dead *bool) {
	t.Helper()
	changes, dead := 0, new(bool)
	h, err := store.Open(path, &store.Options{Guard: func(string) error {
		if changes++; *dead || changes > at {
			*dead = true
			return errKilled
		}
		return nil
	}})
	must(t, err)
	return h, dead
}

// errKilled is what every change answers after the instant of the kill.
var errKilled = errors.New("killed")

// TestChaosOfANewKey cuts the change off after every single write, and at every
// call of the keychain.
func TestChaosOfANewKey(t *testing.T) {
	t.Parallel()
	for _, c := range rekeyCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newEnv := newKey(t)
			folder := inMemory(t)
			resumed := 0
			for at := 0; ; at++ {
				c := rekeyCase{c.name, &ring{err: c.ring.err}, maps.Clone(c.vars)}
				path := filepath.Join(folder, strconv.Itoa(at))
				h, err := store.Open(path, nil)
				must(t, err)
				seedSealed(t, h, c.options())
				must(t, h.Close())
				// The kill comes after the change number at, or after half of it.
				changes, dead := 0, false
				dying, err := store.Open(path, &store.Options{Guard: func(string) error {
					if changes++; dead || changes > at {
						dead = true
						return errKilled
					}
					return nil
				}})
				must(t, err)
				how := &vault.RekeyOptions{}
				if c.vars != nil {
					how.Key = secret.New(newEnv)
				}
				opts := c.options()
				opts.Keyring = mortal{c.ring, func() bool { return dead }}
				_, err = vault.Rekey(t.Context(), dying, opts, how)
				must(t, dying.Close())
				if !dead {
					must(t, err)
					break
				}
				after, err := store.Open(path, nil)
				must(t, err)
				// Whatever the instant, everything opens. Of the environment it is the new
				// key that brings it to its end; see TestAChangeOfTheEnvironmentsKeyIsNeverBetween.
				if begun, err := vault.Changing(after); err != nil || begun || c.vars == nil {
					must(t, errors.Join(err, readable(t, after, c.options())))
				}
				if c.vars != nil && changes > 1 {
					c.vars["TAPIN_VAULT_KEY"] = newEnv
				}
				if err := vault.Finish(t.Context(), after, c.options()); err != nil {
					t.Fatalf("after %d changes: %v", at, err)
				}
				must(t, readable(t, after, c.options()))
				if there, err := after.Exists("vault.next"); there || err != nil {
					t.Fatalf("after %d changes the change is still noted: %v", at, err)
				}
				if found := keysOf(t, after, c); len(found) > 1 {
					t.Fatalf("after %d changes %d keys are left", at, len(found))
				}
				must(t, after.Close())
				resumed++
			}
			if resumed < len(sealedFiles)+3 {
				t.Errorf("only %d instants", resumed)
			}
		})
	}
}

// mortal is a keychain that does nothing any more for a process that is dead.
type mortal struct {
	*ring
	dead func() bool
}

func (m mortal) Set(service, account, value string) error {
	if m.dead() {
		return errKilled
	}
	return m.ring.Set(service, account, value)
}

func (m mortal) Delete(service, account string) error {
	if m.dead() {
		return errKilled
	}
	return m.ring.Delete(service, account)
}

func TestAKeyThatOthersShareStaysInTheKeychainWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	c := rekeyCase{"the keychain", &ring{}, nil}
	h, other := openHome(t), openHome(t)
	seedSealed(t, h, c.options())
	seedSealed(t, other, c.options())
	done, err := vault.Rekey(t.Context(), h, c.options(), &vault.RekeyOptions{KeepOld: true})
	must(t, err)
	if done.KeptOld != "credential-tapin-vault" {
		t.Errorf("it says that it kept %q", done.KeptOld)
	}
	must(t, readable(t, h, c.options()))
	must(t, readable(t, other, c.options()))
}

func TestAKeychainThatForgetsIsNotGivenTheOnlyCopyOfANewKey(t *testing.T) {
	t.Parallel()
	c := rekeyCase{"the keychain", &ring{}, nil}
	h := openHome(t)
	seedSealed(t, h, c.options())
	c.ring.forgets = true
	if _, err := vault.Rekey(t.Context(), h, c.options(), nil); !errors.Is(err, fault.Forbidden) {
		t.Fatalf("got %v", err)
	}
	must(t, readable(t, h, c.options()))
	if there, err := h.Exists("vault.next"); there || err != nil {
		t.Errorf("a change is noted that was refused: %v", err)
	}
	if _, err := vault.Rekey(context.Background(), openHome(t), c.options(), nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("a home without a key: %v", err)
	}
}
