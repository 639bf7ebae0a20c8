package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/logins"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
)

const loginCanary = "canary-cli-cookie"

// sealer seals and opens with age, as the vault does.
type sealer struct{ *age.X25519Identity }

func (k sealer) Recipient() string { return k.X25519Identity.Recipient().String() }

func (k sealer) Seal(name, origin string, plain []byte) ([]byte, error) {
	s, err := k.SealTo([]string{k.Recipient()}, name, origin, plain)
	return []byte(s), err
}

func (k sealer) SealTo(to []string, name, origin string, plain []byte) (string, error) {
	recipient, err := age.ParseX25519Recipient(to[0])
	if err != nil {
		return "", fault.New(fault.InvalidRequest, "", "no recipient")
	}
	return k.encrypt(name, origin, plain, recipient)
}

func (k sealer) SealWithPassphrase(pass secret.Text, name, origin string, plain []byte) (string, error) {
	recipient, err := age.NewScryptRecipient(pass.Reveal())
	if err != nil {
		return "", err
	}
	recipient.SetWorkFactor(10)
	return k.encrypt(name, origin, plain, recipient)
}

func (sealer) encrypt(name, origin string, plain []byte, to age.Recipient) (string, error) {
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, to)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(w, "%s %s\n%s", name, origin, plain)
	err = errors.Join(err, w.Close(), a.Close())
	return out.String(), err
}

func (k sealer) Open(name, origin string, sealed []byte) ([]byte, error) {
	return k.decrypt(name, origin, sealed, k.X25519Identity)
}

func (k sealer) OpenWithPassphrase(pass secret.Text, name, origin string, sealed []byte) ([]byte, error) {
	id, err := age.NewScryptIdentity(pass.Reveal())
	if err != nil {
		return nil, err
	}
	return k.decrypt(name, origin, sealed, id)
}

func (sealer) decrypt(name, origin string, sealed []byte, id age.Identity) ([]byte, error) {
	var out bytes.Buffer
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), id)
	if err == nil {
		_, err = out.ReadFrom(r)
	}
	plain, ok := bytes.CutPrefix(out.Bytes(), []byte(name+" "+origin+"\n"))
	if err != nil || !ok {
		return nil, fault.New(fault.IntegrityMismatch, "open", "it does not open")
	}
	return plain, nil
}

type gone struct{}

func (gone) Look(context.Context, logins.Check, browser.State) (logins.Seen, error) {
	return logins.Seen{URL: "https://bank.example/login", Status: 200}, nil
}

// newLoginDesk is a desk whose tapin has saved logins and no browser.
func newLoginDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	room := logins.New(home, sealer{id}, &logins.Options{Checker: gone{}})
	manifest := "contexts:\n  bank:\n    notes: \"mine \\e[31m\"\n    browserbase_context_id: ctx_1\n    check: {url: https://bank.example/me, text: Log out}\n  torn: {last_used: soon}\n"
	state := browser.State{
		Cookies: []browser.Cookie{{Name: "sid", Value: secret.New(loginCanary), Domain: "bank.example", Path: "/", Secure: true}},
		Origins: []browser.OriginState{{Origin: "https://bank.example", Local: []browser.Item{{Key: secret.New("k"), Value: secret.New(loginCanary)}}}},
	}
	_, _, errOut := room.Checkout(t.Context(), "bank", "ses_1")
	_, errSave := room.Save(t.Context(), "bank", "ses_1", state, logins.SaveOptions{})
	errWrite := os.WriteFile(room.Manifest(), []byte(manifest), 0o600)
	if err := errors.Join(errOut, errSave, errWrite, room.Release(t.Context(), "bank", "ses_1")); err != nil {
		t.Fatal(err)
	}
	unlock, ok, err := home.TryLock("sidecar")
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const token = "owner-token-of-the-test"
	server := apiserver.New(apiserver.Deps{
		Contexts: room, Porter: sealer{id}, Tokens: apiserver.FixedTokens{{Name: "owner", Role: apiserver.Owner, Value: secret.New(token)}},
	}, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := errors.Join(home.Write(sidecar.OwnerTokenFile, []byte(token)), home.Write(sidecar.AddressFile, []byte(listener.Addr().String()))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.Shutdown(context.Background()), <-served); err != nil {
			t.Error(err)
		}
		unlock()
		_ = home.Close()
	})
	return &desk{t: t, home: dir}
}

func TestTheCommandsShowAndCarryTheLogins(t *testing.T) {
	t.Parallel()
	d := newLoginDesk(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }

	d.says("bank", "context", "list")
	d.says("cannot be used", "contexts", "list")
	d.says("1 cookie", "context", "show", "bank")
	d.says("never", "context", "show", "bank")
	if code, out := d.run("", "context", "show", "nobody"); code != fault.ExitNotFound {
		t.Errorf("a login that is not there: %d, %s", code, out)
	}
	var all api.Contexts
	_, out := d.run("", "context", "list", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Contexts) != 2 || all.Contexts[1].Problem == nil {
		t.Errorf("in JSON: %v, %s", err, out)
	}

	// Sealed for this tapin, with a passphrase, and plain.
	d.says("1 cookie, 1 storage key", "context", "export", "bank", "-o", file("own.json"))
	if code, out := d.run("correct horse battery\n", "context", "export", "bank", "--passphrase", "-o", file("pass.json")); code != 0 {
		t.Errorf("with a passphrase: %d, %s", code, out)
	}
	d.says("not sealed", "context", "export", "bank", "--plain", "-o", file("plain.json"))
	for name, readable := range map[string]bool{"own.json": false, "pass.json": false, "plain.json": true} {
		raw, err := os.ReadFile(file(name))
		info, _ := os.Stat(file(name))
		if err != nil || strings.Contains(string(raw), loginCanary) != readable || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v, %s", name, err, info.Mode(), raw)
		}
	}
	if code, out := d.run("", "context", "export", "bank", "--plain", "-o", "-"); code != 0 || !strings.HasPrefix(out, `{"capturedAt":`) {
		t.Errorf("to standard output: %d, %s", code, out)
	} else if code, out := d.run(out, "context", "import", "piped", "-"); code != 0 {
		t.Errorf("from standard input: %d, %s", code, out)
	}
	d.log.Reset() // a plain export shows what is in it, as it says

	d.says("1 cookie, 1 storage key", "context", "import", "copy", file("own.json"))
	if code, out := d.run("correct horse battery\n", "context", "import", "copy", file("pass.json"), "--passphrase"); code != 0 {
		t.Errorf("with a passphrase: %d, %s", code, out)
	}
	for _, wrong := range [][]string{
		{"context", "import", "copy", file("pass.json")},
		{"context", "import", "copy", file("none.json")},
		{"context", "import", "../copy", file("own.json")},
		{"context", "import", "copy", "-", "--passphrase"},
		{"context", "export", "bank", "--plain", "--to", "age1x"},
		{"context", "export", "bank", "--to", "age1x", "-o", file("x.json")},
		{"context", "export", "torn", "-o", file("x.json")},
		{"context", "check", "copy"}, {"context", "check"}, {"context", "check", "bank", "--all"},
		{"context", "rename", "copy", "bank"},
		{"context", "show"}, {"context", "nonsense"},
	} {
		if code, out := d.run("", wrong...); code == 0 {
			t.Errorf("%q: %s", wrong, out)
		}
	}

	d.says("was", "context", "rename", "copy", "second")
	d.says("expired: what was looked for is not there", "context", "check", "bank")
	d.says("expired: what was looked for is not there", "context", "check", "--all")
	d.says("has no check", "context", "check", "--all")
	var checked checks
	if _, out := d.run("", "context", "check", "--all", "--json"); json.Unmarshal([]byte(out), &checked) != nil || len(checked.Checks) != 1 || checked.Checks[0].Result != "expired" || len(checked.Without) == 0 {
		t.Errorf("all in JSON: %s", out)
	}
	d.says("stale since", "context", "list")
	d.says("ctx_1 is still there", "context", "delete", "bank")
	if code, _ := d.run("", "context", "show", "bank"); code != fault.ExitNotFound {
		t.Error("it is still there")
	}
	if log := d.log.String(); strings.Contains(log, loginCanary) || strings.Contains(log, "\x1b[31m") {
		t.Errorf("something got out:\n%s", log)
	}
}
