package vault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/zalando/go-keyring"
	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

// ring is a keychain in memory that can break in the ways real ones do.
type ring struct {
	mu      sync.Mutex
	entries map[string]string
	err     error
	hang    chan struct{}
	forgets bool
}

func (r *ring) Get(service, account string) (string, error) {
	if r.hang != nil {
		<-r.hang
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return "", r.err
	}
	v, ok := r.entries[service+"/"+account]
	if !ok {
		return "", keyring.ErrNotFound
	}
	return v, nil
}

func (r *ring) Set(service, account, value string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	if r.entries == nil {
		r.entries = map[string]string{}
	}
	if !r.forgets {
		r.entries[service+"/"+account] = value
	}
	return nil
}

func (r *ring) Delete(service, account string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	if _, ok := r.entries[service+"/"+account]; !ok {
		return keyring.ErrNotFound
	}
	delete(r.entries, service+"/"+account)
	return nil
}

func broken() *ring { return &ring{err: errors.New("dbus: no such thing")} }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openHome(t testing.TB) *store.Home {
	t.Helper()
	h, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

func openVault(t testing.TB, h *store.Home, r *ring, getenv func(string) string) *vault.Vault {
	t.Helper()
	v, err := vault.Open(t.Context(), h, &vault.Options{Keyring: r, Getenv: getenv})
	must(t, err)
	return v
}

func newKey(t testing.TB) string {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	must(t, err)
	return id.String()
}

func TestTheFirstUseTakesTheStrongestPlaceThereIs(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for name, tt := range map[string]struct {
		ring *ring
		env  func(string) string
		want vault.Source
	}{
		"a keychain":                      {&ring{}, env(), vault.FromKeychain},
		"a keychain before the variable":  {&ring{}, env("TAPIN_VAULT_KEY", key), vault.FromKeychain},
		"a variable before a file":        {broken(), env("TAPIN_VAULT_KEY", key+"\n"), vault.FromEnvironment},
		"a file when there is no other":   {broken(), env(), vault.FromFile},
		"no keychain that keeps nothing":  {&ring{forgets: true}, env(), vault.FromFile},
		"a keychain that has a key there": {&ring{entries: map[string]string{"credential-tapin-vault/tapin": key}}, env(), vault.FromKeychain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHome(t)
			first := openVault(t, h, tt.ring, tt.env)
			if first.Source() != tt.want {
				t.Fatalf("the key came from the %s", first.Source())
			}
			if hasFile, err := h.Exists("vault.key"); err != nil || hasFile != (tt.want == vault.FromFile) {
				t.Errorf("a key file: %v, %v", hasFile, err)
			}
			sealed, err := first.Seal("n", "o", []byte("x"))
			must(t, err)
			second := openVault(t, h, tt.ring, tt.env)
			plain, err := second.Open("n", "o", sealed)
			if err != nil || string(plain) != "x" || second.Source() != tt.want || second.Recipient() != first.Recipient() {
				t.Errorf("after a restart: %q, %v, from the %s", plain, err, second.Source())
			}
		})
	}
}

func TestThePlaceNeverChangesByItself(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	entry := "credential-tapin-vault/tapin"
	for name, tt := range map[string]struct {
		ring   *ring
		env    func(string) string
		then   func(h *store.Home, r *ring) error
		later  func(string) string
		says   string
		secret string
	}{
		"the keychain is unavailable": {&ring{}, env(), func(_ *store.Home, r *ring) error { r.err = errors.New("locked"); return nil },
			env("TAPIN_VAULT_KEY", key), "keychain cannot be used", key},
		"the keychain lost the entry": {&ring{}, env(), func(_ *store.Home, r *ring) error { r.entries = nil; return nil },
			env(), "no longer has the entry", key},
		"the keychain has another key": {&ring{}, env(), func(_ *store.Home, r *ring) error { r.entries[entry] = other; return nil },
			env(), "another key", other},
		"the keychain holds rubbish": {&ring{}, env(), func(_ *store.Home, r *ring) error { r.entries[entry] = "rubbish"; return nil },
			env(), "holds no key", "rubbish"},
		"the variable is gone": {broken(), env("TAPIN_VAULT_KEY", key), func(_ *store.Home, r *ring) error { r.err = nil; return nil },
			env(), "TAPIN_VAULT_KEY, which is not set", key},
		"the variable changed": {broken(), env("TAPIN_VAULT_KEY", key), func(*store.Home, *ring) error { return nil },
			env("TAPIN_VAULT_KEY", other), "another key", other},
		"the variable is rubbish": {broken(), env("TAPIN_VAULT_KEY", key), func(*store.Home, *ring) error { return nil },
			env("TAPIN_VAULT_KEY", key[:40]), "holds no key", key[:40]},
		"the file is gone": {broken(), env(), func(h *store.Home, r *ring) error { r.err = nil; return h.Remove("vault.key") },
			env("TAPIN_VAULT_KEY", key), "is gone", key},
		"the file is open to others": {broken(), env(), func(h *store.Home, _ *ring) error { return os.Chmod(filepath.Join(h.Path(), "vault.key"), 0o644) },
			env(), "open to other users", key},
		"the record is of a newer tapin": {broken(), env(), func(h *store.Home, _ *ring) error {
			return h.WriteJSON("vault.source", map[string]string{"source": "tpm"})
		}, env(), "no place this tapin knows", key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHome(t)
			openVault(t, h, tt.ring, tt.env)
			must(t, tt.then(h, tt.ring))
			_, err := vault.Open(t.Context(), h, &vault.Options{Keyring: tt.ring, Getenv: tt.later})
			f := fault.Of(err)
			if f == nil || f.Code != fault.Forbidden && f.Code != fault.Unreadable || !strings.Contains(f.Details(), tt.says) || f.Advice() == "" {
				t.Fatalf("got %+v", f)
			}
			if text := fmt.Sprintf("%v %s", err, f.Advice()); strings.Contains(text, tt.secret) {
				t.Errorf("the key is in the error: %s", text)
			}
		})
	}
}

func TestAKeyFileWithoutARecordIsTheKey(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	first := openVault(t, h, broken(), env())
	must(t, h.Remove("vault.source"))
	second := openVault(t, h, &ring{}, env())
	if second.Source() != vault.FromFile || second.Recipient() != first.Recipient() {
		t.Errorf("from the %s, another key: %v", second.Source(), second.Recipient() != first.Recipient())
	}
}

func TestARefusedFirstUseRecordsNothing(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	for name, opts := range map[string]*vault.Options{
		"rubbish in the environment": {Keyring: broken(), Getenv: env("TAPIN_VAULT_KEY", "rubbish")},
		"rubbish in the keychain":    {Keyring: &ring{entries: map[string]string{"credential-tapin-vault/tapin": "rubbish"}}, Getenv: env()},
	} {
		if _, err := vault.Open(t.Context(), h, opts); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := openVault(t, h, &ring{}, env()); v.Source() != vault.FromKeychain {
		t.Errorf("the key came from the %s", v.Source())
	}
}

func TestAKeychainThatHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	synctest.Test(t, func(t *testing.T) {
		hanging := &ring{hang: make(chan struct{})}
		var log bytes.Buffer
		v, err := vault.Open(t.Context(), h, &vault.Options{Keyring: hanging, Getenv: env(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		if v.Source() != vault.FromFile || !strings.Contains(log.String(), "no keychain") {
			t.Errorf("from the %s; the log: %s", v.Source(), log.String())
		}
		if _, err := v.Credential(t.Context(), "credential-x"); !errors.Is(err, fault.NotFound) {
			t.Errorf("a credential: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := v.Credential(ctx, "credential-x"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who is gone: %v", err)
		}
		close(hanging.hang)
		synctest.Wait()
	})
}

func TestManyFirstUsesMakeOneKey(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	recipients := make([]string, 6)
	var wg sync.WaitGroup
	for i := range recipients {
		wg.Go(func() {
			v, err := vault.Open(t.Context(), h, &vault.Options{Keyring: broken(), Getenv: env()})
			if err != nil {
				t.Error(err)
				return
			}
			recipients[i] = v.Recipient()
		})
	}
	wg.Wait()
	for _, r := range recipients {
		if r != recipients[0] {
			t.Fatalf("several keys: %v", recipients)
		}
	}
}

func TestWhatIsSealedComesBackForTheSameNameAndOriginOnly(t *testing.T) {
	t.Parallel()
	v := openVault(t, openHome(t), &ring{}, env())
	rapid.Check(t, func(rt *rapid.T) {
		name, origin := rapid.String().Draw(rt, "name"), rapid.String().Draw(rt, "origin")
		plain := rapid.SliceOf(rapid.Byte()).Draw(rt, "plain")
		sealed, err := v.Seal(name, origin, plain)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := v.Open(name, origin, sealed)
		if err != nil || !bytes.Equal(got, plain) {
			rt.Fatalf("%q, %v", got, err)
		}
		otherName, otherOrigin := rapid.String().Draw(rt, "other name"), rapid.String().Draw(rt, "other origin")
		if otherName == name && otherOrigin == origin {
			return
		}
		if got, err := v.Open(otherName, otherOrigin, sealed); !errors.Is(err, fault.IntegrityMismatch) || got != nil {
			rt.Fatalf("opened for another: %q, %v", got, err)
		}
	})
	if _, err := v.Seal("a\xff", "", nil); err == nil {
		t.Error("a name that is no text was sealed")
	}
}

func TestEveryFlippedByteIsNoticed(t *testing.T) {
	t.Parallel()
	v := openVault(t, openHome(t), &ring{}, env())
	const plain = "canary-4711"
	sealed, err := v.Seal("chase", "https://chase.com", []byte(plain))
	must(t, err)
	if bytes.Contains(sealed, []byte(plain)) || bytes.Contains(sealed, []byte("chase")) {
		t.Fatal("the sealed form can be read")
	}
	every := testwait.Rounds(5, 1) // the race detector takes its time for each
	for i := rand.N(every); i < len(sealed); i += every {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 1
		if got, err := v.Open("chase", "https://chase.com", damaged); !errors.Is(err, fault.IntegrityMismatch) || got != nil {
			t.Fatalf("byte %d: %q, %v", i, got, err)
		}
	}
	for i := rand.N(every); i < len(sealed); i += every {
		if _, err := v.Open("chase", "https://chase.com", sealed[:i]); !errors.Is(err, fault.IntegrityMismatch) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	other := openVault(t, openHome(t), &ring{}, env())
	if _, err := other.Open("chase", "https://chase.com", sealed); !errors.Is(err, fault.IntegrityMismatch) || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with another key: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	r := &ring{entries: map[string]string{
		"credential-browserbase-api-key/tapin":  "from the keychain",
		"credential-chase.com-login/tapin":      "login",
		"credential-telegram-bot-token/another": "of another account",
	}}
	getenv := env("BROWSERBASE_API_KEY", "from the environment", "BROWSERBASE_PROJECT_ID", "p", "MY_BANK_COM_TOTP", "totp", "TAPIN_VAULT_KEY", newKey(t))
	v := openVault(t, openHome(t), r, getenv)
	got := map[string]string{}
	for _, name := range []string{
		"credential-browserbase-api-key", "credential-browserbase-project-id", "credential-telegram-bot-token", "credential-chase.com-login",
		"credential-my-bank.com-totp", "credential-tapin-vault", "credential-", "login", "credential-../x", "credential-A",
	} {
		value, err := v.Credential(t.Context(), name)
		if err == nil {
			got[name] = value.Reveal()
		} else {
			got[name] = string(fault.Of(err).Code)
		}
	}
	want := map[string]string{
		"credential-browserbase-api-key":    "from the environment",
		"credential-browserbase-project-id": "p",
		"credential-telegram-bot-token":     "NOT_FOUND",
		"credential-chase.com-login":        "login",
		"credential-my-bank.com-totp":       "totp",
		"credential-tapin-vault":            "INVALID_REQUEST",
		"credential-":                       "INVALID_REQUEST",
		"login":                             "INVALID_REQUEST",
		"credential-../x":                   "INVALID_REQUEST",
		"credential-A":                      "INVALID_REQUEST",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err := v.Credential(t.Context(), "credential-telegram-bot-token")
	if hint := fault.Of(err).Advice(); !strings.Contains(hint, "TELEGRAM_BOT_TOKEN") {
		t.Errorf("the hint is %q", hint)
	}
}

func FuzzOpen(f *testing.F) {
	v := openVault(f, openHome(f), &ring{}, env())
	sealed, err := v.Seal("n", "o", []byte("plain"))
	must(f, err)
	f.Add(sealed)
	f.Add([]byte("age-encryption.org/v1\n-> X25519 a\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := v.Open("n", "o", data)
		if bytes.Equal(data, sealed) {
			if err != nil || string(got) != "plain" {
				t.Fatalf("%q, %v", got, err)
			}
			return
		}
		if !errors.Is(err, fault.IntegrityMismatch) || got != nil {
			t.Fatalf("opened %q from %q: %v", got, data, err)
		}
	})
}
