package handoff

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/page"
)

func drawn(t *rapid.T, label string) page.Observation {
	key := rapid.SampledFrom([]string{"a", "b", "c", "theme", "token"})
	return page.Observation{
		URL:    rapid.SampledFrom([]string{"https://a.example/", "https://a.example/x", "https://b.example/y?z=1"}).Draw(t, label+" url"),
		Origin: rapid.SampledFrom([]string{"https://a.example", "https://b.example"}).Draw(t, label+" origin"),
		Title:  rapid.SampledFrom([]string{"", "Sign in", "Accounts"}).Draw(t, label+" title"), Cookies: rapid.IntRange(0, 3).Draw(t, label+" cookies"),
		LocalKeys: rapid.SliceOfN(key, 0, 6).Draw(t, label+" local"), SessionKeys: rapid.SliceOfN(key, 0, 6).Draw(t, label+" session"),
		Fingerprint: rapid.SampledFrom([]string{"f1", "f2"}).Draw(t, label+" fingerprint"),
	}
}

func TestTheDeltaIsTheSameWhateverTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawn(t, "before"), drawn(t, "after")
		mixed := after
		mixed.LocalKeys = rapid.Permutation(after.LocalKeys).Draw(t, "order")
		mixed.SessionKeys = append(slices.Clone(after.SessionKeys), after.SessionKeys...)
		one := delta(snapshot(before, noon), snapshot(after, noon))
		two := delta(snapshot(before, noon), snapshot(mixed, noon.Add(time.Hour)))
		if diff := cmp.Diff(one, two); diff != "" || summarize(one) != summarize(two) {
			t.Fatal(diff)
		}
		var fields []string
		changes := 0
		for _, c := range one {
			fields = append(fields, c.Field)
			if c.Change == changed {
				changes++
			}
		}
		if !slices.Equal(fields, []string{"url", "title", "origin", "cookie_count", "storage_keys", "dom_fingerprint"}) {
			t.Fatal(fields)
		}
		if strings.Contains(summarize(one), "Nothing changed") != (changes == 0) {
			t.Fatal(summarize(one))
		}
		for _, c := range delta(snapshot(after, noon), snapshot(mixed, noon)) {
			if c.Change != unchanged {
				t.Fatalf("%s is said to have changed", c.Field)
			}
		}
	})
}

func TestTheSummaryIsASentence(t *testing.T) {
	t.Parallel()
	before := Snapshot{URL: "https://bank.example/login", Title: "Sign in", Origin: "https://bank.example", CookieCount: 1, DOMFingerprint: "f1"}
	after := Snapshot{URL: "https://bank.example/home", Title: "Accounts", Origin: "https://bank.example", CookieCount: 3, LocalKeys: []string{"token"}, DOMFingerprint: "f2"}
	want := "URL changed from https://bank.example/login to https://bank.example/home; title changed from “Sign in” to “Accounts”; " +
		"cookie count changed from 1 to 3; storage key set changed; DOM fingerprint changed; unchanged: origin."
	if got := summarize(delta(before, after)); got != want {
		t.Errorf("got %s", got)
	}
	if got := summarize(delta(before, before)); got != "Nothing changed: URL, title, origin, cookie count, storage key set and DOM fingerprint are as before." {
		t.Errorf("got %s", got)
	}
}

func TestASnapshotHoldsNothingThatMayBeASecret(t *testing.T) {
	t.Parallel()
	const token = "eyJhbGciOiJIUzI1NiJ9xyz01234"
	s := snapshot(page.Observation{
		URL: "https://user:pass@a.example/reset/x?code=" + token + "#" + token, Origin: "https://a.example",
		Title: "Reset " + token, LocalKeys: []string{"b", token, "a", "a"}, SessionKeys: []string{strings.Repeat("k", 70)},
	}, noon)
	raw, err := json.Marshal(s)
	must(t, err)
	for _, no := range []string{token, "pass", "code", strings.Repeat("k", 65)} {
		if strings.Contains(string(raw), no) {
			t.Errorf("%q is in %s", no, raw)
		}
	}
	if s.URL != "https://a.example/reset/x" || s.Title != "Reset ‹hidden:28›" || !slices.IsSorted(s.LocalKeys) || len(s.LocalKeys) != 3 {
		t.Errorf("got %+v", s)
	}
}

func TestAddressesAreBareWhateverTheirForm(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://a.example/b?c#d":          "https://a.example/b",
		"https://u:p@a.example/":           "https://a.example/",
		"about:blank":                      "about:blank",
		"about:blank#x":                    "about:blank",
		"data:text/html,<b>secret</b>":     "data:",
		"javascript:secret":                "javascript:",
		"https://u:p@a.example/%zz?x":      "https://a.example/%zz",
		"blob:https://u:p@a.example/1":     "blob:https://a.example/1",
		"blob:https://a.example/1?x":       "blob:https://a.example/1",
		"https://a.example/%zz?secret#abc": "https://a.example/%zz",
	} {
		if got := bareURL(given); got != want {
			t.Errorf("%s became %s", given, got)
		}
	}
}

func FuzzBareURL(f *testing.F) {
	for _, s := range []string{"https://u:p@a.example/b?c#d", "data:,x", "about:blank", "%zz?#", "//u@h/?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := bareURL(s)
		if strings.ContainsAny(got, "?#") {
			t.Errorf("%q became %q", s, got)
		}
		if u, err := url.Parse(got); err == nil && u.User != nil {
			t.Errorf("%q became %q, with a name in it", s, got)
		}
		if again := bareURL(got); utf8.RuneCountInString(got) <= 2048 && again != got {
			t.Errorf("%q became %q, then %q", s, got, again)
		}
	})
}
