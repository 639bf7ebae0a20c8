package vault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

// TestAChangeOfTheEnvironmentsKeyIsNeverBetween kills a change after every single
// write, and then does with every key in the environment what a person may do.
func TestAChangeOfTheEnvironmentsKeyIsNeverBetween(t *testing.T) {
	t.Parallel()
	k1, k2, k3 := newKey(t), newKey(t), newKey(t)
	keys := map[string]string{"the old key": k1, "the new key": k2, "another key": k3, "no key": ""}
	with := func(key string) *vault.Options {
		return &vault.Options{Keyring: broken(), Getenv: env("TAPIN_VAULT_KEY", key)}
	}
	rekey := func(h *store.Home, has, to string) (vault.Rekeyed, error) {
		return vault.Rekey(t.Context(), h, with(has), &vault.RekeyOptions{Key: secret.New(to)})
	}
	refused := func(err error, code fault.Code) error {
		if f := fault.Of(err); err == nil || f.Code != code || f.Advice() == "" || f.Advice() == code.Hint() {
			return fmt.Errorf("%s with a hint was expected, and not: %w", code, err)
		}
		return nil
	}
	// begun: a change is on the disk; over: it was brought to its end.
	deeds := map[string]func(h *store.Home, has string, begun, over bool) (opens []string, err error){
		"up": func(h *store.Home, has string, begun, over bool) ([]string, error) {
			if err := vault.Finish(t.Context(), h, with(has)); err != nil {
				return nil, err
			}
			if err := readable(t, h, with(has)); err != nil {
				return nil, err
			}
			if now, err := vault.Changing(h); err != nil || now != (begun && has == k1) {
				return nil, fmt.Errorf("the change is noted: %v, %w", now, err)
			}
			switch {
			case begun && has == k1:
				return []string{k1, k2}, nil
			case begun || over:
				return []string{k2}, nil
			}
			return []string{k1}, nil
		},
		"rekey with the new key": func(h *store.Home, has string, begun, over bool) ([]string, error) {
			got, err := rekey(h, has, k2)
			if over {
				return []string{k2}, refused(err, fault.InvalidRequest)
			}
			if err != nil || got.Resumed != begun || got.Back {
				return nil, fmt.Errorf("%+v, %w", got, err)
			}
			return []string{k2}, nil
		},
		"rekey with another key": func(h *store.Home, has string, begun, _ bool) ([]string, error) {
			_, err := rekey(h, has, k3)
			if begun {
				return []string{k1, k2}, refused(err, fault.InvalidRequest)
			}
			return []string{k3}, err
		},
		"rekey with the old key": func(h *store.Home, has string, begun, over bool) ([]string, error) {
			got, err := rekey(h, has, k1)
			if !begun && !over {
				return []string{k1}, refused(err, fault.InvalidRequest)
			}
			if err != nil || got.Back != begun {
				return nil, fmt.Errorf("%+v, %w", got, err)
			}
			return []string{k1}, nil
		},
		"rekey with no key": func(h *store.Home, has string, begun, over bool) ([]string, error) {
			_, err := rekey(h, has, "")
			switch {
			case begun:
				return []string{k1, k2}, refused(err, fault.InvalidRequest)
			case over:
				return []string{k2}, refused(err, fault.InvalidRequest)
			}
			return []string{k1}, refused(err, fault.InvalidRequest)
		},
		"backup": func(h *store.Home, has string, begun, over bool) ([]string, error) {
			v, err := vault.Open(t.Context(), h, with(has))
			if err != nil {
				return nil, err
			}
			if begun {
				return []string{k1, k2}, refused(v.Unchanged(), fault.Busy)
			}
			key, _ := v.Key()
			return []string{key.Reveal()}, v.Unchanged()
		},
	}
	folder := inMemory(t)
	for at, over := 0, false; !over; at++ {
		state := filepath.Join(folder, fmt.Sprint("state", at))
		h, err := store.Open(state, nil)
		must(t, err)
		seedSealed(t, h, with(k1))
		must(t, h.Close())
		dying, dead := killedAfter(t, state, at)
		_, err = rekey(dying, k1, k2)
		over = !*dead
		if over != (err == nil) {
			t.Fatalf("after %d changes: %v", at, err)
		}
		begun, err := vault.Changing(dying)
		must(t, errors.Join(err, dying.Close()))
		for which, has := range keys {
			for what, deed := range testwait.SomeOf(3, deeds) {
				if has != k1 && has != k2 && what != "up" && at != 3 {
					continue // one instant shows that it opens nothing, whatever is done
				}
				path := filepath.Join(folder, "now")
				must(t, os.CopyFS(path, os.DirFS(state)))
				must(t, filepath.WalkDir(path, func(file string, d os.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return errors.Join(err, os.Chmod(file, 0o700))
					}
					return os.Chmod(file, 0o600)
				}))
				h, err := store.Open(path, nil)
				must(t, err)
				name := fmt.Sprintf("killed after %d changes (begun %v, over %v), the environment has %s, %s", at, begun, over, which, what)
				before := []string{k1}
				if begun {
					before = append(before, k2)
				} else if over {
					before = []string{k2}
				}
				opens, err := before, error(nil)
				if !strings.Contains(strings.Join(before, " "), has) || has == "" {
					// It does not open anything here: each of them refuses, and changes nothing.
					_, err = deed(h, has, begun, over)
					if !errors.Is(err, fault.Forbidden) {
						err = fmt.Errorf("it was not refused: %w", err)
					} else {
						err = nil
					}
				} else {
					opens, err = deed(h, has, begun, over)
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, key := range opens {
					if err := readable(t, h, with(key)); err != nil {
						t.Fatalf("%s: a key that has to open everything does not: %v", name, err)
					}
				}
				must(t, h.Close())
				must(t, os.RemoveAll(path))
			}
		}
	}
}

// TestGoingOnAndGoingBackMayBeCutOffToo kills what finishes a change that a kill
// has cut off, and what takes it back.
func TestGoingOnAndGoingBackMayBeCutOffToo(t *testing.T) {
	t.Parallel()
	k1, k2 := newKey(t), newKey(t)
	with := func(key string) *vault.Options {
		return &vault.Options{Keyring: broken(), Getenv: env("TAPIN_VAULT_KEY", key)}
	}
	folder := inMemory(t)
	for _, first := range testwait.Some(1, []int{3, 8}) { // in the midst of the files, and right before the end
		for _, to := range []string{k1, k2} {
			for at, done := 0, false; !done; at++ {
				path := filepath.Join(folder, fmt.Sprint(first, to == k1, at))
				h, err := store.Open(path, nil)
				must(t, err)
				seedSealed(t, h, with(k1))
				must(t, h.Close())
				for _, kill := range []struct {
					after int
					to    string
				}{{first, k2}, {at, to}} {
					dying, dead := killedAfter(t, path, kill.after)
					_, err := vault.Rekey(t.Context(), dying, with(k1), &vault.RekeyOptions{Key: secret.New(kill.to)})
					done = !*dead
					if done != (err == nil) {
						t.Fatal(err)
					}
					must(t, dying.Close())
				}
				h, err = store.Open(path, nil)
				must(t, err)
				for _, key := range []string{k1, k2} {
					if done && key != to {
						continue
					}
					if err := readable(t, h, with(key)); err != nil {
						t.Fatalf("killed after %d changes and then after %d: %v", first, at, err)
					}
				}
				must(t, h.Close())
			}
		}
	}
}

func TestNothingBeginsWhileSomethingSpeaksAgainstIt(t *testing.T) {
	t.Parallel()
	c := rekeyCase{"the environment", broken(), map[string]string{"TAPIN_VAULT_KEY": newKey(t)}}
	h := openHome(t)
	seedSealed(t, h, c.options())
	stop := errors.New("not yet")
	begun := 0
	how := &vault.RekeyOptions{Begin: func() error { begun++; return stop }}
	for _, bad := range []string{"", "rubbish", c.vars["TAPIN_VAULT_KEY"]} {
		how.Key = secret.New(bad)
		if _, err := vault.Rekey(t.Context(), h, c.options(), how); err == nil || begun > 0 {
			t.Fatalf("a bad key: %v, begun %d", err, begun)
		}
	}
	how.Key = secret.New(newKey(t))
	if _, err := vault.Rekey(t.Context(), h, c.options(), how); !errors.Is(err, stop) || begun != 1 {
		t.Fatalf("got %v, begun %d", err, begun)
	}
	if changing, err := vault.Changing(h); changing || err != nil {
		t.Errorf("it began before it was told to: %v", err)
	}
}

func TestAKeyToBeKeptIsKeptAlsoWhereThatIsSaidLater(t *testing.T) {
	t.Parallel()
	c := rekeyCase{"the keychain", &ring{}, nil}
	path := filepath.Join(t.TempDir(), "home")
	h, err := store.Open(path, nil)
	must(t, err)
	other := openHome(t)
	seedSealed(t, h, c.options())
	seedSealed(t, other, c.options())
	must(t, h.Close())
	h, _ = killedAfter(t, path, 3)
	if _, err = vault.Rekey(t.Context(), h, c.options(), nil); err == nil {
		t.Fatal("it was not cut off")
	}
	must(t, h.Close())
	h, err = store.Open(path, nil)
	must(t, err)
	defer func() { must(t, h.Close()) }()
	done, err := vault.Rekey(context.Background(), h, c.options(), &vault.RekeyOptions{KeepOld: true})
	if err != nil || done.KeptOld == "" || !done.Resumed {
		t.Fatalf("%+v, %v", done, err)
	}
	must(t, readable(t, other, c.options()))
}
