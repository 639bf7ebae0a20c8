package sidecar

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"tapin/internal/browser"
	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/forget"
	"tapin/internal/logins"
	"tapin/internal/secret"
	"tapin/internal/site"
	"tapin/internal/store"
	"tapin/internal/trouble"
	"tapin/internal/vault"
)

// seededHome is a home with something of two sites in it.
func seededHome(t *testing.T) *store.Home {
	t.Helper()
	path := filepath.Join(forgetFolder(t), "home")
	seedSites(t, path)
	return openForgetting(t, path)
}

func openForgetting(t *testing.T, path string) *store.Home {
	t.Helper()
	h, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func write(t *testing.T, h *store.Home, name, text string) {
	t.Helper()
	if err := h.Write(name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func forgetIt(t *testing.T, h *store.Home, at string) (Forgotten, error) {
	t.Helper()
	return ForgetSite(t.Context(), h, config.Default(), forgetOptions(), site.Site(at), false, nil)
}

func notedSites(t *testing.T, h *store.Home) (sites []string) {
	t.Helper()
	all, err := forget.Noted(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		sites = append(sites, string(w.Site))
	}
	return sites
}

func TestAWishStaysWhileSomethingCannotBeReadAndIsFinishedOnceItCan(t *testing.T) {
	t.Parallel()
	h := seededHome(t)
	hof, login := "handoffs/hof_0canary0/meta.json", "contexts/"+otherWord+".age"
	whole, err := h.Read(hof)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := h.Read(login)
	if err != nil {
		t.Fatal(err)
	}
	write(t, h, hof, `{"handoff_id":"hof_0canary0","before":{"ori`)
	write(t, h, login, "sealed no more")
	write(t, h, "contexts/unrelated.json", `{"version":1,"na`)
	for range 2 { // a start tries again, and nothing changes
		done, err := forgetIt(t, h, forgottenSite)
		if err != nil || done.Finished || !slices.Equal(done.Left, []string{login, "contexts/unrelated.json", hof}) {
			t.Fatalf("it says %+v, %v", done, err)
		}
	}
	if noted := notedSites(t, h); !slices.Equal(noted, []string{forgottenSite}) {
		t.Errorf("noted is %v", noted)
	}
	if there, _ := h.Exists("contexts/" + forgottenWord + ".age"); there {
		t.Error("the login of the site was left for one of another that cannot be read")
	}

	s := &sidecar{board: &trouble.Board{}, opts: Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	s.showForgetting(finishForgetting(t.Context(), h, config.Default(), forgetOptions()))
	if list := s.board.List(); len(list) != 1 || list[0].State != trouble.Unfinished || !strings.Contains(list[0].Details, hof) || !strings.Contains(list[0].Hint, "--drop") || strings.Contains(list[0].Sentence(), forgottenSite) {
		t.Errorf("the board says %+v", list)
	}

	path := h.Path()
	_ = h.Close()
	h = openForgetting(t, path)
	write(t, h, hof, string(whole))
	write(t, h, login, string(sealed))
	write(t, h, "contexts/unrelated.json", `{"version":1,"name":"unrelated"}`)
	s.showForgetting(finishForgetting(t.Context(), h, config.Default(), forgetOptions()))
	if list := s.board.List(); len(list) > 0 || len(notedSites(t, h)) > 0 {
		t.Errorf("the board says %+v, noted is %v", list, notedSites(t, h))
	}
	_ = h.Close()
	if left := leftOf(t, path, forgottenSite, forgottenWord, "0canary0"); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
}

func TestForgettingThatIsRefusedIsNotNoted(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, h *store.Home){
		"a manifest that is none":      func(t *testing.T, h *store.Home) { write(t, h, "browser-contexts.yaml", "contexts: [") },
		"a record that cannot be read": func(t *testing.T, h *store.Home) { write(t, h, "contexts/"+forgottenWord+".json", `{"ver`) },
		"a keychain that is locked":    func(t *testing.T, h *store.Home) { write(t, h, "credentials.json", `{"sites":["`+forgottenSite+`"]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := seededHome(t)
			spoil(t, h)
			before := leftOf(t, h.Path(), forgottenSite, forgottenWord)
			if _, err := forgetIt(t, h, forgottenSite); err == nil {
				t.Fatal("it was not refused")
			}
			if noted := notedSites(t, h); len(noted) > 0 {
				t.Errorf("noted is %v", noted)
			}
			if after := leftOf(t, h.Path(), forgottenSite, forgottenWord); len(after) != len(before) {
				t.Errorf("of %v there is %v", before, after)
			}
		})
	}
}

func TestAWishThatIsNotFulfilledBlocksNoOtherAndCanBeGivenUp(t *testing.T) {
	t.Parallel()
	h := seededHome(t)
	write(t, h, "approvals/apr_torn.json", `{"site":"ano`)
	if done, err := forgetIt(t, h, forgottenSite); err != nil || done.Finished {
		t.Fatalf("it says %+v, %v", done, err)
	}
	if _, err := GiveUpForgetting(h, "nobody.test"); err != nil {
		t.Fatal(err)
	}
	done, err := forgetIt(t, h, otherSite)
	if err != nil || !slices.Equal(done.Pending, []string{forgottenSite}) {
		t.Fatalf("it says %+v, %v", done, err)
	}
	left := leftOf(t, h.Path(), otherWord, "0other0")
	delete(left, "forget.json") // the same file keeps this wish open, and what is noted names its records
	if len(left) > 0 {
		t.Errorf("of the other there is still %v", left)
	}
	for _, at := range []string{forgottenSite, otherSite} {
		if found, err := GiveUpForgetting(h, site.Site(at)); err != nil || !found {
			t.Errorf("%s was not given up: %v", at, err)
		}
	}
	if noted := notedSites(t, h); len(noted) > 0 {
		t.Errorf("noted is %v", noted)
	}
}

// What a start served with a wish that it could not fulfil is there after the
// next one, which can.
func TestAStartTakesNothingThatIsNewerThanTheWish(t *testing.T) {
	t.Parallel()
	h := seededHome(t)
	write(t, h, "approvals/apr_torn.json", `{"site":"ano`)
	if done, err := forgetIt(t, h, forgottenSite); err != nil || done.Finished {
		t.Fatalf("it says %+v, %v", done, err)
	}
	keys, err := vault.Open(t.Context(), h, forgetOptions())
	if err != nil {
		t.Fatal(err)
	}
	room := logins.New(h, keys, nil)
	if _, _, err := room.Checkout(t.Context(), forgottenWord, "ses_9"); err != nil {
		t.Fatal(err)
	}
	state := browser.State{Cookies: []browser.Cookie{{Name: "c", Value: secret.New("new"), Domain: "." + forgottenSite, Path: "/"}}}
	if _, err := room.Save(t.Context(), forgottenWord, "ses_9", state, logins.SaveOptions{Domain: forgottenSite}); err != nil {
		t.Fatal(err)
	}
	id := store.NewID("hof")
	write(t, h, "handoffs/"+id+"/meta.json", `{"handoff_id":"`+id+`","before":{"origin":"https://`+forgottenSite+`"}}`)
	feed, err := event.OpenFeed(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Publish(t.Context(), event.Event{ID: id, Version: 1, Type: "a", Data: []byte(`{"origin":"https://` + forgottenSite + `"}`)}); err != nil {
		t.Fatal(err)
	}
	_ = feed.Close()
	path := h.Path()
	_ = h.Close()
	h = openForgetting(t, path)
	write(t, h, "approvals/apr_torn.json", `{"site":"another.test"}`)
	if err := finishForgetting(t.Context(), h, config.Default(), forgetOptions()); err != nil || len(notedSites(t, h)) > 0 {
		t.Fatalf("%v, %v", err, notedSites(t, h))
	}
	left := leftOf(t, path, forgottenSite, "new")
	if left["handoffs/"+id+"/meta.json"] != 1 || left["events/00000000000000000003.jsonl"] != 1 {
		t.Errorf("what came later is gone: %v", left)
	}
	if info, err := logins.New(h, keys, nil).Get(t.Context(), forgottenWord); err != nil || !info.Saved {
		t.Errorf("the login that was saved later: %+v, %v", info, err)
	}
	// Asked for again, all of it is meant.
	if done, err := forgetIt(t, h, forgottenSite); err != nil && !errors.Is(err, fault.SessionActive) || !done.Finished {
		t.Fatalf("it says %+v, %v", done, err)
	}
	if left := leftOf(t, path, forgottenSite); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
}

// memoryKeychain is one that works.
type memoryKeychain map[string]string

func (m memoryKeychain) Get(service, _ string) (string, error) {
	if value, ok := m[service]; ok {
		return value, nil
	}
	return "", keyring.ErrNotFound
}

func (m memoryKeychain) Set(service, _, value string) error { m[service] = value; return nil }

func (m memoryKeychain) Delete(service, _ string) error {
	if _, ok := m[service]; !ok {
		return keyring.ErrNotFound
	}
	delete(m, service)
	return nil
}

func TestACredentialThatIsSetAfterTheWishStays(t *testing.T) {
	t.Parallel()
	h := openForgetting(t, filepath.Join(forgetFolder(t), "home"))
	opts := &vault.Options{Keyring: memoryKeychain{}, Getenv: func(string) string { return "" }}
	set := func(password string) {
		t.Helper()
		if err := vault.NewCredentials(h, opts).SaveLogin(t.Context(), forgottenSite, vault.Login{Password: secret.New(password)}); err != nil {
			t.Fatal(err)
		}
	}
	set("old")
	write(t, h, "approvals/apr_torn.json", `{"site":"ano`)
	done, err := ForgetSite(t.Context(), h, config.Default(), opts, forgottenSite, false, nil)
	if err != nil || done.Finished || done.Removed["credential"] != 1 {
		t.Fatalf("it says %+v, %v", done, err)
	}
	set("new")
	path := h.Path()
	_ = h.Close()
	h = openForgetting(t, path)
	write(t, h, "approvals/apr_torn.json", `{"site":"another.test"}`)
	if err := finishForgetting(t.Context(), h, config.Default(), opts); err != nil || len(notedSites(t, h)) > 0 {
		t.Fatalf("%v, %v", err, notedSites(t, h))
	}
	if login, err := vault.NewCredentials(h, opts).Login(t.Context(), forgottenSite); err != nil || login.Password.Reveal() != "new" {
		t.Errorf("the new one is gone: %v", err)
	}
}
