package inbox_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
	"tapin/internal/inbox"
	"tapin/internal/store"
)

func open(t *testing.T, path string, guard func(string) error) *inbox.Room {
	t.Helper()
	home, err := store.Open(path, &store.Options{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	r, err := inbox.New(home)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func put(t *testing.T, r *inbox.Room, text, key string) {
	t.Helper()
	if err := r.Put(t.Context(), inbox.Message{Kind: inbox.Words, Text: text}, key); err != nil {
		t.Fatal(err)
	}
}

func texts(t *testing.T, r *inbox.Room, after uint64) string {
	t.Helper()
	found, err := r.Wait(t.Context(), after, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range found {
		out = append(out, m.Text)
	}
	return strings.Join(out, " ")
}

func TestMessagesStayUntilTheyAreAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	r := open(t, path, nil)
	put(t, r, "a", "1")
	put(t, r, "b", "2")
	put(t, r, "b again", "2")
	put(t, r, "c", "")
	if got := texts(t, r, 0); got != "a b c" {
		t.Fatalf("got %s", got)
	}
	if got := texts(t, open(t, path, nil), 1); got != "b c" {
		t.Errorf("after a restart: %s", got)
	}
	if err := r.Acknowledge(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	r = open(t, path, nil)
	put(t, r, "a again", "1") // its key outlives it
	put(t, r, "d", "4")
	if got := texts(t, r, 0); got != "c d" {
		t.Errorf("got %s", got)
	}
	if err := r.Acknowledge(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	put(t, r, "e", "")
	if found, _ := r.Wait(t.Context(), 4, 0, 0); len(found) != 1 || found[0].Seq != 5 {
		t.Errorf("got %+v", found)
	}
}

func TestAMessageThatAKillInterruptedIsThereOnce(t *testing.T) {
	t.Parallel()
	for step := 1; step < 12; step++ {
		path := filepath.Join(t.TempDir(), "h")
		put(t, open(t, path, nil), "before", "0")
		n := 0
		home, err := store.Open(path, &store.Options{Guard: func(string) error {
			if n++; n >= step {
				return fault.New(fault.StorageFull, "", "killed")
			}
			return nil
		}})
		if err != nil {
			continue
		}
		if r, err := inbox.New(home); err == nil {
			_ = r.Put(t.Context(), inbox.Message{Kind: inbox.Words, Text: "once"}, "1")
		}
		_ = home.Close()
		r := open(t, path, nil)
		put(t, r, "once", "1")
		if got := texts(t, r, 0); got != "before once" {
			t.Errorf("killed at write %d: %q", step, got)
		}
	}
}

func TestWhoWaitsIsWoken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	synctest.Test(t, func(t *testing.T) {
		r := open(t, path, nil)
		go func() {
			time.Sleep(time.Second)
			put(t, r, "hello", "")
		}()
		began := time.Now()
		found, err := r.Wait(t.Context(), 0, 0, time.Minute)
		if err != nil || len(found) != 1 || time.Since(began) != time.Second {
			t.Errorf("%v %v after %v", found, err, time.Since(began))
		}
	})
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	r := open(t, filepath.Join(t.TempDir(), "h"), nil)
	for name, m := range map[string]inbox.Message{
		"no text":   {Kind: inbox.Words, Text: " "},
		"no kind":   {Text: "x"},
		"not UTF-8": {Kind: inbox.Words, Text: "\xff"},
		"very long": {Kind: inbox.Words, Text: strings.Repeat("x", 17000)},
	} {
		if err := r.Put(t.Context(), m, ""); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
