package sidecar

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/apiserver"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

func openTokens(t *testing.T) (*tokens, *store.Home) {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	own, err := readTokens(home)
	if err != nil {
		t.Fatal(err)
	}
	return &tokens{own: own, home: home, log: slog.New(slog.DiscardHandler)}, home
}

func valueOf(t *testing.T, home *store.Home, file string) secret.Text {
	t.Helper()
	raw, err := home.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return secret.New(strings.TrimSpace(string(raw)))
}

func TestATokenIsKnownAtOnceAndRevokedAtOnce(t *testing.T) {
	t.Parallel()
	known, home := openTokens(t)
	made, err := NewToken(home, "claude")
	if err != nil {
		t.Fatal(err)
	}
	value := valueOf(t, home, made.File)
	if role, name, ok := known.Role(value); !ok || role != apiserver.Agent || name != "claude" {
		t.Fatalf("known as %v %q %v", role, name, ok)
	}
	if info, err := os.Stat(filepath.Join(home.Path(), made.File)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if role, name, ok := known.Role(valueOf(t, home, OwnerTokenFile)); !ok || role != apiserver.Owner || name != "owner" {
		t.Fatalf("the owner is %v %q %v", role, name, ok)
	}
	if _, err := NewToken(home, "claude"); !errors.Is(err, fault.InvalidRequest) {
		t.Fatalf("made twice: %v", err)
	}
	if err := RevokeToken(home, "claude"); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := known.Role(value); ok {
		t.Fatal("known after it was revoked")
	}
	if err := RevokeToken(home, "claude"); !errors.Is(err, fault.NotFound) {
		t.Fatalf("revoked twice: %v", err)
	}
	again, err := NewToken(home, "claude")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := known.Role(value); ok {
		t.Fatal("the revoked one is known again under a new one's name")
	}
	if _, _, ok := known.Role(valueOf(t, home, again.File)); !ok {
		t.Fatal("the new one is not known")
	}
}

func TestATokenThatIsDoubtfulOpensNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"open to the group": func(file string) error { return os.Chmod(file, 0o640) }, //nolint:gosec // what is under test
		"cut short":         func(file string) error { return os.WriteFile(file, []byte("short\n"), 0o600) },
		"emptied":           func(file string) error { return os.Truncate(file, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known, home := openTokens(t)
			made, err := NewToken(home, "claude")
			if err != nil {
				t.Fatal(err)
			}
			value := valueOf(t, home, made.File)
			if _, _, ok := known.Role(value); !ok {
				t.Fatal("not known to begin with")
			}
			if err := spoil(filepath.Join(home.Path(), made.File)); err != nil {
				t.Fatal(err)
			}
			for _, given := range []secret.Text{value, secret.New("short"), {}} {
				if _, _, ok := known.Role(given); ok {
					t.Fatalf("known: %d characters", len(given.Reveal()))
				}
			}
		})
	}
}

func TestNamesOfTokens(t *testing.T) {
	t.Parallel()
	_, home := openTokens(t)
	for _, name := range []string{"", "agent", "owner", "../x", "a/b", ".x", "Claude", "-x", strings.Repeat("a", 33), "a\n"} {
		if _, err := NewToken(home, name); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"claude", "codex-2", "0_a", strings.Repeat("a", 32)} {
		if _, err := NewToken(home, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := home.Write("tokens/readme", nil); err != nil {
		t.Fatal(err)
	}
	if found, err := ListTokens(home); err != nil || len(found) != 4 || found[3].Name != "codex-2" || found[3].CreatedAt.IsZero() {
		t.Fatalf("listed %+v, %v", found, err)
	}
}
