package vault_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// TestWhereTheKeyIsMayBeLost takes away the file that says which key it is: it
// is found again, or nothing is made in its place.
func TestWhereTheKeyIsMayBeLost(t *testing.T) {
	t.Parallel()
	file := rekeyCase{"a file", broken(), nil}
	k1, k2 := newKey(t), newKey(t)
	environment := func(key string) rekeyCase {
		return rekeyCase{"the environment", broken(), map[string]string{"TAPIN_VAULT_KEY": key}}
	}
	rekey := func(t *testing.T, h *store.Home, c rekeyCase, how *vault.RekeyOptions) {
		t.Helper()
		_, err := vault.Rekey(t.Context(), h, c.options(), how)
		must(t, err)
	}
	for name, tt := range map[string]struct {
		made  rekeyCase
		so    func(t *testing.T, h *store.Home, c rekeyCase)
		later func(c rekeyCase) rekeyCase
		says  string // "" where the key is found
	}{
		"a first key in a file": {file, nil, nil, ""},
		"a second key in a file": {file, func(t *testing.T, h *store.Home, c rekeyCase) { rekey(t, h, c, nil) }, func(rekeyCase) rekeyCase {
			return rekeyCase{"a keychain", &ring{}, map[string]string{"TAPIN_VAULT_KEY": k2}} // stronger, and not asked
		}, ""},
		"two files": {file, func(t *testing.T, h *store.Home, c rekeyCase) {
			rekey(t, h, c, nil)
			must(t, h.Create("vault.key", []byte(k1+"\n")))
		}, nil, "vault.key"},
		"a file that is of another home": {file, func(t *testing.T, h *store.Home, _ rekeyCase) {
			must(t, h.Write("vault.key", []byte(k1+"\n")))
		}, nil, "sealed here"},
		"no file any more": {file, func(t *testing.T, h *store.Home, _ rekeyCase) { must(t, h.Remove("vault.key")) }, nil, "sealed here"},
		"no file any more, and a keychain": {file, func(t *testing.T, h *store.Home, _ rekeyCase) { must(t, h.Remove("vault.key")) },
			func(rekeyCase) rekeyCase { return rekeyCase{"a keychain", &ring{}, nil} }, "sealed here"},
		"a second key in the keychain": {rekeyCase{"the keychain", &ring{}, nil}, func(t *testing.T, h *store.Home, c rekeyCase) {
			rekey(t, h, c, nil)
		}, nil, "sealed here"},
		"a first key in the keychain":           {rekeyCase{"the keychain", &ring{}, nil}, nil, nil, ""},
		"the environment":                       {environment(k1), nil, nil, ""},
		"the environment beside a keychain":     {environment(k1), nil, func(c rekeyCase) rekeyCase { return rekeyCase{"both", &ring{}, c.vars} }, ""},
		"another key in the environment":        {environment(k1), nil, func(rekeyCase) rekeyCase { return environment(k2) }, "sealed here"},
		"the environment has nothing":           {environment(k1), nil, func(rekeyCase) rekeyCase { return environment("") }, "sealed here"},
		"a change cut off, and the old key":     {environment(k1), cutOff(k2), nil, ""},
		"a change cut off, and the new key":     {environment(k1), cutOff(k2), func(rekeyCase) rekeyCase { return environment(k2) }, ""},
		"a change of the file that was cut off": {file, cutOff(""), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(inMemory(t), "home")
			h, err := store.Open(path, nil)
			must(t, err)
			defer func() { must(t, h.Close()) }()
			seedSealed(t, h, tt.made.options())
			if tt.so != nil {
				tt.so(t, h, tt.made)
			}
			must(t, h.Remove("vault.source"))
			c := tt.made
			if tt.later != nil {
				c = tt.later(c)
			}
			made, err := vault.IsMade(h)
			if err != nil || !made {
				t.Errorf("it is taken for a home without a key: %v", err)
			}
			before := keysOf(t, h, c)
			if tt.says == "" {
				must(t, readable(t, h, c.options()))
				must(t, readable(t, h, c.options())) // and is noted again
				if there, err := h.Exists("vault.source"); err != nil || !there {
					t.Errorf("it is not noted where the key is: %v", err)
				}
				return
			}
			_, err = vault.Open(t.Context(), h, c.options())
			if f := fault.Of(err); !errors.Is(err, fault.Unreadable) || !strings.Contains(f.Details(), tt.says) || f.Hint == "" {
				t.Errorf("got %v", err)
			}
			must(t, vault.KeepKeyInFile(h))
			if after := keysOf(t, h, c); len(after) != len(before) {
				t.Errorf("%d keys were made", len(after)-len(before))
			}
			// What is sealed is given up, by hand; then it is a home as new.
			if tt.says == "sealed here" {
				for file := range sealedFiles {
					must(t, h.Remove(file))
				}
				_, err := vault.Open(t.Context(), h, c.options())
				must(t, err)
			}
		})
	}
}

// cutOff begins a change that is killed among the files.
func cutOff(to string) func(t *testing.T, h *store.Home, c rekeyCase) {
	return func(t *testing.T, h *store.Home, c rekeyCase) {
		t.Helper()
		dying, _ := killedAfter(t, h.Path(), 4)
		how := &vault.RekeyOptions{}
		if to != "" {
			how.Key = secret.New(to)
		}
		if _, err := vault.Rekey(t.Context(), dying, c.options(), how); !errors.Is(err, errKilled) {
			t.Fatalf("it was not cut off: %v", err)
		}
		must(t, dying.Close())
	}
}

func TestAKeyFileThatHoldsNoKeyIsCalledByItsName(t *testing.T) {
	t.Parallel()
	c := rekeyCase{"a file", broken(), nil}
	h := openHome(t)
	seedSealed(t, h, c.options())
	_, err := vault.Rekey(t.Context(), h, c.options(), nil)
	must(t, err)
	v, err := vault.Open(t.Context(), h, c.options())
	must(t, err)
	key, err := h.Read(v.KeyFile())
	must(t, err)
	must(t, h.Write(v.KeyFile(), []byte("rubbish")))
	if _, err = vault.Open(t.Context(), h, c.options()); !errors.Is(err, fault.Unreadable) || !strings.Contains(err.Error(), v.KeyFile()) {
		t.Errorf("got %v", err)
	}
	if ill := h.Damages(); len(ill) != 1 || ill[0].File != v.KeyFile() {
		t.Errorf("it tells of %+v", ill)
	}
	h2, err := store.Open(h.Path(), nil)
	must(t, err)
	must(t, h2.Write(v.KeyFile(), key))
	must(t, h2.Close())
	must(t, readable(t, h, c.options()))
	if ill := h.Damages(); len(ill) > 0 {
		t.Errorf("it still tells of %+v", ill)
	}
}
