package browser_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/browser"
	"tapin/internal/secret"
)

func TestAStateComesBackAsItWas(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) secret.Text { return secret.New(rapid.String().Draw(t, "text")) })
	item := rapid.Custom(func(t *rapid.T) browser.Item {
		return browser.Item{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
	})
	items := rapid.OneOf(rapid.Just[[]browser.Item](nil), rapid.SliceOfN(item, 0, 3))
	cookie := rapid.Custom(func(t *rapid.T) browser.Cookie {
		c := browser.Cookie{
			Name: rapid.String().Draw(t, "name"), Value: text.Draw(t, "value"), Domain: rapid.String().Draw(t, "domain"),
			Expires: rapid.Float64Range(0, 1e12).Draw(t, "expires"), HTTPOnly: rapid.Bool().Draw(t, "http only"),
			SameSite: rapid.String().Draw(t, "same site"), SourcePort: rapid.Int64().Draw(t, "port"),
		}
		if rapid.Bool().Draw(t, "partitioned") {
			c.Partition = &browser.PartitionKey{TopLevelSite: rapid.String().Draw(t, "site"), CrossSiteAncestor: rapid.Bool().Draw(t, "ancestor")}
		}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		want := browser.State{Cookies: rapid.SliceOfN(cookie, 1, 3).Draw(t, "cookies")}
		for _, origin := range rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "origins") {
			want.Origins = append(want.Origins, browser.OriginState{
				Origin: origin, Local: items.Draw(t, "local"), Session: items.Draw(t, "session"), Databases: []byte(`{"a":1}`),
			})
		}
		raw, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := browser.DecodeState(raw)
		if err != nil {
			t.Fatal(err)
		}
		reveal := cmp.Comparer(func(a, b secret.Text) bool { return a.Reveal() == b.Reveal() })
		if diff := cmp.Diff(want, got, reveal); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestADamagedStateIsNotQuoted(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"no JSON":       `{"canary`,
		"another shape": `{"version":1,"cookies":"canary"}`,
		"a later one":   `{"version":2}`,
		"nothing":       ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := browser.DecodeState([]byte(raw))
			if err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
}
