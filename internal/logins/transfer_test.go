package logins

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

func TestASavedLoginTravelsToAnotherTapin(t *testing.T) {
	t.Parallel()
	here, there := newRoom(t, ""), newRoom(t, "")
	save(t, here, "chase", "ses_1", "a") // in use: what is saved can be carried all the same
	out, err := here.Export(t.Context(), "chase", ExportOptions{})
	must(t, err)
	again, err := here.Export(t.Context(), "chase", ExportOptions{Origin: origin})
	must(t, err)
	if !bytes.Equal(out.Raw, again.Raw) || out.Envelope.Origin != origin || !cmp.Equal(out.NotCarried, []string{"indexedDB"}) {
		t.Errorf("two exports of what is saved differ, or are of %s", out.Envelope.Origin)
	}
	e, err := Verify(out.Raw)
	must(t, err)
	got, err := there.Import(t.Context(), "bank", e, &ImportOptions{OnlyNew: true})
	if want := (Imported{New: true, Cookies: 2, StorageKeys: 1, LeftAlone: []string{"indexedDB"}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	info := get(t, there, "bank")
	if info.Domain != "chase.com" || info.Cookies != 2 || info.InUseBy != "" || !info.LastVerified.IsZero() {
		t.Errorf("it arrived as %+v", info)
	}
	back, err := there.Export(t.Context(), "bank", ExportOptions{Origin: origin, CapturedAt: out.Envelope.CapturedAt})
	if err != nil || !bytes.Equal(back.Raw, out.Raw) {
		t.Errorf("what comes back is another: %v", err)
	}
	if _, err := there.Import(t.Context(), "bank", e, &ImportOptions{OnlyNew: true}); !errors.Is(err, fault.Forbidden) {
		t.Errorf("once more: %v", err)
	}
	if _, err := here.Import(t.Context(), "chase", e, nil); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("an import into a login in use: %v", err)
	}
	if _, err := here.Export(t.Context(), "nobody", ExportOptions{}); !errors.Is(err, fault.NotFound) {
		t.Errorf("an export of nothing: %v", err)
	}
}

func TestAnImportReplacesItsOriginAndNothingElse(t *testing.T) {
	t.Parallel()
	cookie := func(name, domain string) browser.Cookie {
		return browser.Cookie{Name: name, Value: secret.New("v"), Domain: domain, Path: "/"}
	}
	items := func(key string) []browser.Item {
		return []browser.Item{{Key: secret.New(key), Value: secret.New("v")}}
	}
	before := browser.State{
		Cookies: []browser.Cookie{
			cookie("old", "www.chase.com"), cookie("shared", ".chase.com"), cookie("beside", "secure.chase.com"), cookie("other", ".example.com"),
			{Name: "embedded", Value: secret.New("v"), Domain: "www.chase.com", Path: "/", Secure: true, Partition: &browser.PartitionKey{TopLevelSite: "https://news.example"}},
		},
		Origins: []browser.OriginState{
			{Origin: "https://example.com", Local: items("other")},
			{Origin: origin, Local: items("old"), Session: items("kept"), Databases: []byte("db")},
		},
	}
	e := Envelope{Origin: origin, Cookies: []browser.Cookie{cookie("new", "www.chase.com")}, Local: []browser.Item{}}
	next, left := Replace(before, e)
	want := browser.State{
		Cookies: []browser.Cookie{before.Cookies[2], before.Cookies[3], before.Cookies[4], e.Cookies[0]},
		Origins: []browser.OriginState{before.Origins[0], {Origin: origin, Local: []browser.Item{}, Session: items("kept"), Databases: []byte("db")}},
	}
	if diff := cmp.Diff(plain(want), plain(next)); diff != "" || !cmp.Equal(left, []string{"sessionStorage", "indexedDB"}) {
		t.Errorf("left alone %v: %s", left, diff)
	}
	if before.Cookies[0].Name != "old" || len(before.Origins[1].Local) != 1 {
		t.Error("the state before was changed")
	}
}

func TestALoginOfSeveralOriginsMustSayWhich(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	_, _, err := r.Checkout(t.Context(), "two", "ses_1")
	must(t, err)
	state := browser.State{Origins: []browser.OriginState{{Origin: "https://a.example.com"}, {Origin: "https://b.example.com"}}}
	_, err = r.Save(t.Context(), "two", "ses_1", state, SaveOptions{})
	must(t, err)
	if _, err := r.Export(t.Context(), "two", ExportOptions{}); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Export(t.Context(), "two", ExportOptions{Origin: "https://b.example.com"}); err != nil {
		t.Errorf("got %v", err)
	}
}
