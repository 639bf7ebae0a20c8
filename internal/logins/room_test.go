package logins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// canary stands for every value that must not be found in the clear.
const canary = "canary-9c1f"

func TestALoginComesBackAsItWas(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	_, found, err := r.Checkout(t.Context(), "chase", "ses_1")
	if err != nil || found {
		t.Fatalf("a new login: found %v, %v", found, err)
	}
	saved, err := r.Save(t.Context(), "chase", "ses_1", sample("a"), SaveOptions{URL: "https://www.chase.com/x", Provider: "local"})
	must(t, err)
	must(t, saved.Manifest)
	must(t, r.Release(t.Context(), "chase", "ses_1"))

	again := New(r.home, r.vault, nil) // a restart
	got, found, err := again.Checkout(t.Context(), "chase", "ses_2")
	must(t, err)
	if diff := cmp.Diff(plain(sample("a")), plain(got)); diff != "" || !found {
		t.Errorf("found %v: %s", found, diff)
	}
	e := entriesOf(t, read(t, r.Manifest()))
	if len(e) != 1 || e[0].Domain != "chase.com" || e[0].Provider != "local" || e[0].LastUsed.String() != time.Now().UTC().Format(time.DateOnly) || !e[0].LastVerified.IsZero() {
		t.Errorf("the manifest says %+v", e)
	}
	assertSealed(t, r)
}

func TestAnyStateComesBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := version{Generation: rapid.Uint64().Draw(t, "generation"), SavedBy: "s", State: anyState(t)}
		data, err := encodeVersion(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeVersion(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain(v.State), plain(got.State)); diff != "" || got.Generation != v.Generation {
			t.Fatal(diff)
		}
	})
}

func TestALoginIsOneSessionsAtATime(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	save(t, r, "chase", "ses_1", "a")
	if _, _, err := r.Checkout(t.Context(), "chase", "ses_1"); err != nil {
		t.Errorf("the same session once more: %v", err)
	}
	_, _, err := New(r.home, r.vault, nil).Checkout(t.Context(), "chase", "ses_2")
	if !errors.Is(err, fault.ContextLocked) || !strings.Contains(err.Error(), "ses_1") || fault.Of(err).Data["session_id"] != "ses_1" {
		t.Errorf("after a restart another session gets %v", err)
	}
	if _, err := r.Save(t.Context(), "chase", "ses_2", sample("b"), SaveOptions{}); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("another session saves: %v", err)
	}
	must(t, r.Release(t.Context(), "chase", "ses_2")) // not theirs: nothing happens
	if user, _ := r.InUse("chase"); user != "ses_1" {
		t.Errorf("in use by %q", user)
	}
	for _, do := range []func() error{
		func() error { _, err := r.Delete(t.Context(), "chase", nil); return err },
		func() error { return r.Rename(t.Context(), "chase", "x") },
	} {
		if err := do(); !errors.Is(err, fault.ContextLocked) {
			t.Errorf("a login in use: %v", err)
		}
	}
	must(t, r.Release(t.Context(), "chase", "ses_1"))
	if _, found, err := r.Checkout(t.Context(), "chase", "ses_2"); err != nil || !found {
		t.Errorf("once it is free: %v, %v", found, err)
	}
}

func TestOfManyWhoWantALoginOneGetsIt(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	save(t, r, "chase", "ses_0", "a")
	must(t, r.Release(t.Context(), "chase", "ses_0"))
	var got atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, _, err := New(r.home, r.vault, nil).Checkout(t.Context(), "chase", fmt.Sprintf("ses_%d", i+1))
			if err == nil {
				got.Add(1)
			} else if !errors.Is(err, fault.ContextLocked) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d sessions have it", got.Load())
	}
}

func TestANewerLoginIsNeverOverwrittenByAnOlder(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	save(t, r, "chase", "ses_1", "a")
	now := time.Now()
	if _, err := r.Save(t.Context(), "chase", "ses_1", sample("late"), SaveOptions{TakenAt: now.Add(-time.Hour)}); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("an older state of the same session: %v", err)
	}
	// The session is taken for dead, another one goes on, and it comes back.
	if done, err := r.Reconcile(t.Context(), nil); err != nil || !cmp.Equal(done.Freed, []string{"chase"}) {
		t.Errorf("freed %v, %v", done, err)
	}
	if _, err := r.Save(t.Context(), "chase", "ses_1", sample("lost"), SaveOptions{}); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("a session that lost it: %v", err)
	}
	_, _, err := r.Checkout(t.Context(), "chase", "ses_2")
	must(t, err)
	if _, err := r.Save(t.Context(), "chase", "ses_2", sample("b"), SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, r.Release(t.Context(), "chase", "ses_2"))
	if _, err := r.Save(t.Context(), "chase", "ses_1", sample("lost"), SaveOptions{}); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("a session that lost it to another: %v", err)
	}
	v, _, err := r.peek("chase")
	must(t, err)
	if got := v.State.Cookies[0].Value.Reveal(); got != canary+"b" || v.Generation != 2 {
		t.Errorf("it holds %s of generation %d", got, v.Generation)
	}
}

func TestTheLoginOfTheSessionBeforeIsKept(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	for i, session := range []string{"ses_1", "ses_2", "ses_2", "ses_2"} {
		save(t, r, "chase", session, fmt.Sprint(i))
		if i == 0 || i == 3 {
			must(t, r.Release(t.Context(), "chase", session))
		}
	}
	v, _, err := r.open("chase", previousFile("chase"))
	if err != nil || v == nil || v.SavedBy != "ses_1" {
		t.Fatalf("the one before is %+v, %v", v, err)
	}
}

func TestADamagedFileStopsNobody(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		damage func(t *testing.T, r *Room)
		want   string // the state that is found; "" means none
		aside  int
	}{
		"the newest is cut off": {func(t *testing.T, r *Room) { cut(t, r, sealedFile("chase")) }, canary + "0", 1},
		"one bit of the newest": {func(t *testing.T, r *Room) { flip(t, r, sealedFile("chase")) }, canary + "0", 1},
		"the newest is empty":   {func(t *testing.T, r *Room) { must(t, r.home.Write(sealedFile("chase"), nil)) }, canary + "0", 1},
		"the newest is gone":    {func(t *testing.T, r *Room) { must(t, r.home.Remove(sealedFile("chase"))) }, canary + "0", 0},
		"both": {func(t *testing.T, r *Room) {
			cut(t, r, sealedFile("chase"))
			flip(t, r, previousFile("chase"))
		}, "", 2},
		"another login's file under its name": {func(t *testing.T, r *Room) {
			save(t, r, "other", "ses_9", "other")
			data, err := r.home.Read(sealedFile("other"))
			must(t, err)
			must(t, r.home.Write(sealedFile("chase"), data))
		}, canary + "0", 1},
		"a sealed file that holds no login": {func(t *testing.T, r *Room) {
			data, err := r.vault.Seal(sealName("chase"), "", []byte("hello"))
			must(t, err)
			must(t, r.home.Write(sealedFile("chase"), data))
		}, canary + "0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, "")
			for i := range 2 {
				session := fmt.Sprintf("ses_%d", i)
				save(t, r, "chase", session, fmt.Sprint(i))
				must(t, r.Release(t.Context(), "chase", session))
			}
			tt.damage(t, r)
			state, found, err := r.Checkout(t.Context(), "chase", "ses_5")
			must(t, err)
			if found != (tt.want != "") || found && state.Cookies[0].Value.Reveal() != tt.want {
				t.Errorf("found %v: %+v", found, state)
			}
			info, err := r.Get(t.Context(), "chase")
			if err != nil || len(info.SetAside) != tt.aside {
				t.Errorf("set aside: %v, %v", info.SetAside, err)
			}
			if _, err := r.Save(t.Context(), "chase", "ses_5", sample("new"), SaveOptions{}); err != nil {
				t.Errorf("it cannot be saved any more: %v", err)
			}
		})
	}
}

// The record says who has the login: nobody gets it while that is not known.
func TestALoginWhoseRecordCannotBeReadIsNobodys(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	for _, name := range []string{"chase", "other"} {
		save(t, r, name, "ses_1", name)
		must(t, r.Release(t.Context(), name, "ses_1"))
	}
	must(t, r.home.Write(recordFile("chase"), []byte("{")))
	if _, _, err := r.Checkout(t.Context(), "chase", "ses_5"); !errors.Is(err, fault.Unreadable) {
		t.Fatalf("it is given away: %v", err)
	}
	if raw, err := r.home.Read(recordFile("chase")); err != nil || string(raw) != "{" {
		t.Errorf("the record holds %q, %v", raw, err)
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 2 || all[0].Unreadable == nil && all[1].Unreadable == nil {
		t.Errorf("the list: %+v, %v", all, err)
	}
	if _, found, err := r.Checkout(t.Context(), "other", "ses_6"); err != nil || !found {
		t.Errorf("the other one: %v, %v", found, err)
	}
	_, err := r.home.PutAside(recordFile("chase"), errors.New("mended"))
	must(t, err)
	if state, found, err := r.Checkout(t.Context(), "chase", "ses_5"); err != nil || !found || state.Cookies[0].Value.Reveal() != canary+"chase" {
		t.Errorf("afterwards: %v, %v", found, err)
	}
}

func TestANameIsAPlainWord(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	for _, name := range []string{
		"", ".", "..", "...", "../x", "a/b", "a\\b", "/etc/passwd", ".hidden", "-rf", "a..b", "a.", "a b", "a\x00", "a\n", "é", "a%2fb", strings.Repeat("a", 65), "con:", "~",
	} {
		_, _, err := r.Checkout(t.Context(), name, "ses_1")
		_, errSave := r.Save(t.Context(), name, "ses_1", sample("x"), SaveOptions{})
		_, errGet := r.Get(t.Context(), name)
		_, errDelete := r.Delete(t.Context(), name, nil)
		for _, err := range []error{err, errSave, errGet, errDelete, r.Rename(t.Context(), name, "b"), r.Rename(t.Context(), "b", name), r.Release(t.Context(), name, "ses_1"), r.Used(t.Context(), name)} {
			if !errors.Is(err, fault.InvalidRequest) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, name := range []string{"a", "chase", "Chase.Business-2_x", "1password", "null", "true", "a.age", "a.age.1", "a.json", strings.Repeat("a", 64)} {
		save(t, r, name, "ses_1", name)
	}
	infos, err := r.List(t.Context())
	if err != nil || len(infos) != 10 {
		t.Errorf("%d logins, %v", len(infos), err)
	}
	for _, info := range infos {
		if !info.Saved || info.Problem != nil || info.Domain != "chase.com" {
			t.Errorf("%+v", info)
		}
	}
	for _, do := range []func() error{
		func() error { _, _, err := r.Checkout(t.Context(), "CHASE", "ses_2"); return err },
		func() error {
			_, err := r.Save(t.Context(), "Chase", "ses_2", sample("x"), SaveOptions{})
			return err
		},
		func() error {
			must(t, r.Release(t.Context(), "a", "ses_1"))
			return r.Rename(t.Context(), "a", "ChasE")
		},
	} {
		if err := do(); !errors.Is(err, fault.InvalidRequest) || !strings.Contains(err.Error(), "chase") {
			t.Errorf("a name that differs in case: %v", err)
		}
	}
}

func TestALoginIsDeletedEverywhere(t *testing.T) {
	t.Parallel()
	r := newRoom(t, seed)
	save(t, r, "chase", "ses_1", "a")
	must(t, r.Release(t.Context(), "chase", "ses_1"))
	save(t, r, "chase", "ses_2", "b")
	must(t, r.Release(t.Context(), "chase", "ses_2"))
	flip(t, r, sealedFile("chase"))
	_, _, err := r.Checkout(t.Context(), "chase", "ses_3")
	must(t, err)
	must(t, r.Release(t.Context(), "chase", "ses_3"))
	must(t, r.Verified(t.Context(), "chase", ByOwner))

	got, err := r.Delete(t.Context(), "chase", nil)
	want := Deleted{Name: "chase", Previous: true, SetAside: 1, Entry: true, History: true, Remains: "ctx_def456"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	left, err := r.home.List(folder)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if text := read(t, r.Manifest()); strings.Contains(text, "chase") || !strings.Contains(text, "# Optional blanket approval") {
		t.Errorf("the manifest is\n%s", text)
	}
	if _, err := r.Delete(t.Context(), "chase", nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("once more: %v", err)
	}
}

func TestADeletionThatTheManifestRefusesChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "contexts:\n  chase: {payment_approval: &p {max_amount: 1}}\n  shop: {payment_approval: *p}\n")
	save(t, r, "chase", "ses_1", "a")
	must(t, r.Release(t.Context(), "chase", "ses_1"))
	if _, err := r.Delete(t.Context(), "chase", nil); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v", err)
	}
	if _, found, err := r.Checkout(t.Context(), "chase", "ses_2"); err != nil || !found {
		t.Errorf("it is gone: %v", err)
	}
}

func TestALoginIsRenamedWithItsHistory(t *testing.T) {
	t.Parallel()
	r := newRoom(t, seed)
	for i := range 2 {
		session := fmt.Sprintf("ses_%d", i)
		save(t, r, "chase", session, fmt.Sprint(i))
		must(t, r.Release(t.Context(), "chase", session))
	}
	must(t, r.Verified(t.Context(), "chase", ByHandoff))
	must(t, r.Rename(t.Context(), "chase", "bank"))
	info, err := r.Get(t.Context(), "bank")
	must(t, err)
	if info.Notes != "Primary checking" || info.VerifiedHow != ByHandoff || !info.Saved || info.Lifetime.Since.IsZero() {
		t.Errorf("got %+v", info)
	}
	if v, _, err := r.open("bank", previousFile("bank")); err != nil || v == nil {
		t.Errorf("the one before: %v", err)
	}
	if _, err := r.Get(t.Context(), "chase"); !errors.Is(err, fault.NotFound) {
		t.Errorf("the old name: %v", err)
	}
	if err := r.Rename(t.Context(), "bank", "verizon"); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := r.Rename(t.Context(), "nobody", "x"); !errors.Is(err, fault.NotFound) {
		t.Errorf("a name that is not: %v", err)
	}
	names, err := r.home.List(folder)
	if err != nil || !cmp.Equal(names, []string{"bank.age", "bank.age.1", "bank.json"}) {
		t.Errorf("files: %v", names)
	}
}

func TestABrokenManifestDoesNotCostALogin(t *testing.T) {
	t.Parallel()
	r := newRoom(t, seed)
	_, _, err := r.Checkout(t.Context(), "new", "ses_1")
	must(t, err)
	broken := seed + "  oops: [\n"
	must(t, os.WriteFile(r.Manifest(), []byte(broken), 0o600))
	saved, err := r.Save(t.Context(), "new", "ses_1", sample("a"), SaveOptions{})
	if err != nil || !errors.Is(saved.Manifest, fault.Unreadable) {
		t.Fatalf("got %v, %v", saved.Manifest, err)
	}
	if _, err := r.List(t.Context()); !errors.Is(err, fault.Unreadable) || !strings.Contains(err.Error(), ".yaml:18:") {
		t.Errorf("a list of a broken manifest: %v", err)
	}
	if read(t, r.Manifest()) != broken {
		t.Error("the broken manifest was written to")
	}
	must(t, os.WriteFile(r.Manifest(), []byte(seed), 0o600))
	if info, err := r.Get(t.Context(), "new"); err != nil || !info.Saved {
		t.Errorf("a login that the manifest does not name: %v", err)
	}
	done, err := r.Reconcile(t.Context(), []string{"ses_1"})
	if err != nil || !cmp.Equal(done, Reconciled{Adopted: []string{"new"}}) {
		t.Errorf("reconciled %+v, %v", done, err)
	}
	if got := entriesOf(t, read(t, r.Manifest())); len(got) != 3 || got[2].Name != "new" {
		t.Errorf("the manifest says %+v", got)
	}
}

func TestAnUnsavedNewLoginLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	_, _, err := r.Checkout(t.Context(), "new", "ses_1")
	must(t, err)
	must(t, r.Release(t.Context(), "new", "ses_1"))
	if left, _ := r.home.List(folder); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(r.Manifest()); err == nil {
		t.Error("a manifest was made")
	}
}

func TestFreshnessIsWhatWasFoundOut(t *testing.T) {
	t.Parallel()
	home, seal := newHome(t)
	synctest.Test(t, func(t *testing.T) {
		r := New(home, seal, nil)
		ctx := t.Context()
		day := 24 * time.Hour
		save(t, r, "chase", "ses_1", "a")
		must(t, r.Release(ctx, "chase", "ses_1"))
		info := get(t, r, "chase")
		if !info.LastVerified.IsZero() || !info.StaleSince.IsZero() || info.Lifetime.Since.IsZero() {
			t.Errorf("a new login: %+v", info)
		}
		time.Sleep(3 * day)
		must(t, r.Stale(ctx, "chase", NeededLogin))
		must(t, r.Stale(ctx, "chase", FailedCheck)) // it is already
		info = get(t, r, "chase")
		if info.StaleWhy != NeededLogin || info.Lifetime.Count != 1 || info.Lifetime.Last != 3*day {
			t.Errorf("a stale login: %+v", info)
		}
		time.Sleep(day)
		must(t, r.Verified(ctx, "chase", ByHandoff))
		info = get(t, r, "chase")
		if !info.StaleSince.IsZero() || info.VerifiedHow != ByHandoff || info.LastVerified.At != time.Now().UTC() || info.LastVerified.Day {
			t.Errorf("a verified login: %+v", info)
		}
		for _, days := range []int{1, 9} {
			must(t, r.Verified(ctx, "chase", ByCheck))
			time.Sleep(time.Duration(days) * day)
			must(t, r.Stale(ctx, "chase", FailedCheck))
		}
		if got := get(t, r, "chase").Lifetime; got != (Lifetime{Count: 3, Median: 3 * day, Last: 9 * day}) {
			t.Errorf("it lasts %+v", got)
		}
		lived, err := r.Lived(ctx)
		if err != nil || len(lived) != 1 || lived[0].Domain == "" || len(lived[0].Lives) != 3 || !lived[0].Stale || !lived[0].AliveSince.IsZero() {
			t.Errorf("it has lived %+v, %v", lived, err)
		}
		for range 2 * maxLives {
			must(t, r.Verified(ctx, "chase", ByOwner))
			time.Sleep(time.Hour)
			must(t, r.Stale(ctx, "chase", NeededLogin))
		}
		if got := get(t, r, "chase").Lifetime; got.Count != maxLives || got.Median != time.Hour {
			t.Errorf("its history has no end: %+v", got)
		}
		if err := r.Verified(ctx, "nobody", ByOwner); !errors.Is(err, fault.NotFound) {
			t.Errorf("a login that is not there: %v", err)
		}
		// What a person writes counts, also where we know better.
		must(t, os.WriteFile(r.Manifest(), []byte("contexts: {chase: {last_used: 1999-01-01}}"), 0o600))
		if got := get(t, r, "chase").LastUsed; got.String() != "1999-01-01" || !got.Day {
			t.Errorf("last used %v", got)
		}
	})
}

func TestADateKeepsTheFormItWasFoundIn(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "contexts:\n  a: {last_used: '2020-01-01'}\n  b:\n    last_used: 2020-01-01T10:00:00Z # exact\n  c:\n")
	for _, name := range []string{"a", "b", "c"} {
		must(t, r.Used(t.Context(), name))
	}
	text := read(t, r.Manifest())
	today := time.Now().UTC().Format(time.DateOnly)
	for _, want := range []string{"a: {last_used: '" + today + "'}", "    last_used: " + today + "T", "Z # exact", "  c:\n    last_used: \"" + today + "\"\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	check := Check{URL: "https://bank.example/account", Text: "Log out"}
	for name, tt := range map[string]struct {
		seen   Seen
		failed error
		want   Result
	}{
		"what was looked for":               {Seen{URL: "https://bank.example/account", Status: 200, Found: true}, nil, Valid},
		"on another host of the site":       {Seen{URL: "https://www.bank.example/", Status: 200, Found: true}, nil, Valid},
		"on the page of another site":       {Seen{URL: "https://sso.example.net/", Status: 200, Found: true}, nil, Unknown},
		"sent to another site, not there":   {Seen{URL: "https://sso.example.net/", Status: 200}, nil, Expired},
		"a page without it":                 {Seen{URL: "https://bank.example/login", Status: 200}, nil, Expired},
		"a page that asks":                  {Seen{URL: "https://bank.example/account", Status: 401}, nil, Expired},
		"a site that is down":               {Seen{URL: "https://bank.example/account", Status: 503}, nil, Unknown},
		"a site that is down and looks up":  {Seen{URL: "https://bank.example/account", Status: 500, Found: true}, nil, Unknown},
		"an address that is gone":           {Seen{URL: "https://bank.example/account", Status: 404}, nil, Unknown},
		"too many requests":                 {Seen{URL: "https://bank.example/account", Status: 429}, nil, Unknown},
		"no page at all":                    {Seen{}, nil, Unknown},
		"a browser that failed":             {Seen{Status: 200, Found: true}, errors.New("x"), Unknown},
		"found at an address of no meaning": {Seen{URL: "about:blank", Status: 200, Found: true}, nil, Unknown},
	} {
		if got, reason := Judge(check, tt.seen, tt.failed); got != tt.want || reason == "" {
			t.Errorf("%s: %s, %s", name, got, reason)
		}
	}
}

type looker func(context.Context, Check, browser.State) (Seen, error)

func (l looker) Look(ctx context.Context, c Check, s browser.State) (Seen, error) {
	return l(ctx, c, s)
}

func TestACheckKeepsWhatTheSiteHandsOut(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "contexts:\n  bank:\n    check: {url: https://bank.example/me, text: Log out}\n  none: {}\n")
	if _, err := r.CheckNow(t.Context(), "none", nil); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a login without a check: %v", err)
	}
	if _, err := r.CheckNow(t.Context(), "bank", nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("a login without a state: %v", err)
	}
	save(t, r, "bank", "ses_1", "old")
	if _, err := r.CheckNow(t.Context(), "bank", nil); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("a login in use: %v", err)
	}
	must(t, r.Release(t.Context(), "bank", "ses_1"))
	rotated := sample("rotated")
	got, err := r.CheckNow(t.Context(), "bank", looker(func(ctx context.Context, c Check, s browser.State) (Seen, error) {
		if s.Cookies[0].Value.Reveal() != canary+"old" || c.Text != "Log out" {
			t.Errorf("looked with %+v", c)
		}
		if done, err := r.Reconcile(ctx, nil); err != nil || len(done.Freed) != 0 {
			t.Errorf("a check under way was taken for dead: %v, %v", done, err)
		}
		return Seen{URL: "https://bank.example/me", Status: 200, Found: true, State: &rotated}, nil
	}))
	if err != nil || got.Result != Valid {
		t.Fatalf("got %+v, %v", got, err)
	}
	info := get(t, r, "bank")
	if info.VerifiedHow != ByCheck || info.InUseBy != "" || info.LastCheck.Result != Valid || info.Generation != 2 {
		t.Errorf("got %+v", info)
	}
	if _, err := r.Delete(t.Context(), "bank", &DeleteOptions{OnlyExpired: true}); !errors.Is(err, fault.Forbidden) {
		t.Errorf("one that works was deleted: %v", err)
	}
	got, err = r.CheckNow(t.Context(), "bank", looker(func(context.Context, Check, browser.State) (Seen, error) {
		return Seen{URL: "https://bank.example/login", Status: 200, State: &browser.State{}}, nil
	}))
	if info = get(t, r, "bank"); err != nil || got.Result != Expired || info.StaleWhy != FailedCheck || info.Cookies == 0 {
		t.Errorf("got %+v, %v; %+v", got, err, info)
	}
	if _, err := r.Delete(t.Context(), "bank", &DeleteOptions{OnlyExpired: true}); err != nil {
		t.Errorf("one whose check failed: %v", err)
	}
}

func newHome(t *testing.T) (*store.Home, Vault) {
	t.Helper()
	home, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	must(t, err)
	t.Cleanup(func() { _ = home.Close() })
	return home, openVault(t.Context(), t, home)
}

type noKeychain struct{}

func (noKeychain) Get(string, string) (string, error) { return "", errors.New("no keychain here") }
func (noKeychain) Set(string, string, string) error   { return errors.New("no keychain here") }
func (noKeychain) Delete(string, string) error        { return errors.New("no keychain here") }

func openVault(ctx context.Context, t testing.TB, home *store.Home) *vault.Vault {
	v, err := vault.Open(ctx, home, &vault.Options{Keyring: noKeychain{}, Getenv: func(string) string { return "" }})
	if err != nil && t != nil {
		t.Fatal(err)
	}
	return v
}

// newRoom is a room with a manifest; "" means none.
func newRoom(t *testing.T, manifest string) *Room {
	t.Helper()
	home, seal := newHome(t)
	r := New(home, seal, nil)
	if manifest != "" {
		must(t, os.WriteFile(r.Manifest(), []byte(manifest), 0o600))
	}
	return r
}

func save(t *testing.T, r *Room, name, session, mark string) {
	t.Helper()
	_, _, err := r.Checkout(t.Context(), name, session)
	must(t, err)
	saved, err := r.Save(t.Context(), name, session, sample(mark), SaveOptions{Domain: "chase.com"})
	must(t, err)
	must(t, saved.Manifest)
}

func get(t *testing.T, r *Room, name string) Info {
	t.Helper()
	info, err := r.Get(t.Context(), name)
	must(t, err)
	return info
}

// sample is a state with one of everything, told from others by its mark.
func sample(mark string) browser.State {
	return browser.State{
		Cookies: []browser.Cookie{
			{
				Name: "__Host-id", Value: secret.New(canary + mark), Domain: "www.chase.com", Path: "/", Expires: 1999999999.25, HTTPOnly: true, Secure: true,
				SameSite: "Strict", Priority: "High", SourceScheme: "Secure", SourcePort: 443, Partition: &browser.PartitionKey{TopLevelSite: "https://chase.com"},
			},
			{Name: "lang", Value: secret.New(canary + "en"), Domain: ".chase.com", Path: "/", SourcePort: -1},
		},
		Origins: []browser.OriginState{
			{
				Origin:  "https://www.chase.com",
				Local:   []browser.Item{{Key: secret.New(canary + "k"), Value: secret.New(canary + "\x00ü\U0001F600")}},
				Session: []browser.Item{}, Databases: []byte(`{"db":"` + canary + `"}`),
			},
			{Origin: "https://other.example"},
		},
	}
}

func anyState(t *rapid.T) browser.State {
	word := rapid.StringOf(rapid.Rune())
	text := func(label string) secret.Text { return secret.New(word.Draw(t, label)) }
	items := func(label string) []browser.Item {
		switch n := rapid.IntRange(-1, 3).Draw(t, label); n {
		case -1:
			return nil
		default:
			out := make([]browser.Item, n)
			for i := range out {
				out[i] = browser.Item{Key: text("key"), Value: text("value")}
			}
			return out
		}
	}
	var s browser.State
	for range rapid.IntRange(0, 3).Draw(t, "cookies") {
		c := browser.Cookie{
			Name: word.Draw(t, "name"), Value: text("value"), Domain: word.Draw(t, "domain"), Path: "/", Expires: rapid.Float64Range(0, 1e10).Draw(t, "expires"),
			HTTPOnly: rapid.Bool().Draw(t, "http"), Secure: rapid.Bool().Draw(t, "secure"), SameSite: "Lax", SourcePort: int64(rapid.IntRange(-1, 65535).Draw(t, "port")),
		}
		if rapid.Bool().Draw(t, "partitioned") {
			c.Partition = &browser.PartitionKey{TopLevelSite: word.Draw(t, "site"), CrossSiteAncestor: rapid.Bool().Draw(t, "ancestor")}
		}
		s.Cookies = append(s.Cookies, c)
	}
	for range rapid.IntRange(0, 2).Draw(t, "origins") {
		s.Origins = append(s.Origins, browser.OriginState{Origin: word.Draw(t, "origin"), Local: items("local"), Session: items("session"), Databases: rapid.SampledFrom([][]byte{nil, {}, []byte("{}"), {0xff, 0}}).Draw(t, "databases")})
	}
	return s
}

// plain makes states comparable, values included.
func plain(s browser.State) any {
	data, err := encodeVersion(version{State: s})
	if err != nil {
		return err
	}
	return string(data)
}

func assertSealed(t *testing.T, r *Room) {
	t.Helper()
	must(t, filepath.WalkDir(r.home.Path(), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), canary) {
			t.Errorf("%s holds a secret in the clear (%v)", path, err)
		}
		return nil
	}))
}

func cut(t *testing.T, r *Room, file string) {
	t.Helper()
	data, err := r.home.Read(file)
	must(t, err)
	must(t, r.home.Write(file, data[:len(data)/2]))
}

func flip(t *testing.T, r *Room, file string) {
	t.Helper()
	data, err := r.home.Read(file)
	must(t, err)
	data[len(data)-5] ^= 1
	must(t, r.home.Write(file, data))
}
