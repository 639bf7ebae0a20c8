package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// ways are links that only count.
type ways struct{ made, revoked []string }

func (w *ways) Open(context.Context, string) (string, secret.Text, error) {
	id := store.NewID("lnk")
	w.made = append(w.made, id)
	return id, secret.New("/live/" + id + "#t=x"), nil
}
func (w *ways) Move(context.Context, string, int) error { return nil }
func (w *ways) Revoke(_ context.Context, id string) error {
	w.revoked = append(w.revoked, id)
	return nil
}

func newBook(t *testing.T, guard func(string) error) (*book, *ways, *store.Home) {
	t.Helper()
	home, err := store.Open(t.TempDir(), &store.Options{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	w := &ways{}
	b := openBook(t.Context(), home, w, slog.New(slog.DiscardHandler))
	return b, w, home
}

func (b *book) mustSignIn(t *testing.T) (string, secret.Text) {
	t.Helper()
	token, _, err := b.mint()
	if err != nil {
		t.Fatal(err)
	}
	own, err := b.claim(t.Context(), token, "A browser on a device", "")
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := b.enter(own)
	if err != nil {
		t.Fatal(err)
	}
	return id, own
}

func TestASignInLivesTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := newBook(t, nil)
		token, until, err := b.mint()
		if err != nil || !until.Equal(time.Now().Add(signInWithin)) {
			t.Fatal(until, err)
		}
		late, _, _ := b.mint()
		time.Sleep(signInWithin - time.Second)
		if _, err := b.claim(t.Context(), token, "x", ""); err != nil {
			t.Errorf("a second before its end: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := b.claim(t.Context(), late, "x", ""); !errors.Is(err, fault.Unauthorized) {
			t.Errorf("at its end: %v", err)
		}
	})
}

func TestADeviceIsSignedOutAMonthAfterItWasLastSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, w, home := newBook(t, nil)
		id, own := b.mustSignIn(t)
		if _, err := b.open(t.Context(), id, "ses_1", func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if _, renew, err := b.enter(own); renew || err != nil {
			t.Errorf("at once: %v %v", renew, err)
		}
		for range 3 {
			time.Sleep(29 * 24 * time.Hour)
			if _, renew, err := b.enter(own); !renew || err != nil {
				t.Fatalf("after 29 days: %v %v", renew, err)
			}
		}
		time.Sleep(29 * 24 * time.Hour)
		if !b.isIn(id) {
			t.Error("an open socket does not count as being seen")
		}
		time.Sleep(signedInFor)
		if _, _, err := b.enter(own); !errors.Is(err, fault.Unauthorized) || b.isIn(id) || len(b.list()) != 0 {
			t.Errorf("after 30 days: %v", err)
		}
		if _, err := b.open(t.Context(), id, "ses_1", func(string) bool { return false }); !errors.Is(err, fault.Unauthorized) {
			t.Errorf("it opens browsers: %v", err)
		}
		// The next start, or sign-in, forgets it and what it could open.
		next := openBook(t.Context(), home, w, slog.New(slog.DiscardHandler))
		if len(next.now.Devices) != 0 || len(w.revoked) != 1 || w.revoked[0] != w.made[0] {
			t.Errorf("the next start: %v, revoked %v", next.now.Devices, w.revoked)
		}
	})
}

func TestThereAreOnlySoManyOfEach(t *testing.T) {
	t.Parallel()
	b, w, _ := newBook(t, nil)
	first, _, _ := b.mint()
	for range maxSignIns {
		if _, _, err := b.mint(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.claim(t.Context(), first, "x", ""); !errors.Is(err, fault.Unauthorized) || len(b.now.SignIns) != maxSignIns {
		t.Errorf("the oldest of %d sign-ins: %v", len(b.now.SignIns), err)
	}
	id, own := b.mustSignIn(t)
	for range maxLinks + 2 {
		if _, err := b.open(t.Context(), id, "ses_1", func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.revoked) != 2 || w.revoked[0] != w.made[0] {
		t.Errorf("revoked: %v", w.revoked)
	}
	if _, err := b.open(t.Context(), id, "ses_1", func(string) bool { return true }); err != nil || len(w.revoked) != 2+maxLinks {
		t.Errorf("those that nobody used: %v, %v", len(w.revoked), err)
	}
	for range maxDevices {
		b.mustSignIn(t)
	}
	if _, _, err := b.enter(own); !errors.Is(err, fault.Unauthorized) || len(b.list()) != maxDevices {
		t.Errorf("the device not seen for the longest time: %v, of %d", err, len(b.list()))
	}
	if len(w.revoked) != len(w.made) {
		t.Errorf("its links: %d of %d are revoked", len(w.revoked), len(w.made))
	}
}

// TestADyingDiskLeavesWhatIsTrue lets the disk die at every write in turn: what
// was acknowledged is there after a restart, and a token is never good twice.
func TestADyingDiskLeavesWhatIsTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dies := rapid.IntRange(0, 40).Draw(rt, "dies")
		writes, used := 0, false
		b, w, home := newBook(t, func(string) error {
			if writes++; used && writes > dies {
				return errors.New("no disk")
			}
			return nil
		})
		writes, used = 0, true
		in := map[string]secret.Text{}
		var spent, out []secret.Text
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			token, _, err := b.mint()
			if err != nil {
				break
			}
			own, err := b.claim(t.Context(), token, "x", "")
			if err != nil {
				break
			}
			id, _, err := b.enter(own)
			if err != nil {
				rt.Fatal(err)
			}
			in[id], spent = own, append(spent, token)
			if rapid.Bool().Draw(rt, "out") {
				delete(in, id) // cut short, it may be out or not
				if b.signOut(t.Context(), id) == nil {
					out = append(out, own)
				}
			}
		}
		used = false // a new disk
		next := openBook(t.Context(), home, w, slog.New(slog.DiscardHandler))
		for id, own := range in {
			if got, _, err := next.enter(own); err != nil || got != id {
				rt.Fatalf("a device is out that was in: %v", err)
			}
		}
		for _, own := range out {
			if _, _, err := next.enter(own); !errors.Is(err, fault.Unauthorized) {
				rt.Fatalf("a device is in that was signed out: %v", err)
			}
		}
		for _, token := range spent {
			if _, err := next.claim(t.Context(), token, "x", ""); !errors.Is(err, fault.Unauthorized) {
				rt.Fatalf("a token is good twice: %v", err)
			}
		}
	})
}

func TestWhatADeviceIsCalled(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1":                        "Safari on iPhone",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/130.0 Mobile/15E148 Safari/604.1":                         "Chrome on iPhone",
		"Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36":                                          "Chrome on Android",
		"Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36":                     "Samsung Internet on Android",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:132.0) Gecko/20100101 Firefox/132.0":                                                                           "Firefox on Mac",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0":                                  "Edge on Windows",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36":                                                          "Chrome on Linux",
		"Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/130.0 Mobile Safari/537.36 Telegram-Android/11.2 (Pixel; Android 14)": "Telegram on Android",
		"": "A browser on a device",
		"<script>alert(1)</script>\x00\u202eiPhone": "A browser on iPhone",
	} {
		if got := nameOf(agent); got != want {
			t.Errorf("%q is called %q, want %q", agent, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"t":"ping","n":1}`, `{"t":"do","a":"done","id":"hof_1","version":3,"seq":1}`, `{"t":"do","a":"move","number":47}`, `{`, ``, `null`, `{"t":"do","a":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parse(raw)
		if err != nil {
			if m != (message{}) || errors.Is(err, fault.Internal) {
				t.Errorf("refused, and yet %v %v", m, err)
			}
			return
		}
		if m.T != "ping" && m.T != "do" || len(raw) > maxMessage || !utf8.ValidString(m.ID) {
			t.Errorf("accepted %+v", m)
		}
		if _, err := json.Marshal(m); err != nil {
			t.Error(err)
		}
	})
}

func FuzzNameOf(f *testing.F) {
	f.Add("Mozilla/5.0 (iPhone) Safari/604.1")
	f.Fuzz(func(t *testing.T, agent string) {
		if name := nameOf(agent); len(name) > 40 || strings.ContainsAny(name, "<>&\x00\n") {
			t.Errorf("a device is called %q", name)
		}
	})
}
