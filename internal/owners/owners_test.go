package owners_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/owners"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	first  = int64(11)
	second = int64(22)
)

func open(t *testing.T, path string, fixed ...int64) (*owners.Room, *event.Feed) {
	t.Helper()
	home, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = feed.Close() })
	r := owners.New(home, event.NewPump(feed, home, nil), fixed)
	return r, feed
}

func code(t *testing.T, r *owners.Room) secret.Text {
	t.Helper()
	c, _, err := r.Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func claim(t *testing.T, r *owners.Room, c secret.Text, id int64) owners.Outcome {
	t.Helper()
	outcome, err := r.Claim(t.Context(), c, id, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func TestTheFirstIsPairedAndLaterOnesAreConfirmed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	r, feed := open(t, path)
	c := code(t, r)
	if got := claim(t, r, secret.New(strings.ToUpper(c.Reveal())), first); got != owners.Paired || !r.Is(first) {
		t.Fatalf("the first: %s", got)
	}
	if _, err := r.Claim(t.Context(), c, second, "x"); fault.Of(err).Code != fault.NotFound {
		t.Errorf("a used code: %v", err)
	}
	if got := claim(t, r, code(t, r), second); got != owners.Waits || r.Is(second) {
		t.Fatalf("the second: %s", got)
	}
	if got := claim(t, r, secret.New("again"), second); got != owners.Waits {
		t.Errorf("the same message again: %s", got)
	}
	if got, err := r.Decide(t.Context(), second, true); err != nil || got != owners.Paired || !r.Is(second) {
		t.Fatalf("let in: %s %v", got, err)
	}
	if got, err := r.Decide(t.Context(), second, true); err != nil || got != owners.Already {
		t.Errorf("let in again: %s %v", got, err)
	}
	if err := r.Remove(t.Context(), second); err != nil || r.Is(second) {
		t.Errorf("removed: %v", err)
	}
	var told []string
	events, _ := feed.Since(0, 10)
	for _, e := range events {
		told = append(told, e.Type)
	}
	if got := strings.Join(told, " "); got != "owner.paired owner.waiting owner.paired owner.removed" {
		t.Errorf("told: %s", got)
	}
	raw, err := os.ReadFile(filepath.Join(path, "owners.json"))
	if err != nil || strings.Contains(string(raw), c.Reveal()) {
		t.Errorf("the file holds a code, or nothing: %v", err)
	}
}

func TestNobodyGetsInWithoutACode(t *testing.T) {
	t.Parallel()
	r, _ := open(t, filepath.Join(t.TempDir(), "h"))
	code(t, r)
	for _, guess := range []string{"", "x", strings.Repeat("a", 12)} {
		if _, err := r.Claim(t.Context(), secret.New(guess), first, ""); fault.Of(err).Code != fault.NotFound || r.Is(first) {
			t.Errorf("%q: %v", guess, err)
		}
	}
	if _, err := r.Claim(t.Context(), code(t, r), -100, "a group"); fault.Of(err).Code != fault.InvalidRequest {
		t.Errorf("a group: %v", err)
	}
	if _, err := r.Decide(t.Context(), second, true); fault.Of(err).Code != fault.NotFound || r.Is(second) {
		t.Errorf("somebody who does not wait: %v", err)
	}
}

func TestAConfiguredOwnerIsOneAndHasToBeAsked(t *testing.T) {
	t.Parallel()
	r, _ := open(t, filepath.Join(t.TempDir(), "h"), first)
	if got := claim(t, r, code(t, r), second); !r.Is(first) || got != owners.Waits {
		t.Errorf("got %s", got)
	}
	if err := r.Remove(t.Context(), first); fault.Of(err).Code != fault.Forbidden {
		t.Errorf("removed: %v", err)
	}
	if _, err := r.Decide(t.Context(), second, false); err != nil || r.Is(second) {
		t.Errorf("sent away: %v", err)
	}
}

func TestCodesAndWaitingEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	synctest.Test(t, func(t *testing.T) {
		r, _ := open(t, path, first)
		c := code(t, r)
		time.Sleep(10 * time.Minute)
		if _, err := r.Claim(t.Context(), c, second, ""); fault.Of(err).Code != fault.NotFound {
			t.Errorf("an old code: %v", err)
		}
		claim(t, r, code(t, r), second)
		time.Sleep(25 * time.Hour)
		if _, err := r.Decide(t.Context(), second, true); fault.Of(err).Code != fault.NotFound || r.Is(second) {
			t.Errorf("somebody who waited too long: %v", err)
		}
	})
}

// Whoever came with a code would be the first owner of a list that is lost.
func TestNobodyBecomesAnOwnerWhileTheListCannotBeRead(t *testing.T) {
	t.Parallel()
	for what, content := range map[string]string{"garbage": "{", "nothing": "{}", "empty": ""} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "h")
			home, err := store.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = home.Close() })
			r := owners.New(home, nil, nil)
			if claim(t, r, code(t, r), first) != owners.Paired {
				t.Fatal("the first is not paired")
			}
			out := code(t, r) // it is still good
			file := filepath.Join(path, "owners.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			r = owners.New(home, nil, []int64{99})
			if r.Is(first) || !r.Is(99) {
				t.Error("who is an owner was guessed")
			}
			_, _, invited := r.Invite(t.Context())
			_, claimed := r.Claim(t.Context(), out, second, "somebody")
			_, decided := r.Decide(t.Context(), second, true)
			for _, err := range []error{invited, claimed, decided, r.Remove(t.Context(), first)} {
				if !errors.Is(err, fault.Unreadable) {
					t.Errorf("got %v", err)
				}
			}
			if raw, err := os.ReadFile(file); err != nil || string(raw) != content {
				t.Errorf("the file holds %q, %v", raw, err)
			}
			if err := home.TakeBefore("owners.json"); err != nil {
				t.Fatal(err)
			}
			if !r.Is(first) {
				t.Error("the version before does not count")
			}
		})
	}
}
