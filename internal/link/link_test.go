package link_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/secret"
	"tapin/internal/store"
)

func room(t *testing.T, dir string) *link.Room {
	t.Helper()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	return link.New(home, nil)
}

func mint(t *testing.T, r *link.Room) (link.Link, secret.Text) {
	t.Helper()
	l, token, err := r.Mint(t.Context(), "ses_1", link.Drive, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return l, token
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func TestTheFirstDeviceGetsInAndTheSecondWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := room(t, dir)
	l, token := mint(t, r)

	first, err := r.Claim(t.Context(), l.ID, token)
	if err != nil {
		t.Fatal(err)
	}
	if in, err := r.Enter(t.Context(), l.ID, first); err != nil || in.SessionID != "ses_1" || in.Mode != link.Drive {
		t.Fatalf("the first device: %+v %v", in, err)
	}
	second, err := r.Claim(t.Context(), l.ID, token)
	number, _ := fault.Of(err).Data["number"].(int)
	if code(err) != fault.LinkClaimed || number < 10 || number > 99 {
		t.Fatalf("the second device: %v", err)
	}
	r = room(t, dir) // a restart between
	if _, err := r.Enter(t.Context(), l.ID, second); code(err) != fault.LinkClaimed || fault.Of(err).Data["number"] != number {
		t.Errorf("while it waits: %v", err)
	}
	if _, err := r.Move(t.Context(), l.ID, number%90+11); code(err) != fault.NotFound {
		t.Errorf("another number: %v", err)
	}
	if _, err := r.Move(t.Context(), l.ID, number); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Enter(t.Context(), l.ID, second); err != nil {
		t.Errorf("after the move: %v", err)
	}
	if _, err := r.Enter(t.Context(), l.ID, first); code(err) != fault.LinkExpired {
		t.Errorf("the first device after the move: %v", err)
	}
}

func TestWhoDoesNotGetIn(t *testing.T) {
	t.Parallel()
	r := room(t, t.TempDir())
	l, token := mint(t, r)
	other, otherToken := mint(t, r)
	device, err := r.Claim(t.Context(), other.ID, otherToken)
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"an empty id": "", "an id of nothing": store.NewID("lnk"), "a session's id": store.NewID("ses"), "a path": "../owner.token", "a path in an id": "lnk_../../../owner.token0000",
	} {
		if _, err := r.Claim(t.Context(), id, token); code(err) != fault.LinkExpired {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Enter(t.Context(), id, device); code(err) != fault.LinkExpired {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, wrong := range map[string]secret.Text{
		"no token": {}, "another link's token": otherToken, "a device's secret": device, "a beginning": secret.New(token.Reveal()[:20]), "a digest": secret.New(strings.Repeat("0", 64)),
	} {
		if _, err := r.Claim(t.Context(), l.ID, wrong); code(err) != fault.LinkExpired {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Enter(t.Context(), l.ID, wrong); code(err) != fault.LinkExpired {
			t.Errorf("%s as a device: %v", name, err)
		}
	}
	if _, err := r.Enter(t.Context(), l.ID, token); code(err) != fault.LinkExpired {
		t.Errorf("the token itself as a device: %v", err)
	}
	if _, err := r.Claim(t.Context(), l.ID, token); err != nil {
		t.Errorf("its own token, after all of them: %v", err)
	}
	if _, _, err := r.Mint(t.Context(), "ses_1", "own", time.Now()); code(err) != fault.InvalidRequest {
		t.Errorf("an unknown mode: %v", err)
	}
}

func TestGuessingEndsSoonAndTheRightTokenStillWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := room(t, t.TempDir())
		l, token := mint(t, r)
		var limited int
		for range 10_000 {
			if _, err := r.Claim(t.Context(), l.ID, secret.New("guess")); code(err) == fault.RateLimited {
				limited++
			}
		}
		if limited != 9_990 {
			t.Errorf("%d of 10,000 guesses were refused unseen", limited)
		}
		if _, err := r.Claim(t.Context(), l.ID, token); err != nil {
			t.Errorf("the right token: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := r.Claim(t.Context(), l.ID, secret.New("guess")); code(err) != fault.LinkExpired {
			t.Errorf("a minute later: %v", err)
		}
	})
}

func TestALinkDiesWithItsTimeItsSessionAndItsOwnersWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := room(t, dir)
		for name, end := range map[string]func(l link.Link) error{
			"time":    func(link.Link) error { time.Sleep(time.Hour); return nil },
			"session": func(link.Link) error { return r.RevokeOf(t.Context(), "ses_1") },
			"owner":   func(l link.Link) error { return r.Revoke(t.Context(), l.ID) },
		} {
			l, token := mint(t, r)
			device, err := r.Claim(t.Context(), l.ID, token)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(l); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Enter(t.Context(), l.ID, device); code(err) != fault.LinkExpired {
				t.Errorf("%s: the device: %v", name, err)
			}
			if _, err := r.Claim(t.Context(), l.ID, token); code(err) != fault.LinkExpired {
				t.Errorf("%s: the token: %v", name, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "links", "*")); len(left) > 0 {
				t.Errorf("%s: %v is left", name, left)
			}
		}
	})
}

func TestAWaitingDeviceIsForgottenAndFewMayWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := room(t, t.TempDir())
		l, token := mint(t, r)
		if _, err := r.Claim(t.Context(), l.ID, token); err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for range 3 {
			_, err := r.Claim(t.Context(), l.ID, token)
			number, _ := fault.Of(err).Data["number"].(int)
			seen[number] = true
		}
		if len(seen) != 3 {
			t.Errorf("three devices show %v", seen)
		}
		if _, err := r.Claim(t.Context(), l.ID, token); code(err) != fault.RateLimited {
			t.Errorf("a fourth: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := r.Claim(t.Context(), l.ID, token); code(err) != fault.LinkClaimed {
			t.Errorf("when they have gone: %v", err)
		}
	})
}

func TestNoTokenIsOnTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := room(t, dir)
	l, token := mint(t, r)
	first, _ := r.Claim(t.Context(), l.ID, token)
	second, _ := r.Claim(t.Context(), l.ID, token)
	raw, err := os.ReadFile(filepath.Join(dir, "links", l.ID+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]secret.Text{"token": token, "first": first, "second": second} {
		if s.IsEmpty() || strings.Contains(string(raw), s.Reveal()) {
			t.Errorf("the %s is readable", name)
		}
	}
}

func TestWhoIsInHearsOfEveryChange(t *testing.T) {
	t.Parallel()
	r := room(t, t.TempDir())
	l, token := mint(t, r)
	told := func(changed <-chan struct{}) bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	changed := r.Changed(l.ID)
	if _, err := r.Claim(t.Context(), l.ID, secret.New("wrong")); err == nil || told(changed) {
		t.Error("a wrong token is no change")
	}
	if _, err := r.Admit(t.Context(), l.ID); err != nil || !told(changed) {
		t.Errorf("the first device at this machine: %v", err)
	}
	if _, err := r.Admit(t.Context(), l.ID); code(err) != fault.LinkClaimed {
		t.Errorf("a second one at this machine: %v", err)
	}
	changed = r.Changed(l.ID)
	_, err := r.Claim(t.Context(), l.ID, token)
	number, _ := fault.Of(err).Data["number"].(int)
	if !told(changed) {
		t.Error("a device that waits is not told of")
	}
	changed = r.Changed(l.ID)
	if _, err := r.Move(t.Context(), l.ID, number); err != nil || !told(changed) {
		t.Errorf("the move is not told: %v", err)
	}
	changed = r.Changed(l.ID)
	if err := r.Revoke(t.Context(), l.ID); err != nil || !told(changed) {
		t.Errorf("the end is not told: %v", err)
	}
	if _, err := r.Admit(t.Context(), l.ID); code(err) != fault.LinkExpired {
		t.Errorf("after the end: %v", err)
	}
}
