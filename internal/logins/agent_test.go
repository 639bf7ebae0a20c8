package logins

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/fault"
)

type loggedOut struct{}

func (loggedOut) Look(context.Context, Check, browser.State) (Seen, error) {
	return Seen{URL: "https://chase.com/login", Status: 200}, nil
}

func TestAFailedCheckOfLongAgoLetsNobodyDeleteTheLoginOfToday(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(t *testing.T, r *Room){
		"somebody logged in again": func(t *testing.T, r *Room) { save(t, r, "chase", "ses_2", "b") },
		"a person vouches for it":  func(t *testing.T, r *Room) { must(t, r.Verified(t.Context(), "chase", ByOwner)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, "contexts:\n  chase:\n    check: {url: https://chase.com/me, text: Log out}\n")
			save(t, r, "chase", "ses_1", "a")
			must(t, r.Release(t.Context(), "chase", "ses_1"))
			if got, err := r.CheckNow(t.Context(), "chase", loggedOut{}); err != nil || got.Result != Expired {
				t.Fatalf("the check says %v, %v", got, err)
			}
			mend(t, r)
			must(t, r.Release(t.Context(), "chase", "ses_2"))
			if _, err := r.Delete(t.Context(), "chase", &DeleteOptions{OnlyExpired: true}); !errors.Is(err, fault.Forbidden) {
				t.Errorf("it may be deleted: %v", err)
			}
			_, err := r.CheckNow(t.Context(), "chase", loggedOut{})
			must(t, err)
			if _, err := r.Delete(t.Context(), "chase", &DeleteOptions{OnlyExpired: true}); err != nil {
				t.Errorf("after a new check that failed: %v", err)
			}
		})
	}
}

func TestALoginNamedLikeADamagedFileIsALoginOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	save(t, r, "chase", "ses_1", "a")
	for _, name := range []string{"chase.age.damaged-1", "chase.age.1", "chase.age", "chase.json", "chase.age.damaged-20260101T000000.000Z"} {
		save(t, r, name, "ses_1", name)
	}
	if info := get(t, r, "chase"); len(info.SetAside) > 0 {
		t.Errorf("damaged: %v", info.SetAside)
	}
	must(t, r.Release(t.Context(), "chase", "ses_1"))
	_, err := r.Delete(t.Context(), "chase", nil)
	must(t, err)
	for _, name := range []string{"chase.age.damaged-1", "chase.age.1", "chase.age", "chase.json", "chase.age.damaged-20260101T000000.000Z"} {
		if info := get(t, r, name); !info.Saved || info.InUseBy != "ses_1" {
			t.Errorf("%s went with it: %+v", name, info)
		}
	}
}

func TestADomainIsTheOwnersOnlyWhereTheOwnerWroteIt(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "contexts:\n  work:\n    domain: chase.com\n")
	for _, name := range []string{"work", "mine"} {
		save(t, r, name, "ses_1", "a")
	}
	if get(t, r, "work").DomainNoticed || !get(t, r, "mine").DomainNoticed || get(t, r, "mine").Domain != "chase.com" {
		t.Errorf("%+v, %+v", get(t, r, "work"), get(t, r, "mine"))
	}
	raw, err := os.ReadFile(r.Manifest())
	must(t, err)
	before, after, _ := strings.Cut(string(raw), "mine:")
	must(t, os.WriteFile(r.Manifest(), []byte(before+"mine:"+strings.ReplaceAll(after, "chase.com", "chase.net")), 0o600))
	save(t, r, "mine", "ses_1", "b")
	if info := get(t, r, "mine"); info.DomainNoticed || info.Domain != "chase.net" {
		t.Errorf("corrected by the owner: %+v", info)
	}
	elsewhere := New(r.home, r.vault, &Options{Manifest: filepath.Join(t.TempDir(), "shared.yaml")})
	must(t, os.WriteFile(elsewhere.Manifest(), raw, 0o600))
	if !get(t, elsewhere, "work").DomainNoticed {
		t.Error("a manifest that another tapin may write passes for the owner's word")
	}
}
