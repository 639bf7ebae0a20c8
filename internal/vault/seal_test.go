package vault_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const bank = "https://chase.com"

func TestWhatIsSealedToOthersOpensForThemAlone(t *testing.T) {
	t.Parallel()
	mine, theirs, stranger := openVault(t, openHome(t), &ring{}, env()), openVault(t, openHome(t), &ring{}, env()), openVault(t, openHome(t), &ring{}, env())
	rapid.Check(t, func(rt *rapid.T) {
		plain := rapid.SliceOfN(rapid.Byte(), 0, 8192).Draw(rt, "plain")
		name := rapid.String().Draw(rt, "name")
		own := rapid.Bool().Draw(rt, "own")
		to := []string{theirs.Recipient(), theirs.Recipient()}
		if own {
			to = append(to, mine.Recipient())
		}
		before := slices.Clone(to)
		sealed, err := mine.SealTo(to, name, bank, plain)
		if err != nil || !slices.Equal(to, before) {
			rt.Fatalf("%v, %v", err, to)
		}
		for _, form := range []string{sealed, "\r\n " + sealed + "\n\n", strings.ReplaceAll(sealed, "\n", "\r\n")} {
			if got, err := theirs.Open(name, bank, []byte(form)); err != nil || !bytes.Equal(got, plain) {
				rt.Fatalf("the other tapin: %v", err)
			}
		}
		if got, err := mine.Open(name, bank, []byte(sealed)); (err == nil) != own || own && !bytes.Equal(got, plain) {
			rt.Fatalf("this tapin, included %v: %v", own, err)
		}
		if _, err := stranger.Open(name, bank, []byte(sealed)); !errors.Is(err, fault.IntegrityMismatch) || !strings.Contains(err.Error(), "another key") {
			rt.Fatalf("a stranger: %v", err)
		}
		if _, err := theirs.Open(name, "https://evil.example", []byte(sealed)); !errors.Is(err, fault.IntegrityMismatch) {
			rt.Fatalf("for another origin: %v", err)
		}
	})
}

func TestOnlyRecipientsAreSealedTo(t *testing.T) {
	t.Parallel()
	v := openVault(t, openHome(t), &ring{}, env())
	key := newKey(t)
	many := make([]string, 33)
	for i := range many {
		id, err := age.GenerateX25519Identity()
		must(t, err)
		many[i] = id.Recipient().String()
	}
	for name, to := range map[string][]string{
		"nobody": nil, "an empty word": {""}, "a secret key": {v.Recipient(), key}, "a word": {"age1nonsense"}, "too many": many,
		"a key of ssh": {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN"},
	} {
		sealed, err := v.SealTo(to, "n", "o", []byte("x"))
		if !errors.Is(err, fault.InvalidRequest) || sealed != "" {
			t.Errorf("%s: %q, %v", name, sealed, err)
		}
		if strings.Contains(err.Error()+fault.Of(err).Advice(), key) {
			t.Errorf("%s: the key is in the error", name)
		}
	}
	if _, err := v.SealTo([]string{v.Recipient()}, "n", "o", make([]byte, 256<<20+1)); !errors.Is(err, fault.PayloadTooLarge) {
		t.Errorf("a plaintext without end: %v", err)
	}
}

func TestTheAgeCommandsFormatIsSpokenBothWays(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	id, err := age.ParseX25519Identity(key)
	must(t, err)
	v := openVault(t, openHome(t), broken(), env("TAPIN_VAULT_KEY", key))

	// What age -d -i key does with our text.
	sealed, err := v.SealTo([]string{v.Recipient()}, "chase", bank, []byte("state"))
	must(t, err)
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), id)
	must(t, err)
	plain, err := io.ReadAll(r)
	must(t, err)
	const head = `{"tapin_vault":1,"name":"chase","origin":"https://chase.com"}` + "\n"
	if string(plain) != head+"state" {
		t.Errorf("age reads %q", plain)
	}

	// What age -r makes, without armor.
	var theirs bytes.Buffer
	w, err := age.Encrypt(&theirs, id.Recipient())
	must(t, err)
	_, err = io.WriteString(w, head+"back")
	must(t, err)
	must(t, w.Close())
	if got, err := v.Open("chase", bank, theirs.Bytes()); err != nil || string(got) != "back" {
		t.Errorf("from age: %q, %v", got, err)
	}
}

func TestAPassphraseOpensWhatItSealed(t *testing.T) {
	t.Parallel()
	a, b := openVault(t, openHome(t), &ring{}, env()), openVault(t, openHome(t), &ring{}, env())
	pass := secret.New("canary horse staple")
	sealed, err := a.SealWithPassphrase(pass, "chase", bank, []byte("state"))
	must(t, err)
	if !strings.HasPrefix(sealed, "-----BEGIN AGE ENCRYPTED FILE-----\n") || strings.Contains(sealed, "chase") {
		t.Errorf("sealed as %q", sealed)
	}
	if got, err := b.OpenWithPassphrase(pass, "chase", bank, []byte(sealed)); err != nil || string(got) != "state" {
		t.Errorf("with the passphrase: %q, %v", got, err)
	}
	if got, err := a.Open("chase", bank, []byte(sealed)); !errors.Is(err, fault.IntegrityMismatch) || got != nil {
		t.Errorf("without it: %q, %v", got, err)
	}

	// One that age -p made, at a factor that does not take a test's time.
	quick, err := age.NewScryptRecipient(pass.Reveal())
	must(t, err)
	quick.SetWorkFactor(8)
	var theirs bytes.Buffer
	w, err := age.Encrypt(&theirs, quick)
	must(t, err)
	_, err = io.WriteString(w, `{"tapin_vault":1,"name":"chase","origin":"https://chase.com"}`+"\nback")
	must(t, err)
	must(t, w.Close())
	for name, tt := range map[string]struct {
		pass, name string
		cut        int
		want       string
	}{
		"the passphrase":     {pass.Reveal(), "chase", 0, "back"},
		"another passphrase": {"canary horse stable", "chase", 0, ""},
		"another name":       {pass.Reveal(), "other", 0, ""},
		"a part of the file": {pass.Reveal(), "chase", 9, ""},
	} {
		got, err := b.OpenWithPassphrase(secret.New(tt.pass), tt.name, bank, theirs.Bytes()[:theirs.Len()-tt.cut])
		if string(got) != tt.want || (tt.want == "") != errors.Is(err, fault.IntegrityMismatch) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: the passphrase is in the error", name)
		}
	}
	if _, err := a.SealWithPassphrase(secret.New("short"), "chase", bank, nil); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a short passphrase: %v", err)
	}
	if _, err := a.OpenWithPassphrase(secret.Text{}, "chase", bank, []byte(sealed)); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("no passphrase: %v", err)
	}
}

// A file says itself how much work it is to open. At factor 22 one costs 4 GiB.
func TestAHostileFileDoesNotDecideWhatItCosts(t *testing.T) {
	t.Parallel()
	v := openVault(t, openHome(t), &ring{}, env())
	const cheap = "age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA FACTOR\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n0000000000000000"
	for _, factor := range []string{"19", "22", "30", "63", "99999999999999999999"} {
		_, err := v.OpenWithPassphrase(secret.New("passphrase"), "n", "o", []byte(strings.Replace(cheap, "FACTOR", factor, 1)))
		if !errors.Is(err, fault.IntegrityMismatch) || strings.Contains(err.Error(), "passphrase is wrong") { // which one can only say who tried it
			t.Errorf("factor %s: %v", factor, err)
		}
	}
	// The same file with an honest factor is tried.
	_, err := v.OpenWithPassphrase(secret.New("passphrase"), "n", "o", []byte(strings.Replace(cheap, "FACTOR", "10", 1)))
	if !errors.Is(err, fault.IntegrityMismatch) || !strings.Contains(err.Error(), "passphrase is wrong") {
		t.Errorf("an honest factor: %v", err)
	}
}

func FuzzOpenWithPassphrase(f *testing.F) {
	v := openVault(f, openHome(f), &ring{}, env())
	f.Add([]byte("age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"))
	f.Add([]byte("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := v.OpenWithPassphrase(secret.New("passphrase"), "n", "o", data); !errors.Is(err, fault.IntegrityMismatch) || got != nil {
			t.Fatalf("opened %q: %v", got, err)
		}
	})
}
